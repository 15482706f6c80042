// The cards of a report of causes (cause_views.h): tables of layers and places, heads or positions, texts and pictures coloured
// by numbers, and bars of parts.

import {colour, el, headCell, inkOn, plain, set, showScrolling, whenThemeChanges} from '../page.js';

const DIGITS = 3;

const numberText = (value, digits = DIGITS) => value === null ? '–' : value.toFixed(digits).replace(/^-(0\.0*)$/, '$1');

/** The number with the strongest colour: 1 for shares, else the largest. */
function scaleOf(values) {
  const most = Math.max(1e-9, ...values.flat().filter(Number.isFinite).map(Math.abs));
  return values.flat().every(value => value === null || (value >= 0 && value <= 1)) ? 1 : most;
}

/** What paints a cell: numbers above zero in the page's ramp, those below in the colour of what is bad. */
function painter(scale) {
  return (cell, value) => {
    if (value === null) return;
    const share = Math.min(1, Math.abs(value) / scale);
    if (value >= 0) return set(cell.style, {background: colour(share), color: inkOn(share)});
    set(cell.style, {background: `color-mix(in oklab, var(--bad) ${Math.round(85 * share)}%, var(--card))`,
                     color: share > 0.6 ? 'var(--card)' : 'var(--ink)'});
  };
}

/** The arrow keys go from cell to cell, one of which the tab key reaches. */
function addKeys(table, cells, choose) {
  const steps = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]};
  let at = [0, 0];
  const go = (row, column) => {
    const cell = cells[row]?.[column];
    if (!cell) return;
    cells[at[0]][at[1]].tabIndex = -1;
    at = [row, column];
    cell.tabIndex = 0;
    choose(row, column);
  };
  cells.forEach((row, i) => row.forEach((cell, j) => {
    cell.tabIndex = i + j ? -1 : 0;
    cell.addEventListener('pointerenter', () => choose(i, j));
    cell.addEventListener('focus', () => go(i, j));
  }));
  table.addEventListener('keydown', event => {
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    cells[at[0] + step[0]]?.[at[1] + step[1]]?.focus();
  });
}

function gridCard(grid, number) {
  const {title, note, corner, rows, columns, values, texts, hints} = grid;
  const heading = set(el('h2', '', title), {id: `grid-${number}`}), readout = set(el('p', 'readout'), {'aria-live': 'polite'});
  const cells = values.map((row, i) => row.map((value, j) =>
    el('td', '', texts.length ? el('bdi', '', plain(texts[i][j])) : numberText(value))));
  const body = cells.map((row, i) => el('tr', '', headCell(rows[i], 'row'), ...row));
  const head = el('tr', '', headCell(corner, 'col'), ...columns.map(name => headCell(plain(name), 'col', {title: name})));
  const table = set(el('table', 'grid', el('thead', '', head), el('tbody', '', ...body)), {'aria-labelledby': heading.id});
  addKeys(table, cells, (i, j) => {
    readout.textContent = hints[i]?.[j] || `${corner} ${rows[i]}, “${columns[j]}”: ${numberText(values[i][j])}`;
  });
  const paint = painter(scaleOf(values)), repaint = () => cells.forEach((row, i) => row.forEach((cell, j) => paint(cell, values[i][j])));
  repaint();
  whenThemeChanges(repaint);
  const scroll = el('div', 'scroll', table);
  const section = set(el('section', 'card', heading, el('p', 'quiet', note), readout, scroll), {'aria-labelledby': heading.id});
  showScrolling(scroll, title);
  return section;
}

/** A text whose tokens have the colours of their numbers. */
function textCard({title, note, tokens, values, most}, number) {
  const heading = set(el('h2', '', title), {id: `text-${number}`}), readout = set(el('p', 'readout'), {'aria-live': 'polite'});
  const places = tokens.map(token => el('span', 'place', el('bdi', '', plain(token))));
  const text = set(el('div', 'coloured', ...places), {role: 'group', 'aria-labelledby': heading.id});
  addKeys(text, [places], (_, i) => { readout.textContent = `${i} “${tokens[i]}”: ${numberText(values[i], 4)}`; });
  const paint = painter(Math.max(1e-9, most)), repaint = () => places.forEach((place, i) => paint(place, values[i]));
  repaint();
  whenThemeChanges(repaint);
  return set(el('section', 'card', heading, el('p', 'quiet', note), readout, text), {'aria-labelledby': heading.id});
}

/** A picture under squares in the colours of their numbers. `size`: its width and height, in the units of `part`. */
function pictureCard({title, note, values, part, size, address}, number) {
  const heading = set(el('h2', '', title), {id: `picture-${number}`}), readout = set(el('p', 'readout'), {'aria-live': 'polite'});
  const most = Math.max(1e-9, ...values.flat().map(Math.abs));
  const cells = values.map((row, i) => row.map((value, j) => {
    const share = Math.round(75 * Math.abs(value) / most), cell = el('td');
    cell.style.background = `color-mix(in srgb, var(${value < 0 ? '--bad' : '--accent'}) ${share}%, transparent)`;
    return set(cell, {'aria-label': `row ${i} column ${j}: ${numberText(value, 4)}`});
  }));
  const table = el('table', 'squares', el('tbody', '', ...cells.map(row => el('tr', '', ...row))));
  set(table, {'aria-labelledby': heading.id});
  addKeys(table, cells, (i, j) => { readout.textContent = `row ${i} column ${j}: ${numberText(values[i][j], 4)}`; });
  const [x, y, width, height] = part ?? [0, 0, ...size], [W, H] = size, percent = share => `${100 * share}%`;
  set(table.style, {left: percent(x / W), top: percent(y / H), width: percent(width / W), height: percent(height / H)});
  const under = set(el('img'), {src: address, alt: ''}), frame = el('div', 'pictured', under, table);
  set(frame.style, {aspectRatio: `${W} / ${H}`});
  return set(el('section', 'card', heading, el('p', 'quiet', note), readout, frame), {'aria-labelledby': heading.id});
}

function barCard({title, note, items}, number) {
  const most = Math.max(1e-9, ...items.map(({value}) => Math.abs(value)));
  const heading = set(el('h2', '', title), {id: `bars-${number}`});
  const list = el('ol', 'bars', ...items.map(({name, value}) => {
    const bar = el('span', value < 0 ? 'length less' : 'length'), half = 50 * Math.abs(value) / most;
    set(bar.style, {width: `${half}%`, left: `${value < 0 ? 50 - half : 50}%`});
    return el('li', '', set(el('span', 'part', name), {title: name}), el('span', 'number', numberText(value, 4)), el('span', 'track', bar));
  }));
  const section = set(el('section', 'card', heading, el('p', 'quiet', note), list), {'aria-labelledby': heading.id});
  showScrolling(list, title);
  return section;
}

/** All cards of a report. */
export const causeCards = ({grids, bars, texts = [], pictures = []}) =>
  [...texts.map(textCard), ...pictures.map(pictureCard), ...grids.map(gridCard), ...bars.map(barCard)];
