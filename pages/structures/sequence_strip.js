// The letters of a structure's residues, of which one can be chosen with the pointer and the keys.

import {el, set} from '../page.js';
import {inkOnColour} from './structure_colours.js';

const TEN = 10;
const STEPS = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -TEN, ArrowDown: TEN, Home: -Infinity, End: Infinity};

/** `choose(residue or null)` is called for what the reader points at or goes to. */
export class SequenceStrip {
  #letters = []; #host; #chosen = null;

  constructor(host, {chains, chain, letters, numbers}, choose) {
    this.#host = set(host, {tabIndex: 0, 'aria-label': 'Residues'});
    host.setAttribute('role', 'listbox');
    chains.forEach((name, own) => {
      if (chains.length > 1) host.append(set(el('p', 'quiet', `Chain ${name}`), {'aria-hidden': 'true'}));
      const line = set(el('div', 'letters'), {role: 'presentation'});
      let block = null, n = 0;
      chain.forEach((at, i) => {
        if (at !== own) return;
        if (n++ % TEN === 0) line.append(block = el('span', 'ten', el('span', 'place', numbers[i])));
        const letter = set(el('span', 'letter', letters[i]), {id: `residue-${i}`, 'aria-selected': 'false'});
        letter.setAttribute('role', 'option');
        letter.setAttribute('aria-label', `${letters[i]} ${numbers[i]}`);
        block.append(letter);
        this.#letters[i] = letter;
      });
      host.append(line);
    });
    const at = event => event.target.id?.startsWith('residue-') ? Number(event.target.id.slice(8)) : null;
    host.addEventListener('pointerover', event => { if (event.pointerType === 'mouse' && at(event) !== null) choose(at(event)); });
    host.addEventListener('click', event => { if (at(event) !== null) choose(at(event)); });
    host.addEventListener('keydown', event => {
      if (event.key !== 'Escape' && !(event.key in STEPS)) return;
      event.preventDefault();
      if (event.key === 'Escape') return choose(null);
      const from = this.#chosen ?? (STEPS[event.key] > 0 ? -1 : 0);
      choose(Math.min(this.#letters.length - 1, Math.max(0, from + STEPS[event.key])));
      this.#letters[this.#chosen]?.scrollIntoView({block: 'nearest'});
    });
  }

  paint(colours) {
    this.#letters.forEach((letter, i) =>
      Object.assign(letter.style, {background: `rgb(${colours[i].join(' ')})`, color: inkOnColour(colours[i])}));
  }

  mark(residues) {
    for (const letter of this.#host.querySelectorAll('.on')) {
      letter.classList.remove('on');
      letter.setAttribute('aria-selected', 'false');
    }
    for (const i of residues) this.#letters[i].classList.add('on');
    this.#chosen = residues[0] ?? null;
    this.#letters[this.#chosen]?.setAttribute('aria-selected', 'true');
    this.#host.setAttribute('aria-activedescendant', this.#chosen === null ? '' : `residue-${this.#chosen}`);
  }
}
