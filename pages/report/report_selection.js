// The selection of runs: those that match the filter, and the highlighted ones of them.

import {isNumber, lowerIsBetter, runs} from './report_base.js';
import {factors, MANY} from './report_factors.js';

export const FEW = 8;  // of very many runs, so many are highlighted at first

/** The runs that match the filter (visible), the highlighted ones of them (chosen), and the slot of each chosen run. */
export const selection = {
  filter: '',
  own: null,          // Set of runs that the reader chose; null: the default choice
  off: new Set(),     // values of a grid that the reader dimmed: "key=value"
  slots: new Map(),   // chosen run → number of its colour
  order: runs,        // in the order of the table
  listeners: [],
  visible() { return this.order.filter(run => this.matches(run)); },
  matches({name, architecture}) {
    const text = `${name} ${architecture}`.toLowerCase();
    return this.filter.toLowerCase().split(/\s+/).every(word => text.includes(word));
  },
  chosen() { return runs.filter(run => this.slots.has(run)); },
  isChosen(run) { return this.slots.has(run); },
  toggle(run) {
    this.own ??= new Set(this.slots.keys());
    if (!this.own.delete(run)) this.own.add(run);
    this.update();
  },
  /** Dims all runs of a grid with this value, or highlights them again. */
  toggleValue({key}, value) {
    const name = `${key}=${value}`;
    if (!this.off.delete(name)) this.off.add(name);
    this.own = new Set(runs.filter(run => factors.every(factor => !this.off.has(`${factor.key}=${factor.of(run)}`))));
    this.update();
  },
  reset() {
    this.own = null;
    this.off.clear();
    this.update();
  },
  /** The default choice: all runs; of very many the first run and the best others. */
  byDefault() {
    const visible = runs.filter(run => this.matches(run));
    if (runs.length <= MANY || visible.length <= FEW) return visible;
    const key = run => isNumber(run.metric?.mean) ? run.metric.mean * (lowerIsBetter ? 1 : -1) : Infinity;
    const others = visible.slice(1).sort((a, b) => key(a) - key(b));
    return [visible[0], ...others.slice(0, FEW - 1)];
  },
  assign() {
    const wanted = new Set(this.own ? [...this.own].filter(run => this.matches(run)) : this.byDefault());
    for (const run of this.slots.keys()) if (!wanted.has(run)) this.slots.delete(run);
    for (const run of runs) {
      if (!wanted.has(run) || this.slots.has(run)) continue;
      const taken = new Set(this.slots.values());
      let slot = 0;
      while (taken.has(slot)) ++slot;
      this.slots.set(run, slot);
    }
  },
  update() {
    this.assign();
    for (const listener of this.listeners) listener();
  },
};
export const whenSelectionChanges = listener => selection.listeners.push(listener);
