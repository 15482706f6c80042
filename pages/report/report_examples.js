// The examples of the data at which a model and its baseline differ most, side by side.

import {count, el, set} from '../page.js';
import {leftOutNote, metric, metricText, runs} from './report_base.js';
import {outputCard, runName} from './report_chart.js';
import {selection, whenSelectionChanges} from './report_selection.js';

export function buildExamples(section) {
  const compared = runs.filter(run => run.examples?.better.length || run.examples?.worse.length);
  if (!compared.length) return false;
  section.append(el('p', 'quiet', 'Of each model and its baseline, the examples of the validation data whose ' +
                                  `${metric.label} differs most. Long texts are cut.`), ...leftOutNote('examples', 'The examples'));
  const list = el('div', 'samples');
  section.append(list);
  const open = new Set();  // what the reader has unfolded
  const FIRST = 2;         // examples that are shown at first

  function said(run, prediction, value, target) {
    const content = [];
    if (typeof prediction === 'string') {
      const text = el('p', 'text', el('bdi', '', prediction || '∅'));
      if (prediction === target) text.append(set(el('span', 'right', ' ✓'), {title: 'the same as the target'}));
      content.push(text);
    }
    return outputCard(run, ...content, el('p', 'quiet value', `${metric.label} ${metricText(value)}`));
  }
  function exampleCard(run, baseline, example) {
    const head = el('div', 'input', el('span', 'tag', 'Input'), el('p', 'text', el('bdi', '', example.input)));
    if (typeof example.target === 'string')
      head.append(el('span', 'tag', 'Target'), el('p', 'text', el('bdi', '', example.target)));
    const outputs = [said(run, example.prediction, example.value, example.target),
                     said(baseline, example.baseline_prediction, example.baseline_value, example.target)];
    return el('article', 'sample', head, el('div', 'outputs', ...outputs));
  }
  function group(run, baseline, examples, word) {
    if (!examples.length) return [];
    const cards = examples.map(example => exampleCard(run, baseline, example));
    const title = el('h3', 'panel-title', runName(run), ` is ${word} than `, runName(baseline));
    if (cards.length <= FIRST) return [title, ...cards];
    const key = `${run.name} ${word}`;
    const more = el('details', 'more', el('summary', '', count(cards.length - FIRST, 'more example')), ...cards.slice(FIRST));
    more.open = open.has(key);
    more.addEventListener('toggle', () => { more.open ? open.add(key) : open.delete(key); });
    return [title, ...cards.slice(0, FIRST), more];
  }
  function draw() {
    const chosen = selection.chosen();
    const shown = compared.filter(run => chosen.includes(run));
    list.replaceChildren(...(shown.length ? shown : compared.slice(0, 1)).flatMap(run => {
      const baseline = runs.find(({name}) => name === run.baseline);
      return [...group(run, baseline, run.examples.better, 'better'), ...group(run, baseline, run.examples.worse, 'worse')];
    }));
  }
  whenSelectionChanges(draw);
  draw();
  return true;
}
