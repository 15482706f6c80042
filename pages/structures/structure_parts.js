// A structure as the page and others show it: picture, numbers, sequence, maps, table; what is chosen in one is marked in
// all.

import {button, count, el, headCell, roomInside, set, showScrolling, whenResized, whenThemeChanges} from '../page.js';
import {PairMap} from './pair_map.js';
import {distance, pointsOf} from './ribbon.js';
import {SequenceStrip} from './sequence_strip.js';
import {colourings, knowsConfidence} from './structure_colours.js';
import {StructureView} from './structure_view.js';

const FAR = 20, UNSURE = 30, STEP = 4;  // Å where maps are palest; steps of a byte in an Å

/** A fieldset of radio buttons with the house's look. */
function choice(legend, name, options, chosen, act) {
  const labels = options.map(([value, text]) =>
    el('label', '', set(el('input'), {type: 'radio', name, value, checked: value === chosen}), ` ${text}`));
  const field = el('fieldset', 'choice', el('legend', '', legend), ...labels);
  field.addEventListener('change', event => act(event.target.value));
  return field;
}

const hint = text => el('span', 'hint', ` ${text}`);
const mean = list => list.reduce((sum, x) => sum + x, 0) / list.length;

/** The numbers of all of the structure: [name, text, explanation]. */
function figuresOf({trace, predicted, tm_score: predictedScore, truth}) {
  const list = [['Residues', `${trace.letters.length}`, 'with a CA atom']];
  if (knowsConfidence({trace, predicted})) list.push([predicted ? 'Mean pLDDT' : 'Mean B factor', mean(trace.b).toFixed(1), 'of the CA atoms' + (predicted ? ', 0 to 100' : '')]);
  if (predictedScore !== null) list.push(['pTM', predictedScore.toFixed(3), 'the TM-score that the model expects, 0 to 1']);
  if (truth) list.push(
    ['TM-score', truth.tm_score.toFixed(3), `0 to 1; above 0.5 the fold is the same; over ${count(truth.length, 'residue')} of the truth`],
    ['lDDT', truth.lddt.toFixed(3), '0 to 1: how many distances between CA atoms below 15 Å are kept'],
    ['RMSD', `${truth.rmsd.toFixed(2)} Å`, 'of CA atoms, after the motion that makes it least'],
    ['Paired', `${truth.pairs.length}`, 'residues that both structures have']);
  return el('dl', 'figures', ...list.map(([name, text, note]) =>
    el('div', '', el('dt', '', name), el('dd', '', el('b', '', text), el('span', 'quiet', note)))));
}

/** The maps of pairs. `partner`: of each residue that of the truth, or undefined. */
function mapsOf({predicted, aligned_error: error, truth}, points, partner, truePoints) {
  const size = points.length, maps = [{
    name: truth || predicted ? 'Distances here' : 'Distances', hint: 'between CA atoms', size, top: FAR,
    value: (i, j) => distance(points[i], points[j])}];
  if (truth) maps.push({
    name: 'Distances in the truth', hint: truth.title, size, top: FAR,
    value: (i, j) => partner[i] === undefined || partner[j] === undefined ? null : distance(truePoints[partner[i]], truePoints[partner[j]])});
  if (error) {
    const bytes = Uint8Array.from(atob(error.rows), letter => letter.charCodeAt(0)), n = error.size;
    const at = i => Math.min(n - 1, Math.floor(i * n / size));
    maps.push({name: 'Predicted aligned error', hint: 'where the row is aligned', size, top: UNSURE,
               value: (i, j) => bytes[at(i) * n + at(j)] / STEP});
  }
  return maps;
}

function tableOf({trace, predicted, truth}, errors, partner) {
  const heads = ['Residue', predicted ? 'pLDDT' : 'B factor', ...truth ? ['Partner', 'Distance (Å)'] : []];
  const rows = [...trace.letters].map((letter, i) => el('tr', '',
    headCell(`${trace.chains[trace.chain[i]]} ${letter}${trace.numbers[i]}`, 'row'), el('td', '', trace.b[i].toFixed(1)),
    ...truth ? [el('td', '', partner[i] === undefined ? '–' : `${truth.trace.letters[partner[i]]}${truth.trace.numbers[partner[i]]}`),
                el('td', '', errors[i] === null ? '–' : errors[i].toFixed(2))] : []));
  return el('table', '', el('caption', '', 'Each residue'), el('thead', '', el('tr', '', ...heads.map(head => headCell(head, 'col')))),
            el('tbody', '', ...rows));
}

/** Fills `host` with all of a structure's parts. `data`: see structure_page.h. */
export function showStructure(host, data) {
  const {trace, predicted, truth} = data, points = pointsOf(trace), truePoints = truth && pointsOf(truth.trace);
  const partner = [], errors = truth && points.map(() => null);
  for (const [i, j] of truth?.pairs ?? []) {
    partner[i] = j;
    errors[i] = distance(points[i], truePoints[j]);
  }
  const ways = colourings(data, errors), first = predicted ? 'confidence' : trace.chains.length > 1 ? 'chain' : 'along';
  const state = {mode: 'ribbon', way: ways.find(({key}) => key === first), withTruth: true, marked: []};

  const readout = set(el('p', 'readout'), {'aria-live': 'polite'}), legend = el('p', 'bar under');
  const stage = set(el('div', 'structure-stage'), {tabIndex: 0, 'aria-label': 'The structure: the arrow keys turn it, + and - change its size, 0 resets it'});
  stage.setAttribute('role', 'application');
  const name = i => `${trace.letters[i]}${trace.numbers[i]}` + (trace.chains.length > 1 ? ` of chain ${trace.chains[trace.chain[i]]}` : '');
  const maps = mapsOf(data, points, partner, truePoints).map(map => ({map, view: new PairMap(map, mark)}));
  const view = new StructureView(stage, trace, truth?.trace, {choose: i => mark(i === null ? null : [i])});
  const strip = el('div', 'scroll strip'), sequence = new SequenceStrip(strip, trace, i => mark(i === null ? null : [i]));

  function mark(residues) {
    state.marked = [...new Set(residues ?? [])];
    say();
    sequence.mark(state.marked);
    for (const {view: own} of maps) own.mark(residues?.length === 2 ? residues : residues && [residues[0], residues[0]]);
    draw();
  }
  function say() {
    const [i, j] = state.marked;
    if (i === undefined) return readout.replaceChildren(hint('Point at a residue, or go to one with the arrow keys in the sequence or a map.'));
    if (j !== undefined) {
      const values = maps.map(({map}) => [map.name.toLowerCase(), map.value(i, j)]).filter(([, value]) => value !== null);
      return readout.replaceChildren(el('b', '', `${name(i)} – ${name(j)}`), ...values.map(([what, value]) => hint(`${what} ${value.toFixed(1)} Å`)));
    }
    readout.replaceChildren(el('b', '', name(i)), hint(`${predicted ? 'pLDDT' : 'B factor'} ${trace.b[i].toFixed(1)}`),
      ...errors ? [hint(errors[i] === null ? 'no partner in the truth' : `${errors[i].toFixed(1)} Å from ${truth.trace.letters[partner[i]]}${truth.trace.numbers[partner[i]]} of the truth`)] : []);
  }
  function draw() {
    view.show({mode: state.mode, colours: state.colours, withTruth: state.withTruth, marked: state.marked}, roomInside(card));
  }
  function paint() {
    state.colours = state.way.colours();
    legend.replaceChildren(...state.way.legend(), ...truth && state.withTruth ? [el('span', 'entry', el('span', 'swatch truth'), 'the truth')] : []);
    sequence.paint(state.colours);
    draw();
  }
  const truthBox = truth && el('label', '', set(el('input'), {type: 'checkbox', checked: true, className: 'with-truth'}), ' the truth');
  truthBox?.addEventListener('change', event => { state.withTruth = event.target.checked; paint(); });
  const card = el('section', 'card shape',
    el('div', 'bar',
      choice('Show as', 'mode', [['ribbon', 'ribbon'], ['trace', 'trace']], state.mode, value => { state.mode = value; draw(); }),
      ...truth ? [el('fieldset', 'choice', el('legend', '', 'Show'), truthBox)] : [],
      set(el('div', 'steps', ...view.actions.map(([text, title, act]) => button('', text, act, {title, 'aria-label': title}))), {'aria-label': 'Turn the structure'})),
    choice('Colours', 'colours', ways.map(({key, name: text}) => [key, text]), state.way.key,
           value => { state.way = ways.find(({key}) => key === value); paint(); }),
    stage, legend);
  card.querySelector('.steps').setAttribute('role', 'group');
  const details = el('details', '', el('summary', '', 'Each residue as a table of numbers'), el('div', 'scroll'));
  details.addEventListener('toggle', () => {
    if (details.open && !details.lastChild.firstChild) details.lastChild.append(tableOf(data, errors, partner));
  });
  const side = el('section', 'card sequence', el('h2', '', 'Sequence'), strip, details);
  host.classList.add('structure-parts');
  host.replaceChildren(
    el('section', 'card numbers', figuresOf(data)), el('div', 'beside', card, side),
    el('section', 'card', el('h2', '', 'Pairs of residues'), el('div', 'maps', ...maps.map(({view: own}) => own.node))));
  card.insertBefore(readout, stage);
  showScrolling(strip, '');
  const paintMaps = () => maps.forEach(({view: own}) => own.paint());
  whenResized(card, draw);
  whenThemeChanges(() => { paint(); paintMaps(); });
  paint();
  say();
  paintMaps();
}
