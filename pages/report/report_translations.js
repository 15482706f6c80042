// BLEU and chrF of finished translators, and whether they differ from their baselines.

import {el, headCell, set} from '../page.js';
import {correctionName, isNumber, pValue, runs} from './report_base.js';
import {runName} from './report_chart.js';

export function buildTranslations(section) {
  const translators = runs.filter(run => Array.isArray(run.translations) && run.translations.length);
  if (!translators.length) return false;
  const labels = translators[0].translations.map(({label}) => label);
  const points = value => isNumber(value) ? value.toFixed(1) : '–';

  function versus(score) {
    if (!score || !isNumber(score.difference)) return el('td', '', '–');
    const word = score.verdict === 'undecided' ? 'not told apart' : score.verdict;
    const sign = score.difference > 0 ? '+' : '';
    const cell = el('td', '', el('b', `verdict ${score.verdict}`, word), ` ${sign}${points(score.difference)}`);
    if (isNumber(score.p_corrected)) cell.append(`, ${pValue(score.p_corrected)}`);
    return set(cell, {title: `difference: ${points(score.low)} to ${points(score.high)} (95 %)`});
  }
  const rows = translators.map(run => el('tr', '', headCell(runName(run), 'row'), ...labels.flatMap(label => {
    const score = run.translations.find(one => one.label === label);
    return [el('td', '', points(score?.value)), versus(score)];
  })));
  const head = el('tr', '', headCell('run', 'col'), ...labels.flatMap(label => [
    headCell(label, 'col'), headCell('against the baseline', 'col')]));
  section.append(
      el('p', 'quiet', 'Of what each model makes of the validation data. Verdicts are about these lines: p comes from ' +
                       'exchanging the outputs of single lines at random, corrected for all of these tests ' +
                       `(${correctionName} method).`),
      el('div', 'scroll', el('table', 'translations', el('thead', '', head), el('tbody', '', ...rows))));
  return true;
}
