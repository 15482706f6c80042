// Where finished language models differ: bits per byte on slices of the same texts.

import {el} from '../page.js';
import {sliceTable} from '../slice_table.js';
import {correctionName, metric, pValue, runs} from './report_base.js';
import {runName} from './report_chart.js';

export function buildSlices(section) {
  const sliced = runs.filter(run => Array.isArray(run.slices) && run.slices.length);
  if (!sliced.length) return false;
  const models = sliced.map(run => ({name: runName(run), hasBaseline: Boolean(run.baseline), slices: run.slices,
                                     parts: run.versus_baseline?.over ?? 'examples'}));
  section.append(
      el('p', 'quiet', `${metric.label} on parts of the validation texts. The loss of a token is spread over its bytes, so ` +
                       'models with different tokenizers are compared on the same bytes. Intervals by bootstrap over the ' +
                       'examples, or documents where these are known, p by exchanging single ones at random, corrected for ' +
                       `all slices (${correctionName} method).`),
      sliceTable(models, pValue));
  return true;
}
