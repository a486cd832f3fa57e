const svg = (tag, attributes, text) => {
  const e = document.createElementNS('http' + '://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  if (text !== undefined) e.textContent = text;
  return e;
};
const colours = ['--kernel', '--record', '--m-tables', '--order', '--depth', '--m-stack', '--m-scratch', '--read'];
const colour = i => 'var(' + colours[i % colours.length] + ')';
const number = x => typeof x !== 'number' ? '–' : Math.abs(x) >= 1e5 || (x !== 0 && Math.abs(x) < 1e-3) ? x.toExponential(2) : String(Number(x.toPrecision(5)));

//===--- Runs ---===//
document.title = 'sheaf: ' + D.runs.map(r => r.name).join(', ');
$('title').textContent = D.runs.length === 1 ? 'Training ' + D.runs[0].name : D.runs.length + ' trainings';
$('subtitle').textContent = [...new Set(D.runs.map(r => r.config.model))].join(', ');
// Options that are not the same in all runs tell them apart.
const options = Object.keys(D.runs[0] ? D.runs[0].config : {}).filter(key => !['hashes', 'history', 'ended'].includes(key) &&
  new Set(D.runs.map(r => JSON.stringify(r.config[key]))).size > 1);
const last = r => r.epochs[r.epochs.length - 1] || {};
const measures = [...new Set(D.runs.flatMap(r => r.epochs.flatMap(e => Object.keys(e)
  .filter(k => k.startsWith('dev_') && !k.endsWith('_confusion')))))];
table($('runs'), ['run', 'epochs', 'steps', 'loss', ...measures.map(m => m.slice(4).replaceAll('_', ' ')), 'seconds', ...options],
  D.runs.map(r => [r.name, String(r.epochs.length), String(last(r).step || (r.steps[r.steps.length - 1] || {}).step || 0),
    number(last(r).train_loss), ...measures.map(m => number(last(r)[m])),
    digits(r.epochs.reduce((s, e) => s + e.seconds, 0), 1),
    ...options.map(key => typeof r.config[key] === 'string' ? r.config[key] : JSON.stringify(r.config[key]) || '–')]));

//===--- Curves ---===//
D.runs.forEach((r, i) => {
  const key = el('span', 'key'), entry = el('span');
  key.style.background = colour(i);
  entry.append(key, r.name);
  $('legend').append(entry);
});
const finite = points => points.filter(p => typeof p[1] === 'number' && Number.isFinite(p[1]));
const pick = (lines, key) => finite(lines.map(l => [l.step, l[key]]));
function chart(title, lines) {
  lines = lines.filter(l => l.points.length);
  if (!lines.length) return;
  const all = lines.flatMap(l => l.points), W = 520, H = 240, left = 58, right = 10, top = 10, bottom = 22;
  const maxX = Math.max(1, ...all.map(p => p[0]));
  let low = Math.min(...all.map(p => p[1])), high = Math.max(...all.map(p => p[1]));
  if (low === high) { low -= Math.abs(low) / 10 || 1; high += Math.abs(high) / 10 || 1; }
  const x = step => left + (W - left - right) * step / maxX, y = v => H - bottom - (H - top - bottom) * (v - low) / (high - low);
  const picture = svg('svg', {viewBox: '0 0 ' + W + ' ' + H, role: 'img', 'aria-label': title});
  for (let i = 0; i <= 4; ++i) {
    const v = low + (high - low) * i / 4;
    picture.append(svg('line', {x1: left, x2: W - right, y1: y(v), y2: y(v), stroke: 'var(--grid)'}),
      svg('text', {x: left - 6, y: y(v) + 4, 'text-anchor': 'end'}, number(Number(v.toPrecision(3)))));
    const step = Math.round(maxX * i / 4);
    picture.append(svg('text', {x: x(step), y: H - 6, 'text-anchor': i === 4 ? 'end' : 'middle'}, String(step)));
  }
  for (const line of lines) {
    const attributes = {points: line.points.map(p => x(p[0]).toFixed(1) + ',' + y(p[1]).toFixed(1)).join(' '), fill: 'none',
      stroke: colour(line.run), 'stroke-width': line.thin ? 0.8 : 1.8, opacity: line.thin ? 0.5 : 1};
    if (line.dashed) attributes['stroke-dasharray'] = '5 3';
    picture.append(svg('polyline', attributes));
    if (line.points.length === 1)
      picture.append(svg('circle', {cx: x(line.points[0][0]), cy: y(line.points[0][1]), r: 2.5, fill: colour(line.run)}));
  }
  picture.addEventListener('mousemove', event => {
    const box = picture.getBoundingClientRect(), step = ((event.clientX - box.left) / box.width * W - left) / (W - left - right) * maxX;
    const tip = $('tip');
    tip.replaceChildren(el('b', '', title));
    for (const line of lines) {
      const near = line.points.reduce((a, b) => Math.abs(b[0] - step) < Math.abs(a[0] - step) ? b : a);
      tip.append(el('div', '', D.runs[line.run].name + (line.dashed ? ', other data' : line.thin ? ', step ' : ', epoch') +
        (line.thin ? near[0] : ' of step ' + near[0]) + ': ' + number(near[1])));
    }
    tip.hidden = false;
    tip.style.left = Math.min(event.clientX + 14, innerWidth - 240) + 'px';
    tip.style.top = event.clientY + 14 + 'px';
  });
  picture.addEventListener('mouseleave', () => { $('tip').hidden = true; });
  const box = el('div');
  box.append(el('h2', '', title), picture);
  $('curves').append(box);
}
const lossNames = D.runs.map(r => 'dev_' + (r.config.loss || 'loss'));
chart('loss', D.runs.flatMap((r, i) => [
  {run: i, thin: true, points: pick(r.steps, 'loss')},
  {run: i, points: pick(r.epochs, 'train_loss')},
  {run: i, dashed: true, points: pick(r.epochs, lossNames[i])}]));
for (const measure of measures)
  if (!lossNames.includes(measure))
    chart(measure.slice(4).replaceAll('_', ' '), D.runs.map((r, i) => ({run: i, dashed: true, points: pick(r.epochs, measure)})));
chart('learning rate', D.runs.map((r, i) => ({run: i, points: pick(r.steps, 'lr')})));
chart('length of the gradient', D.runs.map((r, i) => ({run: i, thin: true, points: pick(r.steps, 'norm')})));
chart('instances a second', D.runs.map((r, i) => ({run: i, thin: true, points: pick(r.steps, 'instances_per_second')})));
chart('memory of rows and records, MB', D.runs.map((r, i) => ({run: i,
  points: finite(r.epochs.map(e => [e.step, e.rows_mb + e.records_mb + e.scratch_mb]))})));

//===--- Time and memory ---===//
D.runs.forEach(r => {
  const target = $('profiles'), P = r.profile;
  target.append(el('h2', '', r.name));
  if (!P) {
    target.append(el('p', 'small', 'It has no profile: one is written where a training ends or is stopped.'));
    return;
  }
  const steps = P.forward_ms + P.backward_ms + P.update_ms || 1;
  const inside = P.kernels.reduce((s, k) => s + k.ms, 0) || 1;
  target.append(el('p', '', P.steps + ' steps took ' + ms(steps) + ': forward ' + percent(P.forward_ms / steps) + ', back ' +
    percent(P.backward_ms / steps) + ', update ' + percent(P.update_ms / steps) + '; inside kernels ' + ms(inside) + ' on ' +
    P.threads + (P.threads === 1 ? ' thread' : ' threads') + ', recording ' + ms(P.record_ms) + ', ordering ' + ms(P.order_ms) + '.'));
  const add = (head, rows) => {
    const wide = el('div', 'wide'), box = el('table');
    table(box, head, rows);
    wide.append(box);
    target.append(wide);
  };
  const layers = el('div', 'wide'), box = el('table');
  tree(box, 'layer', '.', true, byLayer(P.layers));
  layers.append(box);
  target.append(layers);
  add(['kernel', 'ms', 'records', 'launches', 'GFLOP/s', 'of the kernels', 'place'],
    P.kernels.map(k => [k.name, ms(k.ms), digits(k.records, 0), digits(k.launches, 0), k.ms > 0 ? digits(k.gflop / k.ms * 1e3, 1) : '–',
      bar(k.ms / inside), k.place]));
  const memory = Object.entries(P.memory), most = memory.reduce((s, m) => s + m[1], 0) || 1;
  add(['memory', 'at most', 'of all'], memory.map(([kind, value]) => [kind, bytes(value), bar(value / most)]));
});
