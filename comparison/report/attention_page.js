// Draws the maps of one text: an overview of every layer and head, and one large map. The address names the large map
// as KIND-LAYER-HEAD: #cross-0-1, or #cross-0-mean for the mean over the heads, or #cross-0-rollout for roll-out.
(() => {
const {data, $, el, count, rampGradient, whenThemeChanges, sortableTable} = zooPage;
const {MOST, largest, headName, readMaps, paint, ARROWS, HeatMap, numbersTable, headColumns} = zooMaps;
const {answered, KINDS, maps, kinds, weights, isHidden, titleOf, headsOf} = readMaps(data);
const nameOf = ({kind, layer, head}) => `${kind}-${layer}-${head}`;

function parseName(name) {
  const [kind, layer, head] = (name || '').split('-');
  const map = {kind, layer: Number(layer), head: ['mean', 'rollout'].includes(head) ? head : Number(head)};
  return kinds.includes(kind) && weights(map) ? map : null;
}

const state = {
  map: parseName(location.hash.slice(1)) || parseName(new URLSearchParams(location.search).get('open')) ||
       (kinds.length ? {kind: kinds[0], layer: maps[kinds[0]].length - 1, head: 'mean'} : null),
  rowToken: 'next',
  scale: Math.max(data.source_tokens.length, data.target_tokens.length) > 16 ? 'relative' : 'absolute',
};

/** The view of a map that heat_map.js draws. */
function viewOf(map) {
  const {kind} = map, values = weights(map), {rows, columns} = KINDS[kind];
  // A decoder's first token can only look at itself: its weight of 1 must not set the scale.
  const free = isHidden(kind, 0, 1) && rows.length > 1 ? values.slice(columns.length) : values;
  const writing = kind === 'cross' && state.rowToken === 'next';
  return {values, columns, rows: writing ? data.target_next : rows, after: writing ? rows : null,
          isHidden: (t, s) => isHidden(kind, t, s),
          top: state.scale === 'absolute' ? MOST : Math.max(1, largest(free))};
}

// ---- The overview: every layer and head ---------------------------------------------------------------------------

const thumbs = new Map();  // name → button

function buildOverview() {
  for (const kind of kinds) {
    const heads = headsOf(kind), {rows, columns, title, note} = KINDS[kind];
    const grid = el('div', 'heads');
    const most = Math.round(Math.min(112, Math.max(44, 620 / (heads.length + 1))));
    const summaries = heads.filter(head => typeof head === 'string'), nHeads = heads.length - summaries.length;
    grid.style.setProperty('--least-summary', nHeads > 6 ? '46px' : 'var(--least)');  // room for its name
    grid.style.gridTemplateColumns = `max-content repeat(${nHeads}, minmax(var(--least), ${most}px)) ` +
        `repeat(${summaries.length}, minmax(var(--least-summary), ${most}px))`;
    const cell = (tag, head, className, ...children) => {
      const node = el(tag, summaries.includes(head) ? `${className} summary` : className, ...children);
      node.style.setProperty('--after', heads.length - 1 - heads.indexOf(head));
      return node;
    };
    grid.append(el('div', 'name layer', nHeads > 6 ? 'head' : ''));
    for (const head of heads)
      grid.append(cell('div', head, 'name', `${head !== 'rollout' && nHeads > 6 ? head : headName(head)}`));
    maps[kind].forEach((_, layer) => {
      grid.append(el('div', 'name layer', `layer ${layer}`));
      for (const head of heads) {
        const map = {kind, layer, head}, canvas = el('canvas');
        if (!weights(map)) {
          grid.append(el('div'));
          continue;
        }
        canvas.style.aspectRatio = Math.min(2.2, Math.max(0.45, columns.length / rows.length));
        const button = cell('button', head, 'thumb', canvas);
        button.type = 'button';
        button.title = titleOf(map);
        button.setAttribute('aria-label', titleOf(map));
        button.addEventListener('click', () => openInSight(map));
        button.addEventListener('keydown', event => moveFocus(event, map));
        thumbs.set(nameOf(map), button);
        grid.append(button);
      }
    });
    const scroll = el('div', 'scroll', grid);
    const section = el('section', 'card', el('h2', '', title), el('p', 'quiet', note), scroll, headTable(kind));
    section.setAttribute('aria-label', `${title}: all layers and heads`);
    $('overview').append(section);
  }
}

function paintThumbs() {
  for (const [name, button] of thumbs) {
    const map = parseName(name), {rows, columns} = KINDS[map.kind];
    const size = Math.max(1, Math.ceil(220 / Math.max(rows.length, columns.length)));
    paint(button.firstChild, viewOf(map), size, {gap: size > 12 ? 0.5 : 0});
  }
}

/** The map that lies `heads` to the right and `layers` below, or null. */
function neighbour({kind, layer, head}, heads, layers) {
  const names = headsOf(kind);
  const map = {kind, layer: layer + layers, head: names[names.indexOf(head) + heads]};
  return weights(map) ? map : null;
}

function moveFocus(event, map) {
  if (!ARROWS[event.key]) return;
  event.preventDefault();
  const to = neighbour(map, ...ARROWS[event.key]);
  if (!to) return;
  open(to);
  thumbs.get(nameOf(to)).focus();
}

// ---- The heads in numbers -----------------------------------------------------------------------------------------

const openButtons = new Map();  // name → button of its row

function headTable(kind) {
  const rows = data.heads.filter(head => head.kind === kind);
  const columns = headColumns(rows);
  const name = {title: 'Head', hint: 'Layer and head, from 0. Click a row to open its map.',
                value: row => row.layer * 1000 + row.head, cell: row => {
                  const map = nameOf(row);
                  if (!openButtons.has(map)) {
                    const button = el('button', 'open', `${row.layer}.${row.head}`);
                    button.type = 'button';
                    button.value = map;
                    button.setAttribute('aria-label', `Open ${titleOf(row)}`);
                    openButtons.set(map, button);
                  }
                  return openButtons.get(map);
                }};
  const {table} = sortableTable({caption: 'Layer.head, and means over the rows of the head’s map',
                                 columns: [name, ...columns], rows});
  table.addEventListener('click', event => {  // also for the button, by pointer or key
    const button = event.target.closest('tbody tr')?.querySelector('.open');
    if (button) openInSight(parseName(button.value));
  });
  const meanings = el('dl', '', ...columns.flatMap(({title, hint}) => [el('dt', '', title), el('dd', '', hint)]));
  const node =
      el('details', 'numbers', el('summary', '', 'The heads in numbers'), el('div', 'scroll', table), meanings);
  node.open = true;
  return node;
}

// ---- One map, large -----------------------------------------------------------------------------------------------

const heatMap = new HeatMap($('plot'), $('readout'));

function open(map) {
  state.map = map;
  heatMap.forget();
  history.replaceState(null, '', `#${nameOf(map)}`);
  render();
}

/** Opens a map and scrolls to it where it is out of sight: on a phone it is above the other maps. */
function openInSight(map) {
  open(map);
  const {top, bottom} = $('detail').getBoundingClientRect();
  if (bottom < 160 || top > innerHeight - 160) $('detail').scrollIntoView({block: 'start'});
}

function render() {
  const map = state.map;
  if (!map) return;
  for (const [name, button] of thumbs) {
    const chosen = name === nameOf(map);
    button.setAttribute('aria-pressed', chosen);
    button.tabIndex = chosen || (parseName(name).kind !== map.kind && name.endsWith('-0-0')) ? 0 : -1;
  }
  for (const [name, button] of openButtons)
    name === nameOf(map) ? button.setAttribute('aria-current', 'true') : button.removeAttribute('aria-current');
  $('map-title').textContent = titleOf(map);
  const crosses = map.kind === 'cross';
  const row = !crosses ? 'a token' : state.rowToken === 'next' ? 'the token being written' : 'the token just read';
  const column = `Column: a ${crosses ? 'source token' : 'token'} `;
  $('map-note').textContent = map.head !== 'rollout'
      ? `Row: ${row}. ${column}that it looks at. Each row sums to 1.`
      : `Row: ${row}. ${column}that it comes from, through ` +
        `${crosses ? 'the encoder and this layer' : map.layer ? `layers 0 to ${map.layer}` : 'layer 0'}. ` +
        'This assumes that only attention and residual connections mix tokens. Each row sums to 1.';
  $('row-choice').hidden = !crosses;
  for (const [id, heads, layers] of [['previous', -1, 0], ['next', 1, 0], ['up', 0, -1], ['down', 0, 1]])
    $(id).disabled = !neighbour(map, heads, layers);
  for (const input of document.querySelectorAll('input'))
    input.checked = input.value === (input.name === 'scale' ? state.scale : state.rowToken);
  $('plot').setAttribute('aria-label', `${titleOf(map)}. Arrow keys move from weight to weight.`);
  const view = viewOf(map);
  $('ramp').style.background = rampGradient();
  $('ramp-end').textContent = state.scale === 'absolute' ? '1' : (view.top / MOST).toFixed(2);
  heatMap.show(view, $('detail').clientWidth - 2 * parseFloat(getComputedStyle($('detail')).paddingLeft));
  if ($('numbers').open) fillTable();
}

const fillTable = () => $('table').replaceChildren(numbersTable(viewOf(state.map), titleOf(state.map)));

// ---- Begin --------------------------------------------------------------------------------------------------------

const quoted = text => el('bdi', '', `“${text}”`);
$('text').append(quoted(data.text));
if (answered || data.target) $('text').append(el('span', 'arrow', ' → '), quoted(data.target));
$('text').classList.toggle('long', data.text.length + data.target.length > 90);
if (data.name) $('run').textContent = `· ${data.name}`;
$('summary').textContent = [
  ...kinds.map(kind =>
      `${KINDS[kind].title}: ${count(maps[kind].length, 'layer')} × ${count(maps[kind][0].length, 'head')}`),
  answered ? `${data.source_tokens.length} source and ${data.target_tokens.length} target tokens`
           : count(data.source_tokens.length, 'token'),
].join(' · ');

buildOverview();
paintThumbs();
render();

for (const [id, heads, layers] of [['previous', -1, 0], ['next', 1, 0], ['up', 0, -1], ['down', 0, 1]])
  $(id).addEventListener('click', () => open(neighbour(state.map, heads, layers)));
$('scale-choice').addEventListener('change', event => { state.scale = event.target.value; paintThumbs(); render(); });
$('row-choice').addEventListener('change', event => { state.rowToken = event.target.value; render(); });
$('numbers').addEventListener('toggle', () => { if ($('numbers').open) fillTable(); });
addEventListener('hashchange', () => { const map = parseName(location.hash.slice(1)); if (map) open(map); });
whenThemeChanges(() => { paintThumbs(); render(); });
let width = $('detail').clientWidth;
new ResizeObserver(() => {
  if ($('detail').clientWidth === width) return;  // render() itself changes the height
  width = $('detail').clientWidth;
  render();
}).observe($('detail'));
})();
