// Learning curves: the mean over the seeds that count as a line, its interval as a band, every other seed as a thin line.

import {button, el} from '../page.js';
import {choice, duration, isNumber, metric, metricLabel, metricNumber, metricText, runs, si, siTick, sum,
        unit} from './report_base.js';
import {chartHeight, extent, mark, px, robustExtent, runName, svg, tickMetric, tickNumber, walkable,
        whenRunsOrWidthChange} from './report_chart.js';
import {saveButtons} from './report_export.js';
import {MANY} from './report_factors.js';
import {chartHost, drawBand, drawLine, drawPanels, drawPoints, pixelsOf} from './report_lines.js';
import {lookOf} from './report_looks.js';
import {selection} from './report_selection.js';
import {zoomable} from './report_zoom.js';

const CURVE_X = {
  steps: {key: 'step', name: 'steps', label: 'steps', tick: siTick, say: value => `step ${si(value, '', 4)}`},
  tokens: {key: 'tokens', name: `${unit}s`, label: `${unit}s`, tick: siTick, say: value => `${si(value)} ${unit}s`},
  flops: {key: 'flops', name: 'FLOPs', label: 'training FLOPs', tick: siTick, say: value => si(value, 'FLOP')},
  seconds: {key: 'seconds', name: 'seconds', label: 'seconds of training', tick: siTick, say: duration},
};
const lossText = value => value.toFixed(4), rateText = value => value === 0 ? '0' : value.toPrecision(3);
const tickRate = (value, {step}) => step && value && value < 1e-3 ? value.toExponential(1) : tickNumber(value, {step});
const CURVE_Y = {
  metric: {list: 'curve', key: 'metric', name: metric.label, label: `${metricLabel}, validation`, tick: tickMetric,
           say: metricText, number: metricNumber},
  valid_loss: {list: 'curve', key: 'valid_loss', name: 'validation loss', label: 'validation loss (nats)',
               tick: tickNumber, say: lossText, number: lossText},
  train_loss: {list: 'train_curve', key: 'train_loss', name: 'training loss', label: 'training loss (nats)',
               tick: tickNumber, say: lossText, number: lossText, noisy: true},
  grad_norm: {list: 'train_curve', key: 'grad_norm', name: 'gradient norm', label: 'norm of the gradient',
              tick: tickNumber, say: rateText, number: rateText, noisy: true},
  lr: {list: 'train_curve', key: 'lr', name: 'learning rate', label: 'learning rate', tick: tickRate, say: rateText,
       number: rateText, whole: true},
  // Of a mixture of experts, in the layer where the work was least even.
  experts_busiest: {list: 'train_curve', key: 'experts_busiest', name: 'busiest expert',
                    label: 'tokens of the busiest expert / even share', tick: tickNumber, say: rateText, number: rateText,
                    noisy: true},
  experts_idle: {list: 'train_curve', key: 'experts_idle', name: 'idle experts', label: 'share of experts without tokens',
                 tick: tickNumber, say: rateText, number: rateText, noisy: true, whole: true},
  experts_dropped: {list: 'train_curve', key: 'experts_dropped', name: 'dropped choices',
                    label: 'share of choices beyond the capacity', tick: tickNumber, say: rateText, number: rateText,
                    noisy: true, whole: true},
  router_entropy: {list: 'train_curve', key: 'router_entropy', name: 'router entropy',
                   label: "entropy of the router's softmax (1: even)", tick: tickNumber, say: rateText, number: rateText,
                   noisy: true},
};

// The first part of a curve is far from the rest, so the frame is made for the rest unless the reader wants all of it.
const BEGINNING = 0.15;

// ---- Statistics -----------------------------------------------------------------------------------------------------

/** Student's t that 95 % of all values lie within, for n - 1 = `freedom`; a series beyond the table (Fisher 1926). */
function studentT(freedom) {
  const table = [12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.306, 2.26216, 2.22814];
  if (freedom <= table.length) return table[freedom - 1];
  const z = 1.959964, v = freedom;
  return z + (z ** 3 + z) / (4 * v) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * v ** 2) +
         (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / (384 * v ** 3);
}

/** Mean of values with the 95 % interval that the table has; without an interval for a single value. */
function interval(values) {
  const n = values.length, mean = sum(values) / n;
  if (n < 2) return {mean, low: null, high: null};
  const squares = sum(values.map(value => (value - mean) ** 2));
  const half = studentT(n - 1) * Math.sqrt(squares / (n - 1) / n);
  return {mean, low: mean - half, high: mean + half};
}

/** An exponential mean of noisy values: the share `kept` of the old mean, without a bias towards the first value. */
function smoothed(values, kept) {
  let sum = 0, weight = 0;
  return values.map(value => {
    sum = kept * sum + (1 - kept) * value;
    weight = kept * weight + 1 - kept;
    return sum / weight;
  });
}

// ---- The curves of a run --------------------------------------------------------------------------------------------

/** The value of a curve {x, y} at `x`, interpolated between its points. */
function interpolate({x: xs, y: ys}, x) {
  let i = 1;
  while (i < xs.length - 1 && xs[i] < x) ++i;
  if (xs.length < 2) return ys[0];
  const share = (x - xs[i - 1]) / (xs[i] - xs[i - 1] || 1);
  return ys[i - 1] + share * (ys[i] - ys[i - 1]);
}

/** Whether a seed counts in the means: it did not fail, and it learnt something if another seed of the run did. */
const counts = (run, seed) =>
    seed.end !== 'failed' && (seed.learnt !== false || !run.seeds.some(({learnt}) => learnt === true));

/** The curves of a run's seeds: {whole: of the seeds that count, others}. Each is {x, y, steps, failed}. */
function seedCurves(run, xKind, yKind, kept) {
  const curves = {whole: [], others: []};
  for (const seed of run.seeds) {
    const lists = seed[yKind.list], x = [], y = [], steps = [];
    (lists?.[xKind.key] ?? []).forEach((value, i) => {
      const other = lists[yKind.key]?.[i];
      if (!isNumber(value) || !isNumber(other)) return;
      x.push(value);
      y.push(other);
      steps.push(lists.step[i]);
    });
    const curve = {x, y: kept ? smoothed(y, kept) : y, steps, failed: seed.end === 'failed'};
    if (x.length) curves[counts(run, seed) ? 'whole' : 'others'].push(curve);
  }
  return curves;
}

/**
 * Mean and interval over the seeds: [{x, y, low, high}]. Seeds with equal steps are averaged step by step. Seeds
 * without a common part of the axis have no mean: the result is every seed's own points, each {…, alone: true}.
 */
function meanCurve(curves) {
  if (!curves.length) return [];
  const [first] = curves;
  const equal = curves.every(({steps}) => steps.length === first.steps.length &&
                                          steps.every((step, i) => step === first.steps[i]));
  const point = (x, ys) => { const {mean, low, high} = interval(ys); return {x, y: mean, low, high}; };
  const mean = values => interval(values).mean;
  if (equal) return first.x.map((_, i) => point(mean(curves.map(({x}) => x[i])), curves.map(({y}) => y[i])));
  const begin = Math.max(...curves.map(({x}) => x[0])), end = Math.min(...curves.map(({x}) => x.at(-1)));
  if (begin > end) {
    const own = ({x, y}) => x.map((value, i) => ({...point(value, [y[i]]), alone: true}));
    return curves.flatMap(own).sort((a, b) => a.x - b.x);
  }
  const inside = first.x.filter(x => x > begin && x < end);
  return [begin, ...inside, end].map(x => point(x, curves.map(curve => interpolate(curve, x))));
}

/** A run's curve: {run, look, points, seeds: number in the mean, others: lists of points of the other seeds}. */
function curveOf(run, xKind, yKind, {kept, log}) {
  const {whole, others} = seedCurves(run, xKind, yKind, kept), usable = ({x}) => !log || x > 0;
  return {run, look: lookOf(run), points: meanCurve(whole).filter(usable), seeds: whole.length,
          others: others.map(({x, y, failed}) =>
              ({failed, points: x.map((value, i) => ({x: value, y: y[i]})).filter(usable)}))};
}

/** The point nearest to `x`; null where the curve ends long before. */
function closest(points, x) {
  if (!points.length) return null;
  const best = points.reduce((near, point) => Math.abs(point.x - x) < Math.abs(near.x - x) ? point : near);
  const gap = points.length > 1 ? (points.at(-1).x - points[0].x) / (points.length - 1) : Infinity;
  return Math.abs(best.x - x) <= Math.max(gap, 1e-9) ? best : null;
}

/** Whether two lines of pixels hide each other. */
function coincide(one, other) {
  return one.length > 1 && one.length === other.length &&
         one.every(([x, y], i) => Math.abs(x - other[i][0]) < 1 && Math.abs(y - other[i][1]) < 1.5);
}

/** Draws the curves of a chart: {run, look, points, others}. */
function drawCurves(chart, lines) {
  const isLine = points => points.length > 0 && !points[0].alone;
  const inFrame = y => y > chart.box.top - 6 && y < chart.box.bottom + 2;
  const onFrame = (look, [x, y]) => {  // marks at the ends lie on the frame, which must not clip them
    if (inFrame(y) && x > chart.box.left - 2 && x < chart.box.right + 2) chart.svg.append(mark(look, x, y, 3.8));
  };
  const bright = lines.filter(({look}) => !look.faded);
  for (const {look, points} of bright) if (isLine(points)) drawBand(chart, look, points);
  const drawn = [];
  for (const {run, look, points, others} of [...lines].sort((a, b) => b.look.faded - a.look.faded)) {
    const line = drawLine(chart, look, isLine(points) ? points : []);
    line.dataset.run = run.name;
    // Lines on top of each other take turns along the way.
    const below = drawn.filter(other => coincide(other.pixels, pixelsOf(chart, points))).length;
    if (below && !look.faded) line.setAttribute('stroke-dasharray', `9 ${9 * below}`);
    if (isLine(points)) drawn.push({pixels: pixelsOf(chart, points)});
    for (const {points: own, failed} of others) {
      drawLine(chart, look, own, failed ? 'failed' : 'uncounted');
      const [x, y] = pixelsOf(chart, own).at(-1) ?? [];
      if (failed && isNumber(x))
        chart.field.append(svg('path', {class: 'failure', stroke: look.colour,
                                        d: `M${px(x - 4)},${px(y - 4)}l8,8m0,-8l-8,8`}));
    }
    if (look.faded && (points.length === 1 || !isLine(points)))
      for (const pixel of pixelsOf(chart, points)) onFrame(look, pixel);
  }
  for (const {look, points} of bright) {
    const pixels = pixelsOf(chart, points), width = chart.box.right - chart.box.left;
    if (!points.length) continue;
    for (const pixel of isLine(points) ? [pixels.at(-1)] : pixels) onFrame(look, pixel);
    if (points.length === 1) drawPoints(chart, look, points);  // with its interval
    let next = chart.box.left + 24 + look.slot * 13 % 96;  // marks of different runs stand at different places
    for (const [x, y] of isLine(points) ? pixels : []) {
      if (x < next || x > pixels.at(-1)[0] - 12) continue;
      chart.field.append(mark(look, x, y, 3.8));
      next = x + Math.max(96, width / 8);
    }
  }
}

/** What the lines and bands of the curves mean. */
function curvesLegend(lines) {
  const parts = [];
  if (lines.some(({points}) => points.some(({low}) => isNumber(low))))
    parts.push('Lines are means over the seeds, bands their 95 % intervals (Student), as in the table.');
  else parts.push('Each line is one seed: there is no interval.');
  if (lines.some(({points}) => points.length === 1)) parts.push('A run with one evaluation is a point, not a line.');
  const others = lines.flatMap(line => line.others);
  if (others.some(({failed}) => !failed)) parts.push('Thin dotted lines are single seeds that never learnt.');
  if (others.some(({failed}) => failed)) parts.push('Thin lines that end with a cross are seeds that failed.');
  return parts.join(' ');
}

// ---- The section ----------------------------------------------------------------------------------------------------

export function buildCurves(section) {
  const has = ([, {list, key}]) => runs.some(run => run.seeds.some(seed => seed[list]?.[key]?.some(isNumber)));
  const ys = Object.entries(CURVE_Y).filter(has);
  if (!ys.length) return false;
  const state = {x: 'steps', y: ys[0][0], log: 'linear', kept: 0, frame: 'rest', zoom: null};
  const pick = (name, legend, options, key, change = () => {}) =>
      choice(name, legend, options, String(state[key]), value => {
        state[key] = key === 'kept' ? Number(value) : value;
        change();
        draw();
      });
  const smoothing = pick('curve-smoothing', 'Smoothing', [['0', 'none'], ['0.7', 'some'], ['0.93', 'much']], 'kept');
  const unzoom = button('link', 'Reset zoom', () => zoomTo(null), {id: 'curve-unzoom'});
  const legend = el('p', 'quiet');
  section.append(
      el('div', 'bar choices',
         pick('curve-y', 'Show', ys.map(([value, {name}]) => [value, name]), 'y'),
         pick('curve-x', 'against', Object.entries(CURVE_X).map(([value, {name}]) => [value, name]), 'x',
              () => { state.zoom = null; }),
         pick('curve-scale', 'Scale', [['linear', 'linear'], ['log', 'logarithmic']], 'log'),
         pick('curve-frame', 'Frame', [['rest', 'without the first steps'], ['all', 'everything']], 'frame'), smoothing),
      legend);
  const {host, readout} = chartHost(section, 'curves-chart');
  const rows = () => [['run', 'seeds', drawn.xKind.label, drawn.yKind.label, 'low', 'high'],
                      ...drawn.lines.flatMap(({run, seeds, points}) =>
                          points.map(({x, y, low, high}) => [run.name, seeds, x, y, low, high]))];
  section.append(el('div', 'bar under', saveButtons(host, {
    name: 'curves', title: () => `${drawn.yKind.label} against ${drawn.xKind.label}`, rows}), unzoom,
    el('span', 'hint', 'Drag across the chart to zoom in; a double click resets. With the keyboard: + − 0.')));

  let drawn = null;  // {charts, lines, chosen, xKind, yKind, x, whole}
  function draw() {
    const xKind = CURVE_X[state.x], yKind = CURVE_Y[state.y], log = state.log === 'log';
    smoothing.hidden = !yKind.noisy;
    unzoom.hidden = !state.zoom;
    const kept = yKind.noisy ? state.kept : 0;
    const lines = selection.visible().map(run => curveOf(run, xKind, yKind, {kept, log}));
    const every = lines.flatMap(({points, others}) => [...points, ...others.flatMap(({points: own}) => own)]);
    const whole = extent(every.map(point => point.x), {log, air: 0});
    if (whole && !log) whole.low = Math.min(whole.low, 0);
    const x = whole && state.zoom ? {...state.zoom, log} : whole;
    const y = x && frameOf(lines, every, x);
    host.classList.toggle('empty', !x || !y);
    if (!x || !y) {
      drawn = null;
      host.replaceChildren(el('p', 'quiet', 'None of the runs shown has such a curve.'));
      return readout.replaceChildren();
    }
    const chosen = lines.filter(({look}) => !look.faded);  // in the order of the table
    const named = lines.map(line => ({...line, end: line.points.findLast(point => point.x <= x.high)}));
    const charts = drawPanels(host, {
      lines: named, x: {...x, label: xKind.label, tick: xKind.tick}, y: {...y, label: yKind.label, tick: yKind.tick},
      height: chartHeight(host, 320, 400), draw: drawCurves,
      name: `${yKind.label} against ${xKind.label}. The arrow keys walk along the curves, + and − zoom.`,
    });
    for (const entry of charts) {
      entry.cursor = svg('g', {class: 'cursor-line'});
      entry.chart.svg.append(entry.cursor);
    }
    legend.textContent = curvesLegend(lines);
    drawn = {charts, lines, chosen, xKind, yKind, x, whole};
    tell(null);
  }
  /** The part of the y axis that shows the curves between the ends of `x`. */
  function frameOf(lines, every, x) {
    const few = Math.max(...lines.map(({points}) => points.length)) < 8;
    const whole = state.frame === 'all' || CURVE_Y[state.y].whole;
    const begins = state.zoom ? x.low : whole || x.log || few ? -Infinity : x.low + BEGINNING * (x.high - x.low);
    const shown = lines.flatMap(({points, others}) => [points, ...others.map(({points: own}) => own)]).map(list =>
        list.filter((point, i) => point.x >= begins && point.x <= x.high * (1 + 1e-9) || !state.zoom && i >= list.length - 2));
    const values = shown.flat().flatMap(({y, low, high}) => [y, low, high]);
    if (whole) return extent(values);
    const core = robustExtent(values.some(isNumber) ? values : every.map(({y}) => y), {reach: few ? 4 : 1.2});
    // A few runs are shown with their ends, however far they are from the others.
    const ends = runs.length > MANY ? [] : shown.map(list => list.at(-1)?.y);
    const wide = robustExtent(ends, {reach: 8});
    return wide && core ? {...core, low: Math.min(core.low, wide.low), high: Math.max(core.high, wide.high)} : core;
  }
  function zoomTo(range) {
    if (!drawn) return;
    const {whole} = drawn, low = range && Math.max(range.low, whole.low), high = range && Math.min(range.high, whole.high);
    state.zoom = range && high > low && (low > whole.low || high < whole.high) ? {low, high} : null;
    draw();
  }

  /** The stops of the cursor: the points of the chosen run with the most points. */
  const stops = () => (drawn?.chosen.reduce((most, {points}) => points.length > most.length ? points : most, []) ?? [])
      .filter(({x}) => x >= drawn.x.low && x <= drawn.x.high * (1 + 1e-9));
  let stopNow = null;
  function tell(stop) {
    stopNow = stop;
    if (!drawn) return;
    const {charts, chosen, xKind, yKind} = drawn, at = stop === null ? null : stops()[stop].x;
    const nodes = [el('span', 'entry-title', at === null ? 'At the end' : xKind.say(at))];
    for (const {chart, lines, cursor} of charts) {
      cursor.replaceChildren();
      if (at === null) continue;
      const x = px(chart.x.at(at));
      cursor.append(svg('line', {x1: x, x2: x, y1: chart.box.top, y2: chart.box.bottom}));
      for (const {look, points} of lines.filter(({look}) => !look.faded)) {
        const point = closest(points, at);
        if (point) cursor.append(mark(look, chart.x.at(point.x), chart.y.at(point.y), 5));
      }
    }
    for (const {run, points, seeds, others} of chosen) {
      const point = at === null ? points.at(-1) : closest(points, at);
      if (!point && others.some(({failed}) => failed))
        nodes.push(el('span', 'entry', runName(run), el('b', 'bad', 'failed')));
      if (!point) continue;
      const entry = el('span', 'entry', runName(run), el('b', '', yKind.say(point.y)));
      if (seeds > 1 && !point.alone)
        entry.append(el('span', 'quiet', `${yKind.number(point.low)} – ${yKind.say(point.high)}`));
      nodes.push(entry);
    }
    readout.replaceChildren(...nodes);
  }
  walkable(host, {stops: () => stops().map(({x}) => [drawn.charts[0].chart.x.at(x)]), show: tell});
  zoomable(host, {charts: () => drawn?.charts ?? [], around: () => stopNow === null ? null : stops()[stopNow].x, zoomTo});
  whenRunsOrWidthChange(host, draw);
  return true;
}
