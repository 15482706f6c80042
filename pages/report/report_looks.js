// How runs look in charts: colours, shapes and dashes, and the panels of a grid.

import {runs} from './report_base.js';
import {factors, factorText, MANY} from './report_factors.js';
import {selection} from './report_selection.js';

const COLOURS = 8, SHAPES = ['circle', 'square', 'triangle', 'diamond', 'down', 'cross', 'plus', 'bar'];
const DASHES = ['', '7 3', '2 3', '9 3 2 3', '14 4', '4 2', '1.5 2.5 6 2.5', '10 2 2 2 2 2'];

/** How a grid is drawn: the factor of the colours, of the dashes (or null), and those of the panels; null without one. */
export const roles = (() => {
  if (!factors.length || runs.length > MANY) return null;
  if (factors.length === 1) return {colour: factors[0], dash: null, panels: []};
  const keys = factors.filter(({key}) => key !== 'variant');
  const most = keys.reduce((best, factor) => factor.values.length > best.values.length ? factor : best);
  const [colour, ...rest] = factors.filter(factor => factor !== most);
  const dash = rest.find(({values}) => values.length <= DASHES.length) ?? null;
  return {colour, dash, panels: [most, ...rest.filter(factor => factor !== dash)]};
})();

/** The panels of a grid in its order: [{title, runs}]; without a grid one panel without a title. */
export function panelsOf(list) {
  if (!roles?.panels.length) return [{title: '', runs: list}];
  const title = run => roles.panels.map(factor => factorText(factor, factor.of(run))).join(', ');
  const titles = [...new Set(runs.map(title))];
  return titles.map(text => ({title: text, runs: list.filter(run => title(run) === text)}))
               .filter(({runs: own}) => own.length);
}

/** The look of a run in charts: in a grid by its factors, else by its slot with shapes and dashes for further turns. */
export function lookOf(run) {
  const slot = selection.slots.get(run);
  if (slot === undefined) return {colour: 'var(--faded)', shape: 'circle', dash: '', faded: true, slot: 0};
  if (roles) {
    const indexIn = factor => factor.values.indexOf(factor.of(run)), c = indexIn(roles.colour);
    const d = indexIn(roles.dash ?? roles.colour);
    return {colour: `var(--run-${c % COLOURS})`, shape: SHAPES[d % SHAPES.length], dash: DASHES[d % DASHES.length],
            faded: false, slot: c + d};
  }
  const turn = Math.floor(slot / COLOURS);
  return {colour: `var(--run-${slot % COLOURS})`, shape: SHAPES[(slot + 3 * turn) % SHAPES.length],
          dash: DASHES[(slot + 5 * turn) % DASHES.length], faded: false, slot};
}

/** The entries of a legend: {text, look, factor, value} for a grid, else {text, look, run}. */
export function legendEntries() {
  if (!roles) return selection.chosen().map(run => ({text: run.name, look: lookOf(run), run}));
  const entry = (factor, look) => factor.values.map((value, i) =>
      ({text: factorText(factor, value), look: look(i), factor, value}));
  const plain = {colour: 'var(--ink)', shape: '', dash: ''};
  return [
    ...entry(roles.colour, i => ({colour: `var(--run-${i % COLOURS})`, shape: roles.dash ? '' : SHAPES[i % SHAPES.length],
                                  dash: roles.dash ? '' : DASHES[i % DASHES.length]})),
    ...roles.dash ? entry(roles.dash, i => ({...plain, shape: SHAPES[i % SHAPES.length], dash: DASHES[i]})) : [],
    ...roles.panels.flatMap(factor => entry(factor, () => null)),
  ];
}
