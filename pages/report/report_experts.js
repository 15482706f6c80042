// How each mixture of experts divides the tokens of its validation data: a map of layers and experts for each run.

import {colour, count, el, headCell, inkOn, rampGradient, whenThemeChanges} from '../page.js';
import {leftOutNote, runs, sum, THIN} from './report_base.js';
import {outputCard} from './report_chart.js';
import {selection, whenSelectionChanges} from './report_selection.js';

const DARKEST = 2, NUMBERED = 16;  // times an even share; with more experts cells have no numbers

/** The tokens of each expert, divided by the mean of its layer. */
function timesEven(tokens) {
  const mean = sum(tokens) / tokens.length;
  return tokens.map(n => mean ? n / mean : 0);
}

const times = value => `${value.toFixed(2)}${THIN}×`;
const inWords = place => place.replace(/(^|\.)layers\.(\d+)\..*$/, (_, dot, layer) => `${dot && ', '}layer ${layer}`);

function loadTable(run) {
  const widest = Math.max(...run.experts.map(({tokens}) => tokens.length)), numbered = widest <= NUMBERED;
  const head = el('tr', '', el('td', 'corner-note', 'layer ↓ expert →'),
                  ...Array.from({length: widest}, (_, e) => headCell(numbered || e % 8 === 0 ? `${e}` : '', 'col')));
  const body = run.experts.map(({place, tokens}) => {
    const shares = timesEven(tokens);
    return el('tr', '', headCell(el('bdi', '', inWords(place)), 'row', {title: place}), ...tokens.map((n, e) => {
      const cell = el('td', '', numbered ? (n ? shares[e].toFixed(2) : '0') : ''), share = Math.min(1, shares[e] / DARKEST);
      cell.title = `${inWords(place)}, expert ${e}: ${count(n, 'token')}, ${times(shares[e])} an even share`;
      if (!n) return cell.classList.add('idle'), cell;
      Object.assign(cell.style, {background: colour(share), color: inkOn(share)});
      return cell;
    }));
  });
  const caption = el('caption', 'unseen', `${run.name}: rows are layers, columns experts, values tokens by an even share`);
  const table = el('table', `experts${numbered ? '' : ' many'}`, caption, el('thead', '', head), el('tbody', '', ...body));
  return el('div', 'scroll tall', table);
}

function loadInWords({experts}) {
  const busiest = Math.max(...experts.map(({tokens}) => Math.max(...timesEven(tokens))));
  const idle = sum(experts.map(({tokens}) => tokens.filter(n => !n).length));
  const all = sum(experts.map(({tokens}) => tokens.length));
  return el('p', 'loads', 'The busiest has ', el('b', '', times(busiest)), ' its share; ',
            ...idle ? [el('b', 'bad', `${idle} of ${all}`), ' had no token.'] : ['all had tokens.']);
}

export function buildExperts(section) {
  const having = runs.filter(run => run.experts?.length);
  if (!having.length) return false;
  const key = el('span', 'ramp');
  section.append(
      el('p', 'quiet', 'Tokens of validation data that each expert had, divided by an even share: 1 is even. The seed whose ' +
         'samples are shown. Experts have no order, so those of two runs are not the same. The learning curves show the ' +
         'balance during training.'),
      ...leftOutNote('experts', 'The loads'),
      el('p', 'quiet ramp-row', '0', key, `${DARKEST} and more`));
  const list = el('div', 'confusions loads-list');
  section.append(list);
  function draw() {
    key.style.background = rampGradient();
    const chosen = having.filter(run => selection.isChosen(run));
    if (!chosen.length) return list.replaceChildren(el('p', 'quiet', 'None of the highlighted runs has experts.'));
    list.replaceChildren(...chosen.map(run => outputCard(run, loadInWords(run), loadTable(run))));
  }
  whenSelectionChanges(draw);
  whenThemeChanges(draw);
  draw();
  return true;
}
