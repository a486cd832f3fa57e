'use strict';
// What the pages share.
const D = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const el = (tag, cls, text) => {
  const e = document.createElement(tag);
  if (cls) e.className = cls;
  if (text !== undefined) e.textContent = text;
  return e;
};
const digits = (x, n) => x.toLocaleString('en-GB', {minimumFractionDigits: n, maximumFractionDigits: n});
const ms = x => x >= 1e4 ? digits(x / 1e3, 1) + ' s' : x >= 100 ? digits(x, 0) + ' ms' : x >= 1 ? digits(x, 2) + ' ms' :
  digits(x * 1000, x < 0.01 ? 1 : 0) + ' µs';
const bytes = x => x >= 1e7 * 1.048576 ? digits(x / 1048576, 0) + ' MB' : x >= 1048576 ? digits(x / 1048576, 1) + ' MB' : digits(x / 1024, 0) + ' KB';
const percent = x => x === 0 ? '0%' : x > 0 && x < 0.001 ? '<0.1%' : digits(x * 100, x < 0.1 ? 1 : 0) + '%';

function table(target, head, rows) {
  const line = (tag, cells) => {
    const row = el('tr');
    for (const cell of cells) {
      const box = el(tag);
      box.append(cell);
      row.append(box);
    }
    target.append(row);
  };
  line('th', head);
  for (const row of rows) line('td', row);
}
function bar(share) {
  const box = el('span'), inner = el('i', 'bar');
  inner.style.width = Math.max(0, Math.min(1, share)) * 110 + 'px';
  box.append(inner, ' ' + percent(share));
  return box;
}
// Times by ways from the outside inwards, as a table: a line for each way with all below it, the
// longest first. What has no other part is one line; what has less than half a percent is left out.
// `fromRoot`: a name is that of all ways from the root.
function tree(target, title, separator, fromRoot, leaves) {
  const root = {ms: 0, own: 0, below: new Map()};
  for (const {way, ms} of leaves) {
    let node = root;
    node.ms += ms;
    for (const name of way) {
      if (!node.below.has(name)) node.below.set(name, {ms: 0, own: 0, below: new Map()});
      node = node.below.get(name);
      node.ms += ms;
    }
    node.own += ms;
  }
  const rows = [], stack = [{node: root, name: '', depth: -1}];
  while (stack.length) {
    let {node, name, depth} = stack.pop();
    if (depth >= 0) {
      if (node.ms < 0.005 * root.ms) continue;
      while (node.own === 0 && node.below.size === 1) {
        const [next, child] = [...node.below][0];
        name += separator + next;
        node = child;
      }
      const cell = el('span', '', name);
      cell.style.paddingLeft = depth * 1.2 + 'em';
      rows.push([cell, ms(node.ms), bar(root.ms > 0 ? node.ms / root.ms : 0)]);
    }
    const below = [...node.below].sort((a, b) => a[1].ms - b[1].ms);
    for (const [next, child] of below)
      stack.push({node: child, name: fromRoot && depth >= 0 ? name + separator + next : next, depth: depth + 1});
  }
  table(target, [title, 'ms', 'of the kernels'], rows);
}
const byLayer = layers => layers.map(l => ({way: (l.layer || 'without a layer').split('.'), ms: l.ms}));
