// The page of a comparison over several tasks.

import {$, count, data, el, set, showScrolling, sortableTable, whenResized} from '../page.js';

const isNumber = value => typeof value === 'number' && Number.isFinite(value);
const tasks = data.tasks, done = tasks.filter(({error}) => !error), overall = data.overall ?? [];
const rowOf = (task, name) => task.runs.find(run => run.name === name);
const pValue = p => !isNumber(p) ? '' : p < 0.001 ? 'p < 0.001' : p > 0.995 ? 'p = 1' : `p = ${Number(p.toPrecision(2))}`;
const minus = text => text.replace('-', '−');
const withSign = text => text.startsWith('−') ? text : `+${text}`;

/** A long name without its middle: the ends of names tell sizes apart. */
const shortened = (name, letters) => name.length <= letters ? name
    : `${name.slice(0, Math.ceil((letters - 1) / 2))}…${name.slice(name.length - Math.floor((letters - 1) / 2))}`;

/** Writes values of a task's metric, all with the same decimals: two digits of the noise. */
function writer(task) {
  const {percent} = task.metric, factor = percent ? 100 : 1, noise = task.noise?.difference * factor;
  const means = task.runs.map(run => Math.abs(run.metric?.mean ?? 0) * factor);
  const digits = noise > 0 ? 1 - Math.floor(Math.log10(noise)) : 3 - Math.floor(Math.log10(Math.max(...means) || 1));
  const decimals = Math.max(percent ? 1 : 2, Math.min(5, digits));
  return value => isNumber(value) ? minus((value * factor).toFixed(decimals)) : '–';
}
const labelOf = ({metric}) => metric.label + (metric.percent ? ' (%)' : '');
const word = verdict => verdict === 'undecided' ? 'not told apart' : verdict;

/** The mean with half its interval, and below it how far it is from the baseline. */
function valueCell(row, text, noise) {
  if (!row?.metric) return row ? 'failed' : '–';
  const {mean, low, high} = row.metric, versus = row.versus_baseline;
  const cell = el('div', '', set(el('span', 'number', text(mean)), {'data-value': mean}));
  if (isNumber(high)) cell.append(el('span', 'quiet-inline', ` ± ${text((high - low) / 2)}`));
  if (versus) {
    const beside = isNumber(noise) ? ` (noise ±${text(noise)})` : '';
    cell.append(el('span', 'quiet', el('span', `verdict ${versus.verdict}`, word(versus.verdict)),
                   ` ${withSign(text(versus.difference))}${beside}`));
    set(cell, {title: [`difference ${text(versus.low)} to ${text(versus.high)} (95 %)`, pValue(versus.verdict === 'same' ? versus.p_same : versus.p_corrected)]
        .filter(Boolean).join(', ')});
  }
  return cell;
}

function overallCell(row) {
  const text = value => isNumber(value) ? minus(value.toFixed(2)) : '–';
  return valueCell({metric: row.standardised, versus_baseline: row.versus_baseline}, text, null);
}

function fillTop() {
  $('name').textContent = data.title ? `· ${data.name}` : '';
  $('title').textContent = data.title || data.name;
  for (const id of ['folklore', 'measured', 'note']) {
    $(id).textContent = data[id] || '';
    $(id).parentElement.hidden = !data[id];
  }
  const seeds = done[0]?.seeds ?? [];
  const facts = [['Tasks', tasks.length], ['Variants', overall.length], ['Seeds', seeds.length], ['Tests', data.tests]];
  for (const [term, text] of facts) $('facts').append(el('div', '', el('dt', '', term), el('dd', '', String(text ?? '–'))));
  const notice = (kind, text) => el('li', `notice ${kind}`, el('b', '', kind), ' ', el('span', '', text));
  for (const {name, error} of tasks.filter(({error}) => error)) $('notices').append(notice('failure', `${name}: ${error}`));
  for (const {name} of done.filter(({fair}) => fair === false))
    $('notices').append(notice('unfair', `The variants of ${name} differ in more than their subject; its page says in what.`));
}

const card = (title, ...children) => {
  const section = el('section', 'card', el('h2', '', title), ...children);
  $('sections').append(section);
  return section;
};

function showTable() {
  const columns = [
    {title: 'variant', value: ({name}) => name},
    ...tasks.map(task => {
      if (task.error) return {title: task.name, value: () => null, cell: () => 'failed'};
      const text = writer(task);
      return {title: `${task.name}: ${labelOf(task)}`, better: task.metric.better,
              value: row => rowOf(task, row.name)?.metric?.mean ?? null,
              cell: row => valueCell(rowOf(task, row.name), text, task.noise?.difference)};
    }),
    {title: 'mean rank', better: 'lower', value: ({rank}) => rank, cell: ({rank}) => isNumber(rank) ? rank.toFixed(1) : '–'},
    {title: 'mean of standardised results', better: 'higher', value: row => row.standardised?.mean ?? null, cell: overallCell},
  ];
  const {table} = sortableTable({columns, rows: overall});
  table.id = 'task-table';
  const box = el('div', 'scroll tall', table);
  card('Results', box, el('p', 'quiet under-table',
      'Verdicts are about the difference from the baseline over seeds (paired t-test); p is corrected for all ' +
      `${count(data.tests ?? 0, 'test')} of the tasks, and for those over all tasks (${data.correction === 'benjamini_hochberg' ? 'Benjamini and Hochberg' : 'Holm'}). The noise is the difference ` +
      'that seeds alone show between two equal variants once in twenty times. For the last column each result is standardised ' +
      'within its task, (value − mean) / deviation over all variants and seeds, where more is better; each seed that was ' +
      'trained to the end counts.'));
  showScrolling(box, 'Results');
}

const svg = (tag, values, ...children) => {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(values)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};

/** A line for each variant: a ring for each task, and the mean of all with its interval. */
function showStanding() {
  const rows = overall.filter(row => row.standardised);
  if (rows.length < 2 || done.length < 2) return;
  const host = el('div', 'chart-host');
  card('Standardised results', host, el('p', 'quiet under-table',
      'A ring is one task, the filled circle the mean of all tasks with its 95 % interval over seeds; right is better.'));
  const points = rows.map(row => done.map(task => ({task: task.name, x: rowOf(task, row.name)?.standardised?.mean}))
      .filter(({x}) => isNumber(x)));
  const all = [...points.flat().map(({x}) => x), ...rows.flatMap(({standardised: {mean, low, high}}) => [mean, low ?? mean, high ?? mean])];
  const low = Math.min(0, ...all), high = Math.max(0, ...all);
  function draw() {
    const width = Math.max(280, host.clientWidth), right = 14, step = 34;
    const letter = 6.5, longest = Math.max(...rows.map(({name}) => name.length));
    const left = Math.min(letter * longest + 14, width * .42), letters = Math.floor((left - 14) / letter);
    const height = 30 + step * rows.length;
    const x = value => left + (value - low) / (high - low || 1) * (width - left - right);
    const chart = svg('svg', {class: 'standing', width, height, viewBox: `0 0 ${width} ${height}`, role: 'img',
                              'aria-label': 'Standardised results of each variant; the table has the numbers'});
    for (let tick = Math.ceil(low); tick <= Math.floor(high); ++tick)
      chart.append(svg('line', {class: tick ? 'axis' : 'zero', x1: x(tick), x2: x(tick), y1: 4, y2: height - 24}),
                   svg('text', {class: 'tick', x: x(tick), y: height - 8, 'text-anchor': 'middle'}, minus(String(tick))));
    rows.forEach((row, i) => {
      const y = 4 + step * (i + .5), {mean, low: from, high: to} = row.standardised;
      chart.append(svg('text', {x: 0, y: y + 4}, shortened(row.name, letters), svg('title', {}, row.name)));
      if (isNumber(from)) chart.append(svg('line', {class: 'span', x1: x(from), x2: x(to), y1: y, y2: y}));
      for (const {task, x: value} of points[i])
        chart.append(svg('circle', {class: 'one', cx: x(value), cy: y, r: 4.5},
                         svg('title', {}, `${task}: ${value.toFixed(2)}`)));
      chart.append(svg('circle', {class: 'mean', cx: x(mean), cy: y, r: 6},
                       svg('title', {}, `mean of the tasks: ${mean.toFixed(2)}`)));
    });
    host.replaceChildren(chart);
  }
  draw();
  whenResized(host, draw);
}

function showTasks() {
  card('Tasks', el('ul', 'task-list', ...tasks.map(task => el('li', '',
      task.error ? el('b', '', task.name) : set(el('a', '', el('b', '', task.name)), {href: task.report}),
      task.error ? ` failed: ${task.error}` : `: ${task.measured ?? ''}`))));
}

function showGaps() {
  if (!data.protocol?.length) return;
  card('What it lacks', el('p', 'quiet', 'Of what comparisons of architectures are asked for:'),
       el('ul', 'gaps', ...data.protocol.map(text => el('li', '', text))));
}

function showCommand() {
  if (!data.command && !data.yaml) return;
  card('How it was made', el('pre', '', data.command ?? ''),
       ...data.yaml ? [el('details', '', el('summary', '', 'The comparison file'), el('pre', '', data.yaml))] : []);
}

fillTop();
showTable();
showStanding();
showTasks();
showGaps();
showCommand();
