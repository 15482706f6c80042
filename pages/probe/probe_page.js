// The card of a part of a model: what holds, what it costs, what tasks say.

import {$, data, el} from '../page.js';

const {part, name: partName, type, doc, checks, refused, scaling, scores} = data;
const MARKS = new Map([[true, ['yes', 'holds']], [false, ['no', 'fails']], [null, ['fact', 'fact']]]);

function table(head, rows) {
  const headRow = el('tr', '', ...head.map(text => el('th', '', text)));
  const body = el('tbody', '', ...rows.map(cells => el('tr', '', ...cells)));
  return el('div', 'scroll', el('table', '', el('thead', '', headRow), body));
}

const card = (title, note, ...content) => el('section', 'card', el('h2', '', title), el('p', 'quiet', note), ...content);

function checkRow({name, role, holds, says}) {
  const [className, text] = MARKS.get(holds);
  return [el('td', '', name), el('td', '', role), el('td', '', el('span', `mark ${className}`, text)), el('td', 'seen', says)];
}

/** n to a power, with its interval. */
function powerText(curve, name) {
  const [value, low, high] = ['', '_low', '_high'].map(end => curve[`${name}_exponent${end}`]);
  if (value === null) return '–';
  return low === null ? `n^${value.toFixed(2)}` : `n^${value.toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`;
}
const number = text => el('td', 'number', text);
const timeText = seconds => seconds < 1e-3 ? `${(1e6 * seconds).toFixed(0)} µs` : `${(1e3 * seconds).toFixed(2)} ms`;
const sizeText = bytes => bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} KB` : `${(bytes / 1e6).toFixed(1)} MB`;

function costCard() {
  const rows = scaling.map(curve => {
    const {part: name, lengths, seconds, bytes} = curve;
    const last = lengths.length - 1;
    return [el('td', '', name), number(`${lengths[0]} to ${lengths[last]}`), number(timeText(seconds[last])),
            number(powerText(curve, 'seconds')), number(sizeText(bytes[last])), number(powerText(curve, 'bytes'))];
  });
  return card('Cost', 'Time and memory at the longest sequence, and the power of the length n with which they grow.',
              table(['pass', 'tokens', 'time', 'grows as', 'memory', 'grows as'], rows));
}

function scoreCard() {
  const rows = scores.map(({task, metric, value, percent, steps}) => [
    el('td', '', task), el('td', '', metric), number(percent ? `${(100 * value).toFixed(1)} %` : value.toFixed(4)),
    number(`${steps}`),
  ]);
  return card('Tasks', 'Each was trained once with this part, by its configuration.',
              table(['task', 'metric', 'value', 'steps'], rows));
}

$('part').textContent = `Part of a model: ${part}`;
$('title').textContent = partName;
$('keys').textContent = type === partName ? '' : type;
const failed = checks.filter(({holds}) => holds === false).length;
$('summary').textContent = `${doc} ${failed ? `${failed} check${failed === 1 ? '' : 's'} failed.` : 'All checks hold.'}`;
$('cards').append(card('Checks', 'Small models with random weights.',
                       table(['check', 'model', 'result', 'what was seen'], checks.map(checkRow)),
                       ...refused.map(({role, reason}) => el('p', 'quiet', `Not in an ${role}: ${reason}`.replace('an decoder', 'a decoder')))));
if (scaling.length) $('cards').append(costCard());
if (scores.length) $('cards').append(scoreCard());
