// Fill: what a model puts in the place of masks.

import {button, el, set} from '../page.js';
import {predictionBar} from '../prediction_bar.js';
import {post} from './api.js';
import {field, integer, ModelChoice, Runner, textArea} from './forms.js';

const MASK = '<mask>';

export class FillView {
  #form = el('form', 'card form'); #choice; #text; #top; #runner; #changed;
  #results = set(el('div', 'results masks'), {'aria-live': 'polite'});
  node;

  constructor(models, changed) {
    this.#changed = changed;
    this.#choice = new ModelChoice(models, 'Model');
    this.#text = textArea(4, {placeholder: `It was a ${MASK} day.`, required: true, name: 'text'});
    this.#top = integer(5, {min: 1, max: 100, name: 'top'});
    this.#runner = new Runner(this.#form, 'Fill', signal => this.#run(signal));
    const insert = button('small', `Put ${MASK} here`, () => this.#insert(), {title: 'At the place of the cursor'});
    this.#form.append(this.#choice.node, field('Text', this.#text, `${MASK} stands for what the model fills in.`),
                      el('div', 'buttons', insert), field('Candidates', this.#top), this.#runner.node);
    this.node = el('div', 'view', this.#form, this.#results);
  }

  #insert() {
    this.#text.setRangeText(MASK, this.#text.selectionStart, this.#text.selectionEnd, 'end');
    this.#text.focus();
  }

  async #run(signal) {
    this.#changed();
    const {masks} = await post('fill', {model: this.#choice.id, text: this.#text.value, top: Number(this.#top.value)}, signal);
    this.#results.replaceChildren(...masks.map((mask, i) => this.#cardOf(mask, i, masks.length)));
    this.#runner.tell('');
  }

  #cardOf({candidates}, i, n) {
    const bars = candidates.map(({token, probability, text}) => {
      const bar = predictionBar({token, probability});
      bar.append(button('', [...bar.childNodes], () => this.#take(text, n), {
        title: text, 'aria-label': `Take ${token}: ${text}`}));
      return bar;
    });
    const best = el('p', 'whole', el('bdi', '', candidates[0]?.text ?? ''));
    return el('section', 'card result', el('h2', '', n > 1 ? `Mask ${i + 1}` : 'The mask'), best,
              el('ol', 'likeliest', ...bars), el('p', 'quiet', 'Choose one to put it into the text.'));
  }

  /** Takes a candidate into the text, which had `n` masks. The others are filled again. */
  #take(text, n) {
    this.#text.value = text;
    this.#text.focus();
    n > 1 ? this.#runner.start() : this.#changed();
  }

  get address() {
    return [['model', this.#choice.id], ['text', this.#text.value], ['top', this.#top.value === '5' ? '' : this.#top.value]];
  }
  restore(values) {
    this.#choice.choose(values.get('model'));
    this.#text.value = values.get('text') ?? '';
    this.#top.value = values.get('top') ?? '5';
    if (this.#text.value) this.#runner.start();
  }
}
