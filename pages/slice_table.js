// A table of bits per byte on slices of texts, of one or more models.

import {el, headCell, set} from './page.js';

const KINDS = {
  position: 'Place in the window', frequency: 'How often the word occurs', novelty: 'Seen before or new',
  characters: 'Kind of character', length: 'Length of the word',
};
const bits = value => Number.isFinite(value) ? value.toFixed(3) : '–';

/** The cells of a model for one slice, of which it may know nothing. */
function cellsOf({hasBaseline, parts}, slice, pValue) {
  const own = el('td', '', bits(slice?.value));
  if (!hasBaseline) return [own];
  if (!slice || !Number.isFinite(slice.difference)) return [own, el('td', '', '–')];
  const word = slice.verdict === 'undecided' ? 'not told apart' : slice.verdict;
  const sign = slice.difference > 0 ? '+' : '';
  const cell = el('td', '', el('b', `verdict ${slice.verdict}`, word), ` ${sign}${bits(slice.difference)}`);
  const p = slice.verdict === 'same' ? slice.p_same : slice.p_corrected;
  if (Number.isFinite(p)) cell.append(`, ${pValue(p)}`);
  return [own, set(cell, {title: `difference: ${bits(slice.low)} to ${bits(slice.high)} (95 %), ${slice.n} ${parts}`})];
}

/**
 * `models`: [{name, hasBaseline, parts, slices: [{kind, name, share, value, and where there is a baseline difference, low,
 * high, n, p_corrected, p_same, verdict}]}]; `parts` is what n counts. pValue: how a p is written.
 */
export function sliceTable(models, pValue) {
  const all = [];
  for (const {slices} of models)
    for (const slice of slices) if (!all.some(({name}) => name === slice.name)) all.push(slice);
  const columns = 2 + models.reduce((n, {hasBaseline}) => n + (hasBaseline ? 2 : 1), 0);
  const rows = [];
  for (const [kind, title] of Object.entries(KINDS)) {
    const own = all.filter(slice => slice.kind === kind);
    if (!own.length) continue;
    rows.push(el('tr', 'group', set(headCell(title, 'rowgroup'), {colSpan: columns})));
    for (const {name, share} of own) {
      rows.push(el('tr', '', headCell(name, 'row'), el('td', '', Number.isFinite(share) ? `${(100 * share).toFixed(1)} %` : '–'),
                   ...models.flatMap(model => cellsOf(model, model.slices.find(one => one.name === name), pValue))));
    }
  }
  const head = el('tr', '', headCell('slice', 'col'), headCell('share of the bytes', 'col'), ...models.flatMap(model => [
    headCell(model.name, 'col'), ...(model.hasBaseline ? [headCell('against the baseline', 'col')] : [])]));
  return el('div', 'scroll', el('table', 'slices', el('thead', '', head), el('tbody', '', ...rows)));
}
