// The first screen of a view, as long as it has nothing to show: how it is used, examples to click, and the models.

import {button, el, headCell, set, showScrolling} from '../page.js';
import {BEGINNINGS} from './examples.js';
import {parametersText, readsText} from './forms.js';

const taskText = task => (task ?? '').replaceAll('_', ' ');

/**
 * The first screen of the view `name`. `linksOf(model)` are links to the views of a model. An example begins the view as its
 * address would, with what the form has otherwise. A view may have suits(values of an example), which says whether it can.
 */
export class Beginning {
  #view; #rows;
  node;

  constructor(name, view, models, linksOf) {
    const {how} = BEGINNINGS[name], examples = BEGINNINGS[name].examples.filter(({values}) => view.suits?.(values) ?? true);
    this.#view = view;
    this.#rows = new Map(models.map(model => [model.id, rowOf(model, linksOf(model))]));
    const titles = ['Model', 'Task', 'Family', 'Parameters', 'Reads', 'Views'].map(title => headCell(title, 'col'));
    const table = el('table', 'models', el('thead', '', el('tr', '', ...titles)), el('tbody', '', ...this.#rows.values()));
    const scroll = el('div', 'scroll', table);
    const buttons = examples.map(({title, values}) => button('example', el('bdi', '', title), () => this.#begin(values)));
    this.node = el('section', 'card beginning', el('h2', '', 'Try one'), el('div', 'buttons', ...buttons),
                   el('h2', '', 'How it works'), el('ul', 'how', ...how.map(sentence => el('li', '', sentence))),
                   el('h2', '', 'The models'), scroll);
    set(this.node, {'aria-label': 'To begin with'});
    showScrolling(scroll, 'The models');
    view.node.addEventListener('change', () => this.mark());
    this.mark();
  }

  /** Marks the chosen models. */
  mark() {
    const chosen = this.#view.address.filter(([key]) => key.startsWith('model')).map(([, id]) => id);
    for (const [id, row] of this.#rows) row.classList.toggle('on', chosen.includes(id));
  }

  #begin(example) {
    const made = Object.entries(example).map(([key, value]) => [key, typeof value === 'function' ? value() : value]);
    const kept = this.#view.address.filter(([, value]) => value !== '' && value !== null && value !== undefined);
    const values = new URLSearchParams(Object.fromEntries([...kept, ...made]));
    this.#view.begin ? this.#view.begin(values) : this.#view.restore(values);
  }
}

function rowOf({id, zoo}, links) {
  const cells = [taskText(zoo.task), zoo.family, zoo.parameters ? parametersText(zoo.parameters) : '–', readsText(zoo) || '–'];
  const places = el('td', 'places-of', ...links.flatMap((link, i) => i ? [' ', link] : [link]));
  return el('tr', '', headCell(el('bdi', '', id), 'row'), ...cells.map(cell => el('td', '', cell)), places);
}
