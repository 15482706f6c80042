// The controls of the open map, which the pages of texts and of pictures share.

import {$, count, whenResized, whenThemeChanges} from '../page.js';

const STEPS = [['previous', -1, 0], ['next', 1, 0], ['up', 0, -1], ['down', 0, 1]];

/** What a name such as cross-0-1, cross-0-mean or encoder-0-1-17 says: the map, and what follows. */
export function parseName(name) {
  const [kind, layer, head, rest] = (name || '').split('-');
  return {map: {kind, layer: Number(layer), head: ['mean', 'rollout'].includes(head) ? head : Number(head)}, rest};
}

/** The layers and heads of each kind of map. */
export const shapesOf = ({KINDS, kinds, maps}) => kinds.map(kind =>
    `${KINDS[kind].title}: ${count(maps[kind].length, 'layer')} × ${count(maps[kind][0].length, 'head')}`);

/** What a roll-out goes through. */
export const rolledThrough = ({kind, layer}) =>
    kind === 'cross' ? 'the encoder and this layer' : layer ? `layers 0 to ${layer}` : 'layer 0';

/** Scrolls to the open map where it is out of sight: on a phone it is above the other maps. */
export function bringIntoSight(id) {
  const {top, bottom} = $(id).getBoundingClientRect();
  if (bottom < 160 || top > innerHeight - 160) $('detail').scrollIntoView({block: 'start'});
}

/** Shows which map is open, which steps lead from it, and what is chosen: name of the radio buttons → value. */
export function markControls(overview, map, chosen) {
  overview.mark(map);
  for (const [id, heads, layers] of STEPS) $(id).disabled = !overview.neighbour(map, heads, layers);
  for (const input of document.querySelectorAll('input[type=radio]'))
    input.checked = input.value === chosen[input.name];
}

/**
 * Opens the map that the address names, or calls `otherwise`, and lets the controls act from then on. `readAddress` opens
 * the map of a name, or returns false. `state` is {map, show, scale}.
 */
export function startControls({state, overview, open, readAddress, otherwise, render, fillTable}) {
  const repaint = () => { overview.paint(); render(); };
  const listen = (id, event, act) => $(id).addEventListener(event, act);
  readAddress(location.hash.slice(1)) || readAddress(new URLSearchParams(location.search).get('open')) || otherwise();
  for (const [id, heads, layers] of STEPS)
    listen(id, 'click', () => open(overview.neighbour(state.map, heads, layers)));
  listen('show-choice', 'change', event => { state.show = event.target.value; render(); });
  listen('scale-choice', 'change', event => { state.scale = event.target.value; repaint(); });
  listen('numbers', 'toggle', () => { if ($('numbers').open) fillTable(); });
  addEventListener('hashchange', () => readAddress(location.hash.slice(1)));
  whenThemeChanges(repaint);
  whenResized($('detail'), render);  // render() itself changes the height
}
