// Where finished language models differ: bits per byte on slices of the same texts.

import {el, headCell, set} from '../page.js';
import {correctionName, isNumber, metric, pValue, runs} from './report_base.js';
import {runName} from './report_chart.js';

const KINDS = {
  position: 'Place in the window', frequency: 'How often the word occurs', novelty: 'Seen before or new',
  characters: 'Kind of character', length: 'Length of the word',
};

export function buildSlices(section) {
  const sliced = runs.filter(run => Array.isArray(run.slices) && run.slices.length);
  if (!sliced.length) return false;
  const bits = value => isNumber(value) ? value.toFixed(3) : '–';
  const all = [];
  for (const run of sliced)
    for (const slice of run.slices) if (!all.some(({name}) => name === slice.name)) all.push(slice);

  function cells(run, name) {
    const slice = run.slices.find(one => one.name === name);
    const own = el('td', '', bits(slice?.value));
    if (!run.baseline) return [own];
    if (!slice || !isNumber(slice.difference)) return [own, el('td', '', '–')];
    const word = slice.verdict === 'undecided' ? 'not told apart' : slice.verdict;
    const sign = slice.difference > 0 ? '+' : '';
    const cell = el('td', '', el('b', `verdict ${slice.verdict}`, word), ` ${sign}${bits(slice.difference)}`);
    if (isNumber(slice.p_corrected)) cell.append(`, ${pValue(slice.p_corrected)}`);
    return [own, set(cell, {title: `difference: ${bits(slice.low)} to ${bits(slice.high)} (95 %), ` +
                                   `${slice.n} examples`})];
  }
  const columns = 2 + sliced.reduce((n, run) => n + (run.baseline ? 2 : 1), 0);
  const rows = [];
  for (const [kind, title] of Object.entries(KINDS)) {
    const own = all.filter(slice => slice.kind === kind);
    if (!own.length) continue;
    rows.push(el('tr', 'group', set(headCell(title, 'rowgroup'), {colspan: columns})));
    for (const {name, share} of own) {
      rows.push(el('tr', '', headCell(name, 'row'), el('td', '', isNumber(share) ? `${(100 * share).toFixed(1)} %` : '–'),
                   ...sliced.flatMap(run => cells(run, name))));
    }
  }
  const head = el('tr', '', headCell('slice', 'col'), headCell('share of the bytes', 'col'), ...sliced.flatMap(run => [
    headCell(runName(run), 'col'), ...(run.baseline ? [headCell('against the baseline', 'col')] : [])]));
  section.append(
      el('p', 'quiet', `${metric.label} on parts of the validation texts. The loss of a token is spread over its bytes, so ` +
                       'models with different tokenizers are compared on the same bytes. Intervals by bootstrap over the ' +
                       'examples, p by exchanging single examples at random, corrected for all slices ' +
                       `(${correctionName} method).`),
      el('div', 'scroll', el('table', 'slices', el('thead', '', head), el('tbody', '', ...rows))));
  return true;
}
