// What tells the runs apart: for a grid its variants and keys, else the names.

import {data} from '../page.js';
import {runs} from './report_base.js';

export const MANY = 24;  // with more runs than this, a part of them is highlighted

/** The variant and the keys of the grid that have several values: {key, label, values, of: run → value}. */
export const factors = (() => {
  const keys = data.grid ?? [];
  if (!keys.length) return [];
  const variant = {key: 'variant', label: '', values: data.variants ?? [], of: run => run.variant};
  const all = [variant, ...keys.map(({key, label, values}) =>
      ({key, label: key === 'size' ? '' : label, values, of: run => run.grid?.[key]}))]
      .filter(({values}) => values.length > 1);
  const cells = new Set(runs.map(run => JSON.stringify(all.map(({of}) => of(run)))));
  return cells.size === runs.length ? all : [];
})();
export const factorText = ({label}, value) => label ? `${label}=${value}` : value;

/**
 * What tells a run from the others, or the name of anything else. A panel's title says the values of the factors `said`.
 */
export function labelOf(run, said = []) {
  const rest = runs.includes(run) ? factors.filter(factor => !said.includes(factor)) : [];
  return rest.length ? rest.map(factor => factorText(factor, factor.of(run))).join(', ') : run.name;
}
