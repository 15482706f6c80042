// Shows where a model looks in a picture: an overview of every layer and head, one of them on the picture, and what the
// model says. The address names the map and whose view it is: #encoder-0-1-17 is layer 0, head 1, the row 17 of the map
// (special tokens come first), or mean and rollout in place of the head.

import {nameOf, Overview} from '../attention_overview.js';
import {HeatMap, largest, MOST, numbersTable, readKinds, showLegend} from '../heat_map.js';
import {$, button, data, el, isPrinting, option, roomInside, set, showScrolling} from '../page.js';
import {heatColour, heatOnPicture, percent, PictureView} from '../picture_view.js';
import {predictionBar} from '../prediction_bar.js';
import {bringIntoSight, markControls, parseName, rolledThrough, shapesOf, startControls} from './attention_controls.js';

const {rows: R, columns: C, special} = data, queries = data.target_tokens;
const rowNames = data.source_tokens, objects = data.objects ?? [];
const range = n => Array.from({length: n}, (_, i) => i);

// ---- The numbers --------------------------------------------------------------------------------------------------

const KINDS = {
  encoder: {title: queries.length ? 'Encoder self-attention' : 'Self-attention', rows: range(R), columns: range(C),
            note: 'Where the chosen place of the picture looks, in every head. Click on the picture to choose another.'},
  cross: {title: 'Cross-attention', rows: range(R), columns: range(C),
          note: 'Where the chosen object query looks in the picture, in every head.'},
  decoder: {title: 'Decoder self-attention', rows: queries, columns: queries,
            note: 'Where each object query (row) looks among the queries (column).'},
};
const kindsRead = readKinds(data, KINDS), {maps, kinds, rollouts} = kindsRead;

/** One row of a packed map (attention_page.h) as fractions. */
function unpacked(packed, t) {
  packed.bytes ??= Uint8Array.from(atob(packed.rows), character => character.charCodeAt(0));
  const S = packed.bytes.length / packed.tops.length, scale = packed.tops[t] / 255e6;
  return Array.from(packed.bytes.subarray(t * S, (t + 1) * S), byte => byte * scale);
}

/** The weights of the row `t` of a map, special tokens first. */
function rowOf({kind, layer, head}, t) {
  if (head === 'rollout') return unpacked(rollouts.get(kind + layer), t);
  if (head !== 'mean') return unpacked(maps[kind][layer][head], t);
  const rows = maps[kind][layer].map(packed => unpacked(packed, t));
  return rows[0].map((_, s) => rows.reduce((sum, row) => sum + row[s], 0) / rows.length);
}

const exists = ({kind, layer, head}) => Boolean(maps[kind]?.[layer]) &&
    (head === 'mean' || (head === 'rollout' ? rollouts.has(kind + layer) : Boolean(maps[kind][layer][head])));
const reading = {...kindsRead, weights: exists, heads: data.heads, unit: 'place'};

// ---- What is chosen -----------------------------------------------------------------------------------------------

// patch: a row of the encoder's maps, special tokens first; query: one of the decoder's
const state = {map: null, patch: special ? 0 : Math.floor(R / 2) * C + Math.floor(C / 2),
               query: objects.find(({query}) => query !== null)?.query ?? 0, seen: null, show: 'over', scale: 'relative'};
const fromOf = kind => kind === 'encoder' ? state.patch : state.query;
const fromName = kind => kind !== 'encoder' ? queries[state.query]
    : state.patch < special ? `${rowNames[state.patch]} token` : rowNames[state.patch];
const objectOf = query => objects.find(object => object.query === query);

/** The weights that the chosen patch or query gives to the patch grid. */
const onPatches = map => rowOf(map, fromOf(map.kind)).slice(special);

/** The view of a map that heat_map.js paints. */
function viewOf(map) {
  const {rows, columns} = KINDS[map.kind], isHidden = () => false;
  const weights = map.kind === 'decoder' ? range(queries.length).flatMap(t => rowOf(map, t)) : onPatches(map);
  const values = weights.map(weight => weight * MOST);
  const view = {values, rows, columns, isHidden, top: state.scale === 'absolute' ? MOST : largest(values)};
  return map.kind === 'decoder' ? view : {...view, colour: heatColour};
}

// ---- One map, large -----------------------------------------------------------------------------------------------

const image = new Image();
const part = {x: data.part[0] / data.width, y: data.part[1] / data.height, width: data.part[2] / data.width,
              height: data.part[3] / data.height};
const pictureView = new PictureView($('stage'), image, {rows: R, columns: C, part}, {choose, look, step});
const heatMap = new HeatMap($('plot'), $('readout'));
const overview = new Overview($('overview'), reading, viewOf, openInSight);

function choose(patch, point) {
  if (patch === null && point && state.map.kind === 'encoder') return;  // beside what the model sees
  if (state.map.kind === 'encoder') return setFrom(patch === null ? 0 : special + patch);
  if (!point) return setFrom(0);
  const holds = ({box: [x, y, width, height]}) => point.x * data.width >= x && point.x * data.width <= x + width &&
      point.y * data.height >= y && point.y * data.height <= y + height;
  const area = ({box}) => box[2] * box[3];
  const hit = objects.filter(object => object.score >= 0.5 && object.query !== null && holds(object))
      .sort((a, b) => area(a) - area(b))[0];
  if (hit) setFrom(hit.query);
}

function look(patch) {
  state.seen = patch;
  tell();
}

function step(down, across) {
  const from = fromOf(state.map.kind), clamp = (value, n) => Math.min(n - 1, Math.max(0, value));
  if (state.map.kind !== 'encoder') return setFrom(clamp(from + down + across, queries.length));
  if (from < special) return setFrom(special);
  const row = Math.floor((from - special) / C) + down, column = (from - special) % C + across;
  setFrom(special + clamp(row, R) * C + clamp(column, C));
}

/** Makes a patch or a query the one whose view is shown. */
function setFrom(t) {
  state[state.map.kind === 'encoder' ? 'patch' : 'query'] = t;
  render();
  overview.paint();
}

/** Shows the view of an object query, in the last layer if another kind of map was open. */
function openQuery(query) {
  state.query = query;
  if (state.map.kind !== 'cross') state.map = {...state.map, kind: 'cross', layer: maps.cross.length - 1, head: 'mean'};
  render();
  overview.paint();
}

function open(map) {
  state.map = map;
  heatMap.forget();
  render();
}

function openInSight(map) {
  open(map);
  bringIntoSight(map.kind === 'decoder' ? 'plot' : 'stage');
}

function noteOf(map) {
  const {kind, head} = map;
  if (kind === 'decoder') return 'Row: an object query. Column: a query that it looks at. Each row sums to 1.';
  const own = kind === 'encoder' ? 'Click on the picture, or press the arrow keys, to choose another place.'
                                 : 'Click on an object, or press the arrow keys, to choose another query.';
  if (head !== 'rollout') return own;
  return `Where it comes from, through ${rolledThrough(map)}: this assumes that only attention and residual connections mix ` +
      `places. ${own}`;
}

/** Says in words what the chosen patch looks at: at the patch under the pointer, or most. */
function tell() {
  const {map, seen} = state, {kind} = map, row = rowOf(map, fromOf(kind)), patches = row.slice(special);
  const at = seen ?? patches.indexOf(largest(patches)), value = el('span', 'value', percent(patches[at]));
  const share = state.scale === 'absolute' ? patches[at] : patches[at] / (largest(patches) || 1);
  Object.assign(value.style, {background: heatOnPicture(share), color: 'var(--ink)'});
  const hints = seen === null ? ['the largest weight on the picture'] : [];
  range(special).forEach(i => hints.push(`${percent(row[i])} on the ${rowNames[i]} token`));
  $('readout').replaceChildren(el('b', '', fromName(kind)), ' → ', el('b', '', rowNames[special + at]), ' ', value,
                               el('span', 'hint', hints.join('; ')));
  const object = kind === 'cross' ? objectOf(state.query) : null;
  pictureView.mark({
    chosen: kind === 'encoder' && state.patch >= special ? state.patch - special : null, seen,
    object: object && {x: object.box[0] / data.width, y: object.box[1] / data.height, width: object.box[2] / data.width,
                       height: object.box[3] / data.height},
  });
}

/** The width of the picture: all of the card's, unless it would not fit into the window. */
function pictureWidth() {
  const ratio = data.width / data.height, most = isPrinting() ? 480 : Math.max(280, innerHeight - 330);
  const room = isPrinting() ? 480 : Math.max(100, roomInside($('detail')));
  return Math.floor(Math.min(room, 620, Math.max(100, most * ratio)));
}

function render() {
  const {map} = state;
  if (!map) return;
  const onPicture = map.kind !== 'decoder';
  history.replaceState(null, '', `#${nameOf(map)}${onPicture ? `-${fromOf(map.kind)}` : ''}`);
  $('map-title').textContent = reading.titleOf(map);
  $('map-note').textContent = noteOf(map);
  markControls(overview, map, state);
  $('stage').hidden = $('show-choice').hidden = !onPicture;
  $('plot').parentElement.hidden = onPicture;
  showFrom(map);
  onPicture ? renderPicture(map) : renderQueries(map);
  if ($('numbers').open) fillTable();
}

function renderPicture(map) {
  const values = onPatches(map), top = state.scale === 'absolute' ? 1 : largest(values), over = state.show === 'over';
  $('stage').setAttribute('aria-label', `${reading.titleOf(map)}: where ${fromName(map.kind)} looks. Arrow keys choose ` +
                                        `another ${map.kind === 'encoder' ? 'place' : 'query'}.`);
  pictureView.show({values, top, over}, pictureWidth());
  const colour = over ? heatOnPicture : heatColour;
  $('ramp').style.background = `linear-gradient(to right, ${range(17).map(i => colour(i / 16)).join(', ')})`;
  $('ramp-end').textContent = percent(top);
  tell();
}

function renderQueries(map) {
  const view = viewOf(map);
  $('plot').setAttribute('aria-label', `${reading.titleOf(map)}. Arrow keys move from weight to weight.`);
  showLegend($('ramp'), $('ramp-end'), view);
  heatMap.show(view, isPrinting() ? 640 : roomInside($('detail')));
}

/** The choice of whose view is shown: the special tokens, or the queries. */
function showFrom({kind}) {
  const host = $('from-choice'), [legend] = host.children;
  host.hidden = kind === 'decoder' || (kind === 'encoder' && !special);
  if (host.hidden) return;
  if (kind === 'encoder') {
    const buttons = range(special).map(i => button('', `${rowNames[i]} token`, () => setFrom(i),
                                                   {'aria-pressed': state.patch === i}));
    const other = el('span', 'quiet', state.patch < special ? 'or a place of the picture' : rowNames[state.patch]);
    return host.replaceChildren(legend, ...buttons, other);
  }
  const select = el('select', '', ...queries.map((name, t) => option(t, name)));
  host.replaceChildren(legend, set(select, {value: state.query, 'aria-label': 'Object query'}));
}

/** The shown weights as numbers, as they lie on the picture. */
function fillTable() {
  const {map} = state, view = viewOf(map);
  const caption = map.kind === 'decoder' ? reading.titleOf(map) : `${reading.titleOf(map)}: from ${fromName(map.kind)}`;
  const names = list => list.map(String);
  $('table').replaceChildren(numbersTable({...view, rows: names(view.rows), columns: names(view.columns)}, caption));
}

// ---- What the model says ------------------------------------------------------------------------------------------

function showAnswers() {
  if (!data.objects && !data.labels) {
    $('predictions-note').textContent = `The score of the picture: ${data.score}`;
    return;
  }
  const detects = data.objects !== undefined;
  const shown = detects ? objects : data.labels.slice(0, 10);
  const rest = detects ? objects.filter(({score}) => score < 0.5).length : data.labels.length - shown.length;
  $('predictions-note').textContent = detects
      ? `What each object query suggests, the best score first` +
        `${rest ? `; ${rest === objects.length ? 'all are' : rest === 1 ? '1 is' : `${rest} are`} below 0.5, and grey` : ''}.`
      : `The likeliest classes, with their probabilities.${rest ? ` The other ${rest} are less likely.` : ''}`;
  $('answers').replaceChildren(...shown.map(({label, probability, score, query}) => {
    const row = predictionBar({token: label, probability: probability ?? score});
    if (score < 0.5) row.classList.add('unlikely');
    if (query === undefined || query === null || !maps.cross) return row;
    const opener = button(row.className, [...row.childNodes], () => openQuery(query), {title: queries[query]});
    opener.style.cssText = row.style.cssText;
    return el('li', '', opener);
  }));
}

// ---- Begin --------------------------------------------------------------------------------------------------------

document.querySelector('main').classList.add('picture');
const file = data.image.split('/').pop();
$('text').textContent = file;
$('text').classList.toggle('long', file.length > 60);
if (data.name) $('run').textContent = `· ${data.name}`;
$('summary').textContent = [
  ...shapesOf(reading),
  `${R} × ${C} places${special === 1 ? ' and a class token' : special ? ` and ${special} special vectors` : ''}`,
  ...queries.length ? [`${queries.length} object queries`] : [],
  `picture of ${data.width} × ${data.height} pixels`,
].join(' · ');
for (const [id, name] of [['text', ''], ['plot', ''], ['table', 'These weights as a table of numbers']])
  showScrolling($(id), name);
showAnswers();

/** Opens what the address names, if it names a map. */
function readAddress(name) {
  const {map, rest} = parseName(name), {kind} = map, from = Number(rest);
  if (!kinds.includes(kind) || !exists(map)) return false;
  if (rest !== undefined && Number.isInteger(from) && from >= 0 && from < (kind === 'encoder' ? rowNames : queries).length)
    state[kind === 'encoder' ? 'patch' : 'query'] = from;
  open(map);
  overview.paint();
  return true;
}

Object.assign(image, {src: data.picture});
image.decode().then(() => {
  startControls({state, overview, open, render, fillTable, readAddress,
                 otherwise: () => readAddress(`${kinds[0]}-${maps[kinds[0]].length - 1}-mean`)});
  document.body.dataset.ready = '';
});
$('from-choice').addEventListener('change', event => setFrom(Number(event.target.value)));
