// Zooming into a chart.

import {placeIn, px, svg} from './report_chart.js';

/**
 * Zooms along x: by dragging, by a double click, which resets, and by the keys + − 0. `around`: the value in the middle
 * of a zoom by key; null: the middle of the axis. `zoomTo` gets {low, high}, or null for the whole.
 */
export function zoomable(host, {charts, around, zoomTo}) {
  let drag = null;
  const entryOf = target => charts().find(({chart}) => chart.svg.contains(target));
  const xOf = ({chart}, event) =>
      Math.max(chart.box.left, Math.min(chart.box.right, placeIn(chart.svg, event)[0]));
  host.addEventListener('pointerdown', event => {
    const entry = entryOf(event.target);
    if (!entry || event.button !== 0) return;
    drag = {entry, from: xOf(entry, event), area: svg('rect', {class: 'zoom-area', y: entry.chart.box.top, width: 0,
                                                               height: entry.chart.box.bottom - entry.chart.box.top})};
    entry.chart.svg.append(drag.area);
  });
  host.addEventListener('pointermove', event => {
    if (!drag) return;
    const to = xOf(drag.entry, event);
    drag.area.setAttribute('x', px(Math.min(drag.from, to)));
    drag.area.setAttribute('width', px(Math.abs(to - drag.from)));
  });
  const end = event => {
    if (!drag) return;
    const {entry, from, area} = drag, to = xOf(entry, event);
    drag = null;
    area.remove();
    if (event.type === 'pointerup' && Math.abs(to - from) > 8)
      zoomTo({low: entry.chart.x.from(Math.min(from, to)), high: entry.chart.x.from(Math.max(from, to))});
  };
  addEventListener('pointerup', end);
  addEventListener('pointercancel', end);
  host.addEventListener('dblclick', () => zoomTo(null));
  host.addEventListener('keydown', event => {
    const {chart} = charts()[0] ?? {};
    if (!chart || !['+', '=', '-', '−', '0'].includes(event.key)) return;
    event.preventDefault();
    if (event.key === '0') return zoomTo(null);
    const {left, right} = chart.box, middle = around() === null ? (left + right) / 2 : chart.x.at(around());
    const half = (right - left) / 2 * (event.key === '-' || event.key === '−' ? 2 : 0.5);
    zoomTo({low: chart.x.from(middle - half), high: chart.x.from(middle + half)});
  });
}
