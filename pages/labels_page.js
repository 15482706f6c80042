// Shows texts with a label for each word or character, and the right one below where it is known.

import {$, count, data, el, oklch, set} from './page.js';
import {predictionBar} from './prediction_bar.js';

const {title, texts} = data, UNKNOWN = '-', PLACES = 10, UNSURE = 50;  // percent
const MOST_ANSWERS = 10, isWhole = texts.some(({tokens}) => !tokens);
const names = [...new Set(isWhole ? [] : texts.flatMap(({labels, truth}) => [...labels, ...truth ?? []]))].filter(name => name !== UNKNOWN)
  .sort();
const backgrounds = new Map(names.map((name, i) =>
  [name, `rgb(${oklch(0.84, 0.11, 25 + 360 * i / names.length).join(' ')})`]));

function labelBox(name, className, hint) {
  const box = set(el('span', name === UNKNOWN ? 'unknown' : className, name), {title: hint});
  if (name !== UNKNOWN) box.style.background = backgrounds.get(name);
  return box;
}

function cellOf({tokens, labels, probabilities, truth}, i) {
  const token = tokens[i], label = labels[i], right = truth?.[i];
  const isWrong = right !== undefined && right !== UNKNOWN && right !== label;
  const classes = ['label', probabilities[i] < UNSURE ? 'unsure' : '', isWrong ? 'wrong' : ''].filter(Boolean).join(' ');
  const cell = el('div', [...token].length > 1 ? 'cell word' : 'cell');
  const hint = `${token}, place ${i + 1}: ${label}, ${probabilities[i]} %`;
  cell.append(el('span', 'place', i % PLACES === 0 ? `${i + 1}` : ''), el('bdi', '', token), labelBox(label, classes, hint));
  if (right !== undefined) cell.append(labelBox(right, 'label', `right: ${right}`));
  return cell;
}

/** How many of the labels that are known are right. */
function score({labels, truth}) {
  const known = truth ? truth.map((_, i) => i).filter(i => truth[i] !== UNKNOWN) : [];
  return {known: known.length, right: known.filter(i => truth[i] === labels[i]).length};
}
const share = ({right, known}) => `${(100 * right / known).toFixed(1)} % of ${known} labels are right`;

function card(text, i) {
  const section = el('section', 'card'), scored = score(text), heading = `Text ${i + 1}`;
  const note = scored.known ? `${count(text.tokens.length, 'label')}; ${share(scored)}` : count(text.tokens.length, 'label');
  const strip = el('div', 'strip', ...text.tokens.map((_, place) => cellOf(text, place)));
  section.append(el('div', 'bar', el('h2', '', heading), el('span', 'quiet', note)), strip);
  return section;
}

const numberText = number => number === null ? '–' : String(Number(number.toPrecision(6)));

/** A text with what the model says of all of it, and what is right. */
function wholeCard({text, answers, score, truth}, i) {
  const section = el('section', 'card'), heading = el('div', 'bar', el('h2', '', `Text ${i + 1}`));
  section.append(heading, el('p', '', el('bdi', '', text)));
  if (answers) {
    section.append(el('ul', 'likeliest', ...answers.slice(0, MOST_ANSWERS).map(({label, probability, score: number}) => {
      if (probability === undefined) return el('li', '', `${label}: ${numberText(number)}`);
      const row = predictionBar({token: label, probability});
      if (truth?.includes(label)) row.classList.add('right');
      return row;
    })));
  } else {
    section.append(el('p', '', `Score: ${numberText(score)}`));
  }
  if (truth) section.append(el('p', 'quiet', `Right: ${truth.join(', ')}`));
  return section;
}

function showWhole() {
  $('summary').textContent = `${count(texts.length, 'text')}, with what the model says of each, the likeliest first.`;
  $('legend').remove();
  $('texts').append(...texts.map(wholeCard));
}

function showWords() {
  const total = texts.map(score).reduce((sum, {right, known}) => ({right: sum.right + right, known: sum.known + known}),
                                      {right: 0, known: 0});
  $('summary').textContent = `${count(texts.length, 'text')}. Below each word or character stands what the model says of it` +
  (total.known ? `, and below that the right label; a frame marks what is wrong. ${share(total)}.` : '.') +
  ` Pale: less than ${UNSURE} % sure.`;
  $('legend').append(...names.map(name => labelBox(name, 'label', name)));
  $('texts').append(...texts.map(card));
}

$('title').textContent = title;
if (isWhole) showWhole();
else showWords();
