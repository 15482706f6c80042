// Samples and attention maps of the runs, side by side for the same inputs.

import {exceeds, headColumns, headName, HeatMap, largest, MOST, numbersTable, paint, readMaps, showLegend,
        weightText} from '../heat_map.js';
import {$, button, count, el, option, roomInside, set, sortableTable, whenThemeChanges} from '../page.js';
import {choice, leftOutNote, runs} from './report_base.js';
import {outputCard, runName, whenWidthChanges} from './report_chart.js';
import {selection, whenSelectionChanges} from './report_selection.js';

// ---- Samples ------------------------------------------------------------------------------------------------------

export function buildSamples(section) {
  const inputs = [...new Set(runs.flatMap(run => (run.samples ?? []).map(({input}) => input)))];
  if (!inputs.length) return false;
  const list = el('div', 'samples');
  section.append(...leftOutNote('samples', 'The samples'), list);
  const FIRST = 4;  // inputs that are shown at first
  let open = false;
  const found = (input, chosen) => chosen.flatMap(run => {
    const sample = run.samples?.find(sample => sample.input === input);
    return sample ? [{run, ...sample}] : [];
  });
  const referenceOf = samples => samples.map(({reference}) => reference).find(text => typeof text === 'string');
  function outputText(output, reference, tag) {
    const text = el(tag, 'text', el('bdi', '', output || '∅'));
    if (reference === undefined || output.trim() !== reference.trim()) return text;
    text.append(set(el('span', 'right', ' ✓'), {title: 'the same as the reference'}));
    return text;
  }

  /** The input above the outputs: for long texts. */
  function sampleCard(input, chosen) {
    const samples = found(input, chosen), reference = referenceOf(samples);
    const outputs = samples.map(({run, output}) => outputCard(run, outputText(output, reference, 'p')));
    const head = el('div', 'input', el('span', 'tag', 'Input'), el('p', 'text', el('bdi', '', input)));
    if (reference !== undefined) head.append(el('span', 'tag', 'Reference'), el('p', 'text', el('bdi', '', reference)));
    return el('article', 'sample', head, el('div', 'outputs', ...outputs));
  }
  /** One row per input: for answers of a word or two. */
  function sampleTable(inputs, chosen) {
    const heading = content => Object.assign(el('th', '', content), {scope: 'col'});
    const samples = inputs.map(input => found(input, chosen)), anyReference = samples.some(referenceOf);
    const rows = inputs.map((input, i) => {
      const reference = referenceOf(samples[i]), name = el('th', 'text', el('bdi', '', input));
      name.scope = 'row';
      return el('tr', '', name, ...anyReference ? [el('td', 'text', reference ?? '–')] : [], ...chosen.map(run => {
        const sample = samples[i].find(sample => sample.run === run);
        return sample ? outputText(sample.output, reference, 'td') : el('td', '', '–');
      }));
    });
    const head = el('tr', '', heading('input'), ...anyReference ? [heading('reference')] : [],
                    ...chosen.map(run => heading(runName(run))));
    return el('div', 'scroll tall', el('table', 'answers', el('thead', '', head), el('tbody', '', ...rows)));
  }
  function draw() {
    const chosen = selection.chosen();
    const shownInputs = inputs.filter(input => chosen.some(run => run.samples?.some(sample => sample.input === input)));
    const having = chosen.filter(run => run.samples?.length);
    if (!having.length) return list.replaceChildren(el('p', 'quiet', 'None of the highlighted runs has samples here.'));
    const short = having.every(run => run.samples.every(({output}) => output.length <= 32 && !output.includes('\n')));
    if (short) return list.replaceChildren(sampleTable(shownInputs, having));
    list.replaceChildren(...shownInputs.slice(0, FIRST).map(input => sampleCard(input, having)));
    if (shownInputs.length <= FIRST) return;
    const more = el('details', 'more', el('summary', '', count(shownInputs.length - FIRST, 'more input')),
                    ...shownInputs.slice(FIRST).map(input => sampleCard(input, having)));
    more.open = open;
    more.addEventListener('toggle', () => { open = more.open; });
    list.append(more);
  }
  whenSelectionChanges(draw);
  draw();
  return true;
}

// ---- Attention -----------------------------------------------------------------------------------------------------

/** The views that can be shown side by side. `kind` names the matching maps of a run; '' where it has none. */
const VIEWS = {
  text: {title: 'the text (self-attention)', kind: maps => maps.kinds.includes('encoder') ? 'encoder'
                                                  : maps.kinds.includes('decoder') && !maps.answered ? 'decoder' : ''},
  cross: {title: 'the source (cross-attention)', kind: maps => maps.kinds.includes('cross') ? 'cross' : ''},
  target: {title: 'the target (self-attention)',
           kind: maps => maps.answered && maps.kinds.includes('decoder') ? 'decoder' : ''},
};

export function buildAttention(section) {
  const readings = new Map(runs.filter(run => run.attention?.maps?.length).map(run => [run, readMaps(run.attention)]));
  if (!readings.size) return false;
  const first = [...readings.keys()][0].attention;
  const every = [...readings.values()];
  const views = Object.keys(VIEWS).filter(view => every.some(maps => VIEWS[view].kind(maps)));
  const most = measure => Math.max(...every.flatMap(maps => maps.kinds.map(kind => measure(maps, kind))));
  const layers = most((maps, kind) => maps.maps[kind].length), heads = most((maps, kind) => maps.maps[kind][0].length);
  const hasRollout = [...readings.keys()].some(run => run.attention.rollout?.length);
  const state = {view: every.every(maps => VIEWS.cross.kind(maps)) ? 'cross' : views[0], show: 'weights', layer: 'last',
                 head: 'mean', scale: 'relative'};

  /** The view of a run that heat_map.js draws: roll-out, or a layer's weights; null where the run has no such map. */
  function viewOf(run, {view, show, layer, head, scale} = state) {
    const maps = readings.get(run), kind = maps && VIEWS[view].kind(maps);
    if (!kind) return null;
    const {rows, columns} = maps.KINDS[kind], depth = maps.maps[kind].length, crosses = kind === 'cross';
    const map = {kind, layer: show === 'rollout' || layer === 'last' ? depth - 1 : layer,
                 head: show === 'rollout' ? 'rollout' : head};
    const values = maps.weights(map);
    if (!values) return null;
    const free = maps.free(map);
    return {...map, depth, free, title: maps.titleOf(map), values, columns, isHidden: (t, s) => maps.isHidden(kind, t, s),
            rows: crosses ? run.attention.target_next : rows, after: crosses ? rows : null,
            top: scale === 'absolute' ? MOST : Math.max(1, largest(free))};
  }

  const grid = el('div', 'tiles'), controls = el('div', 'bar choices');
  const pick = (label, values, text, key) => {
    const select = el('select', '', ...values.map(value => option(value, text(value))));
    set(select, {value: state[key], id: `attention-${key}`});
    select.addEventListener('change', () => {
      state[key] = /^\d+$/.test(select.value) ? Number(select.value) : select.value;
      draw();
    });
    return el('label', 'pick', el('span', '', label), select);
  };
  const layerPick = pick('Layer', ['last', ...Array(layers).keys()], value => `${value}`, 'layer');
  const headPick = pick('Head', ['mean', ...Array(heads).keys()], head => head === 'mean' ? 'mean of all' : `${head}`,
                        'head');
  if (views.length > 1)
    controls.append(choice('attention-view', 'Attention to', views.map(view => [view, VIEWS[view].title]), state.view,
                           value => { state.view = value; draw(); }));
  if (hasRollout)
    controls.append(choice('attention-show', 'Show', [['weights', 'weights'],
      ['rollout', 'roll-out', 'How much of each token reaches each other one through all layers']], state.show,
                           value => { state.show = value; draw(); }));
  controls.append(el('span', 'picks', layerPick, headPick));
  const sentence = el('p', first.text.length > 90 ? 'sentence long' : 'sentence', el('bdi', '', `“${first.text}”`));
  if (first.target) sentence.append(el('span', 'arrow', ' → '), el('bdi', '', `“${first.target}”`));
  section.append(sentence, controls);
  const scaleNote = el('p', 'quiet');
  section.append(...leftOutNote('attention', 'The maps', '; zoo attention shows the maps of any run'), grid, scaleNote);

  const opened = openMaps(viewOf, selection, state);
  let tiles = [];
  function draw() {
    for (const label of [layerPick, headPick]) label.hidden = state.show === 'rollout';
    const chosen = selection.chosen(), missing = chosen.filter(run => !viewOf(run));
    tiles = chosen.filter(run => viewOf(run)).map(run => {
      const view = viewOf(run), place = `layer ${view.layer}${view.layer === view.depth - 1 ? ', the last' : ''}`;
      const picture = el('span', 'picture');
      const content = [el('span', 'tile-name', runName(run)), picture,
                       el('span', 'quiet', `${place}; ${headName(view.head)}`)];
      const tile = button('tile', content, () => opened.open(run, {...state}), {
        'data-run': run.name, 'aria-label': `${run.name}: ${view.title}; open the large map`});
      return {run, tile, picture};
    });
    grid.replaceChildren(...tiles.map(({tile}) => tile));
    if (missing.length) {
      const names = missing.flatMap((run, i) => [i ? ', ' : '', el('bdi', '', run.name)]);
      grid.append(el('p', 'quiet missing', 'No such map for ', ...names, '.'));
    }
    paintTiles();
  }
  /** Paints tokens too where they are readable. All tiles have the same scale, so that runs can be compared. */
  function paintTiles() {
    // The end of the colours. A few far larger weights may lie beyond it, such as a decoder's first ones.
    const top = Math.max(1, ...tiles.map(({run}) => strong(viewOf(run))));
    const hint = el('span', 'hint', 'Click a map to see it large, with its weights.');
    const beyond = tiles.some(({run}) => exceeds(viewOf(run), top)) ? ' or more' : '';
    scaleNote.replaceChildren(`Colours from 0 to ${weightText(top)}${beyond} in all maps. `, hint);
    scaleNote.hidden = !tiles.length;
    for (const {run, picture} of tiles) {
      const view = {...viewOf(run), top}, room = picture.clientWidth, {rows, columns} = view;
      if (room * 0.7 / columns.length >= 13 && rows.length <= 30) {
        const plot = el('span', 'plot');
        picture.replaceChildren(plot);
        new HeatMap(plot, el('span')).show(view, room);
        continue;
      }
      const canvas = el('canvas'), size = Math.max(1, Math.ceil(560 / Math.max(rows.length, columns.length)));
      canvas.style.aspectRatio = Math.min(2.2, Math.max(0.5, columns.length / rows.length));
      picture.replaceChildren(canvas);
      paint(canvas, view, size, {gap: size > 12 ? 0.75 : 0});
    }
  }
  const strong = ({free}) => [...free].sort((a, b) => a - b)[Math.floor(0.99 * (free.length - 1))];
  whenWidthChanges(grid, paintTiles);
  whenSelectionChanges(draw);
  whenThemeChanges(() => { paintTiles(); opened.render(); });
  draw();
  buildHeads(section, (run, {kind, layer, head}) => {
    const view = views.find(view => VIEWS[view].kind(readings.get(run)) === kind);
    opened.open(run, {...state, view, show: 'weights', layer, head});
  }, readings);
  return true;
}

/** The dialog that shows one large map. */
function openMaps(viewOf, selection, defaults) {
  const dialog = $('map-dialog'), heatMap = new HeatMap($('map-plot'), $('map-readout'));
  let run = null, state = null;
  const depthOf = () => viewOf(run, {...state, layer: 'last', head: 'mean'})?.depth ?? 0;
  const widthOf = () => { let n = 0; while (viewOf(run, {...state, head: n})) ++n; return n; };
  const layerNow = () => state.layer === 'last' ? depthOf() - 1 : state.layer;
  const candidates = () => selection.chosen().filter(other => viewOf(other, state));
  const stepRun = by => { const list = candidates(); return list[list.indexOf(run) + by]; };
  const heads = () => [...Array(widthOf()).keys(), 'mean'];
  const steps = {
    'map-run-before': () => [stepRun(-1), state], 'map-run-after': () => [stepRun(1), state],
    'map-layer-before': () => [run, {...state, layer: layerNow() - 1}],
    'map-layer-after': () => [run, {...state, layer: layerNow() + 1}],
    'map-head-before': () => [run, {...state, head: heads()[heads().indexOf(state.head) - 1]}],
    'map-head-after': () => [run, {...state, head: heads()[heads().indexOf(state.head) + 1]}],
  };
  const possible = ([other, to]) => Boolean(other && to.head !== undefined && to.layer !== -1 && viewOf(other, to));
  function render() {
    if (!dialog.open) return;
    const view = viewOf(run, state), rollout = state.show === 'rollout';
    $('map-name').replaceChildren(runName(run));
    $('map-title').textContent = view.title;
    $('map-note').textContent = rollout
        ? 'Attention roll-out (Abnar and Zuidema 2020): how much of each input token (column) reaches each row of ' +
          'the last layer.'
        : `Row: ${view.after ? 'the token being written' : 'a token'}. Column: a token that it looks at. ` +
          'Each row sums to 1.';
    for (const [id, to] of Object.entries(steps)) {
      $(id).disabled = !possible(to());
      $(id).hidden = rollout && !id.startsWith('map-run');
    }
    for (const input of dialog.querySelectorAll('input[name="map-scale"]')) input.checked = input.value === state.scale;
    showLegend($('map-ramp'), $('map-ramp-end'), view);
    $('map-plot').setAttribute('aria-label', `${run.name}: ${view.title}. Arrow keys move from weight to weight.`);
    heatMap.show(view, roomInside($('map-body')), Math.max(240, innerHeight - 460));
    if ($('map-numbers').open) $('map-table').replaceChildren(numbersTable(view, `${run.name}: ${view.title}`));
  }
  for (const [id, to] of Object.entries(steps))
    $(id).addEventListener('click', () => {
      const next = to();
      if (!possible(next)) return;
      [run, state] = next;
      heatMap.forget();
      render();
    });
  $('map-scale').addEventListener('change', event => { state.scale = defaults.scale = event.target.value; render(); });
  $('map-numbers').addEventListener('toggle', render);
  $('map-close').addEventListener('click', () => dialog.close());
  dialog.addEventListener('click', event => { if (event.target === dialog) dialog.close(); });
  whenWidthChanges($('map-body'), render);
  return {
    render,
    open(which, how) {
      [run, state] = [which, how];
      heatMap.forget();
      dialog.showModal();
      render();
      $('map-plot').focus({preventScroll: true});
      dialog.scrollTop = 0;
    },
  };
}

// ---- Statistics of the heads ---------------------------------------------------------------------------------------

function buildHeads(section, open, readings) {
  const having = runs.filter(run => run.attention?.heads?.length);
  if (!having.length) return;
  const name = {title: 'Head', value: ({kind, layer, head}) => `${kind} ${1000 * layer + head}`, cell(row) {
    const text = `${row.kind} ${row.layer}.${row.head}`;
    if (!readings.get(row.run)) return text;
    return button('link', text, () => open(row.run, row),
                  {'aria-label': `Open ${row.kind}, layer ${row.layer}, head ${row.head}`});
  }};
  const select = set(el('select'), {id: 'heads-run'});
  const host = el('div', 'scroll heads-table');
  let table = null;
  function show() {
    const run = runs[Number(select.value)], rows = run.attention.heads.map(head => ({...head, run}));
    table = sortableTable({columns: [name, ...headColumns(rows)], rows,
                           caption: `${run.name}: kind, layer.head, and means over the rows of the head’s map`});
    host.replaceChildren(table.table);
  }
  function offer() {
    const before = select.value, offered = having.filter(run => selection.isChosen(run));
    const list = offered.length ? offered : having;
    select.replaceChildren(...list.map(run => option(runs.indexOf(run), run.name)));
    if (list.some(run => String(runs.indexOf(run)) === before)) select.value = before;
    if (select.value !== before || !table) show();
  }
  select.addEventListener('change', show);
  section.append(el('div', 'bar heads-bar', el('h3', '', 'What each head does'),
                    el('label', 'pick', el('span', '', 'Run'), select)), host);
  whenSelectionChanges(offer);
  offer();
}
