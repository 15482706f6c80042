// Tables of layers and places, heads or positions, coloured by numbers, and bars of parts.

import {$, colour, data, el, headCell, inkOn, plain, set, showScrolling, whenThemeChanges} from '../page.js';

const LONG_TITLE = 90, DIGITS = 3;

const numberText = (value, digits = DIGITS) => value === null ? '–' : value.toFixed(digits).replace(/^-(0\.0*)$/, '$1');

/** What paints a cell: numbers above zero in the page's ramp, those below in the colour of what is bad. */
function painter(values) {
  const most = Math.max(1e-9, ...values.flat().filter(Number.isFinite).map(Math.abs));
  const scale = values.flat().every(value => value === null || (value >= 0 && value <= 1)) ? 1 : most;
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
  const paint = painter(values), repaint = () => cells.forEach((row, i) => row.forEach((cell, j) => paint(cell, values[i][j])));
  repaint();
  whenThemeChanges(repaint);
  const scroll = el('div', 'scroll', table);
  const section = set(el('section', 'card', heading, el('p', 'quiet', note), readout, scroll), {'aria-labelledby': heading.id});
  showScrolling(scroll, title);
  return section;
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

$('kind').textContent = data.kind;
$('run').textContent = data.name;
$('title').textContent = data.title;
$('title').classList.toggle('long', data.title.length > LONG_TITLE);
$('summary').textContent = data.summary;
$('cards').append(...data.grids.map(gridCard), ...data.bars.map(barCard));
