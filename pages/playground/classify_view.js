// Classify: the labels of a text, of a pair of texts, or of its words.

import {el, set} from '../page.js';
import {predictionBar} from '../prediction_bar.js';
import {post} from './api.js';
import {field, FormView, textArea} from './forms.js';

const MOST_LABELS = 20;

export class ClassifyView extends FormView {
  #result = set(el('section', 'card result'), {'aria-live': 'polite', 'aria-label': 'Labels', hidden: true});

  constructor(models, changed) {
    super(models, changed, 'Classify',
          {text: textArea(4, {placeholder: 'a moving film', required: true}), second: textArea(2)});
    const {text, second} = this.inputs;
    this.form.append(this.choice.node, field('Text', text),
                     field('Second text', second, 'Only for models of pairs of texts.'), this.runner.node);
    this.node = el('div', 'view', this.form, el('div', 'results', this.#result));
  }

  async run(signal) {
    this.changed();
    const {text: {value: text}, second: {value: second}} = this.inputs;
    const input = second ? {pairs: [[text, second]]} : {texts: [text]};
    const {predictions: [prediction]} = await post('predict', {model: this.choice.id, ...input}, signal);
    this.#result.hidden = false;
    this.#result.replaceChildren(el('h2', '', this.choice.id), answerOf(prediction));
  }
}

function answerOf(prediction) {
  if (prediction.tokens) return wordsOf(prediction);
  return 'score' in prediction ? scoreOf(prediction) : labelsOf(prediction);
}

/** What a model with one output says. */
export function scoreOf({score}) {
  return score === null ? el('p', 'quiet', 'The text has no tokens, so it has no score.')
    : el('p', 'score', `Score: ${Number(score.toPrecision(6))}`);
}

function labelsOf({labels}) {
  if (!labels.length) return el('p', 'quiet', 'The text has no tokens, so it has no labels.');
  const shown = labels.slice(0, MOST_LABELS);
  if (shown[0].score !== undefined) {
    return el('ul', '', ...labels.map(({label, score}) => el('li', '', `${label}: ${Number(score.toPrecision(6))}`)));
  }
  return el('ol', 'likeliest', ...shown.map(({label, probability}) => predictionBar({token: label, probability})));
}

/** Each word over its label. */
function wordsOf({tokens}) {
  return el('p', 'labelled', ...tokens.flatMap(({token, label, probability, labels}) => {
    const all = labels ?? [{label, probability}], given = labels ? labels.filter(each => each.probability >= 0.5) : all;
    const name = given.map(each => each.label).join(', ') || 'O';
    return [set(el('span', name === 'O' ? 'word none' : 'word', el('bdi', '', token), el('small', '', name)),
                {title: all.map(each => `${each.label}: ${each.probability.toFixed(3)}`).join(', ')}), ' '];
  }));
}
