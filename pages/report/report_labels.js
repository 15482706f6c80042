// Labels that fit into the room that there is for them.

import {labelOf} from './report_factors.js';

export const measure = (() => {
  const pen = document.createElement('canvas').getContext('2d');
  return (text, size = 12, weight = 400) => {
    pen.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
    return pen.measureText(text).width;
  };
})();

/** A text shortened in its middle: the names of a grid differ mostly at their ends. */
function shortened(text, room, size = 12, weight = 400) {
  const letters = [...text];
  let short = text;
  for (let kept = letters.length - 1; kept > 2 && measure(short, size, weight) > room; --kept) {
    const end = letters.slice(letters.length - Math.floor(kept / 2));
    short = `${letters.slice(0, Math.ceil(kept / 2)).join('')}…${end.join('')}`;
  }
  return short;
}

/** What is left of texts without the beginning that all of them share. */
function withoutCommonStart(texts) {
  let n = 0;
  while (texts.every(text => n < text.length - 1 && text[n] === texts[0][n])) ++n;
  return n > 1 ? texts.map(text => `…${text.slice(n)}`) : texts;
}

/** The labels of runs for `room` pixels: run → text. No two different labels become the same text. */
export function shortLabels(list, room, size, said = [], weight = 400) {
  const whole = new Map(list.map(run => [run, labelOf(run, said)]));
  const short = new Map([...whole].map(([run, text]) => [run, shortened(text, room, size, weight)]));
  const alike = text => list.filter(run => short.get(run) === text);
  for (const text of new Set(short.values())) {
    const group = alike(text);
    if (group.length < 2) continue;
    const ends = withoutCommonStart(group.map(run => whole.get(run)));
    group.forEach((run, i) => short.set(run, shortened(ends[i], room, size, weight)));
  }
  for (const text of new Set(short.values())) {  // a number tells those apart that are still alike
    const group = alike(text);
    if (group.length > 1)
      group.forEach(run => short.set(run, `${list.indexOf(run) + 1}: ${shortened(whole.get(run), room - 24, size, weight)}`));
  }
  return short;
}
