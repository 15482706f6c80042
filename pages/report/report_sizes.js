// How the loss falls with the compute: every run of every size, and a power law for each variant.

import {data, el, sortableTable} from '../page.js';
import {isNumber, pValue, runs, siTick} from './report_base.js';
import {chartHeight, extent, whenRunsOrWidthChange} from './report_chart.js';
import {saveButtons} from './report_export.js';
import {drawMarkedLines, drawPanels} from './report_lines.js';
import {lookOf} from './report_looks.js';

function estimateText({value, low, high}, digits) {
  const text = value.toFixed(digits);
  return isNumber(low) ? `${text} (${low.toFixed(digits)} to ${high.toFixed(digits)})` : text;
}

export function buildSizes(section) {
  const fit = data.sizes;
  if (!fit) return false;
  const equal = isNumber(fit.p_equal_exponents) ? ` Equal exponents: ${pValue(fit.p_equal_exponents)}.` : '';
  section.append(el('p', 'quiet', `${fit.loss} against the FLOPs of the training at the sizes ${fit.names.join(', ')}. Lines ` +
      'are fits of A · FLOPs to the power of minus the exponent, over all seeds; they hold between the sizes, not beyond. ' +
      `The compute is for the same loss as ${fit.variants[0].name}, with the common exponent ` +
      `${estimateText(fit.exponent, 4)}.${equal}`));
  const host = el('div', 'chart-host'), title = () => `${fit.loss} against the FLOPs of the training`;
  section.append(host, el('div', 'bar under', saveButtons(host, {name: 'sizes', title, rows: () => [
    ['run', 'seed', 'FLOPs', fit.loss], ...fit.points.map(({run, seed, flops, loss}) => [run, seed, flops, loss])]})));
  const lineOf = ({name, exponent, scale}) => {
    const dots = fit.points.filter(point => point.variant === name).map(({flops, loss}) => ({x: flops, y: loss}));
    const ends = [Math.min(...dots.map(({x}) => x)), Math.max(...dots.map(({x}) => x))];
    const run = runs.find(run => fit.points.some(point => point.variant === name && point.run === run.name)) ?? runs[0];
    const points = ends.map(x => ({x, y: scale * x ** -exponent.value}));
    return {run: {name}, look: {...lookOf(run), faded: false}, dots, points, end: points.at(-1)};
  };
  function draw() {
    drawPanels(host, {
      lines: fit.variants.map(lineOf), panels: [{title: ''}], height: chartHeight(host, 300, 360),
      x: {...extent(fit.points.map(({flops}) => flops), {log: true, air: 0.05}), label: 'FLOPs of the training', tick: siTick},
      y: {...extent(fit.points.map(({loss}) => loss), {log: true, air: 0.08}), label: fit.loss,
          tick: value => value.toPrecision(3)},
      name: `${title()}, with fitted lines.`,
      draw: drawMarkedLines,
    });
  }
  whenRunsOrWidthChange(host, draw);
  const columns = [
    {title: 'variant', value: ({name}) => name},
    {title: 'exponent', value: ({exponent}) => exponent.value, cell: ({exponent}) => estimateText(exponent, 4)},
    {title: 'compute for the same loss', value: row => row.compute_ratio.value,
     cell: row => estimateText(row.compute_ratio, 3)},
  ];
  section.append(el('div', 'scroll tall', sortableTable({columns, rows: fit.variants}).table));
  return true;
}
