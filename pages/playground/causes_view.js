// Causes: what a model would say after each layer, which parts of the input an answer rests on, what is lost without a part of the
// model, and what brings a lost answer back.

import {causeCards} from '../causes/cause_cards.js';
import {el, option, set} from '../page.js';
import {post} from './api.js';
import {field, FormView, integer, textArea} from './forms.js';
import {PictureField} from './picture_field.js';

// What is shown, by the path that is asked. `fields` are those of the form that the request has beside the input.
const KINDS = {
  lens: {title: 'What it would say after each layer', fields: ['answer', 'position', 'lens']},
  attribute: {title: 'Which parts of the input it rests on', fields: ['answer', 'against', 'position', 'by', 'baseline']},
  ablate: {title: 'What is lost without a part', fields: ['answer', 'without']},
  patch: {title: 'What brings an answer back', fields: ['answer', 'against', 'position'], texts: true},
};
const NAMES = {text: 'Text', corrupt: 'Other text', target: 'Its answer', answer: 'Token or class', against: 'Against', position: 'Place',
               by: 'Gradients', baseline: 'Baseline', without: 'In its place', lens: 'Through'};
const HINTS = {corrupt: 'As many tokens as the text, and another answer.', target: 'Without one, the model writes its own.',
               answer: 'What is followed; else what is right, or the model’s own.', against: 'Another token or class to compare with.',
               position: 'From 0; else the last one.'};
const choices = (...list) => {
  const select = el('select');
  select.append(...list.map(([value, text]) => option(value, text)));
  return select;
};
const line = () => set(el('input'), {type: 'text', spellcheck: false});

export class CausesView extends FormView {
  #models; #fields = {}; #picture;
  #title = el('h2'); #summary = el('p', 'quiet');
  #head = set(el('section', 'card', this.#title, this.#summary), {hidden: true});
  #results = el('div', 'results causes', this.#head);

  constructor(models, changed) {
    const inputs = {
      text: textArea(3, {placeholder: 'It was late.'}),
      show: choices(...Object.entries(KINDS).map(([kind, {title}]) => [kind, title])),
      corrupt: textArea(2), target: textArea(2), answer: line(), against: line(), position: integer('', {}),
      by: choices(['integrated_gradients', 'integrated'], ['gradient_input', 'gradient × input']),
      baseline: choices(['zero', 'zero'], ['mean', 'mean of all tokens']), without: choices(['zero', 'zero'], ['mean', 'its mean']),
      lens: choices(['plain', 'the norm and the head'], ['trained', 'trained maps, too']),
    };
    super(models, changed, 'Look', inputs, () => this.#fit());
    this.#models = models;
    for (const [name, title] of Object.entries(NAMES)) this.#fields[name] = field(title, inputs[name], HINTS[name]);
    const {text, corrupt, target, ...others} = this.#fields;
    this.#picture = new PictureField(this.form, read => this.runner.start(async signal => {
      await read();
      await this.run(signal);
    }));
    this.form.append(this.choice.node, field('Show', inputs.show), text, this.#picture.node, corrupt, target,
                     el('div', 'grid', ...Object.values(others)), this.runner.node);
    inputs.show.addEventListener('change', () => this.#fit());
    this.node = el('div', 'view', this.form, this.#results);
    this.#fit();
  }

  get #sees() { return this.choice.model.zoo.can.includes('predict_image'); }

  /** Shows the fields that the model and the choice have. */
  #fit() {
    const {show, position} = this.inputs, {fields, texts} = KINDS[show.value], sees = this.#sees;
    for (const choice of show.options) choice.disabled = sees && Boolean(KINDS[choice.value].texts);
    if (sees && texts) {
      show.value = 'lens';
      return this.#fit();
    }
    const writes = this.choice.model.zoo.can.includes('translate');
    const has = {text: !sees, corrupt: Boolean(texts), target: writes, ...Object.fromEntries(fields.map(name => [name, true]))};
    has.lens &&= this.choice.model.zoo.can.includes('trained_lens');
    for (const [name, node] of Object.entries(this.#fields)) node.hidden = !has[name];
    this.#picture.node.hidden = !sees;
    this.inputs.baseline.disabled = this.inputs.by.value !== 'integrated_gradients';
    position.closest('.field').hidden ||= sees;
  }

  /** What the server is asked: the fields that are there and filled. */
  #request() {
    const kind = this.inputs.show.value, body = {model: this.choice.id, view: true};
    if (this.#sees) body.image = this.#picture.uri;
    else body[kind === 'patch' ? 'clean' : 'text'] = this.inputs.text.value;
    for (const name of ['corrupt', 'target', ...KINDS[kind].fields]) {
      const {value} = this.inputs[name];
      if (this.#fields[name].hidden || value === '' || (name === 'baseline' && body.by !== 'integrated_gradients')) continue;
      body[name === 'without' ? 'by' : name] = name === 'position' ? Number(value) : value;
    }
    return {kind, body};
  }

  async run(signal) {
    this.#fit();
    const image = this.#sees ? await this.#picture.decoded() : null;
    if (!image && !this.inputs.text.value) throw new Error('Write a text first.');
    this.changed();
    this.runner.tell('Looking …');
    const {kind, body} = this.#request(), {view} = await post(kind, body, signal);
    const size = image && [image.naturalWidth, image.naturalHeight];
    const pictures = (view.pictures ?? []).map(picture => ({...picture, size, address: this.#picture.uri}));
    this.#title.textContent = KINDS[kind].title;
    this.#summary.textContent = view.summary;
    this.#head.hidden = false;
    this.#results.replaceChildren(this.#head, ...causeCards({...view, pictures}));
    this.runner.tell(image && this.#picture.isLarge ? 'The picture is too large for a link: a link restores all but the picture.' : '');
  }

  /** With the picture or the texts, whichever the model reads. */
  get address() {
    const unread = this.#sees ? ['text', 'corrupt', 'target'] : ['picture'];
    return [...super.address, this.#picture.address].filter(([name]) => !unread.includes(name));
  }
  /** Whether a model of the server reads such an example. */
  suits(values) { return this.#models.some(({zoo}) => zoo.can.includes('predict_image') === 'picture' in values); }
  restore(values) {
    this.#picture.restore(values);
    this.choice.choose(values.get('model'));
    if (this.#sees !== values.has('picture') && (values.has('picture') || values.has('text'))) {
      const fits = this.#models.find(({zoo}) => zoo.can.includes('predict_image') === values.has('picture'));
      if (fits) values.set('model', fits.id);
    }
    if (this.#sees) values.delete('text');  // of another model; a picture begins below
    super.restore(values);
    this.#fit();
    if (this.#sees && this.#picture.uri) this.runner.start();
  }
}
