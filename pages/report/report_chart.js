// Charts: axes, marks and labels in SVG. The style sheet sets the colours for light, dark and print.

import {el, isPrinting, set} from '../page.js';
import {isNumber, metricFactor, withDigits} from './report_base.js';
import {measure} from './report_labels.js';
import {lookOf} from './report_looks.js';
import {whenSelectionChanges} from './report_selection.js';

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) node.setAttribute(name, value);
  node.append(...children);
  return node;
}
export const px = value => Math.round(value * 100) / 100;

// ---- Scales --------------------------------------------------------------------------------------------------------

/** About `count` round values from `low` to `high`, for a logarithmic scale if `log`. */
function niceTicks(low, high, log, count) {
  const values = [], decades = Math.log10(high / low);
  if (log && decades > 0.9) {
    const digits = decades > 5 ? [1] : decades > 2.2 ? [1, 3] : [1, 2, 5], stride = Math.max(1, Math.ceil(decades / 9));
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += stride)
      for (const digit of digits) values.push(digit * 10 ** power);
    return values;
  }
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 2.5, 5, 10].find(factor => factor * power >= raw * 0.999);
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i)
    values.push(Number((i * step).toPrecision(12)));
  return values;
}

/** The difference of evenly spaced ticks; 0 for others. */
function stepOf(ticks) {
  const step = ticks[1] - ticks[0];
  return ticks.every((value, i) => !i || Math.abs(value - ticks[i - 1] - step) < 1e-6 * step) ? step || 0 : 0;
}

/**
 * A scale {at: value → pixel, from: pixel → value, ticks, domain, log, step} from `low`..`high` to `from`..`to` pixels,
 * logarithmic if `log`. Its ticks are `marks`; by default there are about `count`.
 */
function makeScale({low, high, from, to, log = false, count = 6, marks = null}) {
  if (!(high > low)) {  // a single value is put in the middle
    const room = (Math.abs(low) || 1) * 0.1;
    [low, high] = log ? [low / 2, low * 2] : [low - room, low + room];
  }
  const by = log ? Math.log10 : value => value;
  const [a, b] = [by(low), by(high)];
  const slack = (high - low) * 1e-9;
  const isInside = value => value >= low - slack && value <= high + slack;
  let ticks = (marks ?? niceTicks(low, high, log, count)).filter(isInside);
  for (let more = count; ticks.length < 2 && more < 100; more *= 2)
    ticks = niceTicks(low, high, false, more).filter(isInside);
  const back = log ? power => 10 ** power : value => value;
  return {at: value => from + (by(value) - a) / (b - a) * (to - from), ticks, domain: [low, high], log,
          from: pixel => back(a + (pixel - from) / (to - from) * (b - a)),
          step: marks ? 0 : stepOf(ticks)};
}

/** The first and the last number of an axis, with a little air around the values. */
export function extent(values, {log = false, air = 0.04} = {}) {
  const usable = values.filter(value => isNumber(value) && (!log || value > 0));
  if (!usable.length) return null;
  const low = usable.reduce((a, b) => Math.min(a, b)), high = usable.reduce((a, b) => Math.max(a, b));
  if (log) {
    const factor = (high / low) ** air || 1;
    return {low: low / factor, high: high * factor, log};
  }
  return {low: low - (high - low) * air, high: high + (high - low) * air, log};
}

/**
 * The same without outliers: the frame cuts off a few values that are farther from the others than `reach` times their
 * range.
 */
export function robustExtent(values, {reach = 1.2, ...options} = {}) {
  const sorted = values.filter(isNumber).sort((a, b) => a - b);
  if (sorted.length < 5) return extent(sorted, options);
  const at = share => sorted[Math.round(share * (sorted.length - 1))];
  const far = reach * ((at(0.9) - at(0.1)) || Math.abs(at(0.5)) * 0.05 || 1);
  return extent(sorted.filter(value => value <= at(0.9) + far && value >= at(0.1) - far), options);
}

/** Decimals that tell ticks apart: 1 for steps of 0.5, 2 for steps of 0.25. */
function decimalsOf(step) {
  const digits = step.toPrecision(2).replace(/e.*$/, ''), power = Math.floor(Math.log10(step) + 1e-9);
  return Math.max(0, Math.min(6, (/[1-9]$/.test(digits) ? 1 : 0) - power));
}
export const tickNumber = (value, {step}) => step ? value.toFixed(decimalsOf(step)) : String(withDigits(value, 3));
export const tickMetric = (value, {step}) => tickNumber(value * metricFactor, {step: step * metricFactor});

// ---- Marks ---------------------------------------------------------------------------------------------------------

/** The path of a mark around (x, y). */
function markPath(shape, x, y, r) {
  const polygon = points => `M${points.map(([dx, dy]) => `${px(x + dx * r)},${px(y + dy * r)}`).join('L')}Z`;
  switch (shape) {
    case 'square': return polygon([[-.88, -.88], [.88, -.88], [.88, .88], [-.88, .88]]);
    case 'triangle': return polygon([[0, -1.15], [1.08, .8], [-1.08, .8]]);
    case 'down': return polygon([[0, 1.15], [1.08, -.8], [-1.08, -.8]]);
    case 'diamond': return polygon([[0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]]);
    case 'bar': return polygon([[-1.3, -.45], [1.3, -.45], [1.3, .45], [-1.3, .45]]);
    case 'plus': return polygon([[-.4, -1.2], [.4, -1.2], [.4, -.4], [1.2, -.4], [1.2, .4], [.4, .4], [.4, 1.2],
                                 [-.4, 1.2], [-.4, .4], [-1.2, .4], [-1.2, -.4], [-.4, -.4]]);
    case 'cross': return polygon([[-1.1, -.6], [-.6, -1.1], [0, -.5], [.6, -1.1], [1.1, -.6], [.5, 0], [1.1, .6],
                                  [.6, 1.1], [0, .5], [-.6, 1.1], [-1.1, .6], [-.5, 0]]);
    default: return `M${px(x - r)},${px(y)}a${r},${r} 0 1 0 ${2 * r},0a${r},${r} 0 1 0 ${-2 * r},0Z`;
  }
}
export const mark = (look, x, y, r = 4.2) => svg('path', {class: 'mark', d: markPath(look.shape, x, y, r), fill: look.colour});

/** A piece of a line with its mark, for legends. */
export function swatch(look) {
  return svg('svg', {class: 'swatch', width: 30, height: 14, viewBox: '0 0 30 14', 'aria-hidden': 'true'},
             svg('line', {x1: 1, x2: 29, y1: 7, y2: 7, stroke: look.colour, 'stroke-width': 2.2,
                          'stroke-dasharray': look.dash || null}),
             ...look.shape ? [mark(look, 15, 7, 4.4)] : []);
}
/** A run's name after its swatch. */
export const runName = run => el('span', 'run-name', swatch(lookOf(run)), el('bdi', '', run.name));

/** A card with what a run says, under its name. */
export function outputCard(run, ...content) {
  const card = set(el('article', 'output', el('div', 'output-name', runName(run)), ...content), {'data-run': run.name});
  card.style.setProperty('--own', lookOf(run).colour);
  return card;
}

/** The line through points, interrupted where a point is missing. */
export function linePath(points) {
  let path = '', broken = true;
  for (const [x, y] of points) {
    if (!isNumber(x) || !isNumber(y)) { broken = true; continue; }
    path += `${broken ? 'M' : 'L'}${px(x)},${px(y)}`;
    broken = false;
  }
  return path;
}

/** Moves overlapping labels apart: changes their `y` until they are at least `gap` pixels apart. */
export function spreadLabels(labels, gap, top, bottom) {
  labels.sort((a, b) => a.y - b.y);
  for (let i = 0; i < labels.length; ++i)
    labels[i].y = Math.max(labels[i].y, i ? labels[i - 1].y + gap : top);
  for (let i = labels.length - 1; i >= 0; --i)
    labels[i].y = Math.min(labels[i].y, i + 1 < labels.length ? labels[i + 1].y - gap : bottom);
}

// ---- A chart's frame -----------------------------------------------------------------------------------------------

let charts = 0;

/**
 * An empty chart that fills `host`. `x` and `y` are the options of a scale, with {label, tick: (value, scale) → text}.
 * Returns {svg, field: the group for marks, clipped to the frame, x, y: scales, box}.
 */
export function makeChart(host, {x, y, height, right = 16, left = null, name}) {
  const width = Math.max(220, Math.floor(host.clientWidth));
  const top = 26, bottom = height - 42;
  const yScale = makeScale({...y, from: bottom, to: top, count: Math.max(3, Math.round(height / 62))});
  const yTexts = yScale.ticks.map(value => y.tick(value, yScale));
  left ??= Math.ceil(Math.max(...yTexts.map(text => measure(text, 12)), 8)) + 12;
  const box = {left, right: width - right, top, bottom, width, height};
  const xCount = x.count ?? Math.max(3, Math.round((box.right - left) / 95));
  const xScale = makeScale({...x, from: box.left, to: box.right, count: xCount});

  const clip = `clip-${++charts}`;
  const chart = svg('svg', {class: 'chart', viewBox: `0 0 ${width} ${height}`, width, height, role: 'img',
                            'aria-label': name});
  if (host.hasAttribute('role')) host.setAttribute('aria-label', name);
  chart.append(svg('defs', {}, svg('clipPath', {id: clip}, svg('rect', {
    x: left - 1, y: top - 6, width: Math.max(1, box.right - left + 2), height: bottom - top + 8}))));
  const axes = svg('g', {class: 'axes'});
  let below = Infinity;
  yScale.ticks.forEach((value, i) => {
    const at = px(yScale.at(value));
    axes.append(svg('line', {class: 'grid', x1: left, x2: box.right, y1: at, y2: at}));
    if (below - at < 14) return;
    axes.append(svg('text', {x: left - 8, y: at, dy: '.32em', 'text-anchor': 'end'}, yTexts[i]));
    below = at;
  });
  let free = -Infinity;  // labels that would touch the previous one are left out
  for (const value of xScale.ticks) {
    const at = px(xScale.at(value)), text = x.tick(value, xScale), half = measure(text, 12) / 2;
    axes.append(svg('line', {class: 'tick', x1: at, x2: at, y1: bottom, y2: bottom + 5}));
    if (at - half < free || at + half > width) continue;
    axes.append(svg('text', {x: at, y: bottom + 18, 'text-anchor': 'middle'}, text));
    free = at + half + 10;
  }
  axes.append(svg('line', {class: 'axis', x1: left, x2: box.right, y1: bottom, y2: bottom}),
              svg('text', {class: 'label x-label', x: (left + box.right) / 2, y: height - 6, 'text-anchor': 'middle'},
                  x.label),
              svg('text', {class: 'label y-label', x: 0, y: 12}, y.label));
  const field = svg('g', {'clip-path': `url(#${clip})`});
  chart.append(axes, field);
  host.replaceChildren(chart);
  return {svg: chart, field, x: xScale, y: yScale, box};
}

/** The path of an interval at the pixel `x`; an end outside the chart has an arrow. */
export function uprightInterval({y: {at, domain}, box: {top, bottom}}, x, low, high) {
  const within = value => Math.min(bottom, Math.max(top, at(value)));
  const above = high > domain[1] ? `M${px(x - 4)},${px(top + 6)}l4,-6l4,6` : '';
  const below = low < domain[0] ? `M${px(x - 4)},${px(bottom - 6)}l4,6l4,-6` : '';
  return `M${px(x)},${px(within(high))}V${px(within(low))}${above}${below}`;
}

/** The height of a chart in a narrow host and in a wide one. On paper charts are flat: a report is a few pages. */
export const chartHeight = (host, narrow, wide) => isPrinting() ? 215 : host.clientWidth < 560 ? narrow : wide;

/** The charts, which are drawn anew for paper. */
const drawings = [];
for (const event of ['beforeprint', 'afterprint'])
  addEventListener(event, () => { for (const {host, draw} of drawings) if (host.clientWidth) draw(); });

/** Calls `draw` when `host` becomes visible, when its width changes, and for printing. */
export function whenWidthChanges(host, draw) {
  let width = 0;
  drawings.push({host, draw});
  new ResizeObserver(() => {
    if (host.clientWidth === width || !host.clientWidth) return;
    width = host.clientWidth;
    draw();
  }).observe(host);
}

/** The same, and when the selection of runs changes. */
export function whenRunsOrWidthChange(host, draw) {
  whenSelectionChanges(draw);
  whenWidthChanges(host, draw);
}

/** The place of a pointer in the coordinates of a chart. */
export function placeIn(chart, event) {
  const box = chart.getBoundingClientRect(), scale = chart.viewBox.baseVal.width / box.width;
  return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
}

/**
 * Lets a pointer and the arrow keys move along the stops of a chart, or of several side by side. `host` keeps the focus
 * while its chart is redrawn. `stops` returns the pixels of each stop in its chart, [x, y] or [x]; a pointer reaches the
 * nearest one within `reach` pixels. `show` gets its index or null.
 */
export function walkable(host, {stops, reach = Infinity, show}) {
  const nearest = (x, y) => {
    const distances = stops().map(([left, top = y]) => Math.hypot(left - x, top - y)), least = Math.min(...distances);
    return least < reach ? distances.indexOf(least) : null;
  };
  let stop = null;
  const go = to => { stop = to; show(to); };
  const pointed = event => {
    const chart = event.target.closest?.('svg.chart') ?? host.querySelector('svg.chart');
    if (chart) go(nearest(...placeIn(chart, event)));
  };
  host.addEventListener('pointermove', pointed);
  host.addEventListener('pointerdown', pointed);
  host.addEventListener('pointerleave', event => { if (event.pointerType === 'mouse') go(null); });
  host.addEventListener('blur', () => go(null));
  host.addEventListener('keydown', event => {
    const last = stops().length - 1;
    const to = {ArrowRight: stop === null ? 0 : Math.min(last, stop + 1),
                ArrowLeft: stop === null ? last : Math.max(0, stop - 1), Home: 0, End: last}[event.key];
    if (event.key === 'Escape') go(null);
    if (to === undefined || last < 0) return;
    event.preventDefault();
    go(to);
  });
}
