// The samples of a recording as a small picture: loud parts are tall.

import {el, roomInside, set, whenThemeChanges} from '../page.js';

const HEIGHT = 72;

export class Waveform {
  #sound = null; #parent;
  node = set(el('canvas', 'wave'), {role: 'img'});

  /** `parent` is what it is as wide as. */
  constructor(parent) {
    this.#parent = parent;
    whenThemeChanges(() => this.#draw());
    new ResizeObserver(() => this.#draw()).observe(parent);
  }

  /** Shows {samples, rate}, or nothing where it is null. */
  show(sound) {
    this.#sound = sound;
    this.node.hidden = !sound;
    if (!sound) return;
    const {samples, rate} = sound, loudest = samples.reduce((best, sample, t) => Math.abs(sample) > Math.abs(samples[best]) ? t : best, 0);
    this.node.setAttribute('aria-label', Math.abs(samples[loudest] ?? 0) < 1e-3 ? 'Waveform: silence'
        : `Waveform, the loudest at ${(loudest / rate).toFixed(1)} s`);
    this.#draw();
  }

  #draw() {
    const width = Math.floor(roomInside(this.#parent));
    if (!this.#sound || !(width > 0)) return;
    const {samples} = this.#sound, scale = window.devicePixelRatio || 1, pen = this.node.getContext('2d');
    set(this.node, {width: width * scale, height: HEIGHT * scale});
    pen.scale(scale, scale);
    pen.fillStyle = getComputedStyle(this.node).color;
    const top = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 1e-2), n = samples.length / width;
    for (let x = 0; x < width; ++x) {
      let low = 0, high = 0;
      for (let t = Math.floor(x * n); t < Math.max((x + 1) * n, x * n + 1) && t < samples.length; ++t) {
        low = Math.min(low, samples[t]);
        high = Math.max(high, samples[t]);
      }
      const y = value => HEIGHT / 2 * (1 - 0.94 * value / top);
      pen.fillRect(x, y(high) - 0.5, 1, y(low) - y(high) + 1);
    }
  }
}
