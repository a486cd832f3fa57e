const M = D.mini_batch;
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const count = (n, word, plural) => digits(n, 0) + ' ' + (n === 1 ? word : plural || word + 's');
const lineOf = place => Number(place.slice(place.lastIndexOf(':') + 1));
const whyText = {recursion: 'recursion', depth: 'other depth', read: 'read', total: 'no more of it'};

const kernels = M.kernels;
const rowOf = new Map(kernels.map((k, i) => [k.kernel, i]));
const kernelMs = kernels.reduce((s, k) => s + k.ms, 0);
const lost = M.launches.reduce((s, l) => s + (l.why_few === 'no' ? 0 : l.lost_ms), 0);
const flop = kernels.reduce((s, k) => s + k.gflop, 0);
const fileOf = place => place.slice(0, place.lastIndexOf(':'));
const textOfLine = new Map(); // by place
for (const file of [D.source, ...D.source.used])
  file.text.split('\n').forEach((text, i) => textOfLine.set(file.name + ':' + (i + 1), text));
const lineText = place => (fileOf(place) === D.source.name ? 'line ' : fileOf(place) + ' line ') + lineOf(place);

//===--- Head ---===//
{
  document.title = 'sheaf: ' + D.model + ', ' + M.instances + ' instances';
  $('title').textContent = D.model + ': a mini-batch of ' + count(M.instances, 'instance');
  const dims = Object.entries(D.dims).map(([k, v]) => k + ' ' + v).join(', ');
  $('subtitle').textContent = [D.source.name, dims, count(M.threads, 'thread'), 'policy ' + M.policy,
    D.target.cpu, 'shortest of ' + count(M.repetitions, 'repetition') +
      (M.other_repetitions ? ' with this schedule, ' + M.other_repetitions + ' had others' : '')].filter(x => x).join(' · ');
  const share = kernelMs > 0 ? lost / kernelMs : 0;
  const few = M.few_rows[0];
  const rows = M.records / Math.max(1, M.launches.length);
  let text;
  if (!M.launches.length) text = 'Nothing ran: no kernel was launched.';
  else if (share < 0.05 && rows < 2 && M.records > 16)
    text = 'There is hardly a batch here: ' + digits(rows, 1) + ' rows a launch. It costs little, for these rows take as long when they run at once.';
  else if (lost === 0) text = 'Batching works here: no launch takes much longer than its rows do when they run at once.';
  else if (share < 0.05)
    text = 'Batching works here: all but ' + percent(share) + ' of the kernels’ time is what the same rows take when they run at once.';
  else
    text = 'Few rows in a launch cost ' + ms(lost) + ', ' + percent(share) + ' of the kernels’ time' +
      (few ? '; most of it in ' + name(few.kernel) + ', ' + short(few) + '.' : '.');
  $('sentence').textContent = text;
  if (M.failed) $('sentence').append(' ' + count(M.failed, 'instance') + ' failed, the first: ' + M.error);
  const peak = M.peak_gflops * 1e-3 * kernelMs;
  const top = Math.max(0, ...M.memory.map(m => total(m)));
  for (const [value, what, cls] of [
    [ms(M.ms), 'the mini-batch; of the processor ' + ms(M.cpu_ms)],
    [digits(rows, 1), 'rows a launch, ' + count(M.launches.length, 'launch', 'launches')],
    [ms(lost), 'lost to few rows (' + percent(share) + ')', share >= 0.2 ? 'bad' : share < 0.05 && rows >= 2 ? 'good' : ''],
    [peak > 0 ? percent(flop / peak) : '–', 'of peak inside kernels' + (M.peak_too_low ? ', measured too low' : '')],
    [digits(M.saved_records, 0), 'memoised records, of ' + digits(M.saved_records + M.records, 0)],
    ['least_launches' in M ? digits(M.least_launches, 0) : '–', 'launches that any order needs'],
    [digits(M.flushes.filter(f => f.demanded).length, 0), 'flushes for reads, ' + count(M.waits, 'wait')],
    [bytes(top), 'memory at most'],
  ]) {
    const tile = el('div', 'tile ' + (cls || ''));
    tile.append(el('b', '', value), el('span', '', what));
    $('tiles').append(tile);
  }
  const other = Math.max(0, M.ms - M.record_ms - M.order_ms - M.kernel_ms);
  const parts = [['recording', M.record_ms, '--record'], ['ordering', M.order_ms, '--order'],
    ['kernels', M.kernel_ms, '--kernel'], ['other', other, '--other']];
  const sum = parts.reduce((s, p) => s + p[1], 0) || 1;
  for (const [what, value, colour] of parts) {
    const bar = el('i');
    bar.style.width = value / sum * 100 + '%';
    bar.style.background = 'var(' + colour + ')';
    $('split').append(bar);
    const key = el('span', 'key');
    key.style.background = 'var(' + colour + ')';
    $('splitText').append(key, what + ' ' + ms(value) + ' (' + percent(value / sum) + ')   ');
  }
  $('split').setAttribute('aria-label', parts.map(p => p[0] + ' ' + ms(p[1])).join(', '));
}
function name(kernel) { return kernels[rowOf.get(kernel)].name; }
function short(few) {
  return {recursion: 'a recursion that few instances take so far (' + lineText(few.place) + ')',
    depth: 'whose records lie at different depths (' + lineText(few.place) + ')',
    read: 'which the read of ' + lineText(few.place) + ' makes run early',
    total: 'of which there is no more'}[few.why];
}
function total(m) { return Object.entries(m).reduce((s, [k, v]) => k === 'ms' ? s : s + v, 0); }

//===--- Source ---===//
const shareOf = new Map(M.lines.map(line => [line.place, line]));
const kernelsOf = new Map(); // place -> kernels
for (const k of kernels)
  for (const line of D.blocks[k.kernel] ? D.blocks[k.kernel].lines : []) {
    if (!kernelsOf.has(line.place)) kernelsOf.set(line.place, []);
    kernelsOf.get(line.place).push(k.kernel);
  }
const inSource = place => textOfLine.has(place);
const sourceRows = new Map(); // by place
// The model's file, and of those that it uses the ones that take time.
for (const file of [D.source, ...D.source.used.filter(f => M.lines.some(l => fileOf(l.place) === f.name))]) {
  if (file !== D.source) $('source').append(el('div', 'file', file.name));
  const lines = file.text.split('\n');
  if (lines[lines.length - 1] === '') lines.pop();
  lines.forEach((text, i) => {
    const place = file.name + ':' + (i + 1);
    const row = el('div', 'src'), line = shareOf.get(place);
    row.append(el('span', 'n', i + 1), el('span', 'p', line && line.share >= 0.0005 ? percent(line.share) : ''));
    const bar = el('span', 'b');
    if (line) {
      const inner = el('i');
      inner.style.width = Math.max(line.share * 100, 2) + '%';
      bar.append(inner);
      if (line.share >= 0.05) row.classList.add('hot');
      row.title = ms(line.ms) + ' in ' + kernelsOf.get(place).map(name).join(', ');
    }
    row.append(bar, el('span', 't', text || ' '));
    row.addEventListener('mouseenter', () => select(null, place));
    row.addEventListener('mouseleave', () => select(null));
    $('source').append(row);
    sourceRows.set(place, row);
  });
}
{
  const hottest = M.lines.filter(l => inSource(l.place)).sort((a, b) => b.share - a.share)[0];
  if (hottest) requestAnimationFrame(() => showLine(hottest.place));
}
function showLine(place) {
  const row = sourceRows.get(place), box = $('source');
  if (row) box.scrollTop += row.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3;
}
function lineLink(place) {
  const a = el('a', 'line', inSource(place) ? lineText(place) : place);
  if (inSource(place)) {
    a.tabIndex = 0;
    const go = () => {
      showLine(place);
      $('sourceSection').scrollIntoView({block: 'nearest'});
      select(null, place);
    };
    a.addEventListener('click', go);
    a.addEventListener('keydown', e => { if (e.key === 'Enter') go(); });
  }
  return a;
}

//===--- Schedule ---===//
const HEAD = 24, ROW = 66, LEAST = 4, MOST = 36;
// Kernels with one launch may have many more rows than the others: their bars are cut.
const several = M.launches.filter(l => kernels[rowOf.get(l.kernel)].launches > 1);
const maxRows = Math.max(1, ...(several.length ? several : M.launches).map(l => l.rows));
const heightOf = l => Math.max(2, (ROW - 14) * Math.min(1, l.rows / maxRows));
const times = M.launches.map(l => l.ms).filter(x => x > 0);
const minMs = Math.min(...times), maxMs = Math.max(...times);
const canvas = $('canvas'), scroller = $('scroller');
let columnWidth = LEAST, chosen = null, marked = new Set();
const cells = kernels.map(() => new Map()); // by row, by step: the launches' numbers
M.launches.forEach((l, i) => {
  const row = cells[rowOf.get(l.kernel)];
  if (!row.has(l.step)) row.set(l.step, []);
  row.get(l.step).push(i);
});
const firstOfStep = [];
M.launches.forEach(l => { if (!firstOfStep[l.step]) firstOfStep[l.step] = l; });
kernels.forEach((k, i) => {
  const label = el('div', 'k');
  label.style.height = ROW + 'px';
  label.append(el('b', '', k.name));
  label.append(el('span', '', count(k.launches, 'launch', 'launches') + ' of ' + (k.rows_min === k.rows_max ? k.rows_max : k.rows_min + '–' + k.rows_max)));
  label.append(el('span', '', lineText(k.place) + ' · ' + percent(k.ms / kernelMs)));
  const bar = el('span', 'bar'), inner = el('i');
  inner.style.width = k.ms / kernelMs * 100 + '%';
  bar.append(inner);
  label.append(bar);
  label.title = k.name + ', ' + k.place + ', median ' + k.rows_median + ' rows';
  label.addEventListener('mouseenter', () => select({kernel: k.kernel}));
  label.addEventListener('mouseleave', () => select(null));
  $('labels').append(label);
});
$('scheduleNote').textContent = 'Steps in the order in which they ran go across, kernels down. The area of a bar is its rows, its colour its time; a mark below it says why it had few rows. ' +
  'Low bars in a strong colour are where batching fails.';
function legend() {
  $('legend').textContent = '';
  const scale = el('span');
  scale.append(times.length ? ms(minMs) : '', el('i', 'scale'), times.length ? ms(maxMs) : '');
  $('legend').append(scale, el('span', '', 'full height: ' + count(maxRows, 'row') + (M.launches.some(l => l.rows > maxRows) ? ', taller bars are cut' : '')));
  for (const why of ['recursion', 'depth', 'read', 'total'])
    if (M.launches.some(l => l.why_few === why)) {
      const item = el('span'), key = el('span', 'key');
      key.style.background = 'var(--' + why + ')';
      item.append(key, whyText[why]);
      item.title = {recursion: 'records of the kernel wait for one another', depth: 'records of the kernel lie at different depths',
        read: 'instances waited for a tensor', total: 'the mini-batch has no more of them'}[why];
      $('legend').append(item);
    }
}
function mix(a, b, t) {
  const parse = h => [1, 3, 5].map(i => parseInt(h.slice(i, i + 2), 16));
  const x = parse(a), y = parse(b);
  return 'rgb(' + x.map((v, i) => Math.round(v + (y[i] - v) * t)).join(',') + ')';
}
let palette;
function colourOf(launch) {
  const t = maxMs > minMs ? Math.log(Math.max(launch.ms, minMs) / minMs) / Math.log(maxMs / minMs) : 1;
  return t < 0.5 ? mix(palette.fast, palette.middle, t * 2) : mix(palette.middle, palette.slow, t * 2 - 1);
}
function drawSchedule() {
  const width = scroller.clientWidth, height = HEAD + kernels.length * ROW;
  columnWidth = Math.min(MOST, Math.max(LEAST, (width - 8) / Math.max(1, M.steps)));
  $('spacer').style.width = Math.max(width, columnWidth * M.steps + 8) + 'px';
  const scale = window.devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.width = width + 'px';
  canvas.style.height = height + 'px';
  const g = canvas.getContext('2d');
  g.scale(scale, scale);
  palette = {};
  for (const c of ['fast', 'middle', 'slow', 'ink', 'dim', 'card', 'grid', 'line', 'mark', 'hover', 'recursion', 'depth', 'read', 'total', 'accent']) palette[c] = css('--' + c);
  const left = scroller.scrollLeft, first = Math.max(0, Math.floor(left / columnWidth) - 1);
  const last = Math.min(M.steps - 1, Math.ceil((left + width) / columnWidth));
  const x = step => 4 + step * columnWidth - left;
  g.font = '11px system-ui, sans-serif';
  kernels.forEach((k, i) => {
    if (marked.has(k.kernel)) { g.fillStyle = palette.hover; g.fillRect(0, HEAD + i * ROW, width, ROW); }
    g.fillStyle = palette.grid;
    g.fillRect(0, HEAD + i * ROW, width, 1);
  });
  // Flushes and phases divide the steps.
  let labelEnd = -1, lineBefore = -1;
  for (let s = first; s <= last; ++s) {
    const here = firstOfStep[s], before = firstOfStep[s - 1];
    if (!here || (before && before.flush === here.flush && before.phase === here.phase)) continue;
    const at = Math.round(x(s)) - 1, newFlush = !before || before.flush !== here.flush;
    g.strokeStyle = newFlush && M.flushes[here.flush].demanded ? palette.read : palette.line;
    g.setLineDash(newFlush ? [] : [3, 3]);
    g.globalAlpha = columnWidth < 6 ? 0.45 : 0.8;
    g.beginPath(); g.moveTo(at + .5, s ? 4 : HEAD); g.lineTo(at + .5, height); g.stroke();
    g.setLineDash([]); g.globalAlpha = 1;
    const text = (newFlush && M.flushes.length > 1 ? M.flushes[here.flush].demanded ? 'read' : 'end' : '') +
      (M.phases > 1 && (!before || before.phase !== here.phase) ? ' phase ' + here.phase : '');
    const long = g.measureText(text.trim()).width;
    const left = at + 4 + long <= width ? at + 4 : at - 4 - long; // at the edge: on the other side
    if (text && left >= labelEnd && (left > at || left > lineBefore)) {
      g.fillStyle = palette.dim;
      g.fillText(text.trim(), left, 15);
      labelEnd = left + 6 + long;
    }
    lineBefore = at;
  }
  const gap = columnWidth > 10 ? 2 : columnWidth > 5 ? 1 : 0.5;
  cells.forEach((row, i) => {
    const base = HEAD + (i + 1) * ROW - 9;
    for (let s = first; s <= last; ++s) {
      const launches = row.get(s);
      if (!launches) continue;
      const w = (columnWidth - gap) / launches.length;
      launches.forEach((number, j) => {
        const l = M.launches[number], h = heightOf(l), left = x(s) + j * w;
        g.fillStyle = colourOf(l);
        g.fillRect(left, base - h, Math.max(w - (launches.length > 1 ? .5 : 0), 1), h);
        if (l.rows > maxRows) { // cut: two gaps, and how many there are
          g.fillStyle = palette.card;
          g.fillRect(left, base - h + 5, w, 2);
          g.fillRect(left, base - h + 10, w, 2);
          g.fillStyle = palette.dim;
          const text = digits(l.rows, 0) + ' rows', wide = g.measureText(text).width;
          g.fillText(text, left + w + 4 + wide > width ? left - wide - 4 : left + w + 4, base - h + 10);
        }
        if (l.why_few !== 'no') {
          g.fillStyle = palette[l.why_few];
          g.fillRect(left, base + 2, Math.max(w - .5, 1), 3);
        }
        if (number === chosen) {
          g.strokeStyle = palette.mark;
          g.lineWidth = 2;
          g.strokeRect(left - 1, base - h - 1, w + 2, h + 2);
          g.lineWidth = 1;
        }
      });
    }
  });
  // What the chosen launch waited for.
  if (chosen !== null && 'waits_for' in M.launches[chosen]) {
    const to = M.launches[chosen], from = M.launches[to.waits_for];
    const y = l => HEAD + (rowOf.get(l.kernel) + 1) * ROW - 9 - heightOf(l) / 2;
    const x1 = x(from.step) + columnWidth / 2, x2 = x(to.step) + columnWidth / 2;
    g.strokeStyle = palette.mark;
    g.lineWidth = 2;
    g.beginPath(); g.moveTo(x1, y(from)); g.lineTo(x2, y(to)); g.stroke();
    g.beginPath(); g.arc(x1, y(from), 3.5, 0, 7); g.fillStyle = palette.mark; g.fill();
    g.lineWidth = 1;
  }
}
canvas.setAttribute('aria-label', 'The schedule: ' + kernels.map(k => k.name + ', ' + count(k.launches, 'launch', 'launches') + ' of ' + k.rows_min + ' to ' + k.rows_max + ' rows').join('; '));

function launchAt(event) {
  const box = canvas.getBoundingClientRect();
  const row = Math.floor((event.clientY - box.top - HEAD) / ROW);
  const at = (event.clientX - box.left + scroller.scrollLeft - 4) / columnWidth, step = Math.floor(at);
  const launches = cells[row] && cells[row].get(step);
  if (!launches) return null;
  return launches[Math.min(launches.length - 1, Math.floor((at - step) * launches.length))];
}
function tip(number, x, y) {
  const box = $('tip'), l = M.launches[number], k = kernels[rowOf.get(l.kernel)];
  box.textContent = '';
  const head = el('div');
  head.append(el('b', '', k.name), ' ' + k.place);
  box.append(head);
  box.append(el('div', '', count(l.rows, 'row') + ' in ' + ms(l.ms) +
    (l.gflop > 0 && l.ms > 0 ? ', ' + percent(l.gflop / (l.ms * 1e-3 * M.peak_gflops)) + ' of peak' : '') +
    (l.threads > 1 ? ', on ' + l.threads + ' threads' : '')));
  box.append(el('div', '', 'step ' + l.step + ': depth ' + l.depth + (M.phases > 1 ? ' of phase ' + l.phase : '') +
    (M.flushes.length > 1 ? ', flush ' + l.flush + (M.flushes[l.flush].demanded ? ' (instances waited)' : ' (all were walked)') : '')));
  if ('waits_for' in l) {
    const maker = kernels[rowOf.get(M.launches[l.waits_for].kernel)];
    box.append(el('div', '', 'waits for ' + maker.name + ' of ' + lineText(maker.place) + ', step ' + M.launches[l.waits_for].step));
  }
  for (const line of (D.blocks[l.kernel] ? D.blocks[l.kernel].lines : []).slice(0, 4))
    if (inSource(line.place))
      box.append(el('code', '', String(lineOf(line.place)).padStart(3) + ' ' + percent(line.share).padStart(5) + '  ' + (textOfLine.get(line.place) || '').trim()));
  if (l.why_few !== 'no') {
    const few = M.few_rows.find(f => f.kernel === l.kernel && f.why === l.why_few), why = el('div', 'why');
    const key = el('span', 'key');
    key.style.background = 'var(--' + l.why_few + ')';
    why.append(key, ms(l.lost_ms) + ' more than its rows take at once' + (few ? ': ' + few.text : ''));
    box.append(why);
  }
  box.hidden = false;
  const w = box.offsetWidth, h = box.offsetHeight;
  box.style.left = Math.max(4, Math.min(x + 14, innerWidth - w - 8)) + 'px';
  box.style.top = (y + 18 + h > innerHeight ? Math.max(4, y - h - 12) : y + 18) + 'px';
}
function select(launch, place) {
  marked = new Set(place ? kernelsOf.get(place) || [] : launch ? [launch.kernel] : []);
  const places = new Set(place ? [place] : launch && D.blocks[launch.kernel] ? D.blocks[launch.kernel].lines.map(l => l.place) : []);
  sourceRows.forEach((row, at) => row.classList.toggle('on', places.has(at)));
  [...$('labels').children].forEach((label, i) => label.classList.toggle('on', marked.has(kernels[i].kernel)));
  drawSchedule();
}
function hover(number, x, y) {
  if (number === null) {
    $('tip').hidden = true;
    if (chosen !== null) { chosen = null; select(null); }
    return;
  }
  if (number !== chosen) { chosen = number; select(M.launches[number]); }
  tip(number, x, y);
}
canvas.addEventListener('mousemove', e => hover(launchAt(e), e.clientX, e.clientY));
canvas.addEventListener('mouseleave', () => hover(null));
canvas.addEventListener('click', e => {
  const number = launchAt(e), block = number === null ? null : D.blocks[M.launches[number].kernel];
  if (block && block.lines.length && inSource(block.lines[0].place)) showLine(block.lines[0].place);
});
canvas.addEventListener('keydown', e => {
  const by = {ArrowRight: 1, ArrowLeft: -1}[e.key];
  if (e.key === 'Escape') return hover(null);
  if (!by || !M.launches.length) return;
  e.preventDefault();
  const number = chosen === null ? 0 : Math.max(0, Math.min(M.launches.length - 1, chosen + by));
  const x = 4 + M.launches[number].step * columnWidth;
  if (x < scroller.scrollLeft || x > scroller.scrollLeft + scroller.clientWidth - 40) scroller.scrollLeft = x - scroller.clientWidth / 2;
  const box = canvas.getBoundingClientRect();
  hover(number, box.left + x - scroller.scrollLeft, box.top + HEAD + (rowOf.get(M.launches[number].kernel) + .5) * ROW);
});
scroller.addEventListener('scroll', () => drawSchedule());

//===--- Where rows were few ---===//
{
  const most = Math.max(1e-12, ...M.few_rows.map(f => f.lost_ms));
  M.few_rows.slice(0, 12).forEach(f => {
    const row = el('div', 'reason'), amount = el('div', 'lost', ms(f.lost_ms) + ' lost'), bar = el('i');
    bar.style.width = f.lost_ms / most * 100 + '%';
    bar.style.background = 'var(--' + f.why + ')';
    amount.append(bar);
    const what = el('div', 'what');
    what.append(el('b', '', name(f.kernel)), ' in ', lineLink(kernels[rowOf.get(f.kernel)].place),
      ': ' + count(f.launches, 'launch', 'launches') + ' of ' + (f.rows_min === f.rows_max ? count(f.rows_max, 'row') : f.rows_min + ' to ' + f.rows_max + ' rows') + ', ' + ms(f.ms));
    const text = el('div', 'text', f.text + ' ');
    text.append(lineLink(f.place));
    what.append(text);
    row.append(amount, what);
    row.addEventListener('mouseenter', () => select({kernel: f.kernel}));
    row.addEventListener('mouseleave', () => select(null));
    $('few').append(row);
  });
  if (M.few_rows.length && M.inlined)
    $('few').append(el('p', 'small', count(M.inlined, 'call') + ' found no stack to wait on beside others: with more (--fibers) more rows may come together.'));
  if (M.few_rows.length > 12) $('few').append(el('p', 'small', 'and ' + (M.few_rows.length - 12) + ' more'));
  if (!M.few_rows.length) $('few').append(el('p', 'small', 'Nowhere.'));
}

//===--- Memory ---===//
const kinds = ['rows', 'tables', 'heap', 'records', 'scratch', 'stack', 'weights', 'packed'];
const varying = kinds.filter(k => M.memory.some(m => m[k] !== M.memory[0][k]));
const fixed = kinds.filter(k => !varying.includes(k) && M.memory.some(m => m[k] > 0));
const beginMs = M.memory.length ? M.memory[0].ms : 0;
{
  $('memoryNote').textContent = (varying.length ? 'What grew while the mini-batch ran; shaded: kernels running.' : 'Nothing grew while the mini-batch ran.') +
    (fixed.length ? ' As it was all the time: ' + fixed.map(k => k + ' ' + bytes(M.memory[0][k])).join(', ') + '.' : '');
  for (const k of varying) {
    const item = el('span'), key = el('span', 'key');
    key.style.background = 'var(--m-' + k + ')';
    item.append(key, k + ', at most ' + bytes(Math.max(...M.memory.map(m => m[k]))));
    $('memoryLegend').append(item);
  }
  $('memory').setAttribute('aria-label', varying.map(k => k + ' at most ' + bytes(Math.max(...M.memory.map(m => m[k])))).join(', '));
}
// A canvas for bytes from 0 to top, with room for what stands beside the axes; null, and hidden, where that is 0.
function plot(id, top) {
  const c = $(id), scale = window.devicePixelRatio || 1, width = c.clientWidth, height = c.clientHeight;
  c.hidden = !top;
  if (c.hidden) return null;
  c.width = width * scale;
  c.height = height * scale;
  const g = c.getContext('2d');
  g.scale(scale, scale);
  g.font = '11px system-ui, sans-serif';
  const L = 58, R = width - 8, T = 6, B = height - 20, y = b => B - b / top * (B - T);
  const axes = end => {
    g.fillStyle = css('--dim');
    g.strokeStyle = css('--line');
    g.beginPath(); g.moveTo(L, T); g.lineTo(L, B + .5); g.lineTo(R, B + .5); g.stroke();
    g.textAlign = 'right';
    for (const part of [0, .5, 1]) g.fillText(bytes(top * part), L - 6, y(top * part) + (part ? 9 : 0));
    g.fillText(end, R, height - 5);
    g.textAlign = 'left';
    g.fillText('0', L, height - 5);
  };
  const mark = x => {
    g.strokeStyle = css('--mark');
    g.beginPath(); g.moveTo(x, T); g.lineTo(x, B); g.stroke();
  };
  return {g, L, R, T, B, y, axes, mark};
}
function drawMemory(at) {
  const sums = M.memory.map(m => varying.reduce((s, k) => s + m[k], 0));
  const p = plot('memory', varying.length && Math.max(1, ...sums) * 1.06);
  if (!p) return;
  const {g, L, R, T, B, y, axes, mark} = p, end = Math.max(M.memory[M.memory.length - 1].ms, beginMs + 1e-9);
  const x = t => L + (t - beginMs) / (end - beginMs) * (R - L);
  g.fillStyle = css('--grid');
  for (const f of M.flushes) g.fillRect(x(f.start_ms), T, Math.max(1, x(f.start_ms + f.ms) - x(f.start_ms)), B - T);
  const below = M.memory.map(() => 0);
  for (const k of varying) {
    g.fillStyle = css('--m-' + k);
    g.globalAlpha = 0.88;
    g.beginPath();
    M.memory.forEach((m, i) => {
      if (i) g.lineTo(x(m.ms), y(below[i - 1] + M.memory[i - 1][k]));
      g.lineTo(x(m.ms), y(below[i] + m[k]));
    });
    for (let i = M.memory.length - 1; i >= 0; --i) {
      g.lineTo(x(M.memory[i].ms), y(below[i]));
      if (i) g.lineTo(x(M.memory[i].ms), y(below[i - 1]));
    }
    g.fill();
    M.memory.forEach((m, i) => below[i] += m[k]);
  }
  g.globalAlpha = 1;
  axes(ms(end - beginMs));
  if (at === undefined) return;
  const t = beginMs + (at - L) / (R - L) * (end - beginMs);
  let i = 0;
  while (i + 1 < M.memory.length && M.memory[i + 1].ms <= t) ++i;
  mark(at);
  return M.memory[i];
}
$('memory').addEventListener('mousemove', e => {
  const box = $('memory').getBoundingClientRect(), m = drawMemory(Math.max(58, e.clientX - box.left)), t = $('tip');
  t.textContent = '';
  t.append(el('div', '', ms(m.ms - beginMs) + ': ' + bytes(total(m)) + ' in all'));
  for (const k of kinds) if (m[k]) t.append(el('div', '', k + ' ' + bytes(m[k])));
  t.hidden = false;
  t.style.left = Math.min(e.clientX + 14, innerWidth - t.offsetWidth - 8) + 'px';
  t.style.top = Math.max(4, e.clientY - t.offsetHeight - 12) + 'px';
});
$('memory').addEventListener('mouseleave', () => { $('tip').hidden = true; drawMemory(); });

//===--- Rows over launches ---===//
const W = M.rows;
{
  const at = kernels.find(k => k.kernel === W.peak_kernel);
  $('rowsNote').textContent = !W.peak_rows ? 'No rows.' : 'Of a run that nobody looks at: at most ' + bytes(W.peak_rows) + ', while launch ' + W.peak_launch + ' of ' + W.launches +
    ' runs' + (at ? ' (' + at.name + ')' : '') + '. Held then:';
  const table = $('holders'), head = el('tr');
  for (const h of ['kernel', 'bytes', 'records', 'bytes of each', 'where']) head.append(el('th', '', h));
  if (W.terms.length) table.append(head);
  for (const t of W.terms) {
    const row = el('tr'), first = el('td'), where = el('td');
    first.append(el('b', '', t.name));
    where.append(lineLink(t.place));
    row.append(first, el('td', '', bytes(t.bytes)), el('td', '', digits(t.records, 0)), el('td', '', t.bytes_of_record), where);
    row.title = t.extents.map(e => e.name + ': ' + e.least + ' to ' + e.most + ', ' + e.sum + ' in all').join('\n');
    row.addEventListener('mouseenter', () => select({kernel: t.kernel}));
    row.addEventListener('mouseleave', () => select(null));
    table.append(row);
  }
  $('rows').setAttribute('aria-label', 'rows at most ' + bytes(W.peak_rows));
}
function drawRows() {
  const p = plot('rows', W.peak_rows * 1.06);
  if (!p) return;
  const {g, L, R, B, y, axes, mark} = p, x = launch => L + launch / Math.max(1, W.launches) * (R - L);
  g.fillStyle = css('--m-rows');
  g.beginPath();
  g.moveTo(L, B);
  W.rows.forEach(([launch, held], i) => {
    g.lineTo(x(launch), y(held));
    g.lineTo(x(i + 1 < W.rows.length ? W.rows[i + 1][0] : W.launches), y(held));
  });
  g.lineTo(R, B);
  g.fill();
  axes('launch ' + W.launches);
  mark(x(W.peak_launch));
}

//===--- Layers, calls, kernels ---===//
tree($('layers'), 'layer', '.', true, byLayer(M.layers));
tree($('calls'), 'calls', ' › ', false, M.calls.map(c => ({way: c.calls.length ? c.calls : ['the runtime'], ms: c.ms})));
{
  const table = $('kernels'), head = el('tr');
  for (const h of ['kernel', 'records', 'saved', 'launches', 'rows min', 'median', 'max', 'time', 'share', 'at once', 'of peak', 'moved', 'where']) head.append(el('th', '', h));
  table.append(head);
  kernels.forEach(k => {
    const row = el('tr');
    const first = el('td');
    first.append(el('b', '', k.name));
    row.append(first);
    for (const v of [digits(k.records, 0), digits(k.saved_records, 0), digits(k.launches, 0), k.rows_min, k.rows_median, k.rows_max,
      ms(k.ms), percent(k.ms / kernelMs), ms(k.at_once_ms), k.gflop > 0 ? percent(k.share_of_peak) : '–', bytes(k.bytes)]) row.append(el('td', '', v));
    const where = el('td');
    where.append(lineLink(k.place));
    row.append(where);
    row.addEventListener('mouseenter', () => select({kernel: k.kernel}));
    row.addEventListener('mouseleave', () => select(null));
    table.append(row);
  });
}

function draw() { legend(); drawSchedule(); drawMemory(); drawRows(); }
addEventListener('resize', draw);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
draw();
