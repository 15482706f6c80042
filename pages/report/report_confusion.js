// Which classes each run takes for which: a matrix for each run, and its most frequent confusions.

import {colour, el, headCell, inkOn, whenThemeChanges} from '../page.js';
import {leftOutNote, runs, sum, THIN} from './report_base.js';
import {outputCard} from './report_chart.js';
import {selection, whenSelectionChanges} from './report_selection.js';

const WIDEST_MATRIX = 100, FOLDED_MATRIX = 20, FOLDED_RUNS = 2, SHOWN_CONFUSIONS = 5;

/** The most frequent confusions: [{right, predicted, count, share}], with the share of the right class. */
function confusionsOf({labels, counts}) {
  return counts.flatMap((row, i) => row.flatMap((count, j) => i === j || !count ? []
      : [{right: labels[i], predicted: labels[j], count, share: count / sum(row)}])).sort((a, b) => b.count - a.count);
}

const sharePercent = share => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}${THIN}%`;

/** The matrix as a table: the shade of a cell is its share of the row. */
function confusionTable(run) {
  const {labels, counts} = run.confusion;
  const heading = (text, scope) => headCell(el('bdi', '', text), scope, {title: text});
  const head = el('tr', '', el('td', 'corner-note', 'right ↓ predicted →'), ...labels.map(label => heading(label, 'col')));
  const body = counts.map((row, i) => {
    const all = sum(row);
    return el('tr', '', heading(labels[i], 'row'), ...row.map((count, j) => {
      const cell = el('td', i === j ? 'diagonal' : '', `${count}`), share = all ? count / all : 0;
      cell.title = `${labels[i]} taken for ${labels[j]}: ${count} of ${all} (${sharePercent(share)})`;
      if (!count) return cell.classList.add('none'), cell;
      Object.assign(cell.style, {background: colour(share), color: inkOn(share)});
      return cell;
    }));
  });
  const caption = el('caption', 'unseen', `${run.name}: rows are the right classes, columns the predicted ones`);
  const table = el('table', 'confusion', caption, el('thead', '', head), el('tbody', '', ...body));
  return el('div', 'scroll tall', table);
}

function confusionsList(confusion) {
  const confusions = confusionsOf(confusion);
  if (!confusions.length) return el('p', 'quiet', 'No mistakes.');
  const name = text => el('b', '', el('bdi', '', text));
  return el('ol', 'confusions-list', ...confusions.slice(0, SHOWN_CONFUSIONS).map(({right, predicted, count, share}) =>
      el('li', '', name(right), ' taken for ', name(predicted), el('span', 'quiet', ` ${count} (${sharePercent(share)})`))));
}

export function buildConfusion(section) {
  const having = runs.filter(run => run.confusion);
  if (!having.length) return false;
  const open = new Map(having.map(run => [run, having.length <= FOLDED_RUNS &&
                                               run.confusion.labels.length <= FOLDED_MATRIX]));
  const list = el('div', 'confusions');
  section.append(el('p', 'quiet', 'Validation data, summed over the seeds that did not fail. Rows: the right class. ' +
      'Columns: what was predicted. The shade is the share of the row.'));
  section.append(...leftOutNote('confusion', 'The matrices'), list);
  /** The table is made when it is first opened: many of them would slow the page down. */
  function matrix(run) {
    if (run.confusion.labels.length > WIDEST_MATRIX)
      return el('p', 'quiet', `A matrix of ${run.confusion.labels.length} classes is too large to be shown; it is in results.json.`);
    const details = el('details', '', el('summary', '', `Matrix of ${run.confusion.labels.length} classes`));
    const fill = () => { if (details.open && !details.querySelector('table')) details.append(confusionTable(run)); };
    details.open = open.get(run);
    details.addEventListener('toggle', () => { open.set(run, details.open); fill(); });
    fill();
    return details;
  }
  function draw() {
    const chosen = having.filter(run => selection.isChosen(run));
    if (!chosen.length)
      return list.replaceChildren(el('p', 'quiet', 'None of the highlighted runs has a matrix here.'));
    list.replaceChildren(...chosen.map(run => outputCard(run, confusionsList(run.confusion), matrix(run))));
  }
  whenSelectionChanges(draw);
  whenThemeChanges(draw);
  draw();
  return true;
}
