// Quality and cost: the metric with its interval, the metric against cost, cost against length.

import {count, data, el, headCell, isPrinting, set} from '../page.js';
import {betterSide, choice, duration, halfWidth, isNumber, lengthTick, lowerIsBetter, metric, metricLabel, metricText,
        runs, si, siTick, sum} from './report_base.js';
import {chartHeight, extent, linePath, makeChart, mark, px, robustExtent, runName, svg, tickMetric, uprightInterval, walkable,
        whenRunsOrWidthChange} from './report_chart.js';
import {saveButtons} from './report_export.js';
import {MANY} from './report_factors.js';
import {measure, shortLabels} from './report_labels.js';
import {chartHost, drawMarkedLines} from './report_lines.js';
import {lookOf, panelsOf, roles} from './report_looks.js';
import {selection} from './report_selection.js';

const finalText = run => isNumber(run.metric?.mean)
    ? `${metricText(run.metric.mean)}${halfWidth(run) === null ? '' : ` ± ${metricText(halfWidth(run))}`}` : 'failed';
const seedMetrics = run => run.seeds.map(seed => seed.valid?.[metric.key]).filter(isNumber);

// ---- The metric, one row per run -----------------------------------------------------------------------------------

/** The rows of the chart: runs, in a grid in groups under headings. A row is {heading} or {run, text}. */
function qualityRows(list, room) {
  const panels = panelsOf(list), said = roles?.panels ?? [];
  return panels.flatMap(({title, runs: own}) => {
    const texts = shortLabels(own, room, 13, said);
    return [...title ? [{heading: title}] : [], ...own.map(run => ({run, text: texts.get(run)}))];
  });
}

export function buildQuality(section) {
  if (!runs.some(run => isNumber(run.metric?.mean))) return false;
  const scroll = el('div', 'scroll tall'), host = el('div', 'chart-host');
  scroll.append(host);
  const note = [`${metric.label}: mean`];
  if (runs.some(run => halfWidth(run) !== null)) note.push('95 % interval (line)');
  if (data.seeds.length > 1) note.push('each seed (small circles)');
  const reference = roles ? null : runs[0].metric?.mean;
  section.append(el('p', 'quiet', `${note.join(', ')}. ${betterSide[0].toUpperCase()}${betterSide.slice(1)}.` +
                                  (roles ? '' : ' The dashed line is the first run.')), scroll);
  section.append(el('div', 'bar under', saveButtons(host, {name: 'quality', title: () => metricLabel, rows: () => [
    ['run', 'mean', 'low', 'high', ...data.seeds.map(seed => `seed ${seed}`)],
    ...runs.map(run => [run.name, run.metric?.mean, run.metric?.low, run.metric?.high, ...data.seeds.map(seed =>
        run.seeds.find(one => one.seed === seed)?.valid?.[metric.key])])]})));
  function draw() {
    const list = selection.visible(), width = host.clientWidth, narrow = width < 560;
    if (!list.length) return host.replaceChildren(el('p', 'quiet', 'No run matches.'));
    const room = width * (narrow ? 0.36 : width < 900 ? 0.34 : 0.26), rows = qualityRows(list, room - 8);
    const rowHeight = rows.length > 24 || isPrinting() ? 19 : rows.length > 12 ? 24 : 32, height = rows.length * rowHeight + 26 + 46;
    const widths = rows.map(({text, heading}) => text ? measure(text, 13) * 1.05 : measure(heading, 13) * 1.1 - 20);
    const names = Math.min(room, Math.max(...widths) + 8);
    const right = narrow ? 10 : Math.max(...list.map(run => measure(finalText(run), 12.5))) + 22;
    const bounds = list.flatMap(run => [run.metric?.mean, ...seedMetrics(run)]);
    const edges = list.flatMap(run => [run.metric?.low, run.metric?.high]);
    const core = robustExtent(bounds, {air: 0.06, reach: runs.length > MANY ? 1.2 : 8});
    const x = core && robustlyWidened(core, edges);
    if (!x) return host.replaceChildren(el('p', 'quiet', 'None of the runs shown has a result.'));
    const chart = makeChart(host, {
      x: {...x, label: metricLabel, tick: tickMetric, count: narrow ? 3 : 6},
      y: {low: 0, high: rows.length, label: '', tick: () => ''}, left: Math.ceil(names) + 14, right, height,
      name: `${metric.label} of ${count(list.length, 'run')} with intervals; the same numbers are in the table above.`,
    });
    for (const grid of chart.svg.querySelectorAll('.grid')) grid.remove();
    const {top, bottom} = chart.box;
    const inside = value => value >= chart.x.domain[0] && value <= chart.x.domain[1];
    const upright = (style, at) => svg('line', {class: style, x1: px(at), x2: px(at), y1: top, y2: bottom});
    for (const tick of chart.x.ticks) chart.svg.prepend(upright('grid', chart.x.at(tick)));
    if (isNumber(reference) && inside(reference)) chart.field.append(upright('reference', chart.x.at(reference)));
    rows.forEach(({run, text, heading}, i) => {
      const y = top + (i + 0.5) * rowHeight;
      chart.svg.append(run ? qualityRow(chart, run, {text, y, narrow, large: list.length <= 24})
          : svg('text', {class: 'row-heading', x: 0, y: y + 3, dy: '.34em'}, heading));
    });
  }
  /** Makes room for the intervals, except for intervals far wider than the range of the means. */
  function robustlyWidened({low, high}, edges) {
    const span = (high - low) || Math.abs(high) * 0.1 || 1;
    const near = edges.filter(value => isNumber(value) && value > low - 1.2 * span && value < high + 1.2 * span);
    return {low: Math.min(low, ...near.map(value => value - span * 0.04)),
            high: Math.max(high, ...near.map(value => value + span * 0.04))};
  }
  whenRunsOrWidthChange(host, draw);
  return true;
}

/** The name, the interval, the seeds and the mean of a run at the height `y`. */
function qualityRow(chart, run, {text, y, narrow, large}) {
  const {left, right} = chart.box, look = lookOf(run), {mean, low, high} = run.metric ?? {};
  const at = value => Math.min(right, Math.max(left, chart.x.at(value)));
  const inside = value => value >= chart.x.domain[0] && value <= chart.x.domain[1];
  const row = svg('g', {class: look.faded ? 'row faded' : 'row'});
  row.append(svg('text', {class: 'row-name', x: left - 14, y, dy: '.34em', 'text-anchor': 'end'}, text));
  if (isNumber(mean)) {
    if (isNumber(low)) {
      // An end outside the chart has an arrow in place of its stroke.
      const end = value => inside(value) ? `M${px(at(value))},${px(y - 5)}v10`
          : value > chart.x.domain[1] ? `M${px(right - 6)},${px(y - 5)}l6,5l-6,5` : `M${px(left + 6)},${px(y - 5)}l-6,5l6,5`;
      row.append(svg('path', {class: 'whisker', stroke: look.colour,
                              d: `M${px(at(low))},${px(y)}H${px(at(high))}` + [low, high].map(end).join('')}));
    }
    for (const value of seedMetrics(run).filter(inside))
      row.append(svg('circle', {class: 'seed', cx: px(at(value)), cy: px(y), r: 2.6, stroke: look.colour}));
    row.append(inside(mean) ? mark(look, at(mean), y, large ? 5.4 : 4.2)
        : svg('text', {class: 'beyond', x: at(mean), y, dy: '.34em', style: `fill:${look.colour}`,
                       'text-anchor': mean > chart.x.domain[1] ? 'end' : 'start'}, mean > chart.x.domain[1] ? '▸' : '◂'));
  }
  if (!narrow)
    row.append(svg('text', {class: isNumber(mean) ? 'row-value' : 'row-value bad', x: right + 14, y, dy: '.34em'},
                   finalText(run)));
  return row;
}

// ---- The metric against a cost -------------------------------------------------------------------------------------

export const seedMean = key => run => {
  const values = run.seeds.filter(seed => seed.end !== 'failed').map(seed => seed[key]).filter(isNumber);
  return values.length ? sum(values) / values.length : null;
};
const COSTS = {
  parameters: {label: 'parameters', value: run => run.parameters, say: value => `${si(value)} parameters`},
  flops: {label: 'training FLOPs', value: seedMean('flops'), say: value => si(value, 'FLOP')},
  seconds: {label: 'training seconds', value: seedMean('seconds'), say: duration},
  memory: {label: 'peak memory (bytes)', value: run => run.peak_memory_bytes, say: value => si(value, 'B')},
  decode: {label: 'written tokens per second', value: run => run.speed?.decode_tokens_per_second,
           say: value => `${si(value)} tokens/s`},
};

export function buildCost(section) {
  const usable = Object.entries(COSTS).filter(([, {value}]) =>
      runs.filter(run => isNumber(value(run)) && value(run) > 0 && isNumber(run.metric?.mean)).length > 1);
  if (!usable.length) return false;
  // Matched runs all cost the same: begin with a cost in which they differ.
  const differs = ([, {value}]) => {
    const values = runs.map(value).filter(isNumber);
    return Math.max(...values) > 1.05 * Math.min(...values);
  };
  const state = {x: (usable.find(differs) ?? usable[0])[0], scale: 'log'};
  const names = {parameters: 'parameters', flops: 'FLOPs', seconds: 'seconds', memory: 'memory',
                 decode: 'writing speed'};
  section.append(
      el('div', 'bar choices',
         choice('cost-x', 'against', usable.map(([value]) => [value, names[value]]), state.x,
                value => { state.x = value; draw(); }),
         choice('cost-scale', 'Scale', [['linear', 'linear'], ['log', 'logarithmic']], state.scale,
                value => { state.scale = value; draw(); })));
  const {host, readout} = chartHost(section, 'cost-chart');
  section.append(el('div', 'bar under', saveButtons(host, {
    name: 'cost', title: () => `${metric.label} against ${COSTS[state.x].label}`, rows: () => [
      ['run', COSTS[state.x].label, metricLabel, 'low', 'high'],
      ...runs.map(run => [run.name, COSTS[state.x].value(run), run.metric?.mean, run.metric?.low, run.metric?.high])]})));

  let drawn = null;
  function draw() {
    const cost = COSTS[state.x], log = state.scale === 'log';
    const points = selection.visible().map(run => ({run, look: lookOf(run), x: cost.value(run), y: run.metric?.mean}))
                       .filter(({x, y}) => isNumber(x) && x > 0 && isNumber(y));
    const x = extent(points.map(point => point.x), {log, air: 0.08});
    if (x && x.high < 1.1 * x.low) Object.assign(x, {low: x.low / 1.05, high: x.high * 1.05});
    const y = robustExtent(points.flatMap(({y, run}) => [y, run.metric.low, run.metric.high]),
                           {air: 0.06, reach: runs.length > MANY ? 1.2 : 8});
    if (!x || !y) {
      drawn = null;
      host.replaceChildren(el('p', 'quiet', 'None of the runs shown has both numbers.'));
      return readout.replaceChildren();
    }
    const chart = makeChart(host, {
      x: {...x, label: cost.label, tick: siTick},
      y: {...y, label: metricLabel, tick: tickMetric}, height: chartHeight(host, 300, 360),
      name: `${metric.label} against ${cost.label}. The arrow keys go from run to run.`,
    });
    for (const point of points) Object.assign(point, {px: chart.x.at(point.x), py: chart.y.at(point.y)});
    const more = state.x === 'decode';  // the only cost where more is better
    const front = frontier(points, more);
    if (front.length > 1)
      chart.field.append(svg('path', {class: 'frontier', d: linePath(front.map(({px, py}) => [px, py]))}));
    for (const point of [...points].sort((a, b) => b.look.faded - a.look.faded)) {
      const {low, high} = point.run.metric;
      if (!point.look.faded && isNumber(low))
        chart.field.append(svg('path', {class: 'whisker', stroke: point.look.colour,
                                        d: uprightInterval(chart, point.px, low, high)}));
      const dot = mark(point.look, point.px, point.py, point.look.faded ? 3.2 : 5.4);
      if (point.look.faded) dot.classList.add('faded');
      chart.field.append(dot);
    }
    labelPoints(chart, points.filter(({look}) => !look.faded), front.length > 1 ? front : []);
    const ring = svg('circle', {class: 'ring', r: 10, visibility: 'hidden'});
    chart.svg.append(ring);
    points.sort((a, b) => a.x - b.x);
    drawn = {points, ring, cost, front: front.length > 1};
    tell(null);
  }
  /**
   * The runs that no cheaper run equals: each is better than the one before, and their intervals do not overlap. Runs
   * without intervals cannot be told apart.
   */
  function frontier(points, more) {
    const cheap = more ? ({x}) => -x : ({x}) => x, good = lowerIsBetter ? ({y}) => y : ({y}) => -y;
    const beats = ({run: {metric: one}}, {run: {metric: other}}) => isNumber(one.high) && isNumber(other.high) &&
        (lowerIsBetter ? one.high < other.low : one.low > other.high);
    const front = [];
    for (const point of [...points].sort((a, b) => cheap(a) - cheap(b) || good(a) - good(b)))
      if (!front.length || beats(point, front.at(-1))) front.push(point);
    return front;
  }
  /** Names beside their points, where they cover neither a point, nor another name, nor the line through `front`. */
  function labelPoints(chart, points, front) {
    // In a grid the legend explains colours and marks, so that a label that does not fit can be left out.
    const texts = shortLabels(points.map(({run}) => run), roles ? 320 : 170, 12.5, [], 600);
    const taken = points.map(({px, py}) => [px - 6, py - 6, px + 6, py + 6]);
    for (const {run: {metric: {low, high}}, px: x} of points)
      if (isNumber(low)) taken.push([x - 1, chart.y.at(high), x + 1, chart.y.at(low)]);
    front.slice(1).forEach(({px: x, py: y}, i) => {
      const from = front[i], n = Math.ceil(Math.hypot(x - from.px, y - from.py) / 6);
      for (let k = 0; k <= n; ++k) {
        const [a, b] = [from.px + (x - from.px) * k / n, from.py + (y - from.py) * k / n];
        taken.push([a - 3, b - 2, a + 3, b + 2]);
      }
    });
    const hits = ([a, b, c, d]) => taken.some(([e, f, g, h]) => a < g && c > e && b < h && d > f);
    for (const {run, look, px: x, py: y} of points) {
      const text = texts.get(run), wide = measure(text, 12.5, 600);
      const places = [[x + 12, y], [x - 12 - wide, y], [x - wide / 2, y - 17], [x - wide / 2, y + 18],
                      [x + 7, y - 12], [x + 7, y + 13], [x - 7 - wide, y - 12], [x - 7 - wide, y + 13]];
      const box = ([left, middle]) => [left - 2, middle - 7, left + wide + 2, middle + 7];
      const inside = ([a, b, c, d]) => a > chart.box.left && c < chart.box.width && b > 16 && d < chart.box.bottom;
      const place = places.find(place => inside(box(place)) && !hits(box(place)));
      if (!place) continue;
      taken.push(box(place));
      chart.svg.append(svg('text', {class: 'end-label', x: px(place[0]), y: px(place[1]), dy: '.32em',
                                    style: `fill:${look.colour}`}, text));
    }
  }
  function tell(stop) {
    if (!drawn) return;
    const {points, ring, cost, front} = drawn;
    ring.setAttribute('visibility', stop === null ? 'hidden' : 'visible');
    if (stop === null) {
      const meaning = front ? 'The thin line joins runs of which each is better than every cheaper one; their intervals ' +
                              'do not overlap.' : '';
      readout.replaceChildren(el('span', 'quiet', meaning, ' ', el('span', 'hint', 'Point at a run for its numbers.')));
      return;
    }
    const {run, x, px: left, py: top} = points[stop];
    ring.setAttribute('cx', px(left));
    ring.setAttribute('cy', px(top));
    readout.replaceChildren(el('span', 'entry', runName(run), el('b', '', finalText(run)),
                               el('span', 'quiet', cost.say(x))));
  }
  walkable(host, {stops: () => drawn?.points.map(({px, py}) => [px, py]) ?? [], reach: 60, show: tell});
  whenRunsOrWidthChange(host, draw);
  return true;
}

// ---- Cost against length -------------------------------------------------------------------------------------------

const QUANTITIES = {
  flops: {label: 'FLOPs', tick: siTick},
  seconds: {label: 'time', tick: duration},
  bytes: {label: 'memory', tick: (value, scale) => `${siTick(value, scale)}B`},
};
/** n^e, with half of the width of its interval. An exponent that may be anything between two integers is none. */
function exponent(entry, quantity) {
  const [value, low, high] = ['', '_low', '_high'].map(end => entry[`${quantity}_exponent${end}`]);
  if (!isNumber(value)) return '–';
  const power = el('span', '', 'n', el('sup', '', value.toFixed(2)));
  if (!isNumber(low)) return power;
  const half = (high - low) / 2;
  return half > 0.5 ? set(el('span', 'quiet', '–'), {title: `not known: ${value.toFixed(2)} ± ${half.toFixed(2)}`})
    : el('span', '', power, el('span', 'quiet', ` ± ${half.toFixed(2)}`));
}

export function buildScaling(section) {
  const parts = ['attention', 'training', 'decoding', 'feed-forward', 'norm', 'model'].filter(part =>
      runs.some(run => run.scaling?.some(entry => entry.part === part)));
  const quantities = Object.keys(QUANTITIES).filter(key =>
      runs.some(run => run.scaling?.some(entry => entry[key]?.some(isNumber))));
  if (!parts.length || !quantities.length) return false;
  const state = {quantity: quantities.includes('seconds') ? 'seconds' : quantities[0]};
  const grid = el('div', 'multiples'), fitted = el('div', 'scroll');
  section.append(
      el('div', 'bar choices', choice('scaling', 'Show', quantities.map(key => [key, QUANTITIES[key].label]),
                                      state.quantity, value => { state.quantity = value; draw(); })),
      grid, el('div', 'bar under', saveButtons(grid, {
        name: 'scaling', title: () => `${QUANTITIES[state.quantity].label} against the length of the input`, rows: () => [
          ['run', 'part', 'length', 'flops', 'seconds', 'bytes'],
          ...runs.flatMap(run => (run.scaling ?? []).flatMap(({part, lengths, flops, seconds, bytes}) =>
              lengths.map((n, i) => [run.name, part, n, flops?.[i], seconds?.[i], bytes?.[i]])))]})), fitted,
      el('p', 'quiet under-table',
         'Both axes are logarithmic: a cost that grows with the power k of the length n is a line of slope k. The ' +
         'dotted lines are n and n². The exponents are fitted to the longer half of the lengths, with 95 % intervals. ' +
         'Training is a forward and backward pass, decoding the next token after n; the others are forward passes. ' +
         'Memory is that of the tensors without the weights; in decoding it is what the layer remembers of n tokens.'));
  const titles = {training: 'attention in training', decoding: 'attention in decoding', model: 'the whole model'};
  const titleOf = part => titles[part] ?? part;
  const of = (run, part) => run.scaling?.find(entry => entry.part === part);
  const ordersOf = (list, part) => [...new Set(list.flatMap(run => of(run, part)?.order || []))];
  function draw() {
    const chosen = selection.chosen().filter(run => run.scaling?.length);
    const hosts = new Map(parts.map(part => [part, el('div', 'chart-host')]));
    grid.replaceChildren(...parts.map(part => {
      const orders = ordersOf(chosen, part).join(', ') || '–';  // of operations, so not of memory
      return el('div', 'multiple', el('h3', 'panel-title', titleOf(part)),
                ...state.quantity === 'bytes' ? [] : [el('p', 'quiet', part === 'decoding' ? '' : `textbook: ${orders}`)], hosts.get(part));
    }));
    // At once: nothing that waits for the next frame comes onto paper.
    for (const [part, host] of hosts) drawPart(host, part, chosen.filter(run => of(run, part)));
    fitted.replaceChildren(exponents(chosen));
  }
  /** The fitted exponents of the quantity for each run and part, and the textbook's order where the runs differ in it. */
  function exponents(chosen) {
    const heading = (text, span = 1, rows = 1) =>
        headCell(text, span > 1 ? 'colgroup' : 'col', {colSpan: span, rowSpan: rows});
    const fitted = parts.filter(part => chosen.some(run => isNumber(of(run, part)?.[`${state.quantity}_exponent`])));
    const mixed = part => state.quantity !== 'bytes' && ordersOf(chosen, part).length > 1;
    const rows = chosen.map(run => el('tr', '', headCell(runName(run), 'row'),
        ...fitted.flatMap(part => {
          const entry = of(run, part) ?? {};
          return [...mixed(part) ? [el('td', 'group', entry.order || '–')] : [],
                  el('td', mixed(part) ? '' : 'group', exponent(entry, state.quantity))];
        })));
    const split = fitted.some(mixed), {label} = QUANTITIES[state.quantity];
    return el('table', 'exponents',
        el('thead', '',
           el('tr', '', heading(`exponent of ${label}`, 1, split ? 2 : 1),
              ...fitted.map(part => heading(titleOf(part), mixed(part) ? 2 : 1, split && !mixed(part) ? 2 : 1))),
           split ? el('tr', '', ...fitted.filter(mixed).flatMap(() => ['textbook', 'fitted'].map(text => heading(text))))
                 : ''),
        el('tbody', '', ...rows));
  }
  function drawPart(host, part, having) {
    const {label, tick} = QUANTITIES[state.quantity];
    const lines = having.map(run => {
      const entry = of(run, part), points = entry.lengths.map((n, i) => ({x: n, y: entry[state.quantity]?.[i]}));
      return {look: lookOf(run), points: points.filter(({x, y}) => x > 0 && y > 0)};
    }).filter(({points}) => points.length);
    const all = lines.flatMap(({points}) => points);
    const x = extent(all.map(point => point.x), {log: true, air: 0.03});
    const y = extent(all.map(point => point.y), {log: true, air: 0.05});
    if (!x || !y) return host.replaceChildren(el('p', 'quiet', 'not measured'));
    if (!host.clientWidth) return;  // drawn when it becomes visible
    const marks = [...new Set(all.map(point => point.x))].sort((a, b) => a - b);
    const chart = makeChart(host, {x: {...x, label: 'tokens (n)', tick: lengthTick, marks}, y: {...y, label, tick},
                                   height: isPrinting() ? 165 : 240, name: `${label} of ${part} against the length of the input`});
    const {x: n0, y: v0} = lines[0].points[0];
    for (const power of [1, 2])
      chart.field.append(svg('path', {class: 'guide', d: linePath([x.low, x.high].map(n =>
          [chart.x.at(n), chart.y.at(v0 * (n / n0) ** power)]))}));
    drawMarkedLines(chart, lines);
  }
  whenRunsOrWidthChange(grid, draw);
  return true;
}
