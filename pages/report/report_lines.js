// Charts of lines: one chart, or one panel for each part of a grid, with names at the ends of the lines.

import {el, isPrinting, set} from '../page.js';
import {isNumber} from './report_base.js';
import {linePath, makeChart, mark, px, spreadLabels, svg, uprightInterval} from './report_chart.js';
import {measure, shortLabels} from './report_labels.js';
import {panelsOf} from './report_looks.js';

/** A box for a chart that can have the focus, and the line below it that says what the reader points at. */
export function chartHost(section, id) {
  const readout = set(el('div', 'readout entries'), {'aria-live': 'polite'});
  const host = set(el('div', 'chart-host'), {tabIndex: 0, id, role: 'application', 'aria-roledescription': 'chart'});
  section.append(host, readout);
  return {host, readout};
}

/** Writes labels {text, look, x, y: values of the last point} after the ends of lines. */
function labelEnds(chart, ends) {
  const labels = ends.map(({text, look, x, y}) => {
    const end = Math.max(chart.box.top - 6, Math.min(chart.box.bottom, chart.y.at(y)));
    return {text, look, x: chart.x.at(x), end, y: Math.max(chart.box.top, end)};
  });
  spreadLabels(labels, LABEL_GAP, chart.box.top, chart.box.bottom);
  for (const {text, look, x, end, y} of labels) {
    const left = chart.box.right + 10;
    if (Math.abs(end - y) > 3 || left - x > 24)
      chart.svg.append(svg('path', {class: 'leader', d: linePath([[x + 3, end], [left - 3, y]])}));
    chart.svg.append(svg('text', {class: 'end-label', x: left, y: px(y), dy: '.32em', style: `fill:${look.colour}`}, text));
  }
}
const LABEL_GAP = 16;

/** How the points of a line become pixels. */
export const pixelsOf = ({x, y}, points) => points.map(point => [x.at(point.x), y.at(point.y)]);

/** A line through points {x, y}. */
export function drawLine(chart, look, points, style = '') {
  const line = svg('path', {class: `curve${look.faded ? ' faded' : ''}${style && ` ${style}`}`, stroke: look.colour,
                            'stroke-dasharray': style ? null : look.dash || null, d: linePath(pixelsOf(chart, points))});
  chart.field.append(line);
  return line;
}

/** The area of the intervals of points {x, low, high}. */
export function drawBand(chart, look, points) {
  const having = points.filter(({low}) => isNumber(low));
  if (having.length < 2) return;
  const edge = (key, list) => list.map(point => [chart.x.at(point.x), chart.y.at(point[key])]);
  chart.field.append(svg('path', {class: 'band', fill: look.colour,
                                  d: linePath([...edge('high', having), ...edge('low', [...having].reverse())]) + 'Z'}));
}

/** The interval of each point as an upright line, and a mark on each point; a `chosen` one has a ring. */
export function drawPoints(chart, look, points) {
  for (const {x, low, high} of points.filter(({low}) => isNumber(low)))
    chart.field.append(svg('path', {class: 'whisker thin', stroke: look.colour,
                                    d: uprightInterval(chart, chart.x.at(x), low, high)}));
  pixelsOf(chart, points).forEach(([x, y], i) => {
    chart.field.append(mark(look, x, y, 4.4));
    if (points[i].chosen)
      chart.field.append(svg('circle', {class: 'ring', cx: px(x), cy: px(y), r: 8, stroke: look.colour}));
  });
}

/** Lines {look, points}, with marks on the points of those that are not faded, or on their `dots`. */
export function drawMarkedLines(chart, lines) {
  for (const {look, points, dots = points} of lines) {
    drawLine(chart, look, points);
    if (!look.faded) drawPoints(chart, look, dots);
  }
}

/**
 * Fills `host` with a chart, or with one for each panel of a grid. All of them have the axes `x` and `y` (as for
 * makeChart). `lines` are {run, look, points}; `draw` gets a chart and its lines. Without panels, the ends of the lines
 * have names, where there is room: those of the lines with an `end` {x, y}. Returns a list of {chart, lines}.
 */
export function drawPanels(host, {lines, x, y, height, name, draw, panels = panelsOf(lines.map(({run}) => run))}) {
  const narrow = host.clientWidth < 560, single = panels.length === 1;
  if (single) {
    const chosen = lines.filter(({look, end}) => !look.faded && end);
    const labelled = chosen.length * LABEL_GAP <= height - 68;
    const room = narrow ? 64 : Math.min(300, 0.28 * host.clientWidth);
    const texts = shortLabels(chosen.map(({run}) => run), room, 12.5, [], 600);
    const widest = Math.max(0, ...[...texts.values()].map(text => measure(text, 12.5, 600)));
    const chart = makeChart(host, {x, y, height, right: labelled && chosen.length ? widest + 22 : 16, name});
    draw(chart, lines);
    if (labelled) labelEnds(chart, chosen.map(({run, look, end}) => ({text: texts.get(run), look, ...end})));
    return [{chart, lines}];
  }
  const boxes = panels.map(({title}) => {
    const box = el('div', 'panel'), figure = el('figure', 'multiple', el('h3', 'panel-title', title), box);
    return {figure, box, title};
  });
  host.replaceChildren(el('div', 'multiples', ...boxes.map(({figure}) => figure)));
  return boxes.map(({box, title}, i) => {
    const own = lines.filter(({run}) => panels[i].runs.includes(run));
    const chart = makeChart(box, {x, y, height: Math.min(height, isPrinting() ? 165 : 300), name: `${title}: ${name}`});
    draw(chart, own);
    return {chart, lines: own};
  });
}
