// The page of a comparison that still runs: it says how far that is, and loads itself again.

import {$, data} from '../page.js';
import {runs} from './report_base.js';
import {selection} from './report_selection.js';

const RELOAD_SECONDS = 10, SILENT_SECONDS = 900;  // after this much silence, the comparison has probably stopped

/**
 * What a reader has chosen, to be the same after the page was loaded again: kept in the entry of the history, which the
 * browser has before it loads the page. Browsers keep the place in the page themselves.
 */
const kept = {
  save() {
    const inputs = [...document.querySelectorAll('#sections input[type=radio]:checked')];
    const checked = inputs.map(({name, value}) => [name, value]);
    const own = selection.own && runs.filter(run => selection.own.has(run)).map(({name}) => name);
    const open = [...document.querySelectorAll('details')].map(details => details.open);
    const state = {checked, own, open, off: [...selection.off], filter: selection.filter};
    history.replaceState({report: state}, '');
  },
  load() {
    const state = history.state?.report;
    if (!state) return;
    for (const value of state.off) selection.off.add(value);
    if (state.own) selection.own = new Set(runs.filter(run => state.own.includes(run.name)));
    selection.filter = $('filter').value = state.filter;
    selection.update();
    for (const [name, value] of state.checked) {
      const input = [...document.getElementsByName(name)].find(node => node.value === value);
      if (input && !input.checked) input.click();
    }
    [...document.querySelectorAll('details')].forEach((details, i) => { details.open = Boolean(state.open[i]); });
  },
};

export function followProgress() {
  const progress = data.progress;
  if (!progress) return kept.load();
  const {finished, runs: all, finished_trainings: done, trainings, stopped} = progress;
  const silent = (Date.now() - Date.parse(data.created)) / 1000 > SILENT_SECONDS;
  const end = stopped ? ' The comparison was stopped; --resume goes on with it.'
      : silent ? ` Nothing has been written since ${data.created.replace('T', ' ').replace('Z', ' UTC')}.`
      : ' The numbers are from the trainings so far, and verdicts follow at the end. This page loads itself again.';
  $('progress').textContent = `${finished} of ${all} runs are finished (${done} of ${trainings} trainings).${end}`;
  $('progress').hidden = false;
  kept.load();
  if (stopped || silent) return;
  const timer = setInterval(() => {
    if (document.querySelector('dialog[open]') || document.activeElement === $('filter')) return;  // the reader is busy
    clearInterval(timer);
    kept.save();
    location.reload();
  }, 1000 * RELOAD_SECONDS);
}
