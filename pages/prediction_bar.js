// A token or a class over a bar whose length shows its probability.

import {el, tokenLabel} from './page.js';

function probabilityText(probability) {
  if (probability < 0.005) return '< 0.01';
  return probability >= 0.995 && probability < 1 ? '> 0.99' : probability.toFixed(2);
}

/** An item of a list; `right` is the token that is right there, if any is. */
export function predictionBar({token, probability}, right) {
  const isRight = token === right, label = tokenLabel(token);
  const node = el('li', isRight ? 'bar-row right' : 'bar-row', label, el('span', 'amount-text', probabilityText(probability)));
  node.style.setProperty('--share', probability);
  if (isRight) label.append(el('span', 'tick', ' ✓'));
  return node;
}
