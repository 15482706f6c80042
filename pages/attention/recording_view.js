// The spectrogram of a recording, and under it where a map looks at each moment.

import {fraction, headName} from '../heat_map.js';
import {$, colour, data, el, plain} from '../page.js';

const MOST_ROWS = 60;
const NONE = '∅';  // what a model that is trained with CTC writes at most moments

/** A canvas of width × height pixels; share(x, y) gives the strength of a pixel, from 0 to 1. */
function picture(width, height, share, className = '') {
  const canvas = Object.assign(el('canvas', className), {width, height});
  const pen = canvas.getContext('2d', {willReadFrequently: true});
  for (let y = 0; y < height; ++y)
    for (let x = 0; x < width; ++x) {
      pen.fillStyle = colour(share(x, y));
      pen.fillRect(x, y, 1, 1);
    }
  return canvas;
}

/** Texts at their moments: {text, at}, at from 0 to 1. */
function marks(className, list) {
  return el('div', className, ...list.map(({text, at}) => {
    const mark = el('span', '', text);
    mark.style.left = `${100 * at}%`;
    return mark;
  }));
}

function timeMarks(seconds) {
  const n = 4;
  return Array.from({length: n + 1}, (_, i) => ({text: `${(seconds * i / n).toFixed(2)} s`, at: i / n}));
}

/** What a model with CTC writes, at the moments at which it does. */
function writtenMarks() {
  if (data.target_tokens.length) return [];
  const likeliest = data.predictions.map(list => list[0].token);
  return likeliest.flatMap((token, t) => token === NONE || token === likeliest[t - 1] ? []
      : [{text: plain(token), at: (t + 0.5) / likeliest.length}]);
}

/** The rows to draw, {name, values}: those of the tokens that are written, or the mean over all moments. */
function rowsOf({kind}, {values, rows, columns}) {
  const S = columns.length, row = t => values.slice(t * S, (t + 1) * S);
  if (kind === 'cross' && rows.length <= MOST_ROWS) return rows.map((name, t) => ({name: plain(name), values: row(t)}));
  const mean = columns.map((_, s) => rows.reduce((sum, _, t) => sum + values[t * S + s], 0) / rows.length);
  return [{name: 'mean', values: mean}];
}

/** Fills the section for a map that looks at the recording; hides it for others. `view` is that of heat_map.js. */
export function showRecording(map, view, title) {
  const recording = data.recording, section = $('recording');
  section.hidden = !recording || map.kind === 'decoder';
  if (section.hidden) return;
  const {bands, levels, frame_seconds: step} = recording, frames = levels.length / bands;
  const spectrogram = picture(frames, bands, (x, y) => levels[(bands - 1 - y) * frames + x] / 255, 'spectrogram');
  spectrogram.setAttribute('role', 'img');
  spectrogram.setAttribute('aria-label', `Spectrogram of ${data.text}: ${bands} bands, the lowest at the bottom`);
  const rows = rowsOf(map, view), cells = [['', spectrogram]], written = writtenMarks();
  if (written.length) cells.push(['writes', marks('written', written)]);
  for (const {name, values} of rows) {
    const top = Math.max(1, ...values), canvas = picture(values.length, 1, x => fraction(values[x], top));
    canvas.setAttribute('role', 'img');
    const at = values.indexOf(Math.max(...values));
    canvas.setAttribute('aria-label', `${name} looks most at ${view.columns[at]}`);
    cells.push([name, canvas]);
  }
  cells.push(['', marks('times', timeMarks(frames * step))]);
  $('recording-rows').replaceChildren(...cells.flatMap(([name, node]) => [el('span', 'name', name), node]));
  const each = rows.length === view.rows.length ? 'Each row: where one token looks'
      : `The row: where all ${view.rows.length} ${map.kind === 'cross' ? 'tokens' : 'moments'} look, in the mean`;
  $('recording-note').textContent = `${title} (${headName(map.head)}), under the spectrogram. ${each}, from nothing to the ` +
      `largest weight of the row.`;
}
