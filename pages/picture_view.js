// A picture with the weights of one map on it: where one patch of the picture, or one object query, looks.

import {ARROWS, fraction} from './heat_map.js';
import {el, makeRamp, oklch, theme} from './page.js';

// From the card's colour to orange, which few pictures have much of, and which differs from the mark of the chosen
// patch for eyes of every kind.
const RAMPS = {
  light: makeRamp(t => oklch(0.972 - 0.372 * t, 0.006 + 0.175 * t ** 0.8, 48)),
  dark: makeRamp(t => oklch(0.255 + 0.525 * t, 0.018 + 0.142 * t, 52)),
};
/** The colour of a share between 0 and 1, where the weights are shown alone. */
export const heatColour = share => RAMPS[theme()][Math.round(255 * share)];
const ON_PICTURE = oklch(0.74, 0.18, 52).join(' ');
/** The colour that covers a picture where a patch gets this share. */
export const heatOnPicture = share => `rgb(${ON_PICTURE} / ${(0.88 * share).toFixed(3)})`;
export const percent = weight => `${(100 * weight).toFixed(1)} %`;

/**
 * The picture `image`. A patch grid of `rows` × `columns` covers its `part`: {x, y, width, height} as shares of the
 * picture. `choose(patch)` is called for a patch at which the reader clicks, `look(patch or null)` for the one under
 * the pointer, and `step(rows, columns)` for an arrow key; Escape calls choose(null).
 */
export class PictureView {
  #image; #grid; #canvas = el('canvas'); #chosen = el('div', 'mark chosen'); #seen = el('div', 'mark seen');
  #object = el('div', 'mark object');

  constructor(host, image, grid, {choose, look, step}) {
    this.#image = image;
    this.#grid = grid;
    this.#canvas.setAttribute('aria-hidden', 'true');
    host.replaceChildren(this.#canvas, this.#object, this.#chosen, this.#seen);
    host.addEventListener('click', event => choose(this.#patchAt(event), this.#pointAt(event)));
    host.addEventListener('pointermove', event => { if (event.pointerType === 'mouse') look(this.#patchAt(event)); });
    host.addEventListener('pointerleave', () => look(null));
    host.addEventListener('keydown', event => {
      if (event.key !== 'Escape' && !ARROWS[event.key]) return;
      event.preventDefault();
      if (event.key === 'Escape') return choose(null, null);
      const [across, down] = ARROWS[event.key];
      step(down, across);
    });
  }

  /** Draws weights, one for each patch, `width` CSS pixels wide; `top` has the strongest colour. */
  show({values, top, over}, width) {
    const {rows, columns, part} = this.#grid, {naturalWidth, naturalHeight} = this.#image;
    const height = width * naturalHeight / naturalWidth, density = Math.max(2, devicePixelRatio || 1);
    const [W, H] = [Math.round(width * density), Math.round(height * density)];
    const sheet = new OffscreenCanvas(W, H), pen = sheet.getContext('2d');
    pen.imageSmoothingEnabled = naturalWidth > W / 3;  // of a small picture every pixel can be seen
    // Without colours and with little contrast: the strength of the orange tells the weight on bright and on dark places.
    pen.filter = over ? 'grayscale(1) contrast(.35)' : 'grayscale(1) opacity(.25)';
    pen.drawImage(this.#image, 0, 0, W, H);
    pen.filter = 'none';
    this.#veilAround(pen, W, H);
    const x = column => Math.round((part.x + part.width * column / columns) * W);
    const y = row => Math.round((part.y + part.height * row / rows) * H);
    values.forEach((value, i) => {
      const row = Math.floor(i / columns), column = i % columns, share = fraction(value, top);
      pen.fillStyle = over ? heatOnPicture(share) : heatColour(share);
      pen.fillRect(x(column), y(row), x(column + 1) - x(column), y(row + 1) - y(row));
    });
    Object.assign(this.#canvas, {width: W, height: H});
    Object.assign(this.#canvas.style, {width: `${width}px`, height: `${height}px`});
    this.#canvas.getContext('bitmaprenderer').transferFromImageBitmap(sheet.transferToImageBitmap());
  }

  /** Dims what the model does not see. */
  #veilAround(pen, W, H) {
    const {x, y, width, height} = this.#grid.part;
    pen.fillStyle = theme() === 'light' ? 'rgb(255 255 255 / .72)' : 'rgb(15 17 21 / .72)';
    const outside = new Path2D();
    outside.rect(0, 0, W, H);
    outside.rect(x * W, y * H, width * W, height * H);
    pen.fill(outside, 'evenodd');
  }

  /** Marks the chosen patch, the one under the pointer, and a box in shares of the picture; null: none. */
  mark({chosen = null, seen = null, object = null}) {
    this.#put(this.#chosen, this.#boxOf(chosen));
    this.#put(this.#seen, this.#boxOf(seen));
    this.#put(this.#object, object);
  }

  #boxOf(patch) {
    if (patch === null) return null;
    const {rows, columns, part} = this.#grid, width = part.width / columns, height = part.height / rows;
    return {x: part.x + width * (patch % columns), y: part.y + height * Math.floor(patch / columns), width, height};
  }

  #put(node, box) {
    node.hidden = !box;
    if (!box) return;
    const text = share => `${100 * share}%`;
    Object.assign(node.style, {left: text(box.x), top: text(box.y), width: text(box.width), height: text(box.height)});
  }

  /** Where an event is, in shares of the picture. */
  #pointAt(event) {
    const box = this.#canvas.getBoundingClientRect();
    return {x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.height};
  }
  #patchAt(event) {
    const {rows, columns, part} = this.#grid, {x, y} = this.#pointAt(event);
    const column = Math.floor((x - part.x) / part.width * columns), row = Math.floor((y - part.y) / part.height * rows);
    return row >= 0 && column >= 0 && row < rows && column < columns ? row * columns + column : null;
  }
}
