// A map with a value for each pair of residues: distances, or a model's errors.

import {ARROWS} from '../heat_map.js';
import {colour, el, rampGradient, set} from '../page.js';

const MOST = 600;  // pixels of a side; of longer structures some residues are drawn

/**
 * A map is {name, hint, size, top, value: (i, j) → Å or null}; what is near or sure is dark. `choose(pair or null)` is
 * called for the pair under the pointer or the keys.
 */
export class PairMap {
  node; #map; #canvas = el('canvas'); #cursor = el('div', 'cursor'); #ramp = el('span', 'ramp'); #field; #pair = null;

  constructor(map, choose) {
    this.#map = map;
    const {name, hint, size, top} = map;
    this.#field = set(el('div', 'pairs', this.#canvas, this.#cursor), {tabIndex: 0, 'aria-label': `${name}: the arrow keys go to pairs`});
    this.#field.setAttribute('role', 'application');
    this.#canvas.setAttribute('aria-hidden', 'true');
    this.#cursor.hidden = true;
    this.node = el('figure', 'map', el('figcaption', '', el('b', '', name), ' ', el('span', 'quiet', hint)), this.#field,
                   el('div', 'legend', '0 Å', this.#ramp, `≥ ${top} Å`));
    const at = event => {
      const box = this.#canvas.getBoundingClientRect();
      return [event.clientY - box.top, event.clientX - box.left].map(x => Math.min(size - 1, Math.max(0, Math.floor(x / box.width * size))));
    };
    this.#field.addEventListener('pointermove', event => { if (event.pointerType === 'mouse') choose(at(event)); });
    this.#field.addEventListener('pointerdown', event => choose(at(event)));
    this.#field.addEventListener('keydown', event => {
      if (event.key !== 'Escape' && !ARROWS[event.key]) return;
      event.preventDefault();
      if (event.key === 'Escape') return choose(null);
      const [across, down] = ARROWS[event.key], [i, j] = this.#pair ?? [0, 0], step = event.shiftKey ? 10 : 1;
      choose([i + step * down, j + step * across].map(x => Math.min(size - 1, Math.max(0, x))));
    });
  }

  paint() {
    const {size, top, value} = this.#map, side = Math.min(size, MOST);
    const shades = Array.from({length: 65}, (_, k) => colour(1 - k / 64)), sheet = new OffscreenCanvas(side, side), pen = sheet.getContext('2d');
    for (let y = 0; y < side; ++y)
      for (let x = 0; x < side; ++x) {
        const known = value(Math.floor(y * size / side), Math.floor(x * size / side));
        if (known === null) continue;
        pen.fillStyle = shades[Math.round(64 * Math.min(1, known / top))];
        pen.fillRect(x, y, 1, 1);
      }
    Object.assign(this.#canvas, {width: side, height: side});
    this.#canvas.getContext('bitmaprenderer').transferFromImageBitmap(sheet.transferToImageBitmap());
    this.#ramp.style.background = rampGradient().replace('to right', 'to left');
  }

  mark(pair) {
    this.#pair = pair;
    this.#cursor.hidden = !pair;
    if (!pair) return;
    const {size} = this.#map, [top, left] = pair.map(i => `${100 * (i + 0.5) / size}%`);
    Object.assign(this.#cursor.style, {top, left});
  }
}
