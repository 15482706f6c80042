// Used by every part of the report: its runs, numbers as text, and a choice.

import {count, data, el, set} from '../page.js';

export const runs = data.runs;
export const unit = data.unit ?? 'token';  // what is counted as tokens
export const sum = values => values.reduce((total, value) => total + value, 0);
export const isNumber = value => typeof value === 'number' && Number.isFinite(value);

// ---- Numbers ------------------------------------------------------------------------------------------------------

export const THIN = '\u202f';  // a narrow space that does not break
const PREFIXES = ['', 'k', 'M', 'G', 'T', 'P', 'E', 'Z'];
export const withDigits = (value, digits) => Number(value.toPrecision(digits));

/** 1234567 → "1.23 M"; `unit` follows: "1.23 MB". */
export function si(value, unit = '', digits = 3) {
  if (!isNumber(value)) return '–';
  const rounded = withDigits(value, digits), size = Math.abs(rounded);
  const power = size < 1000 ? 0 : Math.min(PREFIXES.length - 1, Math.floor(Math.log10(size) / 3 + 1e-9));
  if (size > 0 && size < 0.01) return value.toExponential(1) + (unit && THIN + unit);
  const scaled = rounded / 1000 ** power;
  const text = scaled.toFixed(Math.max(0, Math.min(3, digits - 1 - Math.floor(Math.log10(Math.abs(scaled) || 1)))));
  const number = Number.isInteger(value) && power === 0 ? String(rounded) : text;
  return number + (PREFIXES[power] || unit ? THIN + PREFIXES[power] + unit : '');
}

/** The same for a tick, without trailing zeros: 1000 → "1 k". There are enough digits to tell ticks apart. */
export function siTick(value, {step = 0} = {}) {
  const digits = step && value ? Math.ceil(Math.log10(Math.abs(value / step)) - 1e-9) + 1 : 3;
  return si(value, '', Math.max(3, digits)).replace(/(\.\d*?)0+(?=\D|$)/, '$1').replace(/\.(?=\D|$)/, '');
}

/** A number of tokens for a tick. Lengths are powers of two, so small ones are written in full. */
export const lengthTick = value => value < 10000 ? String(value) : siTick(value);

/** 0.0123 → "12.3 ms", 75 → "75 s", 754 → "12 min 34 s". */
export function duration(value) {
  if (!isNumber(value)) return '–';
  if (value >= 3599.5) return `${Math.floor(value / 3600 + 1e-9)}${THIN}h ${Math.round(value % 3600 / 60)}${THIN}min`;
  if (value >= 120) return `${Math.floor(Math.round(value) / 60)}${THIN}min ${Math.round(value) % 60}${THIN}s`;
  if (value >= 1) return `${withDigits(value, 3)}${THIN}s`;
  const [factor, unit] = value >= 1e-3 ? [1e3, 'ms'] : value >= 1e-6 ? [1e6, 'µs'] : [1e9, 'ns'];
  return `${withDigits(value * factor, 3)}${THIN}${unit}`;
}

export const metric = data.metric;
export const metricFactor = metric.percent ? 100 : 1;
export const metricUnit = metric.percent ? `${THIN}%` : '';
export const metricLabel = metric.label + (metric.percent ? ' (%)' : '');
export const lowerIsBetter = metric.better === 'lower';
export const betterSide = `${metric.better} is better`;
export const halfWidth = run => isNumber(run.metric?.high) ? (run.metric.high - run.metric.low) / 2 : null;

/** Decimals of the metric: two digits of the median interval; without intervals, four digits of the median metric. */
const metricDecimals = (() => {
  const middle = values => values.sort((a, b) => a - b)[(values.length - 1) >> 1];
  const half = middle(runs.map(halfWidth).filter(value => value > 0)), mean = middle(
      runs.map(run => Math.abs(run.metric?.mean)).filter(value => value > 0));
  const digits = half ? 1 - Math.floor(Math.log10(half * metricFactor))
                      : 3 - Math.floor(Math.log10((mean || 1) * metricFactor));
  return Math.max(metric.percent ? 1 : 2, Math.min(5, digits));
})();

export const metricNumber = value => !isNumber(value) ? '–'
    : Math.abs(value * metricFactor) >= 1e6 ? (value * metricFactor).toExponential(2)
                                            : (value * metricFactor).toFixed(metricDecimals);
export const metricText = value => isNumber(value) ? metricNumber(value) + metricUnit : '–';
/** The p behind a verdict: of a difference as large as the margin for “same”, else of none. */
export const pOfVerdict = versus => versus.verdict === 'same' ? versus.p_same : versus.p_corrected;
export const pValue = p => !isNumber(p) ? '' : p < 0.001 ? 'p < 0.001' : p > 0.995 ? 'p = 1' : `p = ${withDigits(p, 2)}`;

/** A number on the page. Its `data-value` holds the exact value for tests and other programs. */
export function shown(value, text, field, run = null) {
  const node = set(el('span', 'number', text), {'data-field': field, 'data-value': isNumber(value) ? value : ''});
  return run ? set(node, {'data-run': run.name}) : node;
}

/** What a section says where the page leaves out results of some runs: a paragraph, or nothing. */
export const leftOutNote = (key, what, end = '') => !data.left_out?.[key] ? [] : [el('p', 'quiet',
    `${what} of ${count(data.left_out[key], 'run')} are left out to keep the page small. They are in results.json${end}.`)];

// ---- A choice ----------------------------------------------------------------------------------------------------------

/** Radio buttons in the group `name`; `choose` gets the value of the button that the reader chooses. */
export function choice(name, legend, options, chosen, choose) {
  const group = el('fieldset', 'choice', el('legend', '', legend));
  for (const [value, label, title = ''] of options) {
    const input = set(el('input'), {type: 'radio', name, value, checked: value === chosen});
    input.addEventListener('change', () => choose(value));
    group.append(set(el('label', '', input, el('span', '', label)), {title}));
  }
  return group;
}

/** Whose method corrects p for the number of tests. */
export const correctionName = data.correction === 'benjamini_hochberg' ? 'Benjamini and Hochberg’s' : 'Holm’s';
