// Attention maps: the numbers of one text, and a picture of them in which the reader can point at every weight.

import {colour, el, headCell, inkOn, plain, rampGradient, tokenLabel} from './page.js';

export const MOST = 999;  // the integer that stands for a weight of 1
export const largest = values => values.reduce((most, value) => Math.max(most, value), 0);
export const fraction = (value, top) => top > 0 ? Math.min(1, value / top) : 0;
export const weightText = value => (value / MOST).toFixed(2);
export const headName = head => ({mean: 'mean of heads', rollout: 'roll-out'})[head] ?? `head ${head}`;

/**
 * What maps there are in the fields that attention_page.h names: `maps` are kind → layers → heads, `rollouts` are kind and
 * layer → roll-out; one without a layer is for the last layer. KINDS says what a kind shows. A map is {kind, layer, head};
 * head is a number, 'mean', or 'rollout' where there is one.
 */
export function readKinds(data, KINDS) {
  const maps = Object.fromEntries(data.maps.map(map => [map.kind, map.layers]));
  const rollouts = new Map((data.rollout ?? []).map(
      rollout => [rollout.kind + (rollout.layer ?? maps[rollout.kind].length - 1), rollout]));
  return {
    KINDS, maps, rollouts, kinds: ['cross', 'encoder', 'decoder'].filter(kind => maps[kind]?.length),
    titleOf: map => `${KINDS[map.kind].title}, layer ${map.layer}, ${headName(map.head)}`,
    headsOf: kind => [...maps[kind][0].keys(), 'mean',
                      ...(maps[kind].some((_, layer) => rollouts.has(kind + layer)) ? ['rollout'] : [])],
  };
}

/** The maps of one text: what readKinds() returns, and their weights. */
export function readMaps(data) {
  const answered = data.target_tokens.length > 0;  // an encoder-decoder's maps
  const source = data.source_tokens, target = data.target_tokens;
  const KINDS = {
    cross: {title: 'Cross-attention', rows: target, columns: source,
            note: 'Where the decoder looks in the source while it writes the target.'},
    decoder: {title: answered ? 'Decoder self-attention' : 'Self-attention', rows: answered ? target : source,
              columns: answered ? target : source, note: 'Each token looks at itself and at earlier tokens.',
              causal: true},
    encoder: {title: answered ? 'Encoder self-attention' : 'Self-attention', rows: source, columns: source,
              note: data.recording ? 'Each moment looks at all moments of the recording.'
                                 : 'Each token looks at all tokens of the text.'},
  };
  const reading = readKinds(data, KINDS), {maps, rollouts} = reading, means = new Map();
  /** The weights of one map, row after row, as integers up to MOST; undefined where there is no such map. */
  function weights({kind, layer, head}) {
    const key = kind + layer;
    if (!maps[kind]?.[layer]) return undefined;
    if (head === 'rollout') return rollouts.get(key)?.rows;
    if (head !== 'mean') return maps[kind][layer][head];
    if (!means.has(key)) {
      const heads = maps[kind][layer];
      means.set(key, heads[0].map((_, i) => heads.reduce((sum, h) => sum + h[i], 0) / heads.length));
    }
    return means.get(key);
  }
  const isHidden = (kind, t, s) => Boolean(KINDS[kind].causal) && s > t;  // behind the causal mask
  return {
    ...reading, answered, weights, isHidden,
    /** The weights that set a scale. A decoder's first token can only look at itself: its 1 must not set it. */
    free(map) {
      const {rows, columns} = KINDS[map.kind], values = weights(map);
      return isHidden(map.kind, 0, 1) && rows.length > 1 ? values.slice(columns.length) : values;
    },
  };
}

/** Whether a view has weights beyond `top`, which have the strongest colour without being equal. */
export const exceeds = ({values}, top) => values.some(value => value > top);

/**
 * Fills a legend: `ramp` with the colours of a map, `end` with the value of the strongest one, such as “0.52”, or
 * “≥ 0.52” and the mark of larger weights.
 */
export function showLegend(ramp, end, view) {
  const beyond = exceeds(view, view.top);
  ramp.style.background = rampGradient();
  end.textContent = (beyond ? '≥ ' : '') + (view.top === MOST ? '1' : weightText(view.top));
  end.classList.toggle('beyond', beyond);
  end.style.setProperty('--strongest', colour(1));
  end.style.setProperty('--mark', inkOn(1));
  end.title = beyond ? 'Larger weights have the same colour, and a mark in their corner.' : '';
}

/**
 * Parts of a view, row by row, with at most so many rows and columns each: paper does not scroll. Rows that a mask
 * hides are left out.
 */
export function partsOf(view, mostRows, mostColumns) {
  const {values, rows, columns, isHidden} = view, parts = [];
  for (let t = 0; t < rows.length; t += mostRows)
    for (let s = 0; s < columns.length; s += mostColumns) {
      const own = [...columns.keys()].slice(s, s + mostColumns);
      const kept = [...rows.keys()].slice(t, t + mostRows).filter(row => own.some(column => !isHidden(row, column)));
      if (!kept.length) continue;
      parts.push({...view, rows: kept.map(row => rows[row]), columns: own.map(column => columns[column]), after: null,
                  isHidden: (i, j) => isHidden(kept[i], own[j]),
                  values: kept.flatMap(row => own.map(column => values[row * columns.length + column]))});
    }
  return parts;
}

/**
 * Paints a view with `size` device pixels per cell. A view is {values, rows, columns, isHidden, top}: integers row by
 * row, the tokens of both sides, (t, s) → whether a mask hides it, and the value that gets the strongest colour. A
 * cell with a larger value has a mark in its corner. It may have a `colour` of its own for shares.
 */
export function paint(canvas, {values, rows, columns, isHidden, top, colour: colourOf = colour}, size, {gap = 0, radius = 0, numbers = false} = {}) {
  const S = columns.length, width = S * size, height = rows.length * size;
  // The canvas gets a picture and not the strokes. A browser prints strokes one by one, in so many layers that viewers of
  // PDF leave some out.
  const sheet = new OffscreenCanvas(width, height), pen = sheet.getContext('2d');
  pen.textAlign = 'center';
  pen.textBaseline = 'middle';
  pen.font = `500 ${Math.round(size * 0.29)}px ${getComputedStyle(document.body).fontFamily}`;
  values.forEach((value, i) => {
    const t = Math.floor(i / S), s = i % S;
    if (isHidden(t, s)) return;
    const share = fraction(value, top);
    pen.fillStyle = colourOf(share);
    pen.beginPath();
    if (radius && pen.roundRect) pen.roundRect(s * size + gap, t * size + gap, size - 2 * gap, size - 2 * gap, radius);
    else pen.rect(s * size + gap, t * size + gap, size - 2 * gap, size - 2 * gap);
    pen.fill();
    if (value > top) markCorner(pen, (s + 1) * size - gap, t * size + gap, size);
    if (!numbers || value < MOST * 0.005) return;
    pen.fillStyle = inkOn(share);
    pen.fillText(weightText(value), (s + 0.5) * size, (t + 0.53) * size);
  });
  Object.assign(canvas, {width, height});
  canvas.getContext('bitmaprenderer').transferFromImageBitmap(sheet.transferToImageBitmap());
}

/** A triangle in the upper right corner (x, y) of a cell. */
function markCorner(pen, x, y, size) {
  const side = Math.max(2, size * 0.3);
  pen.fillStyle = inkOn(1);
  pen.beginPath();
  pen.moveTo(x - side, y);
  pen.lineTo(x, y);
  pen.lineTo(x, y + side);
  pen.fill();
}

export const ARROWS = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};

const ZOOM = 1.4;  // factor of one step
const READABLE = 9.5;  // pixels of a cell, below which its token has no label

/**
 * One large map with its tokens. A pointer or the arrow keys choose a weight, and `readout` shows it. The buttons in the
 * corner, the keys + and -, and a wheel with Ctrl make cells larger and smaller.
 */
export class HeatMap {
  #parts; #view = null; #cell = null; #cellSize = 0; #room = 0; #height = Infinity; #zoom = 1;

  constructor(plot, readout) {
    const canvas = el('canvas'), cursor = el('div', 'cursor');
    const parts = this.#parts = {plot, readout, canvas, cursor, corner: el('div', 'corner'), rows: el('div', 'rows'),
                                 columns: el('div', 'columns'), field: el('div', 'field', canvas, cursor)};
    for (const hidden of [canvas, parts.rows, parts.columns]) hidden.setAttribute('aria-hidden', 'true');
    plot.replaceChildren(parts.corner, parts.columns, parts.rows, parts.field);
    for (const [text, title, factor] of [['−', 'Smaller cells', 1 / ZOOM], ['+', 'Larger cells', ZOOM]]) {
      const button = Object.assign(el('button', 'zoom', text), {type: 'button', title});
      button.setAttribute('aria-label', title);
      button.addEventListener('click', () => this.#zoomBy(factor));
      parts.corner.append(button);
    }
    parts.field.addEventListener('wheel', event => {
      if (!event.ctrlKey) return;
      event.preventDefault();  // the browser would enlarge the whole page
      this.#zoomBy(event.deltaY < 0 ? ZOOM : 1 / ZOOM);
    }, {passive: false});
    parts.field.addEventListener('pointermove', event => this.#point(this.#cellAt(event)));
    parts.field.addEventListener('pointerdown', event => this.#point(this.#cellAt(event)));
    parts.field.addEventListener('pointerleave', event => { if (event.pointerType === 'mouse') this.#point(null); });
    plot.addEventListener('keydown', event => this.#move(event));
  }

  /**
   * Draws a view (see paint) as large as `room` pixels of width and `height` pixels for its rows allow. Where `rows`
   * are the tokens being written, the view may have `after`, the tokens just read. The chosen cell stays chosen.
   */
  show(view, room, height = Infinity) {
    this.#view = view;
    this.#room = room;
    this.#height = height;
    this.#layOut();
    this.#showCell();
  }
  forget() { this.#cell = null; }

  #zoomBy(factor) {
    const before = this.#cellSize;
    this.#zoom *= factor;
    this.#layOut();
    if (this.#cellSize === before) this.#zoom /= factor;  // the smallest or largest cells
    this.#showCell();
  }

  /** Chooses the size of a cell for the available room, and draws labels and map. */
  #layOut() {
    const room = this.#room, height = this.#height;
    const {canvas, rows: rowLabels, columns: columnLabels} = this.#parts, {rows, columns} = this.#view;
    const pen = new OffscreenCanvas(1, 1).getContext('2d'), font = getComputedStyle(document.body).fontFamily;
    const widest = (tokens, size) => {
      pen.font = `500 ${size}px ${font}`;
      return Math.min(160, Math.max(...tokens.map(token => pen.measureText(token).width)) + 12);
    };
    const labelRoom = Math.min(widest(rows, 14), room * 0.34) + 8;
    const largest = Math.min((room - labelRoom) / columns.length, height / rows.length);
    const fitting = Math.min(72, Math.max(13, largest));
    const cellSize = this.#cellSize = Math.floor(Math.min(96, Math.max(2, fitting * this.#zoom)));
    const fontSize = Math.max(READABLE, Math.min(15, cellSize * 0.72));

    rowLabels.replaceChildren(...rows.map(tokenLabel));
    columnLabels.replaceChildren(...columns.map(tokenLabel));
    columnLabels.classList.toggle('upright', widest(columns, fontSize) > cellSize);
    for (const labels of [rowLabels, columnLabels]) labels.classList.toggle('unreadable', cellSize < READABLE);
    for (const label of rowLabels.children)
      Object.assign(label.style, {height: `${cellSize}px`, fontSize: `${fontSize}px`, maxWidth: `${labelRoom}px`});
    for (const label of columnLabels.children)
      Object.assign(label.style, {width: `${cellSize}px`, fontSize: `${fontSize}px`, maxHeight: '150px'});

    // Sharp on the screen and on paper, but not larger than the canvas that browsers allow.
    const most = Math.sqrt(16e6 / (rows.length * columns.length)) / cellSize;
    const density = Math.min(Math.max(2, devicePixelRatio || 1), most);
    const size = Math.max(1, Math.round(cellSize * density));
    paint(canvas, this.#view, size, {
      gap: cellSize > 8 ? size / cellSize / 2 * (cellSize > 24 ? 2 : 1) : 0,
      radius: cellSize > 24 ? 4 * size / cellSize : 0,
      numbers: cellSize >= 36,
    });
    Object.assign(canvas.style, {width: `${cellSize * columns.length}px`, height: `${cellSize * rows.length}px`});
  }

  /** Tells the chosen weight in words; without one, the largest weight of the map. */
  #showCell() {
    const {values, rows, columns, isHidden, top, after} = this.#view;
    const {readout, cursor, rows: rowLabels, columns: columnLabels} = this.#parts, S = columns.length;
    let cell = this.#cell;
    const begin = rows.length > 1 && S > 1 && isHidden(0, S - 1) ? S : 0;  // the first row sees only itself
    if (!cell) {
      const most = values.indexOf(largest(values.slice(begin)), begin);
      cell = {t: Math.floor(most / S), s: most % S};
    }
    const value = values[cell.t * S + cell.s], share = fraction(value, top);
    const number = el('span', 'value', weightText(value));
    Object.assign(number.style, {background: colour(share), color: inkOn(share)});
    const shown = [el('b', '', el('bdi', '', plain(rows[cell.t]))), ' → ',
                   el('b', '', el('bdi', '', plain(columns[cell.s]))), ' ', number];
    const where = begin ? 'below the first row' : 'of this map';
    if (!this.#cell) shown.push(el('span', 'hint', `the largest weight ${where}; point at a cell for others`));
    else if (isHidden(cell.t, cell.s)) shown.push(el('span', 'hint', 'comes later: the causal mask hides it'));
    else if (after) shown.push(el('span', 'hint', 'after reading ', el('bdi', '', plain(after[cell.t]))));
    readout.replaceChildren(...shown);

    cursor.hidden = !this.#cell;
    for (const label of [...rowLabels.children, ...columnLabels.children]) label.classList.remove('on');
    if (!this.#cell) return;
    Object.assign(cursor.style, {left: `${cell.s * this.#cellSize}px`, top: `${cell.t * this.#cellSize}px`,
                                 width: `${this.#cellSize}px`, height: `${this.#cellSize}px`});
    rowLabels.children[cell.t].classList.add('on');
    columnLabels.children[cell.s].classList.add('on');
  }

  #point(cell) {
    if (cell?.t === this.#cell?.t && cell?.s === this.#cell?.s) return;
    this.#cell = cell;
    this.#showCell();
  }

  #cellAt(event) {
    const box = this.#parts.canvas.getBoundingClientRect(), {rows, columns} = this.#view;
    const s = Math.floor((event.clientX - box.left) / this.#cellSize);
    const t = Math.floor((event.clientY - box.top) / this.#cellSize);
    return s >= 0 && t >= 0 && s < columns.length && t < rows.length ? {t, s} : null;
  }

  #move(event) {
    if (event.key === 'Escape' && this.#cell) {
      event.preventDefault();  // a dialog around the map stays open
      event.stopPropagation();
      return this.#point(null);
    }
    if (event.key === '+' || event.key === '-') return this.#zoomBy(event.key === '+' ? ZOOM : 1 / ZOOM);
    if (!ARROWS[event.key]) return;
    event.preventDefault();
    const {rows, columns} = this.#view, [ds, dt] = ARROWS[event.key], from = this.#cell;
    const clamp = (value, n) => Math.min(n - 1, Math.max(0, value));
    this.#point(from ? {t: clamp(from.t + dt, rows.length), s: clamp(from.s + ds, columns.length)} : {t: 0, s: 0});
    this.#parts.cursor.scrollIntoView({block: 'nearest', inline: 'nearest'});
  }
}

/** A view as a table of numbers. */
export function numbersTable({values, rows, columns, isHidden}, caption) {
  const header = (text, scope) => headCell(el('bdi', '', text), scope);
  const table = el('table', '', el('caption', '', caption));
  table.append(el('thead', '', el('tr', '', el('td'), ...columns.map(token => header(token, 'col')))));
  const number = (t, s) => isHidden(t, s) ? '' : (values[t * columns.length + s] / MOST).toFixed(3);
  table.append(el('tbody', '', ...rows.map((token, t) =>
      el('tr', '', header(token, 'row'), ...columns.map((_, s) => el('td', '', number(t, s)))))));
  return table;
}

// ---- The heads in numbers -------------------------------------------------------------------------------------------

// The numbers that `heads` holds for a head (docs/comparison.md). A bar under each number is full at `top`, by default
// the largest number of the column.
const NUMBERS = [
  {key: 'entropy', title: 'Entropy',
   hint: 'How evenly a token spreads its weight, in nats: 0 where it looks at only one token.'},
  {key: 'distance', title: 'Distance', hint: 'The mean distance to the tokens that a token looks at, in tokens.'},
  {key: 'first', title: 'First', top: 1, hint: 'The weight on the first token.'},
  {key: 'previous', title: 'Previous', top: 1, hint: 'The weight on the previous token.'},
  {key: 'itself', title: 'Itself', top: 1, hint: 'The weight on the token itself.'},
  {key: 'alignment_error', title: 'Off the diagonal',
   hint: 'The mean distance of the weight from the diagonal of the map, as a fraction of the source’s length: 0 ' +
         'where both texts run in step.'},
];

/**
 * The columns of a sortableTable over heads: the numbers that at least one of `rows` has. `unit` is what a map's rows and
 * columns are.
 */
export function headColumns(rows, unit = 'token') {
  const isKnown = (row, {key}) => Number.isFinite(row[key]);
  return NUMBERS.filter(column => rows.some(row => isKnown(row, column))).map(column => {
    const {key, title, hint} = column, known = rows.filter(row => isKnown(row, column));
    const top = column.top ?? Math.max(...known.map(row => row[key]));
    return {title, hint: hint.replaceAll('token', unit), value: row => row[key] ?? null, cell: row => {
      if (!isKnown(row, column)) {
        const none = el('span', 'quiet', '–');
        if (key === 'entropy') none.title = 'These weights are no shares, because some are negative.';
        return none;
      }
      const node = el('span', 'amount', row[key].toFixed(2));
      node.style.setProperty('--share', top > 0 ? row[key] / top : 0);
      return node;
    }};
  });
}
