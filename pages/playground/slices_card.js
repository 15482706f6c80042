// Where two models differ on the prompt: bits per byte on parts of it, by what its bytes are.

import {el, set} from '../page.js';
import {sliceTable} from '../slice_table.js';
import {post} from './api.js';

const pText = p => p < 0.001 ? 'p < 0.001' : p > 0.995 ? 'p = 1' : `p = ${p.toPrecision(2)}`;

export class SlicesCard {
  #pane = set(el('div', 'pane'), {hidden: true});
  #shown = '';
  node = set(el('section', 'card result slices-card', el('h2', '', 'Where they differ'), this.#pane),
             {'aria-label': 'Where the models differ on the prompt'});

  /** Asks both models about a text. What they cannot say is a sentence in the card. */
  async show(models, text, signal) {
    const wanted = JSON.stringify([models, text]);
    if (wanted === this.#shown) return;
    this.#pane.hidden = !text;
    if (!text) return;
    try {
      const first = await post('slices', {model: models[0], text}, signal);
      const second = await post('slices', {model: models[1], text, baseline: first.parts}, signal);
      this.#fill(models, first, second);
      this.#shown = wanted;
    } catch (error) {
      if (signal.aborted) throw error;
      this.#pane.replaceChildren(el('p', 'quiet', error.message));
    }
  }

  #fill(models, first, second) {
    const rows = ({slices}) => slices.map(slice => ({...slice, ...slice.baseline, value: slice.bits_per_byte}));
    const n = first.parts.bytes[0].length;
    const note = `Bits per byte of the prompt on parts of it. Model 1: ${first.bits_per_byte.toFixed(3)} over all, model 2: ` +
        `${second.bits_per_byte.toFixed(3)}. ` + (n > 1 ? `Intervals and p take the ${n} parts of about 60 bytes as examples; ` +
        'p is corrected for all slices (Holm’s method).' : 'A longer text would show whether they differ.');
    this.#pane.replaceChildren(
        el('p', 'quiet', note),
        sliceTable([{name: models[0], hasBaseline: false, slices: rows(first)},
                    {name: models[1], hasBaseline: n > 1, parts: 'parts', slices: rows(second)}], pText));
  }
}
