// Fill: what a model puts in the place of masks.

import {button, el, set} from '../page.js';
import {predictionBar} from '../prediction_bar.js';
import {post} from './api.js';
import {field, FormView, integer, textArea} from './forms.js';

const MASK = '<mask>';

export class FillView extends FormView {
  #results = set(el('div', 'results masks'), {'aria-live': 'polite'});

  constructor(models, changed) {
    super(models, changed, 'Fill', {text: textArea(4, {placeholder: `It was a ${MASK} day.`, required: true}),
                                    top: integer(5, {min: 1, max: 100})});
    const insert = button('small', `Put ${MASK} here`, () => this.#insert(), {title: 'At the place of the cursor'});
    this.form.append(this.choice.node, field('Text', this.inputs.text, `${MASK} stands for what the model fills in.`),
                     el('div', 'buttons', insert), field('Candidates', this.inputs.top), this.runner.node);
    this.node = el('div', 'view', this.form, this.#results);
  }

  #insert() {
    const {text} = this.inputs;
    text.setRangeText(MASK, text.selectionStart, text.selectionEnd, 'end');
    text.focus();
  }

  async run(signal) {
    this.changed();
    const {text, top} = this.inputs;
    const {masks} = await post('fill', {model: this.choice.id, text: text.value, top: Number(top.value)}, signal);
    this.#results.replaceChildren(...masks.map((mask, i) => this.#cardOf(mask, i, masks.length)));
    this.runner.tell('');
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
    this.inputs.text.value = text;
    this.inputs.text.focus();
    n > 1 ? this.runner.start() : this.changed();
  }
}
