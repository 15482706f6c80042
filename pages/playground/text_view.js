// Text: a model goes on with a prompt, and every token says how likely it was and what else could have come. Compare: two
// models do so side by side.

import {el, set} from '../page.js';
import {CompletionPane} from './completion_pane.js';
import {field, ModelChoice, Runner, Sampling, textArea} from './forms.js';
import {SlicesCard} from './slices_card.js';

const idsOf = text => text ? text.split('.').map(Number).filter(Number.isSafeInteger) : null;

/**
 * `n` models go on with one prompt. An address has the prompt as `prompt`, the models as `model` and `model2`, and the
 * tokens that each one goes on from as `ids` and `ids2`, where an alternative was chosen.
 */
class Continuations {
  #form = el('form', 'card form'); #prompt; #sampling = new Sampling(); #runner; #sides; #changed; #written = ''; #slices = null;
  node;

  constructor(n, models, changed) {
    this.#changed = changed;
    this.#prompt = textArea(6, {placeholder: 'It was', name: 'prompt'});
    this.#prompt.addEventListener('input', () => this.#sides.forEach(side => { side.ids = null; }));
    this.#sides = Array.from({length: n}, (_, i) => {
      const side = {suffix: i ? `${i + 1}` : '', ids: null};
      side.choice = new ModelChoice(models, n > 1 ? `Model ${i + 1}` : 'Model', () => { side.ids = null; });
      side.pane = new CompletionPane(ids => this.#goOn(side, ids));
      side.title = el('h2');
      if (i) side.choice.choose(models[Math.min(i, models.length - 1)].id);
      return side;
    });
    this.#form.addEventListener('submit', () => this.#beginAgain());
    this.#runner = new Runner(this.#form, 'Go on', signal => this.#run(this.#sides, signal));
    const hint = 'Ctrl+Enter goes on. With 0 tokens the prompt alone gets its probabilities.';
    this.#form.append(...this.#sides.map(({choice}) => choice.node), field('Prompt', this.#prompt, hint),
                      this.#sampling.node, this.#runner.node);
    const panes = this.#sides.map(({pane, title}) => {
      const card = el('section', 'card result', title, pane.node);
      return set(card, {'aria-label': 'What the model makes of the prompt'});
    });
    if (n > 1) panes.push((this.#slices = new SlicesCard()).node);
    this.node = el('div', n > 1 ? 'view pair' : 'view', this.#form, el('div', 'results', ...panes));
    this.#name();
  }

  #name() {
    for (const {choice, title} of this.#sides) title.textContent = choice.id;
  }

  /** The button writes after the prompt as it stands. Where nothing has changed since the last text, it writes another one. */
  #beginAgain() {
    if (JSON.stringify(this.#wanted) === this.#written) this.#sampling.reseed();
    for (const side of this.#sides) side.ids = null;
  }
  get #wanted() { return [this.#sides.map(({choice}) => choice.id), this.#prompt.value, this.#sampling.values]; }

  async #run(sides, signal) {
    this.#name();
    this.#written = JSON.stringify(this.#wanted);
    this.#changed();
    const settings = this.#sampling.values;
    this.#runner.tell('Writing …');
    const runs = sides.map(({choice, pane, ids}) => pane.run(choice.id, ids ?? this.#prompt.value, settings, signal));
    const failed = (await Promise.allSettled(runs)).find(({status}) => status === 'rejected');
    if (failed) throw failed.reason;
    await this.#slices?.show(this.#sides.map(({choice}) => choice.id), this.#prompt.value, signal);
    this.#runner.tell('Finished.');
  }

  #goOn(side, ids) {
    side.ids = ids;
    return this.#runner.start(signal => this.#run([side], signal));
  }

  get address() {
    return [...this.#sides.map(({suffix, choice}) => [`model${suffix}`, choice.id]), ['prompt', this.#prompt.value],
            ...this.#sampling.address, ...this.#sides.map(({suffix, ids}) => [`ids${suffix}`, ids?.join('.')])];
  }
  /** Shows what an address says, and goes on if it has a prompt. */
  restore(values) {
    this.#prompt.value = values.get('prompt') ?? '';
    this.#sampling.restore(values);
    for (const side of this.#sides) {
      if (values.has(`model${side.suffix}`)) side.choice.choose(values.get(`model${side.suffix}`));
      side.ids = idsOf(values.get(`ids${side.suffix}`));
    }
    if (values.has('prompt') || values.has('ids')) this.#runner.start();
  }
}

export class TextView extends Continuations {
  constructor(models, changed) { super(1, models, changed); }
}
export class CompareView extends Continuations {
  constructor(models, changed) { super(2, models, changed); }
}
