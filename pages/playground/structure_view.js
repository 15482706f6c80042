// Structure: a protein folded from its sequence.

import {button, el, set} from '../page.js';
import {showStructure} from '../structures/structure_parts.js';
import {post} from './api.js';
import {field, ModelChoice, Runner, textArea} from './forms.js';

export class FoldView {
  #form = el('form', 'card form'); #choice; #runner; #changed; #pdb = '';
  #sequence = textArea(5, {name: 'sequence', placeholder: 'MKTAYIAKQRQISFVKSHFSRQ', autocapitalize: 'characters'});
  #structure = set(el('div', 'results structure'), {hidden: true});
  #file = button('', 'Save as PDB', () => this.#save());
  node;

  constructor(models, changed) {
    this.#changed = changed;
    this.#choice = new ModelChoice(models, 'Model');
    this.#runner = new Runner(this.#form, 'Fold', signal => this.#run(signal));
    this.#file.hidden = true;
    this.#form.append(this.#choice.node, field('Sequence', this.#sequence, 'One letter for each residue.'), this.#runner.node,
                      this.#file);
    this.node = el('div', 'view', this.#form, el('div', 'results', this.#structure));
    this.#sequence.addEventListener('input', () => this.#changed());
  }

  async #run(signal) {
    const sequence = this.#sequence.value.trim();
    if (!sequence) throw new Error('Write a sequence first.');
    this.#changed();
    this.#runner.tell('Folding …');
    const answer = await post('fold', {model: this.#choice.id, sequence}, signal);
    this.#pdb = answer.pdb;
    this.#structure.hidden = this.#file.hidden = false;
    showStructure(this.#structure, answer.structure);
    this.#runner.tell(answer.mean_plddt === null ? 'This model does not say how sure it is.' : '');
  }

  #save() {
    const address = URL.createObjectURL(new Blob([this.#pdb], {type: 'chemical/x-pdb'}));
    set(el('a'), {href: address, download: 'structure.pdb'}).click();
    URL.revokeObjectURL(address);
  }

  get address() { return [['model', this.#choice.id], ['sequence', this.#sequence.value]]; }
  restore(values) {
    this.#choice.choose(values.get('model'));
    this.#sequence.value = values.get('sequence') ?? '';
    if (this.#sequence.value) this.#runner.start();
  }
}
