// The metric at other lengths than that of the training.

import {el} from '../page.js';
import {betterSide, isNumber, lengthTick, metric, metricLabel, metricText, runs} from './report_base.js';
import {chartHeight, extent, px, robustExtent, runName, svg, tickMetric, walkable, whenRunsOrWidthChange} from './report_chart.js';
import {saveButtons} from './report_export.js';
import {chartHost, drawMarkedLines, drawPanels} from './report_lines.js';
import {lookOf} from './report_looks.js';
import {selection} from './report_selection.js';

/** The metric on texts of lengths other than the training length. */
export function buildLengths(section) {
  const measured = runs.flatMap(run => run.lengths ?? []).map(({length}) => length);
  const lengths = [...new Set(measured)].sort((a, b) => a - b);
  if (lengths.length < 2) return false;
  const trained = new Set(runs.map(run => run.sequence_length).filter(isNumber));
  const note = trained.size === 1 ? ` All were trained at ${[...trained][0]} tokens (dashed line).` : '';
  section.append(el('p', 'quiet', `${metric.label} on texts of other lengths, mean over the seeds with its 95 % ` +
                                  `interval; ${betterSide}.${note}`));
  const {host, readout} = chartHost(section, 'lengths-chart');
  const title = () => `${metric.label} against the length of the text`;
  section.append(el('div', 'bar under', saveButtons(host, {name: 'lengths', title, rows: () => [
    ['run', 'length', metricLabel, 'low', 'high'],
    ...runs.flatMap(run => (run.lengths ?? []).map(({length, mean, low, high}) => [run.name, length, mean, low, high]))]})));
  let drawn = null;
  function draw() {
    const lines = selection.visible().filter(run => run.lengths?.length).map(run => {
      const points = run.lengths.map(({length, mean, ...rest}) => ({...rest, x: length, y: mean}));
      return {run, look: lookOf(run), points, end: points.at(-1)};
    }).sort((a, b) => b.look.faded - a.look.faded);
    const x = extent([...lengths, ...trained], {log: true, air: 0.03});
    const y = robustExtent(lines.flatMap(({points}) => points.flatMap(point => [point.y, point.low, point.high])),
                           {reach: 3, air: 0.08});
    if (!y) {
      drawn = null;
      return host.replaceChildren(el('p', 'quiet', 'None of the runs shown was measured at other lengths.'));
    }
    const charts = drawPanels(host, {
      lines, x: {...x, label: 'tokens in a text', tick: lengthTick, marks: lengths},
      y: {...y, label: metricLabel, tick: tickMetric}, height: chartHeight(host, 300, 340),
      name: `${title()}. The arrow keys go from length to length.`,
      draw(chart, own) {
        if (trained.size === 1) {
          const at = px(chart.x.at([...trained][0]));
          chart.field.append(svg('line', {class: 'reference', x1: at, x2: at, y1: chart.box.top, y2: chart.box.bottom}));
        }
        drawMarkedLines(chart, own);
      },
    });
    drawn = {x: charts[0].chart.x, chosen: lines.filter(({look}) => !look.faded)};
    tell(null);
  }
  function tell(stop) {
    const length = lengths[stop ?? lengths.length - 1];
    const entries = (drawn?.chosen ?? []).flatMap(({run, points}) => {
      const point = points.find(({x}) => x === length);
      if (!point) return [];
      const entry = el('span', 'entry', runName(run), el('b', '', metricText(point.y)));
      if (isNumber(point.low)) entry.append(el('span', 'quiet', `± ${metricText((point.high - point.low) / 2)}`));
      return [entry];
    });
    readout.replaceChildren(el('span', 'entry-title', `${length} tokens`), ...entries);
  }
  walkable(host, {stops: () => drawn ? lengths.map(length => [drawn.x.at(length)]) : [], show: tell});
  whenRunsOrWidthChange(host, draw);
  return true;
}
