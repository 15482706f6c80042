// What each key of a grid changes on average over the others.

import {data, el, headCell} from '../page.js';
import {correctionName, isNumber, metricLabel, metricNumber, pValue, runs} from './report_base.js';

export function buildEffects(section) {
  const effects = data.effects ?? [];
  if (!effects.length) return false;
  const signed = value => isNumber(value) ? (value > 0 ? '+' : '') + metricNumber(value) : '–';
  const rows = effects.map(({key, from, to, difference, low, high, p_corrected: p, verdict}) => el('tr', '',
      headCell(el('code', '', key), 'row'), el('td', '', `${from} → ${to}`), el('td', '', signed(difference)),
      el('td', '', isNumber(low) ? `${signed(low)} to ${signed(high)}` : '–'),
      el('td', '', el('b', `verdict ${verdict}`, verdict === 'undecided' ? 'not told apart' : verdict), ` ${pValue(p)}`)));
  const head = ['key', 'change', metricLabel, '95 % interval', 'verdict'].map(title => headCell(title, 'col'));
  section.append(
      el('p', 'quiet', `The difference that a key makes on average over the ${runs.filter(run => !run.ablation).length} runs, by paired t-tests over the ` +
                       `seeds, corrected for all keys (${correctionName} method). ` + (data.design === 'fractional'
          ? 'The runs are a part of all combinations: no effect of a key is mixed with one of two keys together, but those of ' +
            'two keys are mixed with each other.' : '')),
      el('div', 'scroll', el('table', 'effects', el('thead', '', el('tr', '', ...head)), el('tbody', '', ...rows))));
  return true;
}
