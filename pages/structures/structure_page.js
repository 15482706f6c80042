// The page of one structure.

import {$, count, data} from '../page.js';
import {showStructure} from './structure_parts.js';

const {chains, letters} = data.trace;
$('title').textContent = data.title;
$('summary').textContent = [
  count(letters.length, 'residue'), count(chains.length, 'chain'),
  data.predicted ? 'predicted by a model' : 'read from a file',
  ...data.truth ? [`beside ${data.truth.title}`] : [],
].join(' · ');
showStructure($('structure'), data);
