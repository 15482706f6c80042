'use strict';
// Draws the maps of one text: an overview of every layer and head, and one map large. A map is open by its name in the
// address, KIND-LAYER-HEAD: #cross-0-1, or #cross-0-mean for the mean over the heads.
(() => {
const data = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const el = (tag, className, ...children) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
};
const MOST = 999;  // the integer that stands for a weight of 1

// ---- What the maps are ------------------------------------------------------------------------------------------

const answered = data.target_tokens.length > 0;  // an encoder-decoder's maps
const KINDS = {
  cross: {title: 'Cross-attention', rows: data.target_tokens, columns: data.source_tokens,
          note: 'Where the decoder looks in the source while it writes the target.'},
  decoder: {title: answered ? 'Decoder self-attention' : 'Self-attention',
            rows: answered ? data.target_tokens : data.source_tokens,
            columns: answered ? data.target_tokens : data.source_tokens,
            note: 'Each token looks at itself and at those before it.', causal: true},
  encoder: {title: answered ? 'Encoder self-attention' : 'Self-attention', rows: data.source_tokens,
            columns: data.source_tokens, note: 'Each token of the text looks at all of them.'},
};
const maps = Object.fromEntries(data.maps.map(map => [map.kind, map.layers]));
const kinds = ['cross', 'encoder', 'decoder'].filter(kind => maps[kind] && maps[kind].length);
const means = new Map();

/** The weights of one map, row after row, as integers up to MOST. */
function weights({kind, layer, head}) {
  if (head !== 'mean') return maps[kind][layer][head];
  const key = kind + layer;
  if (!means.has(key)) {
    const heads = maps[kind][layer];
    means.set(key, heads[0].map((_, i) => heads.reduce((sum, h) => sum + h[i], 0) / heads.length));
  }
  return means.get(key);
}
const isHidden = (kind, t, s) => KINDS[kind].causal && s > t;  // behind the causal mask
const nameOf = ({kind, layer, head}) => `${kind}-${layer}-${head}`;
const headName = head => head === 'mean' ? 'mean of heads' : `head ${head}`;
const titleOf = map => `${KINDS[map.kind].title}, layer ${map.layer}, ${headName(map.head)}`;
const headsOf = kind => [...maps[kind][0].keys(), 'mean'];
const largest = values => values.reduce((most, value) => Math.max(most, value), 0);

function parseName(name) {
  const [kind, layer, head] = (name || '').split('-');
  if (!kinds.includes(kind) || !maps[kind][Number(layer)]) return null;
  const map = {kind, layer: Number(layer), head: head === 'mean' ? 'mean' : Number(head)};
  return headsOf(kind).includes(map.head) ? map : null;
}

const state = {
  map: parseName(location.hash.slice(1)) || parseName(new URLSearchParams(location.search).get('open')) ||
       (kinds.length ? {kind: kinds[0], layer: maps[kinds[0]].length - 1, head: 'mean'} : null),
  cell: null,      // {t, s}: under the pointer or chosen by keys
  rowToken: 'next',
  scale: Math.max(data.source_tokens.length, data.target_tokens.length) > 16 ? 'relative' : 'absolute',
};

// ---- Tokens -------------------------------------------------------------------------------------------------------

/** What a token is in a sentence: SentencePiece's mark of a word's beginning is left out. */
const plain = token => token.length > 1 && token.startsWith('▁') ? token.slice(1) : token.trim() ? token : '␣';
const rowTokens = kind => kind === 'cross' && state.rowToken === 'next' ? data.target_next : KINDS[kind].rows;

function tokenLabel(token) {
  const label = el('div', /^<[^<>]+>$/.test(token) ? 'token special' : 'token');
  label.title = token;
  if (plain(token).length < token.length) label.append(el('span', 'mark', '▁'));
  label.append(el('bdi', '', plain(token)));
  return label;
}

// ---- Colours ------------------------------------------------------------------------------------------------------

/** sRGB of a colour in OKLCH (Ottosson 2020), in which equal steps of lightness look equal. */
function oklch(lightness, chroma, hue) {
  const a = chroma * Math.cos(hue * Math.PI / 180), b = chroma * Math.sin(hue * Math.PI / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3;
  return [4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
          -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
          -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s].map(linear => {
    const x = Math.min(1, Math.max(0, linear));
    return Math.round(255 * (x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055));
  });
}

// One hue, lightness even from the card's colour to its opposite: it reads the same without colour vision.
const makeRamp = color => Array.from({length: 256}, (_, i) => `rgb(${color(i / 255).join(' ')})`);
const RAMPS = {
  light: makeRamp(t => oklch(0.972 - 0.652 * t, 0.006 + 0.165 * t ** 0.8, 258)),
  dark: makeRamp(t => oklch(0.255 + 0.675 * t, 0.018 + 0.118 * Math.sin(Math.PI * t ** 1.1), 252)),
};
const prefersDark = matchMedia('(prefers-color-scheme: dark)');
let printing = false;
const theme = () => prefersDark.matches && !printing ? 'dark' : 'light';
const fraction = (value, top) => top > 0 ? Math.min(1, value / top) : 0;
const colour = share => RAMPS[theme()][Math.round(255 * share)];
/** The ink that can be read on colour(share). */
const inkOn = share => theme() === 'light' ? (share > 0.56 ? '#fff' : '#16191f')
                                           : (share > 0.46 ? '#0b1220' : '#e9ecf1');
const topOf = values => state.scale === 'absolute' ? MOST : Math.max(1, largest(values));

/** Paints a map, `size` device pixels a cell. */
function paint(canvas, map, size, {gap = 0, radius = 0, numbers = false} = {}) {
  const {columns, rows} = KINDS[map.kind];
  const values = weights(map), top = topOf(values), S = columns.length;
  canvas.width = S * size;
  canvas.height = rows.length * size;
  const pen = canvas.getContext('2d');
  pen.textAlign = 'center';
  pen.textBaseline = 'middle';
  pen.font = `500 ${Math.round(size * 0.29)}px ${getComputedStyle(document.body).fontFamily}`;
  values.forEach((value, i) => {
    const t = Math.floor(i / S), s = i % S;
    if (isHidden(map.kind, t, s)) return;
    const share = fraction(value, top);
    pen.fillStyle = colour(share);
    pen.beginPath();
    if (radius && pen.roundRect) pen.roundRect(s * size + gap, t * size + gap, size - 2 * gap, size - 2 * gap, radius);
    else pen.rect(s * size + gap, t * size + gap, size - 2 * gap, size - 2 * gap);
    pen.fill();
    if (!numbers || value < MOST * 0.005) return;
    pen.fillStyle = inkOn(share);
    pen.fillText((value / MOST).toFixed(2), (s + 0.5) * size, (t + 0.53) * size);
  });
}

// ---- The overview: every layer and head ---------------------------------------------------------------------------

const thumbs = new Map();  // name → button

function buildOverview() {
  for (const kind of kinds) {
    const heads = headsOf(kind), {rows, columns, title, note} = KINDS[kind];
    const grid = el('div', 'heads');
    const most = Math.round(Math.min(112, Math.max(44, 620 / (heads.length + 1))));
    const least = 'var(--least)', leastOfMean = heads.length > 10 ? `max(38px, ${least})` : least;  // room for its name
    grid.style.gridTemplateColumns =
        `max-content repeat(${heads.length - 1}, minmax(${least}, ${most}px)) minmax(${leastOfMean}, ${most}px)`;
    grid.append(el('div', 'name layer', heads.length > 7 ? 'head' : ''));
    for (const head of heads) {
      const name = head === 'mean' || heads.length > 7 ? head : headName(head);
      grid.append(el('div', head === 'mean' ? 'name mean' : 'name', `${name}`));
    }
    maps[kind].forEach((_, layer) => {
      grid.append(el('div', 'name layer', `layer ${layer}`));
      for (const head of heads) {
        const map = {kind, layer, head}, canvas = el('canvas');
        canvas.style.aspectRatio = Math.min(2.2, Math.max(0.45, columns.length / rows.length));
        const button = el('button', head === 'mean' ? 'mean' : '', canvas);
        button.type = 'button';
        button.title = titleOf(map);
        button.setAttribute('aria-label', titleOf(map));
        button.addEventListener('click', () => open(map));
        button.addEventListener('keydown', event => moveFocus(event, map));
        thumbs.set(nameOf(map), button);
        grid.append(button);
      }
    });
    const scroll = el('div', 'scroll', grid);
    const section = el('section', 'card', el('h2', '', title), el('p', 'quiet', note), scroll);
    section.setAttribute('aria-label', `${title}: all layers and heads`);
    $('overview').append(section);
  }
}

function paintThumbs() {
  for (const [name, button] of thumbs) {
    const map = parseName(name), {rows, columns} = KINDS[map.kind];
    const size = Math.max(1, Math.ceil(220 / Math.max(rows.length, columns.length)));
    paint(button.firstChild, map, size, {gap: size > 12 ? 0.5 : 0});
  }
}

/** The map `heads` to the right and `layers` below, if there is one. */
function neighbour({kind, layer, head}, heads, layers) {
  const names = headsOf(kind);
  const map = {kind, layer: layer + layers, head: names[names.indexOf(head) + heads]};
  return map.head !== undefined && maps[kind][map.layer] ? map : null;
}
const ARROWS = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};

function moveFocus(event, map) {
  if (!ARROWS[event.key]) return;
  event.preventDefault();
  const to = neighbour(map, ...ARROWS[event.key]);
  if (!to) return;
  open(to);
  thumbs.get(nameOf(to)).focus();
}

// ---- One map, large -----------------------------------------------------------------------------------------------

let cellSize = 0;

function open(map) {
  state.map = map;
  state.cell = null;
  history.replaceState(null, '', `#${nameOf(map)}`);
  render();
}

function render() {
  const map = state.map;
  if (!map) return;
  for (const [name, button] of thumbs) {
    const chosen = name === nameOf(map);
    button.setAttribute('aria-pressed', chosen);
    button.tabIndex = chosen || (parseName(name).kind !== map.kind && name.endsWith('-0-0')) ? 0 : -1;
  }
  $('map-title').textContent = titleOf(map);
  const crosses = map.kind === 'cross';
  const row = !crosses ? 'a token' : state.rowToken === 'next' ? 'the token being written' : 'the token just read';
  $('map-note').textContent =
      `Row: ${row}. Column: a ${crosses ? 'source token' : 'token'} that it looks at. Each row sums to 1.`;
  $('row-choice').hidden = !crosses;
  for (const [id, heads, layers] of [['previous', -1, 0], ['next', 1, 0], ['up', 0, -1], ['down', 0, 1]])
    $(id).disabled = !neighbour(map, heads, layers);
  for (const input of document.querySelectorAll('input'))
    input.checked = input.value === (input.name === 'scale' ? state.scale : state.rowToken);
  $('plot').setAttribute('aria-label', `${titleOf(map)}. Arrow keys move from weight to weight.`);
  $('ramp').style.background = `linear-gradient(to right, ${
      Array.from({length: 17}, (_, i) => colour(i / 16)).join(', ')})`;
  $('ramp-end').textContent = state.scale === 'absolute' ? '1' : (topOf(weights(map)) / MOST).toFixed(2);
  layOut();
  showCell();
  if ($('numbers').open) fillTable();
}

/** Chooses the size of a cell from the room there is, and draws labels and map. */
function layOut() {
  const map = state.map, columns = KINDS[map.kind].columns, rows = rowTokens(map.kind);
  const pen = $('canvas').getContext('2d');
  const font = getComputedStyle(document.body).fontFamily;
  const widest = (tokens, size) => {
    pen.font = `500 ${size}px ${font}`;
    return Math.min(160, Math.max(...tokens.map(token => pen.measureText(token).width)) + 12);
  };
  const room = $('detail').clientWidth - 2 * parseFloat(getComputedStyle($('detail')).paddingLeft);
  const labelRoom = Math.min(widest(rows, 14), room * 0.34) + 8;
  cellSize = Math.floor(Math.min(72, Math.max(13, (room - labelRoom) / columns.length)));
  const fontSize = Math.max(9.5, Math.min(15, cellSize * 0.72));
  const upright = widest(columns, fontSize) > cellSize;

  $('rows').replaceChildren(...rows.map(tokenLabel));
  $('columns').replaceChildren(...columns.map(tokenLabel));
  $('columns').classList.toggle('upright', upright);
  for (const label of $('rows').children)
    Object.assign(label.style, {height: `${cellSize}px`, fontSize: `${fontSize}px`, maxWidth: `${labelRoom}px`});
  for (const label of $('columns').children)
    Object.assign(label.style, {width: `${cellSize}px`, fontSize: `${fontSize}px`, maxHeight: '150px'});

  // Sharp on the screen and on paper, but no canvas larger than browsers allow.
  const most = Math.sqrt(16e6 / (rows.length * columns.length)) / cellSize;
  const density = Math.min(Math.max(2, devicePixelRatio || 1), most);
  const size = Math.max(1, Math.round(cellSize * density));
  paint($('canvas'), map, size, {
    gap: cellSize > 8 ? size / cellSize / 2 * (cellSize > 24 ? 2 : 1) : 0,
    radius: cellSize > 24 ? 4 * size / cellSize : 0,
    numbers: cellSize >= 36,
  });
  Object.assign($('canvas').style, {width: `${cellSize * columns.length}px`, height: `${cellSize * rows.length}px`});
}

/** The weight under the pointer in words; without one, the largest of the map. */
function showCell() {
  const map = state.map, values = weights(map), columns = KINDS[map.kind].columns, rows = rowTokens(map.kind);
  const S = columns.length;
  let cell = state.cell;
  if (!cell) {
    const begin = KINDS[map.kind].causal && rows.length > 1 ? S : 0;  // the first token of a decoder sees itself alone
    const most = values.indexOf(largest(values.slice(begin)), begin);
    cell = {t: Math.floor(most / S), s: most % S};
  }
  const value = values[cell.t * S + cell.s], share = fraction(value, topOf(values));
  const number = el('span', 'value', (value / MOST).toFixed(2));
  Object.assign(number.style, {background: colour(share), color: inkOn(share)});
  const shown = [el('b', '', el('bdi', '', plain(rows[cell.t]))), ' → ',
                 el('b', '', el('bdi', '', plain(columns[cell.s]))), ' ', number];
  if (!state.cell) shown.push(el('span', 'hint', 'the largest weight here; point at a cell for others'));
  else if (isHidden(map.kind, cell.t, cell.s)) shown.push(el('span', 'hint', 'comes later: the causal mask hides it'));
  else if (map.kind === 'cross' && state.rowToken === 'next')
    shown.push(el('span', 'hint', 'after reading ', el('bdi', '', plain(data.target_tokens[cell.t]))));
  $('readout').replaceChildren(...shown);

  $('cursor').hidden = !state.cell;
  for (const label of document.querySelectorAll('.token.on')) label.classList.remove('on');
  if (!state.cell) return;
  Object.assign($('cursor').style, {left: `${cell.s * cellSize}px`, top: `${cell.t * cellSize}px`,
                                    width: `${cellSize}px`, height: `${cellSize}px`});
  $('rows').children[cell.t].classList.add('on');
  $('columns').children[cell.s].classList.add('on');
}

function point(cell) {
  if (cell?.t === state.cell?.t && cell?.s === state.cell?.s) return;
  state.cell = cell;
  showCell();
}

function cellAt(event) {
  const box = $('canvas').getBoundingClientRect(), {rows, columns} = KINDS[state.map.kind];
  const s = Math.floor((event.clientX - box.left) / cellSize), t = Math.floor((event.clientY - box.top) / cellSize);
  return s >= 0 && t >= 0 && s < columns.length && t < rows.length ? {t, s} : null;
}

function moveCell(event) {
  if (event.key === 'Escape') return point(null);
  if (!ARROWS[event.key]) return;
  event.preventDefault();
  const {rows, columns} = KINDS[state.map.kind], [ds, dt] = ARROWS[event.key], {t, s} = state.cell || {t: 0, s: -ds};
  const clamp = (value, n) => Math.min(n - 1, Math.max(0, value));
  point({t: clamp(state.cell ? t + dt : 0, rows.length), s: clamp(state.cell ? s + ds : 0, columns.length)});
  $('cursor').scrollIntoView({block: 'nearest', inline: 'nearest'});
}

function fillTable() {
  const map = state.map, values = weights(map), columns = KINDS[map.kind].columns, rows = rowTokens(map.kind);
  const header = (text, scope) => {
    const cell = el('th', '', el('bdi', '', text));
    cell.scope = scope;
    return cell;
  };
  const table = el('table', '', el('caption', '', titleOf(map)));
  table.append(el('thead', '', el('tr', '', el('td'), ...columns.map(token => header(token, 'col')))));
  const number = (t, s) => isHidden(map.kind, t, s) ? '' : (values[t * columns.length + s] / MOST).toFixed(3);
  table.append(el('tbody', '', ...rows.map((token, t) =>
      el('tr', '', header(token, 'row'), ...columns.map((_, s) => el('td', '', number(t, s)))))));
  $('table').replaceChildren(table);
}

// ---- Begin --------------------------------------------------------------------------------------------------------

const quoted = text => el('bdi', '', `“${text}”`);
$('text').append(quoted(data.text));
if (answered) $('text').append(el('span', 'arrow', ' → '), quoted(data.target));
$('text').classList.toggle('long', data.text.length + data.target.length > 90);
if (data.name) $('run').textContent = `· ${data.name}`;
const count = (n, what) => `${n} ${what}${n === 1 ? '' : 's'}`;
$('summary').textContent = [
  ...kinds.map(kind =>
      `${KINDS[kind].title}: ${count(maps[kind].length, 'layer')} × ${count(maps[kind][0].length, 'head')}`),
  answered ? `${data.source_tokens.length} source and ${data.target_tokens.length} target tokens`
           : count(data.source_tokens.length, 'token'),
].join(' · ');

buildOverview();
paintThumbs();
render();

$('field').addEventListener('pointermove', event => point(cellAt(event)));
$('field').addEventListener('pointerdown', event => point(cellAt(event)));
$('field').addEventListener('pointerleave', event => { if (event.pointerType === 'mouse') point(null); });
$('plot').addEventListener('keydown', moveCell);
for (const [id, heads, layers] of [['previous', -1, 0], ['next', 1, 0], ['up', 0, -1], ['down', 0, 1]])
  $(id).addEventListener('click', () => open(neighbour(state.map, heads, layers)));
$('scale-choice').addEventListener('change', event => { state.scale = event.target.value; paintThumbs(); render(); });
$('row-choice').addEventListener('change', event => { state.rowToken = event.target.value; render(); });
$('numbers').addEventListener('toggle', () => { if ($('numbers').open) fillTable(); });
addEventListener('hashchange', () => { const map = parseName(location.hash.slice(1)); if (map) open(map); });
const repaint = () => { paintThumbs(); render(); };
prefersDark.addEventListener('change', repaint);
addEventListener('beforeprint', () => { printing = true; repaint(); });
addEventListener('afterprint', () => { printing = false; repaint(); });
let width = $('detail').clientWidth;
new ResizeObserver(() => {
  if ($('detail').clientWidth === width) return;  // the height is ours
  width = $('detail').clientWidth;
  render();
}).observe($('detail'));
})();
