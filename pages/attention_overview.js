// A grid of small maps for each kind of attention, layers × heads, and the numbers of the heads. Each opens a map.

import {ARROWS, headColumns, headName, paint} from './heat_map.js';
import {el, set, showScrolling, sortableTable} from './page.js';

export const nameOf = ({kind, layer, head}) => `${kind}-${layer}-${head}`;

/**
 * The overview in `host`. `reading` is what readMaps() returns, and may have `heads`, the numbers of the heads. `viewOf` gives the view of a map that heat_map.js
 * paints, and `open` opens a map.
 */
export class Overview {
  #reading; #viewOf; #open;
  #thumbs = new Map();  // name → {map, button}
  #rows = new Map();    // name → {map, button} of the row in the table of numbers

  constructor(host, reading, viewOf, open) {
    this.#reading = reading;
    this.#viewOf = viewOf;
    this.#open = open;
    for (const kind of reading.kinds) {
      const {title, note} = reading.KINDS[kind], scroll = el('div', 'scroll', this.#grid(kind));
      const numbers = reading.heads?.length ? this.#table(kind) : '';
      const section = el('section', 'card', el('h2', '', title), el('p', 'quiet', note), scroll, numbers);
      host.append(set(section, {'aria-label': `${title}: all layers and heads`}));
      showScrolling(scroll, `${title}: all layers and heads`);
    }
  }

  #grid(kind) {
    const {KINDS, maps, weights, headsOf} = this.#reading, {rows, columns} = KINDS[kind], heads = headsOf(kind);
    const grid = el('div', heads.length > 8 ? 'heads many' : 'heads');
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
        canvas.style.aspectRatio = Math.min(2.2, Math.max(0.45, columns.length / rows.length));
        grid.append(weights(map) ? this.#thumb(map, cell('button', head, 'thumb', canvas)) : el('div'));
      }
    });
    return grid;
  }

  #thumb(map, button) {
    const title = this.#reading.titleOf(map);
    set(button, {type: 'button', title, 'aria-label': title});
    button.addEventListener('click', () => this.#open(map));
    button.addEventListener('keydown', event => {
      if (!ARROWS[event.key]) return;
      event.preventDefault();
      const to = this.neighbour(map, ...ARROWS[event.key]);
      if (!to) return;
      this.#open(to);
      this.#thumbs.get(nameOf(to)).button.focus();
    });
    this.#thumbs.set(nameOf(map), {map, button});
    return button;
  }

  /** The map that lies `heads` to the right and `layers` below, or null. */
  neighbour({kind, layer, head}, heads, layers) {
    const names = this.#reading.headsOf(kind);
    const map = {kind, layer: layer + layers, head: names[names.indexOf(head) + heads]};
    return this.#reading.weights(map) ? map : null;
  }

  #table(kind) {
    const rows = this.#reading.heads.filter(head => head.kind === kind), columns = headColumns(rows, this.#reading.unit);
    for (const row of rows) {
      const button = set(el('button', 'open', `${row.layer}.${row.head}`), {
        type: 'button', value: nameOf(row), 'aria-label': `Open ${this.#reading.titleOf(row)}`});
      this.#rows.set(nameOf(row), {map: {kind, layer: row.layer, head: row.head}, button});
    }
    const name = {title: 'Head', hint: 'Layer and head, from 0. Click a row to open its map.',
                  value: row => row.layer * 1000 + row.head, cell: row => this.#rows.get(nameOf(row)).button};
    const {table} = sortableTable({caption: 'Layer.head, and means over the rows of the head’s map',
                                   columns: [name, ...columns], rows});
    table.addEventListener('click', event => {  // also for the button, by pointer or key
      const button = event.target.closest('tbody tr')?.querySelector('.open');
      if (button) this.#open(this.#rows.get(button.value).map);
    });
    const meanings = el('dl', '', ...columns.flatMap(({title, hint}) => [el('dt', '', title), el('dd', '', hint)]));
    const scroll = el('div', 'scroll', table);
    const node = el('details', 'numbers', el('summary', '', 'The heads in numbers'), scroll, meanings);
    showScrolling(scroll, 'The heads in numbers');
    return node;
  }

  paint() {
    for (const {map, button} of this.#thumbs.values()) {
      const {rows, columns} = this.#reading.KINDS[map.kind];
      const size = Math.max(1, Math.ceil(220 / Math.max(rows.length, columns.length)));
      paint(button.firstChild, this.#viewOf(map), size, {gap: size > 12 ? 0.5 : 0});
    }
  }

  /** Marks the map that is open. */
  mark(open) {
    for (const [name, {map, button}] of this.#thumbs) {
      const isOpen = name === nameOf(open);
      button.setAttribute('aria-pressed', isOpen);
      button.tabIndex = isOpen || (map.kind !== open.kind && name.endsWith('-0-0')) ? 0 : -1;
    }
    for (const [name, {button}] of this.#rows)
      name === nameOf(open) ? button.setAttribute('aria-current', 'true') : button.removeAttribute('aria-current');
  }
}
