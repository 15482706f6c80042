// Shows the maps of one text: an overview of every layer and head, one map large or as lines, and predictions. The
// address names the map as KIND-LAYER-HEAD: #cross-0-1, or #cross-0-mean for the mean over the heads, or
// #cross-0-rollout for roll-out; #cross-0-1-lines shows it as lines.

import {nameOf, Overview} from '../attention_overview.js';
import {HeatMap, largest, MOST, numbersTable, partsOf, readMaps, showLegend} from '../heat_map.js';
import {headColour, LineView} from '../line_view.js';
import {$, count, data, el, isPrinting, roomInside, showScrolling} from '../page.js';
import {bringIntoSight, markControls, parseName, rolledThrough, shapesOf, startControls} from './attention_controls.js';
import {showRecording} from './recording_view.js';
import {showPredictions} from './token_predictions.js';

const reading = {...readMaps(data), heads: data.heads}, {answered, KINDS, maps, kinds, weights, isHidden, titleOf} = reading;
// The pixels of a page, and how many cells and numbers are beside each other.
const PAPER = {width: 660, height: 860, cells: 40, numbers: 10};

const state = {map: null, show: 'map', rowToken: 'next', heads: new Set(),  // heads: those whose lines are shown
               scale: Math.max(data.source_tokens.length, data.target_tokens.length) > 16 ? 'relative' : 'absolute'};

const topOf = list => state.scale === 'absolute' ? MOST : Math.max(1, ...list.map(map => largest(reading.free(map))));

/** The view of a map that heat_map.js draws. */
function viewOf(map) {
  const {kind} = map, {rows, columns} = KINDS[kind], writing = kind === 'cross' && state.rowToken === 'next';
  return {values: weights(map), columns, rows: writing ? data.target_next : rows, after: writing ? rows : null,
          isHidden: (t, s) => isHidden(kind, t, s), top: topOf([map])};
}

/** The view of the chosen heads that line_view.js draws. */
function linesOf({kind, layer, head}) {
  const list = head === 'rollout' ? [head] : [...state.heads].sort((a, b) => a - b);
  const shown = list.map(head => ({kind, layer, head})), crosses = kind === 'cross', n = maps[kind][0].length;
  const left = state.rowToken === 'next' ? 'Being written' : 'Just read';
  const colourOf = head => headColour(head === 'rollout' ? 0 : head, n);
  return {...viewOf({kind, layer, head}), top: topOf(shown), values: shown.flatMap(weights),
          titles: crosses ? [left, 'Source'] : ['Token', 'Looks at'],
          heads: shown.map(map => ({values: weights(map), colour: colourOf(map.head)}))};
}

// ---- One map, large -----------------------------------------------------------------------------------------------

const heatMap = new HeatMap($('plot'), $('readout')), lineView = new LineView($('lines'), $('readout'));
const overview = new Overview($('overview'), reading, viewOf, openInSight);
const headsOf = ({kind, head}) => new Set(typeof head === 'number' ? [head] : maps[kind][0].keys());

/** Makes a map the chosen one. Another layer keeps the heads whose lines are shown. */
function choose(map) {
  if (!state.map || state.map.kind !== map.kind || state.map.head !== map.head) state.heads = headsOf(map);
  state.map = map;
}

function open(map) {
  choose(map);
  heatMap.forget();
  lineView.forget();
  render();
}

function openInSight(map) {
  open(map);
  bringIntoSight(state.show === 'lines' ? 'lines' : 'plot');
}

function noteOf(map) {
  const {kind, head} = map, crosses = kind === 'cross', asLines = state.show === 'lines';
  const row = !crosses ? 'a token' : state.rowToken === 'next' ? 'the token being written' : 'the token just read';
  const looksAt = `a ${crosses ? 'source token' : 'token'} that it `;
  const [from, to] = asLines ? ['Left', 'Right'] : ['Row', 'Column'];
  const sides = verb => `${from}: ${row}. ${to}: ${looksAt}${verb}.`;
  const sum = asLines ? ' The thicker a line, the larger the weight.' : ' Each row sums to 1.';
  if (head !== 'rollout') return sides('looks at') + sum;
  return sides(`comes from, through ${rolledThrough(map)}`) +
      ' This assumes that only attention and residual connections mix tokens.' + sum;
}

function render() {
  const map = state.map;
  if (!map) return;
  const asLines = state.show === 'lines', isRollout = map.head === 'rollout';
  history.replaceState(null, '', `#${nameOf(map)}${asLines ? '-lines' : ''}`);
  $('map-title').textContent = asLines && !isRollout ? `${KINDS[map.kind].title}, layer ${map.layer}` : titleOf(map);
  $('map-note').textContent = noteOf(map);
  $('row-choice').hidden = map.kind !== 'cross';
  $('row-choice').firstElementChild.textContent = asLines ? 'Left' : 'Rows';
  $('scale-name').textContent = asLines ? 'Lines' : 'Colours';
  $('head-choice').hidden = !asLines || isRollout;
  $('lines').parentElement.hidden = !asLines;
  $('detail').classList.toggle('as-lines', asLines);
  $('plot').parentElement.hidden = asLines || isPrinting();
  markControls(overview, map, {...state, row: state.rowToken});
  $('paper').replaceChildren();
  asLines ? renderLines(map) : renderMap(map);
  showRecording(map, viewOf(map), `${KINDS[map.kind].title}, layer ${map.layer}`);
  if ($('numbers').open) fillTable();
}

function renderMap(map) {
  const view = viewOf(map);
  $('plot').setAttribute('aria-label', `${titleOf(map)}. Arrow keys move from weight to weight.`);
  showLegend($('ramp'), $('ramp-end'), view);
  const besideOverview = matchMedia('(min-width: 960px)').matches;  // then the map stays in the window
  heatMap.show(view, roomInside($('detail')), besideOverview ? Math.max(320, innerHeight - 470) : Infinity);
  if (isPrinting()) $('paper').append(...printedMaps(view));
}

/** The map in parts that fit on paper, all with cells of about one size. */
function printedMaps(view) {
  const parts = partsOf(view, PAPER.cells, PAPER.cells);
  return parts.map(part => {
    const plot = el('div', 'plot'), share = parts.length > 1 ? part.columns.length / PAPER.cells : 1;
    new HeatMap(plot, el('p')).show(part, PAPER.width * share, PAPER.height - 200);
    return plot;
  });
}

function renderLines(map) {
  const view = linesOf(map), room = roomInside($('detail'));
  showHeadBoxes(map);
  showLegend($('ramp'), $('ramp-end'), view);
  if (isPrinting()) lineView.show(view, PAPER.width, PAPER.height);
  else lineView.show(view, room);
}

function showHeadBoxes({kind}) {
  const n = maps[kind][0].length;
  if ($('head-boxes').childElementCount !== n)
    $('head-boxes').replaceChildren(...Array.from({length: n}, (_, head) => {
      const input = el('input');
      Object.assign(input, {type: 'checkbox', value: head});
      return el('label', 'head-box', input, el('span', 'swatch'), `${head}`);
    }));
  [...$('head-boxes').children].forEach((label, head) => {
    label.style.setProperty('--own', headColour(head, n));
    label.firstChild.checked = state.heads.has(head);
  });
}

/** The table of the map, on paper in parts that are narrow enough. */
function fillTable() {
  const view = viewOf(state.map), parts = isPrinting() ? partsOf(view, Infinity, PAPER.numbers) : [view];
  $('table').replaceChildren(...parts.map(part => numbersTable(part, titleOf(state.map))));
}

// ---- Begin --------------------------------------------------------------------------------------------------------

const quoted = text => el('bdi', '', `“${text}”`);
$('text').append(quoted(data.text));
if (answered || data.target) $('text').append(el('span', 'arrow', ' → '), quoted(data.target));
$('text').classList.toggle('long', data.text.length + data.target.length > 90);
if (data.name) $('run').textContent = `· ${data.name}`;
$('summary').textContent = [
  ...shapesOf(reading),
  answered ? `${data.source_tokens.length} source and ${data.target_tokens.length} target tokens`
           : count(data.source_tokens.length, 'token'),
].join(' · ');

for (const [id, name] of [['text', ''], ['plot', ''], ['lines', 'Lines of attention'],
                          ['table', 'This map as a table of numbers'], ['positions', 'Predictions']])
  showScrolling($(id), name);
$('predictions').hidden = !showPredictions($('predictions-note'), $('positions'));
$('detail').hidden = !kinds.length;

startControls({
  state, overview, open, render, fillTable,
  otherwise() { if (kinds.length) open({kind: kinds[0], layer: maps[kinds[0]].length - 1, head: 'mean'}); },
  readAddress(name) {
    const {map} = parseName(name);
    if (!kinds.includes(map.kind) || !weights(map)) return false;
    state.show = name.endsWith('-lines') ? 'lines' : 'map';
    open(map);
    return true;
  },
});
overview.paint();
const setHeads = heads => { state.heads = new Set(heads); render(); };
$('head-choice').addEventListener('change', () =>
    setHeads([...$('head-boxes').querySelectorAll(':checked')].map(input => Number(input.value))));
$('all-heads').addEventListener('click', () => setHeads(maps[state.map.kind][0].keys()));
$('no-heads').addEventListener('click', () => setHeads([]));
$('row-choice').addEventListener('change', event => { state.rowToken = event.target.value; render(); });
