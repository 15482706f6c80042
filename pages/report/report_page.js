// The report: question and findings, the table, and every section for which there is data.

import {$, button, count, data, el, headCell, set, sortableTable} from '../page.js';
import {buildAttention, buildSamples} from './report_attention.js';
import {betterSide, correctionName, duration, halfWidth, isNumber, metric, metricLabel, metricNumber, metricText, metricUnit,
        pOfVerdict, pValue, runs, shown, si, THIN, unit} from './report_base.js';
import {runName, swatch} from './report_chart.js';
import {buildConfusion} from './report_confusion.js';
import {buildCost, buildQuality, buildScaling, seedMean} from './report_costs.js';
import {buildCurves} from './report_curves.js';
import {buildEffects} from './report_effects.js';
import {buildExamples} from './report_examples.js';
import {buildExperts} from './report_experts.js';
import {factors, factorText, MANY} from './report_factors.js';
import {buildLengths} from './report_lengths.js';
import {legendEntries, lookOf, roles} from './report_looks.js';
import {followProgress} from './report_progress.js';
import {FEW, selection, whenSelectionChanges} from './report_selection.js';
import {buildSizes} from './report_sizes.js';
import {buildSlices} from './report_slices.js';
import {buildStructures} from './report_structures.js';
import {buildTranslations} from './report_translations.js';
import {buildTuning} from './report_tuning.js';

// ---- The top ------------------------------------------------------------------------------------------------------

const BUDGETS = {steps: value => count(value, 'step'), tokens: value => `${si(value)} ${unit}s`,
                 flops: value => si(value, 'FLOP'), seconds: duration};

function fillTop() {
  $('name').textContent = data.title ? `· ${data.name}` : '';
  $('title').textContent = data.title || data.name;
  for (const id of ['folklore', 'measured', 'note']) {
    $(id).textContent = data[id] || '';
    $(id).parentElement.hidden = !data[id];
  }
  $('claims').hidden = !data.folklore && !data.measured && !data.note;
  const table = gridTable();
  if (table) $('findings').append(table);
  const facts = [
    ['Runs', String(runs.length)],
    ['Task', data.task?.replaceAll('_', ' ')],
    ['Metric', `${metric.label}, ${betterSide}`],
    ['Budget of a run', data.budget?.amount > 0 && (BUDGETS[data.budget.kind] ?? String)(data.budget.amount)],
    [data.seeds.length === 1 ? 'Seed' : 'Seeds', data.seeds.length > 6 ? data.seeds.length : data.seeds.join(', ')],
    ['Matched', data.match && `${data.match.quantity} at ${si(data.match.target)}, within ` +
                              `${(100 * data.match.spread).toFixed(1)}${THIN}%`],
  ];
  for (const [term, text] of facts) if (text) $('facts').append(el('div', '', el('dt', '', term), el('dd', '', text)));
  const notice = (kind, text) => el('li', `notice ${kind}`, el('b', '', kind), ' ', el('span', '', text));
  if (data.fair && runs.length > 1)
    $('notices').append(notice('fair', 'All runs have the same data, tokenizer, evaluation, budget and seeds.' +
                                       parametersNote()));
  $('notices').append(...(data.notices ?? []).map(({kind, text}) => notice(kind, text)));
}

/** " Their parameters differ: 1.2 M (gpt) to 1.5 M (llama).", if they do by more than 2 %. */
function parametersNote() {
  const sized = runs.filter(run => run.parameters > 0).sort((a, b) => a.parameters - b.parameters);
  if (sized.length < 2 || sized.at(-1).parameters <= 1.02 * sized[0].parameters) return '';
  const text = run => `${si(run.parameters)} (${run.name})`;
  return ` Their parameters differ: ${text(sized[0])} to ${text(sized.at(-1))}.`;
}

// ---- The legend of the runs, always in sight -----------------------------------------------------------------------

function buildKey() {
  const chips = $('chips'), many = runs.length > MANY, filter = $('filter');
  $('filter-field').hidden = runs.length <= FEW;
  filter.addEventListener('input', () => {
    selection.filter = filter.value.trim();
    selection.update();
  });
  $('key-reset').addEventListener('click', () => {
    filter.value = selection.filter = '';
    selection.reset();
  });
  function chipOf({name, text, look, pressed, act}) {
    return button('chip', el('span', 'run-name', ...look ? [swatch(look)] : [], el('bdi', '', text)), act, {
      'data-chip': name, 'aria-pressed': pressed, title: `${text}: click to ${pressed ? 'dim' : 'highlight'}`});
  }
  /** In a grid a chip for each value, else one for each run. */
  function chipList() {
    if (roles)
      return legendEntries().map(({text, look, factor, value}) => {
        const name = `${factor.key}=${value}`;
        return chipOf({name, text, look, pressed: !selection.off.has(name),
                       act: () => selection.toggleValue(factor, value)});
      });
    return (many ? selection.chosen() : runs).map(run => chipOf({
      name: run.name, text: run.name, look: lookOf(run), pressed: selection.isChosen(run),
      act: () => selection.toggle(run)}));
  }
  function draw() {
    const focused = document.activeElement?.dataset?.chip;
    chips.replaceChildren(...chipList());
    if (focused) [...chips.children].find(chip => chip.dataset.chip === focused)?.focus();
    const visible = selection.visible().length;
    const found = visible === runs.length ? `${visible} runs` : `${visible} matching runs (${runs.length} in all)`;
    $('key-status').textContent = many ? `${selection.chosen().length} of ${found} highlighted` : '';
    $('key-reset').hidden = !selection.own && !selection.filter;
  }
  whenSelectionChanges(draw);
  draw();
}

// ---- The legend on paper, where the key is not -----------------------------------------------------------------------

function drawPaperLegend() {
  $('paper-legend').replaceChildren(...legendEntries().filter(({look}) => look).map(({text, look}) =>
      el('span', 'run-name', swatch(look), el('bdi', '', text))));
}

// ---- The table of a grid ---------------------------------------------------------------------------------------------

/** Mean and verdict of each variant (columns) at each point of the grid (rows); null where that is no table. */
function gridTable() {
  const columns = factors.find(({key}) => key === 'variant') ?? factors.at(-1);
  const keys = factors.filter(factor => factor !== columns);
  if (!keys.length || runs.length > 60) return null;
  /** A text that may be broken after each underscore. */
  const parts = text => text.split('_').flatMap((part, i) => i ? ['_', el('wbr'), part] : [part]);
  const heading = (text, scope) => headCell(parts(text), scope);
  const place = run => keys.map(({of}) => of(run)).join('\n');
  const cellOf = run => {
    if (!run) return el('td', '', '–');
    const said = run.versus_baseline?.verdict, cell = el('td', said ?? '', metricCell(run, 'grid.'));
    if (said) cell.append(' ', el('span', `verdict ${said}`, VERDICTS[said] ?? said));
    return cell;
  };
  const rows = [...new Set(runs.map(place))].map(at => {
    const own = runs.filter(run => place(run) === at);
    return el('tr', '', ...keys.map(({of}) => heading(of(own[0]), 'row')),
              ...columns.values.map(value => cellOf(own.find(run => columns.of(run) === value))));
  });
  const head = el('tr', '', ...keys.map(({label, key}) => heading(label || key, 'col')),
                  ...columns.values.map(value => heading(factorText(columns, value), 'col')));
  const title = `${metricLabel} and verdict at each point of the grid; ${betterSide}`;
  return el('div', 'scroll', el('table', 'grid-table', el('caption', '', title), el('thead', '', head),
                                el('tbody', '', ...rows)));
}

// ---- The table -----------------------------------------------------------------------------------------------------

const VERDICT_TITLE = 'against the baseline';
const VERDICTS = {better: '▲ better', worse: '▼ worse', same: '= same', undecided: '? undecided', untested: 'untested',
                  unsteady: 'unsteady', unfair: 'not fair'};
const MEANINGS = {
  better: 'The difference is larger than chance makes it (p below 0.05), and the better way.',
  worse: 'The difference is larger than chance makes it (p below 0.05), and the worse way.',
  same: 'The difference is smaller than the margin that matters (test of equivalence).',
  undecided: 'Neither a difference nor equality is shown: more seeds would tell.',
  untested: 'A test needs two seeds or more that count for both runs.',
  unsteady: 'Some seeds learnt and others did not: a mean describes neither.',
  unfair: 'The runs differ in more than their subject, so a difference would mean nothing.',
};
const METRIC_MEANINGS = {
  bits_per_byte: 'the loss in bits, divided by the bytes of the text: the same measure for every tokenizer; ',
  perplexity: 'e to the loss: among how many tokens the model hesitates; ',
};

function metricCell(run, prefix = '') {
  const failed = run.seeds.filter(seed => seed.end === 'failed');
  const cell = el('span', 'metric-cell');
  if (isNumber(run.metric?.mean)) {
    cell.append(shown(run.metric.mean, metricNumber(run.metric.mean), `${prefix}metric.mean`, run));
    const half = halfWidth(run), rest = el('span', 'quiet');
    if (half !== null) rest.append(' ± ', shown(half, metricNumber(half), `${prefix}metric.half`, run));
    cell.append(rest);
    rest.append(metricUnit);
  }
  const dull = run.seeds.filter(seed => seed.learnt === false).length;
  if (dull) {
    const title = `Their loss is not 2 % below ${run.guess?.unigram?.toFixed(3)}, the loss of guessing the frequencies.`;
    cell.append(set(el('span', 'failed-note', `${dull} of ${run.seeds.length} never learnt`), {title}));
  }
  if (failed.length) {
    const all = failed.length === run.seeds.length, many = run.seeds.length > 1;
    const note = el('span', 'failed-note', !all ? `${failed.length} of ${run.seeds.length} seeds failed`
                                                : many ? 'failed with every seed' : 'failed');
    note.title = failed.map(({seed, error}) => `seed ${seed}: ${error ?? 'failed'}`).join('\n');
    cell.append(note);
  }
  return cell.childNodes.length ? cell : '–';
}

const hasIntervals = runs.some(run => halfWidth(run) !== null);

const isOverExamples = run => ['examples', 'documents'].includes(run.versus_baseline?.over);

function verdictCell(run) {
  const versus = run.versus_baseline;
  if (!versus) return el('span', 'quiet', run.baseline ? '–' : 'baseline');
  const badge = set(el('span', `verdict ${versus.verdict}`, VERDICTS[versus.verdict] ?? versus.verdict),
                    {'data-run': run.name, 'data-field': 'verdict', 'data-value': versus.verdict,
                     title: MEANINGS[versus.verdict] ?? ''});
  const cell = el('span', 'verdict-cell', badge);
  if (isNumber(versus.difference)) {
    const signed = value => (value > 0 ? '+' : value < 0 ? '−' : '±') + metricNumber(Math.abs(value));
    const difference = signed(versus.difference), p = pOfVerdict(versus);
    const notes = el('span', 'quiet', shown(versus.difference, difference, 'versus_baseline.difference', run));
    if (isNumber(versus.low))
      notes.append(` (${signed(versus.low)} to ${signed(versus.high)})`);
    if (isNumber(p)) notes.append(', ', shown(p, pValue(p), `versus_baseline.${versus.verdict === 'same' ? 'p_same' : 'p_corrected'}`, run));
    if (run.ablation && isNumber(versus.agreeing)) notes.append(`, in ${versus.agreeing} of ${versus.n} seeds`);
    if (isOverExamples(run)) notes.append(`, ${versus.n} ${versus.over}`);
    if (isNumber(versus.seeds_needed)) notes.append(`, ${versus.seeds_needed} seeds would tell`);
    cell.append(notes);
  }
  if (isNumber(versus.low))
    cell.title = `difference from ${run.baseline}: ${metricNumber(versus.low)} to ${metricNumber(versus.high)} ` +
                 `(95 %), ${pValue(versus.p)}; corrected for the number of tests: ${pValue(versus.p_corrected)}`;
  return cell;
}

/** Whether a run has the best value of a column beyond the noise. */
const isBestIn = (run, field) => Boolean(run.best_in?.includes(field));

function tableColumns() {
  const families = new Set(runs.map(run => run.architecture));
  const number = (title, field, value, text, better, hint = '') =>
      ({title, value, cell: run => shown(value(run), text(value(run)), field, run), better, hint,
        mayWin: run => isBestIn(run, field)});
  const own = (title, key, unit, better, hint) =>
      number(title, key, run => run[key] ?? null, value => si(value, unit), better, hint);
  const speed = (title, key, hint) =>
      number(title, `speed.${key}`, run => run.speed?.[key] ?? null, value => si(value), 'higher', hint);
  return [
    {title: 'run', value: run => run.name, cell(run) {
      const family = run.architecture?.replaceAll('_', '-') ?? '';
      const content = [runName(run), ...family !== run.name && families.size > 1 ? [el('span', 'quiet', family)] : []];
      return button('run-toggle', content, () => selection.toggle(run), {
        'aria-pressed': selection.isChosen(run), title: 'Highlight this run in the charts, or dim it'});
    }},
    {title: metric.label, value: run => run.metric?.mean ?? null, cell: metricCell, better: metric.better,
     mayWin: run => isBestIn(run, 'metric'),
     hint: `${METRIC_MEANINGS[metric.key] ?? ''}${betterSide}${hasIntervals ? '; ± is half the 95 % interval of the mean over the seeds' : ''}`},
    {title: VERDICT_TITLE, value: run => run.versus_baseline?.difference ?? null, cell: verdictCell,
     hint: `Paired t-test over the seeds, p corrected by ${correctionName} method`},
    own('parameters', 'parameters', '', 'lower'),
    own(`FLOPs / ${unit}`, 'flops_per_token', '', 'lower', 'Forward pass'),
    speed(`training ${unit}s/s`, 'train_tokens_per_second'),
    speed('prefill tokens/s', 'prompt_tokens_per_second', 'Reading a prompt at once, before the first new token'),
    speed('decode tokens/s', 'decode_tokens_per_second', 'Decoding, token by token'),
    own('peak memory', 'peak_memory_bytes', 'B', 'lower', 'Memory of tensors during training'),
    number('training time', 'seconds', seedMean('seconds'), duration, 'lower', 'Mean over the seeds, with evaluation'),
  ].filter(({value}, i) => i < 2 || runs.some(run => (value(run) ?? null) !== null));
}

/** The differences that do not matter. */
function marginText() {
  const percent = (100 * (data.margin ?? 0)).toPrecision(2).replace(/\.?0+$/, '');
  return metric.percent ? `${percent} points of the baseline` : `${percent}${THIN}% of the baseline’s value`;
}

function powerText({deviations, probability, tests, seeds, seeds_needed: needed}) {
  const found = `${count(seeds, 'seed')} in ${count(tests, 'test')} find a difference of ${deviations} standard deviations ` +
                `of a run with a probability of ${Math.round(100 * probability)}${THIN}%`;
  return isNumber(needed) && needed > seeds ? `${found}; ${needed} seeds find it with 80${THIN}%.` : `${found}.`;
}

function buildTable(section) {
  const columns = tableColumns();
  const table = sortableTable({
    columns, rows: selection.visible(),
    mayWin: run => !run.seeds.length || run.seeds.some(seed => seed.end !== 'failed'),
    onSort() {
      keepOrder();
      for (const listener of selection.listeners) if (listener !== redraw) listener();
    },
  });
  /** Keeps the order of the table for the charts. */
  function keepOrder() {
    const order = table.order();
    selection.order = [...order, ...runs.filter(run => !order.includes(run))];
  }
  table.table.id = 'results-table';
  table.table.classList.toggle('with-verdicts', columns[2]?.title === VERDICT_TITLE);
  const nameIn = node => node?.querySelector('bdi').textContent;
  function redraw() {
    const toggled = nameIn(document.activeElement?.closest?.('.run-toggle'));
    const list = runs.filter(run => selection.matches(run));
    table.setRows(list);
    keepOrder();
    empty.hidden = list.length > 0;
    if (toggled) [...table.table.querySelectorAll('.run-toggle')].find(node => nameIn(node) === toggled)?.focus();
  }
  const empty = el('p', 'quiet', 'No run matches the filter.');
  empty.hidden = true;
  const scroll = el('div', `scroll table-scroll${runs.length > MANY ? ' tall' : ''}`, table.table);
  set(scroll, {tabIndex: 0, role: 'region', 'aria-label': 'Results, one row per run'});
  const legend = ['Bold: the best value of a column, if its range (interval, or least and largest measurement) touches no other.'];
  if (hasIntervals) legend.push('± is half the 95 % interval of the mean over the seeds.');
  if (runs.some(run => isNumber(run.versus_baseline?.p_corrected)))
    legend.push((runs.some(isOverExamples)
        ? 'Verdicts: the same examples by both models, p by exchanging them at random, interval by bootstrap; p corrected by '
        : `Verdicts: paired t-test over the seeds against the first run${
            runs.filter(run => !run.baseline).length > 1 ? ' with the same values of the grid' : ''}${
            runs.some(run => run.ablation) ? ', of an ablation against its model' : ''}, p corrected by `) +
        correctionName + ' method, significant below 0.05. “Same” means: surely within ' + marginText() + '; its p is that of a larger difference.');
  if (isNumber(data.power?.probability)) legend.push(powerText(data.power));
  section.append(scroll, empty, el('p', 'quiet under-table', legend.join(' ')), seedsTable());
  whenSelectionChanges(redraw);
  return true;
}

/** A table of every seed of the runs shown, filled when it is opened. */
function seedsTable() {
  const ENDS = {all_steps: 'all steps', out_of_time: 'out of time', interrupted: 'interrupted', failed: 'failed',
                elsewhere: 'trained elsewhere'};
  const host = el('div', 'scroll tall'), details = el('details', '', el('summary', '', 'Every seed'), host);
  const number = (title, key, text) =>
      ({title, value: ({seed}) => seed[key] ?? null, cell: ({seed}) => text(seed[key])});
  const columns = [
    {title: 'run', value: ({run}) => run.name, cell: ({run}) => runName(run)},
    {title: 'seed', value: ({seed}) => seed.seed},
    {title: 'end', value: ({seed}) => seed.end, cell({seed}) {
      return seed.end === 'failed' ? el('span', 'bad', `failed: ${seed.error ?? ''}`) : ENDS[seed.end] ?? seed.end;
    }},
    {title: metric.label, value: ({seed}) => seed.valid?.[metric.key] ?? null,
     cell: ({seed}) => metricText(seed.valid?.[metric.key])},
    number('validation loss', 'valid_loss', value => isNumber(value) ? value.toFixed(4) : '–'),
    number('best at step', 'best_step', value => isNumber(value) ? String(value) : '–'),
    number('steps', 'steps', value => si(value, '', 4)), number(`${unit}s`, 'tokens', value => si(value)),
    number('FLOPs', 'flops', value => si(value)),
    number('time', 'seconds', duration), number('peak memory', 'peak_memory_bytes', value => si(value, 'B')),
    number('peak process memory', 'peak_resident_bytes', value => si(value, 'B')),
    {title: 'directory', value: ({seed}) => seed.run},
  ].filter(({value}) => runs.some(run => run.seeds.some(seed => (value({run, seed}) ?? null) !== null)));
  const fill = () => {
    if (!details.open) return;
    const rows = runs.filter(run => selection.matches(run)).flatMap(run => run.seeds.map(seed => ({run, seed})));
    host.replaceChildren(sortableTable({columns, rows}).table);
  };
  details.addEventListener('toggle', fill);
  whenSelectionChanges(fill);
  return details;
}

// ---- Configuration, machine, command -------------------------------------------------------------------------------

function buildDifferences(section) {
  const keys = data.differences ?? [];
  if (!keys.length || runs.length < 2) return false;
  const scroll = el('div', 'scroll tall');
  const cellOf = (run, key) => {
    const value = one => one.config?.[key] ?? '–', same = value(run) === value(runs[0]);
    return el('td', same || run === runs[0] ? '' : 'differs', el('code', '', value(run)));
  };
  /** One row per key; with many runs and few keys, one row per run. */
  function draw() {
    const chosen = selection.chosen(), long = chosen.length > 6 && keys.length < chosen.length;
    const name = (item, scope) => headCell(typeof item === 'string' ? el('code', '', item) : runName(item), scope);
    const [across, down] = long ? [keys, chosen] : [chosen, keys];
    const head = el('tr', '', headCell(long ? 'run' : 'key', 'col'), ...across.map(item => name(item, 'col')));
    const rows = down.map(item => el('tr', '', name(item, 'row'), ...across.map(other =>
        long ? cellOf(item, other) : cellOf(other, item))));
    scroll.replaceChildren(el('table', 'differences', el('thead', '', head), el('tbody', '', ...rows)));
  }
  section.append(el('p', 'quiet', 'Only the keys that differ between runs. A bold value differs from the first run, ' +
                                  `${runs[0].name}.`), scroll);
  whenSelectionChanges(draw);
  draw();
  return true;
}

function buildGaps(section) {
  if (!data.protocol?.length) return false;
  section.append(el('p', 'quiet', 'Of what comparisons of architectures are asked for:'),
                 el('ul', 'gaps', ...data.protocol.map(text => el('li', '', text))));
  return true;
}

function buildReproduce(section) {
  if (data.command) {
    const copy = button('copy', 'Copy', async () => {
      try {
        await navigator.clipboard.writeText(data.command);
        copy.textContent = 'Copied';
      } catch {  // not allowed here: select the text, so that the reader can copy it
        getSelection().selectAllChildren($('command'));
        copy.textContent = 'Selected: press Ctrl+C';
      }
      setTimeout(() => { copy.textContent = 'Copy'; }, 2500);
    });
    const code = set(el('code', '', data.command), {id: 'command'});
    section.append(el('div', 'command', el('pre', '', code), copy));
  }
  if (data.yaml) {
    const text = set(el('code', '', data.yaml), {id: 'yaml'});
    section.append(el('details', 'yaml', el('summary', '', 'The comparison file'), el('pre', '', text)));
  }
  const {machine = {}, versions = {}} = data;
  const facts = [
    ['Processor', [machine.cpu, machine.cores && count(machine.cores, 'core'),
                   machine.threads && `${count(machine.threads, 'thread')} used`].filter(Boolean).join(', ')],
    ['Device', machine.device], ['Memory', machine.memory_bytes && si(machine.memory_bytes, 'B')],
    ['System', machine.system],
    ['transformer-zoo', versions.transformer_zoo], ['Commit', versions.commit], ['LibTorch', versions.libtorch],
    ['Compiler', versions.compiler],
    ['Made', data.created?.replace('T', ' ').replace('Z', ' UTC')],
  ].filter(([, text]) => text);
  const list = facts.map(([term, text]) => el('div', '', el('dt', '', term), el('dd', '', text)));
  section.append(el('dl', 'machine', ...list));
  return Boolean(data.command) || facts.length > 0;
}

// ---- Begin ---------------------------------------------------------------------------------------------------------

const SECTIONS = [
  ['results', 'Results', buildTable], ['effects', 'Main effects', buildEffects],
  ['quality', 'Quality', buildQuality], ['curves', 'Learning curves', buildCurves],
  ['lengths', 'Quality against length', buildLengths], ['confusion', 'Confusion matrix', buildConfusion],
  ['experts', 'Experts', buildExperts],
  ['cost', 'Quality against cost', buildCost],
  ['sizes', 'Sizes', buildSizes], ['scaling', 'Cost against length', buildScaling], ['tuning', 'Tuning', buildTuning],
  ['slices', 'Where they differ', buildSlices], ['translations', 'Translations', buildTranslations],
  ['examples', 'Examples that differ most', buildExamples],
  ['samples', 'Samples', buildSamples], ['structures', 'Structures', buildStructures],
  ['attention', 'Attention', buildAttention],
  ['differences', 'Configuration', buildDifferences], ['gaps', 'What it lacks', buildGaps],
  ['reproduce', 'Reproduce', buildReproduce],
];

selection.assign();
fillTop();
buildKey();
whenSelectionChanges(drawPaperLegend);
drawPaperLegend();
for (const [id, title, build] of SECTIONS) {
  const section = el('section', 'card', set(el('h2', '', title), {id: `${id}-title`}));
  set(section, {id, 'aria-labelledby': `${id}-title`});
  $('sections').append(section);
  if (!build(section)) { section.remove(); continue; }
  $('contents').append(set(el('a', '', title), {href: `#${id}`}));
}
followProgress();
