// Translate: the answer of an encoder-decoder, and where it looked in the source while it wrote each token.

import {HeatMap, largest, MOST, numbersTable} from '../heat_map.js';
import {headColour, LineView} from '../line_view.js';
import {el, option, roomInside, set, showScrolling, whenResized, whenThemeChanges} from '../page.js';
import {post} from './api.js';
import {field, FormView, integer, textArea} from './forms.js';

export class TranslateView extends FormView {
  #redraws = []; #results = el('div', 'results');

  constructor(models, changed) {
    super(models, changed, 'Translate', {
      text: textArea(5, {placeholder: 'Ein Hund spielt im Schnee.', required: true}),
      beam: integer(4, {min: 1, max: 64}), max_tokens: integer(128, {min: 1, max: 4096}),
      show: el('select', '', option('lines', 'lines'), option('map', 'a map'))});
    const {text, beam, max_tokens: longest, show} = this.inputs;
    show.addEventListener('change', () => { this.changed(); this.#redraw(); });
    this.form.append(this.choice.node, field('Text', text, 'Each line is a text of its own.'),
                     el('div', 'grid', field('Beams', beam), field('Tokens at most', longest),
                        field('Alignment as', show)), this.runner.node);
    this.node = el('div', 'view', this.form, set(this.#results, {'aria-live': 'polite'}));
    whenThemeChanges(() => this.#redraw());
    whenResized(this.#results, () => this.#redraw());
  }

  async run(signal) {
    this.changed();
    const {text, beam, max_tokens: longest} = this.inputs, texts = text.value.split('\n').filter(line => line.trim());
    const body = {model: this.choice.id, texts, beam: Number(beam.value), max_tokens: Number(longest.value),
                  alignment: true};
    this.runner.tell('Translating …');
    const {translations} = await post('translate', body, signal);
    this.#redraws = [];
    this.#results.replaceChildren(...translations.map((translation, i) => this.#cardOf(translation, texts[i])));
    this.#redraw();
    this.runner.tell('');
  }

  #redraw() { for (const draw of this.#redraws) draw(); }

  #cardOf({text, score, alignment}, source) {
    const card = el('section', 'card result', el('p', 'quiet', el('bdi', '', source)), el('h2', 'answer', el('bdi', '', text)),
                    el('p', 'quiet', `log-probability ${score.toFixed(2)}`));
    if (alignment) this.#addAlignment(card, alignment);
    return card;
  }

  #addAlignment(card, {source, target, weights, layer, alignment_errors: errors}) {
    const readout = set(el('p', 'readout'), {'aria-live': 'polite'}), lines = el('div', 'lines');
    const plot = set(el('div', 'plot'), {tabIndex: 0, role: 'application', 'aria-roledescription': 'heat map',
                                         'aria-label': 'Alignment. Arrow keys move from weight to weight.'});
    const values = weights.flat().map(weight => Math.round(weight * MOST)), isHidden = () => false;
    const top = Math.max(1, largest(values));
    const view = {values, rows: target, columns: source, isHidden, top, titles: ['Written', 'Source']};
    const note = el('p', 'quiet', ...whichLayer(layer, errors), ': from each token that is written to the tokens of the source.');
    const numbers = el('details', '', el('summary', '', 'This alignment as a table of numbers'),
                       el('div', 'scroll', numbersTable(view, 'Rows: written tokens. Columns: source tokens.')));
    card.append(el('h3', '', 'Where the model looked'), note, readout, lines, plot, numbers);
    showScrolling(lines, 'Lines of the alignment');
    showScrolling(plot, '');
    showScrolling(numbers.lastChild, 'This alignment as a table of numbers');
    const lineView = new LineView(lines, readout), heatMap = new HeatMap(plot, readout);
    this.#redraws.push(() => {
      const asLines = this.inputs.show.value === 'lines', room = roomInside(card);
      lines.parentElement.hidden = !asLines;
      plot.parentElement.hidden = asLines;
      if (!(room > 0)) return;
      if (asLines) lineView.show({...view, heads: [{values, colour: headColour(0, 1)}]}, room);
      else heatMap.show(view, room);
    });
  }
}

/** What the weights are of, and why of this layer: the tooltip has the numbers by which the server chose it. */
function whichLayer(layer, errors) {
  if (layer === undefined) return ['The mean over the heads of one layer'];
  const text = `The mean over the heads of layer ${layer}`;
  if (!(errors?.length > 1)) return [text];
  const each = errors.map((error, i) => `layer ${i}: ${error.toFixed(3)}`).join(', ');
  const why = 'Its weights are nearest to the diagonal, where both texts run in step. Their mean distance from it, as a share ' +
              `of the source’s length: ${each}.`;
  return [`${text}, `, set(el('abbr', '', `the best aligned of ${errors.length}`), {title: why, tabIndex: 0})];
}
