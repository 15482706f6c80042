// What one model makes of a prompt: the tokens of the prompt and of its continuation, how likely they are, and how fast they
// came.

import {button, count, el, set, showScrolling, sortableTable} from '../page.js';
import {events} from './api.js';
import {Announcer} from './forms.js';
import {percentText, tokenLegend, tokensOf, TokenText} from './tokens_view.js';

const N_ALTERNATIVES = 8;
const ENDS = {stop: 'it ended by itself', length: 'as many tokens as were asked for'};

/** How many equally likely tokens would be as surprising as these; null without one that has a probability. */
function perplexity(tokens) {
  const known = tokens.filter(({probability}) => probability !== null);
  if (!known.length) return null;
  return Math.exp(-known.reduce((sum, {probability}) => sum + Math.log(Math.max(probability, 1e-30)), 0) / known.length);
}
const number = value => value >= 100 ? value.toFixed(0) : value.toPrecision(3);

/**
 * `goOn(ids)` is called to write on from these tokens: those before an alternative and the alternative, or all that there are.
 */
export class CompletionPane {
  #text; #announcer = new Announcer(); #summary = el('p', 'quiet summary'); #nGiven = 0;
  #table = el('div', 'scroll');
  #numbers = el('details', 'tokens-table', el('summary', '', 'These tokens as a table'), this.#table);
  #more;
  node = set(el('div', 'pane'), {hidden: true});

  constructor(goOn) {
    this.#text = new TokenText((i, {id}) => goOn([...this.#text.tokens.slice(0, i).map(token => token.id), id]));
    this.#more = button('small', 'Write more', () => goOn(this.#text.tokens.map(({id}) => id)), {hidden: true});
    const legend = el('div', 'bar under', tokenLegend());
    this.node.append(this.#text.node, this.#more, legend, this.#summary, this.#announcer.node, this.#numbers);
    this.#numbers.addEventListener('toggle', () => this.#fillTable());
    showScrolling(this.#table, 'These tokens as a table');
  }

  /** Shows what `model` makes of `prompt`, a text or a list of ids. */
  async run(model, prompt, settings, signal) {
    const begin = performance.now();
    let first = null, end = null;
    this.node.hidden = false;
    this.#text.clear();
    this.#announcer.clear();
    this.#summary.textContent = 'Reading …';
    this.#nGiven = 0;
    this.#more.hidden = true;
    this.node.setAttribute('aria-busy', 'true');
    const body = {model, prompt, ...settings, echo: true, logprobs: N_ALTERNATIVES, stream_options: {include_usage: true}};
    try {
      for await (const {choices: [choice]} of events('v1/completions', body, signal)) {
        if (!choice) continue;
        if (choice.logprobs) {
          const tokens = tokensOf(choice.logprobs), isFirst = this.#text.tokens.length === 0;
          // An empty prompt may still have a token that begins every text.
          const given = isFirst && (prompt.length > 0 || tokens.every(({probability}) => probability === null));
          this.#text.add(tokens, given);
          if (given) this.#nGiven = tokens.length;
          else {
            first ??= performance.now();
            this.#announcer.add(choice.text);
          }
        }
        end = choice.finish_reason ?? end;
      }
    } finally {
      this.node.removeAttribute('aria-busy');
      this.#more.hidden = !this.#text.tokens.length;
      this.#tell({begin, first, end});
      this.#fillTable();
    }
  }

  #tell({begin, first, end}) {
    const {tokens} = this.#text, given = tokens.slice(0, this.#nGiven), written = tokens.slice(this.#nGiven);
    const seconds = (performance.now() - begin) / 1000, parts = [];
    const [ofGiven, ofWritten] = [perplexity(given), perplexity(written)];
    if (written.length) {
      const speed = `${(written.length / seconds).toFixed(1)} tokens/s, the first after ${(first - begin).toFixed(0)} ms`;
      parts.push(`${count(written.length, 'token')} in ${seconds.toFixed(1)} s (${speed})`);
      parts.push(ENDS[end] ?? (end ? `ended: ${end}` : 'not finished'));
    }
    if (ofGiven !== null) parts.push(`perplexity of the given text ${number(ofGiven)}`);
    if (ofWritten !== null) parts.push(`of what was written ${number(ofWritten)}`);
    this.#summary.textContent = parts.join(' · ');
  }

  #fillTable() {
    if (!this.#numbers.open) return;
    const rows = this.#text.tokens.map((token, i) => ({...token, place: i, given: i < this.#nGiven}));
    const nameOf = ({text, probability}) => `${JSON.stringify(text)} ${percentText(probability)}`;
    const columns = [
      {title: 'Place', value: ({place}) => place},
      {title: 'Token', value: ({text}) => JSON.stringify(text), cell: ({text}) => el('bdi', '', JSON.stringify(text))},
      {title: 'Id', value: ({id}) => id},
      {title: 'Probability', value: ({probability}) => probability,
       cell: ({probability}) => probability === null ? '–' : percentText(probability)},
      {title: 'By', value: ({given}) => given ? 'given' : 'written'},
      {title: 'The likeliest', value: ({alternatives}) => alternatives.slice(0, 3).map(nameOf).join(', ')},
    ];
    this.#table.replaceChildren(sortableTable({columns, rows}).table);
  }
}
