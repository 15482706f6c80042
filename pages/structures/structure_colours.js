// How residues are coloured: by confidence, along the chain, by chain, by the distance to the truth.

import {el, oklch} from '../page.js';

// The bands of the AlphaFold Protein Structure Database.
const BANDS = [
  {from: 90, colour: [0, 83, 214], name: 'above 90: very sure'}, {from: 70, colour: [101, 203, 243], name: '70 to 90: sure'},
  {from: 50, colour: [255, 219, 19], name: '50 to 70: unsure'}, {from: -Infinity, colour: [255, 125, 69], name: 'below 50: very unsure'},
];
const FARTHEST = 8;  // Å from the truth, where the colour is strongest
const alongColour = share => oklch(0.7, 0.15, 265 - 240 * share);
const farColour = share => oklch(0.8 - 0.22 * share, 0.03 + 0.17 * share, 220 - 195 * share);
const chainColour = (i, n) => oklch(0.68, 0.14, 258 + 360 * i / n);
const css = colour => `rgb(${colour.join(' ')})`;
const UNKNOWN = [150, 155, 165];

/** Black or white, whichever is readable on a colour. */
export const inkOnColour = ([r, g, b]) => 0.3 * r + 0.59 * g + 0.11 * b > 105 ? '#16191f' : '#fff';

const swatch = (colour, name) => {
  const mark = el('span', 'swatch');
  mark.style.background = css(colour);
  return el('span', 'entry', mark, name);
};
const gradient = (from, to, colourOf) => {
  const ramp = el('span', 'ramp');
  ramp.style.background = `linear-gradient(to right, ${Array.from({length: 13}, (_, i) => css(colourOf(i / 12))).join(', ')})`;
  return el('span', 'entry', from, ramp, to);
};

/** Whether there are B factors: files of models that do not know their errors have zeros. */
export const knowsConfidence = ({trace, predicted}) => predicted || trace.b.some(value => value !== 0);

/**
 * The ways to colour a structure: {key, name, colours: of each residue, legend: nodes}. `errors`: the distance of each
 * residue from the truth in Å, or null where it has none; null without a truth.
 */
export function colourings({trace, predicted}, errors) {
  const {b, chain, chains, letters} = trace, firsts = chains.map((_, own) => chain.indexOf(own));
  const places = chain.map((own, i) => i - firsts[own]);
  const counts = chains.map((_, own) => chain.filter(other => other === own).length);
  return [
    ...knowsConfidence({trace, predicted}) ? [{key: 'confidence', name: predicted ? 'confidence (pLDDT)' : 'B factor as pLDDT',
     colours: () => b.map(value => BANDS.find(({from}) => value >= from).colour),
     legend: () => BANDS.map(({colour, name}) => swatch(colour, name))}] : [],
    {key: 'along', name: 'place in the chain',
     colours: () => [...letters].map((_, i) => alongColour(places[i] / Math.max(1, counts[chain[i]] - 1))),
     legend: () => [gradient('first residue (N)', 'last one (C)', alongColour)]},
    ...chains.length > 1 ? [{key: 'chain', name: 'chain', colours: () => chain.map(own => chainColour(own, chains.length)),
                             legend: () => chains.map((name, i) => swatch(chainColour(i, chains.length), name))}] : [],
    ...errors ? [{key: 'error', name: 'distance to the truth',
                  colours: () => errors.map(error => error === null ? UNKNOWN : farColour(Math.min(1, error / FARTHEST))),
                  legend: () => [gradient('0 Å', `≥ ${FARTHEST} Å`, farColour), swatch(UNKNOWN, 'no partner')]}] : [],
  ];
}
