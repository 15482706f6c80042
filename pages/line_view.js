// Attention as lines between two columns of tokens: from each token to the tokens it attends to, for one or more heads.

import {MOST, weightText} from './heat_map.js';
import {el, oklch, plain, set, theme, tokenLabel} from './page.js';

// Lines below a share of the scale are left out; of one token more are shown.
const LEAST = 0.05, LEAST_OF_ONE = 0.01;
const STEPS = 20;  // widths of lines

/** The colour of head `index` of `n`: hues with equal distances, every second one darker. */
export function headColour(index, n) {
  const lightness = theme() === 'dark' ? 0.8 - 0.1 * (index % 2) : 0.6 - 0.12 * (index % 2);
  return `rgb(${oklch(lightness, 0.15, 262 + 360 * index / n).join(' ')})`;
}

/**
 * Two columns of tokens and the lines between them. A pointer over a token shows its lines alone; a click or the arrow
 * keys choose it, and Escape leaves it. `readout` tells the weights of the token.
 */
export class LineView {
  #plot; #readout; #view = null; #svg; #sides; #chosen = null; #pointed = null; #rowHeight = 24;

  constructor(plot, readout) {
    this.#plot = plot;
    this.#readout = readout;
    plot.innerHTML = '<svg aria-hidden="true"></svg>';
    this.#svg = plot.firstChild;
    this.#sides = ['from', 'to'].map((name, side) => {
      const heading = el('p', 'side-name'), list = el('div', `side ${name}`);
      list.setAttribute('role', 'group');
      list.addEventListener('pointerover', event => this.#point(event, side));
      list.addEventListener('pointerleave', () => this.#point(null, side));
      list.addEventListener('click', event => this.#click(event, side));
      list.addEventListener('keydown', event => this.#key(event, side));
      return {heading, list};
    });
    const [from, to] = this.#sides;
    plot.replaceChildren(from.heading, el('span'), to.heading, from.list, this.#svg, to.list);
  }

  /**
   * Draws a view: {rows, columns, titles: names of both columns, top: the weight of the strongest line, heads: list of
   * {values, colour}} with integers as in heat_map.js. `room` is the width in pixels, `height` the most pixels for the
   * rows, or Infinity. The chosen token stays chosen.
   */
  show(view, room, height = Infinity) {
    const longest = Math.max(view.rows.length, view.columns.length);
    const least = Math.min(40, Math.max(matchMedia('(pointer: coarse)').matches ? 32 : 24, 360 / longest));
    this.#view = view;
    this.#rowHeight = Math.min(least, height / longest);
    const labelWidth = Math.min(170, Math.floor(room * 0.3));
    this.#plot.style.setProperty('--row', `${this.#rowHeight}px`);
    this.#plot.style.setProperty('--label', `${labelWidth}px`);
    this.#plot.style.fontSize = `${Math.min(15, this.#rowHeight * 0.72)}px`;
    const width = Math.max(60, Math.min(560, room - 2 * labelWidth - 16));
    for (const [key, value] of [['width', width], ['height', longest * this.#rowHeight]])
      this.#svg.setAttribute(key, value);
    [view.rows, view.columns].forEach((tokens, side) => {
      const {heading, list} = this.#sides[side];
      heading.textContent = view.titles[side];
      list.setAttribute('aria-label', view.titles[side]);
      list.replaceChildren(...tokens.map((token, i) =>
          set(el('button', 'end', tokenLabel(token), el('span', 'share')), {type: 'button', value: i})));
    });
    if (this.#chosen && !this.#buttonOf(this.#chosen)) this.#chosen = null;
    this.#pointed = null;
    this.#draw();
  }
  forget() { this.#chosen = this.#pointed = null; }

  #buttonOf({side, index}) { return this.#sides[side].list.children[index]; }

  #point(event, side) {
    const button = event?.target.closest('.end');
    const pointed = button && event.pointerType === 'mouse' ? {side, index: Number(button.value)} : null;
    if (pointed?.side === this.#pointed?.side && pointed?.index === this.#pointed?.index) return;
    this.#pointed = pointed;
    this.#draw();
  }

  #click(event, side) {
    const button = event.target.closest('.end');
    if (!button) return;
    const index = Number(button.value), again = this.#chosen?.side === side && this.#chosen.index === index;
    this.#pointed = null;
    this.#choose(again ? null : {side, index});
  }

  #choose(token) {
    this.#chosen = token;
    this.#draw();
  }

  #key(event, side) {
    const index = Number(event.target.closest('.end')?.value ?? 0);
    if (event.key === 'Escape' && this.#chosen) {
      event.preventDefault();
      return this.#choose(null);
    }
    const step = {ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-side, 0], ArrowRight: [1 - side, 0]}[event.key];
    if (!step) return;
    event.preventDefault();
    const to = side + step[0], last = this.#sides[to].list.children.length - 1;
    const token = {side: to, index: Math.min(last, Math.max(0, index + step[1]))};
    this.#pointed = null;
    this.#choose(token);
    this.#buttonOf(token).focus();
  }

  /** The cells whose lines are shown, as [t, s]. */
  #cells() {
    const {rows, columns} = this.#view, shown = this.#pointed ?? this.#chosen;
    if (shown?.side === 0) return columns.map((_, s) => [shown.index, s]);
    if (shown) return rows.map((_, t) => [t, shown.index]);
    return rows.flatMap((_, t) => columns.map((_, s) => [t, s]));
  }

  #draw() {
    const {columns, heads, top} = this.#view, shown = this.#pointed ?? this.#chosen, S = columns.length;
    const least = top * (shown ? LEAST_OF_ONE : LEAST), cells = this.#cells(), width = this.#svg.width.baseVal.value;
    const strength = Math.min(1, 2 / Math.sqrt(heads.length));  // many heads would hide each other
    // Lines of one head and one width are one element: a page of a long text has thousands of lines.
    const nodes = heads.flatMap(({values, colour}, h) => {
      const shift = heads.length > 1 ? (h / (heads.length - 1) - 0.5) * 0.5 * this.#rowHeight : 0;
      const y = i => ((i + 0.5) * this.#rowHeight + shift).toFixed(1), paths = Array(STEPS + 1).fill('');
      for (const [t, s] of cells) {
        const value = values[t * S + s];
        if (value < least) continue;
        const step = Math.min(STEPS, Math.max(1, Math.round(STEPS * value / top)));
        paths[step] += `M0 ${y(t)}C${width / 2} ${y(t)} ${width / 2} ${y(s)} ${width} ${y(s)}`;
      }
      return paths.flatMap((d, step) => d ? [this.#path(d, step / STEPS, colour, strength)] : []);
    });
    this.#svg.replaceChildren(...nodes);
    this.#mark(shown);
    this.#tell(shown);
  }

  #path(d, share, colour, strength) {
    const path = document.createElementNS(this.#svg.namespaceURI, 'path');
    for (const [key, value] of Object.entries({d, stroke: colour,
                                               'stroke-width': ((0.6 + 4.4 * share) * strength).toFixed(2),
                                               'stroke-opacity': ((0.15 + 0.8 * share) * strength).toFixed(2)}))
      path.setAttribute(key, value);
    return path;
  }

  /** The mean over the shown heads of the weights of a token's row or column. */
  #weightsOf({side, index}) {
    const {rows, columns, heads} = this.#view, S = columns.length;
    const at = side === 0 ? i => index * S + i : i => i * S + index;
    return (side === 0 ? columns : rows).map(
        (_, i) => heads.reduce((sum, {values}) => sum + values[at(i)], 0) / Math.max(1, heads.length));
  }

  /** Marks the shown token, and writes its weights beside the tokens of the other side. */
  #mark(shown) {
    const weights = shown ? this.#weightsOf(shown) : [];
    this.#sides.forEach(({list}, side) => [...list.children].forEach((button, i) => {
      const weight = shown && side !== shown.side ? weights[i] : 0;
      button.classList.toggle('on', Boolean(shown && side === shown.side && i === shown.index));
      button.setAttribute('aria-pressed', this.#chosen?.side === side && this.#chosen.index === i);
      button.tabIndex = i === (this.#chosen?.side === side ? this.#chosen.index : 0) ? 0 : -1;
      button.style.setProperty('--share', weight / MOST);
      button.lastChild.textContent = weight >= MOST * 0.005 ? weightText(weight) : '';
    }));
  }

  #tell(shown) {
    const {rows, columns, heads, top} = this.#view;
    if (!heads.length) return this.#readout.replaceChildren('Choose a head to see its lines.');
    if (!shown) {
      const hint = `Lines from ${(LEAST * top / MOST).toFixed(2)} on. Choose a token to see its lines alone.`;
      return this.#readout.replaceChildren(el('span', 'hint', hint));
    }
    const own = [rows, columns][shown.side][shown.index], others = [columns, rows][shown.side];
    const best = this.#weightsOf(shown).map((weight, i) => ({weight, i})).sort((a, b) => b.weight - a.weight)
        .slice(0, 3).filter(({weight}) => weight >= MOST * 0.005);
    this.#readout.replaceChildren(
        el('b', '', el('bdi', '', plain(own))), shown.side === 0 ? ' → ' : ' ← ',
        ...best.flatMap(({weight, i}, rank) =>
            [rank ? ', ' : '', el('b', '', el('bdi', '', plain(others[i]))), ` ${weightText(weight)}`]),
        el('span', 'hint', heads.length > 1 ? `mean of ${heads.length} heads` : ''));
  }
}
