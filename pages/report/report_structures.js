// A protein of the validation data as each run folds it, laid onto the truth.

import {el, option, set} from '../page.js';
import {showStructure} from '../structures/structure_parts.js';
import {leftOutNote, runs} from './report_base.js';

export function buildStructures(section) {
  const folded = runs.filter(run => run.structure);
  if (!folded.length) return false;
  const host = el('div', ''), select = set(el('select'), {name: 'folded-run'});
  select.append(...folded.map((run, i) => option(i, run.name)));
  const show = () => showStructure(host, folded[Number(select.value)].structure);
  select.addEventListener('change', show);
  section.append(
      el('p', 'quiet', 'The first chain of the validation data, as the first seed of a run folds it.'),
      ...leftOutNote('structure', 'The structures'), el('div', 'bar', el('label', '', 'Run ', select)), host);
  show();
  return true;
}
