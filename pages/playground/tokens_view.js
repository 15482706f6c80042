// A text whose tokens have the colour of their probability. A token shows what could have stood in its place, and another
// choice there goes on from it.

import {button, colour, el, inkOn, set, whenThemeChanges} from '../page.js';
import {predictionBar} from '../prediction_bar.js';

const MOST_BITS = 10, STRONGEST = 0.8;  // a token of 1 in 1024 has the strongest colour
const bitsOf = probability => -Math.log2(Math.max(probability, 1e-30));
const shareOf = probability => probability === null ? 0 : Math.min(1, bitsOf(probability) / MOST_BITS) * STRONGEST;
const nameOf = token => token === '' ? '·' : token.replaceAll('\n', '⏎').replaceAll('\t', '⇥');
export function percentText(probability) {
  if (probability < 0.0001) return '< 0.01 %';
  return `${probability >= 0.1 ? (100 * probability).toFixed(0) : (100 * probability).toPrecision(2)} %`;
}

/** The tokens of an answer's `logprobs`: {id, text, probability (null: not known), alternatives: [{id, text, probability}]}. */
export function tokensOf({tokens, token_logprobs, token_ids, top}) {
  return tokens.map((text, i) => ({
    id: token_ids[i], text, probability: token_logprobs[i] === null ? null : Math.exp(token_logprobs[i]),
    alternatives: (top?.[i] ?? []).map(({id, token, logprob}) => ({id, text: token, probability: Math.exp(logprob)})),
  }));
}

/** What the colours mean. */
export function tokenLegend() {
  const ramp = el('span', 'ramp'), stops = Array.from({length: 17}, (_, i) => i / 16 * STRONGEST);
  const paint = () => { ramp.style.background = `linear-gradient(to right, ${stops.map(colour).join(', ')})`; };
  paint();
  whenThemeChanges(paint);
  return el('div', 'legend of-tokens', el('span', '', 'Probability 100 %'), ramp, el('span', '', '0.1 % or less'));
}

/** `goOn(i, alternative)` is called where the reader chooses another token for the place `i`. */
export class TokenText {
  tokens = [];
  #nodes = []; #goOn; #shown = null; #pinned = false; #timer = null;
  #refocus = null;  // the place whose token gets the focus when it comes: a key has chosen it
  #text = set(el('div', 'tokens'), {
    role: 'group', 'aria-label': 'Tokens: the arrow keys go from one to the next, Enter opens its alternatives'});
  #box = set(el('div', 'alternatives'), {hidden: true, role: 'group'});
  node = el('div', 'token-text', this.#text, this.#box);

  constructor(goOn) {
    this.#goOn = goOn;
    this.#text.addEventListener('pointerover', event => this.#point(event));
    this.#text.addEventListener('click', event => this.#click(event));
    this.#text.addEventListener('focusin', event => this.#show(this.#indexOf(event.target), this.#pinned));
    this.#text.addEventListener('keydown', event => this.#key(event));
    this.#box.addEventListener('keydown', event => this.#keyInBox(event));
    this.#box.addEventListener('pointerenter', () => clearTimeout(this.#timer));
    this.node.addEventListener('pointerleave', event => {
      if (event.pointerType === 'mouse' && !this.#pinned) this.#timer = setTimeout(() => this.#hide(), 250);
    });
    this.node.addEventListener('focusout', event => { if (!this.node.contains(event.relatedTarget)) this.#hide(); });
    whenThemeChanges(() => this.#nodes.forEach((node, i) => this.#paint(node, this.tokens[i])));
  }

  clear() {
    this.#hide();
    this.tokens = [];
    this.#nodes = [];
    this.#text.replaceChildren();
  }

  /** Adds tokens; those that were `given`, not written, look so. */
  add(tokens, given) {
    for (const token of tokens) {
      const node = this.#nodeOf(token, given);
      node.tabIndex = this.#nodes.length ? -1 : 0;
      this.tokens.push(token);
      this.#nodes.push(node);
      this.#text.append(node);
      if (this.#nodes.length - 1 !== this.#refocus) continue;
      this.#refocus = null;
      node.focus();
    }
  }

  #nodeOf(token, given) {
    const node = el('span', given ? 'piece given' : 'piece'), {text, probability} = token;
    if (text === '') node.append(el('span', 'mark', '·'));
    // The end of a line has a sign, because a colour needs something to stand behind.
    text.split('\n').forEach((line, i) => node.append(...i ? [el('span', 'mark', '⏎'), '\n'] : [], line));
    const chance = probability === null ? 'probability not known' : percentText(probability);
    this.#paint(node, token);
    const label = `${nameOf(text)}, ${given ? 'given, ' : ''}${chance}`;
    return set(node, {role: 'button', 'aria-label': label, 'aria-expanded': 'false'});
  }
  #paint(node, {probability}) {
    const share = shareOf(probability);
    Object.assign(node.style, probability === null ? {} : {background: colour(share), color: inkOn(share)});
  }

  #indexOf(target) { return this.#nodes.indexOf(target.closest('.piece')); }

  #point(event) {
    const i = this.#indexOf(event.target);
    if (i < 0 || event.pointerType !== 'mouse' || this.#pinned) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#show(i, false), this.#shown === null ? 80 : 160);
  }
  #click(event) {
    const i = this.#indexOf(event.target);
    if (i < 0) return;
    clearTimeout(this.#timer);
    const again = this.#shown === i && this.#pinned;
    this.#nodes[i].focus();
    again ? this.#hide() : this.#show(i, true);
  }
  #key(event) {
    const i = this.#indexOf(event.target), last = this.#nodes.length - 1;
    const to = {ArrowLeft: i - 1, ArrowRight: i + 1, Home: 0, End: last}[event.key];
    if (to !== undefined) this.#nodes[Math.min(last, Math.max(0, to))].focus();
    else if (['Enter', ' ', 'ArrowDown'].includes(event.key)) {
      this.#show(i, true);
      this.#box.querySelector('button')?.focus();
    } else if (event.key === 'Escape' && this.#shown !== null) this.#hide();
    else return;
    event.preventDefault();
  }
  #keyInBox(event) {
    const buttons = [...this.#box.querySelectorAll('button')], i = buttons.indexOf(event.target);
    if (event.key === 'Escape' || (event.key === 'ArrowUp' && i === 0)) {
      const at = this.#shown;
      this.#pinned = false;
      this.#nodes[at].focus();
    } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp')
      buttons[Math.min(buttons.length - 1, i + (event.key === 'ArrowDown' ? 1 : -1))].focus();
    else return;
    event.preventDefault();
  }

  #show(i, pinned) {
    if (i < 0) return;
    this.#hide();
    const node = this.#nodes[i];
    this.#shown = i;
    this.#pinned = pinned;
    for (const each of this.#nodes) each.tabIndex = -1;
    node.tabIndex = 0;
    node.classList.add('on');
    node.setAttribute('aria-expanded', 'true');
    this.#fill(i);
    this.#place(node);
  }
  #fill(i) {
    const {id, text, probability, alternatives} = this.tokens[i];
    const chance = probability === null ? 'The first token has no probability.' : percentText(probability);
    const bars = alternatives.map(other => {
      const bar = predictionBar({token: nameOf(other.text), probability: other.probability});
      bar.classList.toggle('right', other.id === id);
      const choose = button('', [...bar.childNodes], event => {
        if (event.detail === 0) this.#refocus = i;
        this.#goOn(i, other);
      }, {
        'aria-label': `${nameOf(other.text)}, ${percentText(other.probability)}: go on from here with it`});
      bar.append(choose);
      return bar;
    });
    this.#box.setAttribute('aria-label', `Alternatives for ${nameOf(text)}`);
    this.#box.replaceChildren(el('p', 'chosen', el('bdi', '', nameOf(text)), ' ', el('span', 'quiet', chance)));
    if (!bars.length) return;
    this.#box.append(el('ol', 'likeliest', ...bars), el('p', 'quiet', 'Choose one to go on from here with it.'));
  }
  /** Under the first line of the token, within the text. */
  #place(node) {
    this.#box.hidden = false;
    const own = this.node.getBoundingClientRect(), {left, bottom} = node.getClientRects()[0] ?? own;
    const x = Math.min(left - own.left, own.width - this.#box.offsetWidth);
    Object.assign(this.#box.style, {left: `${Math.max(0, x)}px`, top: `${bottom - own.top}px`});
  }
  #hide() {
    clearTimeout(this.#timer);
    const node = this.#nodes[this.#shown];
    node?.classList.remove('on');
    node?.setAttribute('aria-expanded', 'false');
    this.#shown = null;
    this.#pinned = false;
    this.#box.hidden = true;
  }
}
