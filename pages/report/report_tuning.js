// How each variant chose its values: the metric of every candidate after a short training.

import {data, el, sortableTable} from '../page.js';
import {duration, isNumber, metric, metricLabel, metricNumber, runs, si, THIN, withDigits} from './report_base.js';
import {chartHeight, extent, robustExtent, tickMetric, whenRunsOrWidthChange} from './report_chart.js';
import {saveButtons} from './report_export.js';
import {drawMarkedLines, drawPanels} from './report_lines.js';
import {lookOf} from './report_looks.js';
import {selection} from './report_selection.js';

/** "lr=0.001" → 0.001; null for a candidate of several keys or without a number. */
const candidateNumber = name => /^[^,=]+=[^,=]+$/.test(name) && Number(name.split('=')[1]) > 0
    ? Number(name.split('=')[1]) : null;

/** "at the edge of the grid", with the keys of which the value is at the edge where there are several keys. */
function edgeText({chosen, keys_at_edge: keys}) {
  if (!keys || !chosen.includes(',')) return 'at the edge of the grid';
  return `at the edge of the grid in ${keys.map(key => key.split('.').at(-1)).join(' and ')}`;
}

export function buildTuning(section) {
  const tuning = data.tuning, variants = tuning?.variants ?? [];
  if (!variants.length) return false;
  const share = `${withDigits(100 * tuning.share, 2)}${THIN}%`;
  section.append(el('p', 'quiet', `Each run chose its values by short trainings with ${share} of the budget and ` +
      `${tuning.seeds.length === 1 ? 'another seed' : 'other seeds'} than the comparison; all runs had the same number ` +
      `of them. The best ${metric.label} was chosen.`));
  const names = [...new Set(variants.flatMap(variant => variant.candidates.map(({name}) => name)))];
  const valueOf = (variant, name) => variant.candidates.find(candidate => candidate.name === name)?.metric ?? null;
  if (names.every(name => candidateNumber(name) !== null) && names.length > 1) tuningChart(section, variants, names);
  const cellOf = name => variant => {
    const value = valueOf(variant, name);
    return isNumber(value) ? el(variant.chosen === name ? 'b' : 'span', '', metricNumber(value)) : 'failed';
  };
  const columns = [
    {title: 'run', value: ({name}) => name},
    {title: 'chosen', value: ({chosen}) => chosen, cell: variant => variant.at_edge
        ? el('span', 'bad', `${variant.chosen}, ${edgeText(variant)}`) : variant.chosen},
    ...names.map(name => ({title: name, value: variant => valueOf(variant, name), cell: cellOf(name)})),
    {title: 'FLOPs', value: ({flops}) => flops, cell: ({flops}) => si(flops)},
    {title: 'time', value: ({seconds}) => seconds, cell: ({seconds}) => duration(seconds)},
  ];
  section.append(el('div', 'scroll tall', sortableTable({columns, rows: variants}).table));
  return true;
}

/** The metric against the value of the only key. */
function tuningChart(section, variants, names) {
  const host = el('div', 'chart-host');
  const values = names.map(candidateNumber), key = names[0].split('=')[0];
  const title = () => `${metric.label} of the short trainings against ${key}`;
  section.append(host, el('div', 'bar under', saveButtons(host, {name: 'tuning', title, rows: () => [
    ['run', key, metricLabel], ...variants.flatMap(({name, candidates}) =>
        candidates.map(candidate => [name, candidateNumber(candidate.name), candidate.metric]))]})));
  const lineOf = variant => {
    const run = runs.find(run => run.name === variant.name);
    const points = variant.candidates.map(({name, metric: value}) =>
        ({x: candidateNumber(name), y: value, chosen: name === variant.chosen}));
    const usable = points.filter(({y}) => isNumber(y)).sort((a, b) => a.x - b.x);
    return {run, look: run && lookOf(run), points: usable, end: usable.at(-1)};
  };
  function draw() {
    const lines = variants.map(lineOf).filter(({run, points}) => run && points.length && selection.matches(run));
    const y = robustExtent(lines.flatMap(({points}) => points.map(point => point.y)), {reach: 3, air: 0.08});
    if (!y) return host.replaceChildren(el('p', 'quiet', 'None of the runs shown was tuned.'));
    drawPanels(host, {
      lines, x: {...extent(values, {log: true, air: 0.03}), label: key, marks: values, tick: value => String(value)},
      y: {...y, label: metricLabel, tick: tickMetric}, height: chartHeight(host, 280, 320),
      name: `${title()}; the chosen value has a ring.`,
      draw: drawMarkedLines,
    });
  }
  whenRunsOrWidthChange(host, draw);
}
