// What the forms of all views are made of: fields, the choice of a model, settings of sampling, and the button that runs.

import {button, el, option, set} from '../page.js';

let n_fields = 0;

/** An input under its name; `hint` explains it. */
export function field(name, input, hint = '') {
  input.id ||= `field-${++n_fields}`;
  const label = set(el('label', '', name), {htmlFor: input.id});
  const node = el('div', 'field', label, input);
  if (hint) {
    const note = set(el('p', 'quiet note', hint), {id: `${input.id}-note`});
    input.setAttribute('aria-describedby', note.id);
    node.append(note);
  }
  return node;
}

/** A text of several lines, with room for at least `rows`. */
export function textArea(rows, values) {
  const node = set(el('textarea'), {rows, spellcheck: false, ...values});
  node.style.setProperty('--rows', rows);
  return node;
}

export const integer = (value, values) => set(el('input'), {type: 'number', min: 0, step: 1, value, ...values});

const sizes = [[1e9, 'B'], [1e6, 'M'], [1e3, 'K']];
/** A number of parameters: "10.8M". */
export function parametersText(n) {
  const [unit, letter] = sizes.find(([size]) => n >= size) ?? [1, ''];
  return `${n >= 100 * unit || unit === 1 ? Math.round(n / unit) : (n / unit).toFixed(1)}${letter}`;
}

/** How much a model reads: "up to 256 tokens", "up to 30 s"; '' for models of pictures. */
export function readsText({max_length: tokens, max_seconds: seconds, can}) {
  if (seconds) return `up to ${seconds} s`;
  return tokens && !can.includes('predict_image') ? `up to ${tokens} tokens` : '';
}

/** What the server says of a model: its family, its size, how much it reads. */
function factsOf({zoo}) {
  const size = zoo.parameters && `${parametersText(zoo.parameters)} parameters`;
  return [zoo.family, size, readsText(zoo)].filter(Boolean).join(' · ');
}

/** The choice among models, with the facts of the chosen one under it. */
export class ModelChoice {
  #models; #select = el('select'); #facts;
  node;

  constructor(models, name, onChange = () => {}) {
    this.#models = models;
    this.#select.append(...models.map(({id}) => option(id, id)));
    this.node = field(name, this.#select, ' ');
    this.#facts = this.node.lastChild;
    this.#select.addEventListener('change', () => { this.#tell(); onChange(); });
    this.#tell();
  }
  get id() { return this.#select.value; }
  get model() { return this.#models.find(({id}) => id === this.id); }
  /** Chooses the model of this name, if it is there. */
  choose(id) {
    if (this.#models.some(model => model.id === id)) this.#select.value = id;
    this.#tell();
  }
  #tell() { this.#facts.textContent = factsOf(this.model); }
}

// The settings of sampling. `name` is the one in requests and addresses; an empty field leaves a setting to the server.
const SETTINGS = [
  {name: 'max_tokens', title: 'Tokens', value: 60, min: 0, max: 100000, hint: 'How many are written at most.'},
  {name: 'temperature', title: 'Temperature', value: 0.8, min: 0, max: 2, step: 0.05,
   hint: '0 takes the likeliest token each time.'},
  {name: 'top_p', title: 'Top-p', value: '', min: 0, max: 1, step: 0.01,
   hint: 'Only the likeliest tokens that together have this probability.'},
  {name: 'top_k', title: 'Top-k', value: '', min: 0, max: 1000000, hint: 'Only so many of the likeliest tokens.', ours: true},
  {name: 'min_p', title: 'Min-p', value: '', min: 0, max: 1, step: 0.01, ours: true,
   hint: 'Only tokens with at least this share of the likeliest one’s probability.'},
  {name: 'repetition_penalty', title: 'Repetition', value: '', min: 0.1, max: 5, step: 0.05, ours: true,
   hint: 'Above 1, tokens that were there become less likely.'},
  {name: 'seed', title: 'Seed', value: null, min: 0, max: 2 ** 31 - 1,
   hint: 'The same seed writes the same text again.'},
];
const newSeed = () => Math.floor(Math.random() * 1e6);

/** Fields for the settings of sampling. OpenAI's own are all that a chat has. */
export class Sampling {
  #inputs = new Map();
  #stop = el('input');
  node = el('details', 'settings', el('summary', '', 'Settings'));

  constructor({only_openai = false, max_tokens = 60} = {}) {
    const grid = el('div', 'grid');
    for (const setting of SETTINGS) {
      if (only_openai && setting.ours) continue;
      const {name, title, min, max, step = 1, hint} = setting;
      const input = set(el('input'), {type: 'number', inputMode: 'decimal', min, max, step, name, title: hint});
      input.value = this.#defaultOf(setting, max_tokens);
      input.dataset.initial = input.value;
      this.#inputs.set(name, input);
      grid.append(field(title, input));
    }
    this.#inputs.get('seed').parentElement.append(button('small', 'another', () => this.reseed(), {
      title: 'Another seed writes another text', 'aria-label': 'Another seed'}));
    grid.append(field('Stop at', set(this.#stop, {type: 'text', name: 'stop', spellcheck: false,
                                                   title: 'The text ends before this; \\n is the end of a line.'})));
    this.node.append(grid);
  }
  #defaultOf({name, value}, max_tokens) {
    return String(name === 'seed' ? newSeed() : name === 'max_tokens' ? max_tokens : value);
  }
  reseed() { this.#inputs.get('seed').value = newSeed(); }

  /** The settings for a request. */
  get values() {
    const given = [...this.#inputs].filter(([, input]) => input.value !== '').map(([name, {value}]) => [name, Number(value)]);
    const stop = this.#stop.value.replaceAll('\\n', '\n');
    return {...Object.fromEntries(given), ...stop ? {stop} : {}};
  }
  /** The settings that differ from the page's own, and the seed, for the address. */
  get address() {
    const changed = [...this.#inputs].filter(([name, {value, dataset}]) => name === 'seed' || value !== dataset.initial);
    return [...changed.map(([name, {value}]) => [name, value === '' ? 'none' : value]), ['stop', this.#stop.value]];
  }
  restore(values) {
    for (const [name, input] of this.#inputs) {
      const value = values.get(name);
      if (value !== null) input.value = value === 'none' ? '' : value;
      else if (name !== 'seed') input.value = input.dataset.initial;
    }
    this.#stop.value = values.get('stop') ?? '';
  }
}

/**
 * The buttons that start `work(signal)` and stop it, the state of the work, and its error in one line. Ctrl+Enter in the
 * form starts, Escape stops.
 */
export class Runner {
  #form; #work; #start; #stop; #control = null;
  #status = set(el('p', 'quiet state'), {role: 'status'});
  #problem = set(el('p', 'problem'), {role: 'alert', hidden: true});
  node;

  constructor(form, title, work) {
    this.#form = form;
    this.#work = work;
    form.noValidate = true;  // start() does it, because the browser shows no mistake in settings that are folded
    this.#start = set(el('button', 'main', title), {type: 'submit'});
    this.#stop = button('', 'Stop', () => this.stop(), {hidden: true});
    this.node = el('div', 'run', el('div', 'buttons', this.#start, this.#stop), this.#problem, this.#status);
    form.addEventListener('submit', event => { event.preventDefault(); this.start(); });
    form.addEventListener('keydown', event => {
      if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      form.requestSubmit();
    });
    addEventListener('keydown', event => {
      if (event.key === 'Escape' && this.#control && !event.defaultPrevented) this.stop();
    });
  }
  get isRunning() { return this.#control !== null; }
  tell(text) { this.#status.textContent = text; }
  stop() { this.#control?.abort(); }

  /** Does the work, instead of what is being done. `work` in place of the usual one. */
  async start(work = this.#work) {
    for (const input of this.#form.querySelectorAll(':invalid')) input.closest('details')?.setAttribute('open', '');
    if (!this.#form.reportValidity()) return;
    this.stop();
    const control = this.#control = new AbortController();
    this.#show('');
    this.#stop.hidden = false;
    try {
      await work(control.signal);
    } catch (error) {
      if (control.signal.aborted) { if (this.#control === control) this.tell('Stopped.'); }
      else this.#show(error.message);
    } finally {
      if (this.#control === control) {
        this.#control = null;
        if (document.activeElement === this.#stop) this.#start.focus();
        this.#stop.hidden = true;
      }
    }
  }
  #show(problem) {
    this.#problem.hidden = !problem;
    this.#problem.textContent = problem;
    this.tell('');
  }
}

/**
 * A view with a form: the choice of a model and `inputs`, {name: input}, whose values are in the address where they are not
 * the usual ones. It implements run(signal), and begins by itself where an address fills the first input.
 */
export class FormView {
  form = el('form', 'card form'); choice; runner; inputs; changed;
  #usual;
  node;

  constructor(models, changed, title, inputs, onChange) {
    this.changed = changed;
    this.inputs = inputs;
    this.choice = new ModelChoice(models, 'Model', onChange);
    this.runner = new Runner(this.form, title, signal => this.run(signal));
    for (const [name, input] of Object.entries(inputs)) input.name = name;
    this.#usual = Object.values(inputs).map(({value}) => value);
  }
  get address() {
    const values = Object.values(this.inputs).map(({name, value}, i) => [name, value === this.#usual[i] ? '' : value]);
    return [['model', this.choice.id], ...values];
  }
  restore(values) {
    const all = Object.values(this.inputs);
    this.choice.choose(values.get('model'));
    all.forEach((input, i) => { input.value = values.get(input.name) ?? this.#usual[i]; });
    if (all[0].value) this.runner.start();
  }
}

/** Tells people who do not see the page what is written, in pieces of a moment each: single tokens would be a stutter. */
export class Announcer {
  #unsaid = ''; #timer = null;
  node = set(el('div', 'heard'), {'aria-live': 'polite'});

  add(text) {
    this.#unsaid += text;
    this.#timer ??= setTimeout(() => this.#say(), 1500);
  }
  clear() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#unsaid = '';
    this.node.replaceChildren();
  }
  #say() {
    this.#timer = null;
    this.node.append(el('p', '', this.#unsaid));
    this.#unsaid = '';
  }
}
