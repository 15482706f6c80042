// What the model predicts: at each position the likeliest tokens with their probabilities.

import {data, el, plain} from '../page.js';
import {predictionBar} from '../prediction_bar.js';

/** The token that is read at each position, and the right prediction there; undefined where the text ends. */
function positions() {
  const answered = data.target_tokens.length > 0, read = answered ? data.target_tokens : data.source_tokens;
  const isMasked = !answered && data.maps.some(({kind}) => kind === 'encoder');  // predicts the position itself
  const right = answered ? data.target_next : isMasked ? data.source_tokens : data.source_tokens.slice(1);
  return {isMasked, list: read.map((token, t) => ({token, right: right[t], likeliest: data.predictions[t]}))};
}

const MOST_LABELS = 10;

function card({token, right, likeliest}, t, isMasked) {
  const missed = right !== undefined && right !== '<mask>' && !likeliest.some(({token}) => token === right);
  const heading = el('p', token === '<mask>' ? 'place masked' : 'place', el('span', 'quiet', `${t} `),
                     el('bdi', '', plain(token)), el('span', 'quiet', isMasked ? '' : ' →'));
  const note = missed && !isMasked ? el('p', 'quiet', 'follows: ', el('bdi', '', plain(right))) : '';
  return el('li', 'position', heading, el('ol', 'likeliest', ...likeliest.map(entry => predictionBar(entry, right))), note);
}

/** Fills the section, or returns false where the model predicts no tokens. */
export function showPredictions(note, list) {
  if (data.labels?.length) {
    const rest = data.labels.length - MOST_LABELS;
    note.textContent = 'The likeliest classes of the text, with their probabilities.' +
                       (rest > 0 ? ` The other ${rest} are less likely.` : '');
    list.className = 'likeliest classes';
    list.append(...data.labels.slice(0, MOST_LABELS).map(({label, probability}) => predictionBar({token: label, probability})));
    return true;
  }
  if (data.score !== undefined) {
    note.textContent = `The score of the text: ${data.score}`;
    return true;
  }
  if (!data.predictions.length) return false;
  const {isMasked, list: all} = positions();
  note.textContent = data.recording && isMasked ? 'At each moment the five likeliest tokens. ∅: nothing is written.' : isMasked
      ? 'At each position the five likeliest tokens, from the tokens on both sides. ✓: the token that stands there.'
      : 'After each token the five likeliest next tokens, with their probabilities. ✓: the token that follows.';
  list.append(...all.map((position, t) => card(position, t, isMasked)));
  return true;
}
