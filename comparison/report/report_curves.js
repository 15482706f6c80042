// Learning curves: the mean over the seeds as a line, their range as a band, every failed seed as a line of its own.

const CURVE_X = {
  steps: {key: 'step', name: 'steps', label: 'steps', tick: siTick, say: value => `step ${si(value, '', 4)}`},
  tokens: {key: 'tokens', name: 'tokens', label: 'tokens', tick: siTick, say: value => `${si(value)} tokens`},
  flops: {key: 'flops', name: 'FLOPs', label: 'training FLOPs', tick: siTick, say: value => si(value, 'FLOP')},
  seconds: {key: 'seconds', name: 'seconds', label: 'seconds of training', tick: siTick, say: duration},
};
const lossText = value => value.toFixed(4);
const CURVE_Y = {
  metric: {list: 'curve', key: 'metric', name: metric.label, label: `${metricLabel}, validation`, tick: tickMetric,
           say: metricText, number: metricNumber},
  valid_loss: {list: 'curve', key: 'valid_loss', name: 'validation loss', label: 'validation loss (nats)',
               tick: tickNumber, say: lossText, number: lossText},
  train_loss: {list: 'train_curve', key: 'train_loss', name: 'training loss', label: 'training loss (nats)',
               tick: tickNumber, say: lossText, number: lossText},
};

// The first part of a curve says little and is far from the rest, so the frame is made for the rest. The logarithmic
// scale shows the first part.
const BEGINNING = 0.08;

/** Writes names after the ends of lines {run, look, x, y: values of the last point}, at most `room` pixels wide. */
function labelEnds(chart, ends, room) {
  const labels = ends.map(({run, look, x, y}) => {
    const end = Math.max(chart.box.top - 6, Math.min(chart.box.bottom, chart.y.at(y)));
    return {run, look, x: chart.x.at(x), end, y: Math.max(chart.box.top, end)};
  });
  spreadLabels(labels, 15, chart.box.top, chart.box.bottom);
  for (const {run, look, x, end, y} of labels) {
    const left = chart.box.right + 10;
    if (Math.abs(end - y) > 3 || left - x > 24)
      chart.svg.append(svg('path', {class: 'leader', d: linePath([[x + 3, end], [left - 3, y]])}));
    chart.svg.append(svg('text', {class: 'end-label', x: left, y: px(y), dy: '.32em', style: `fill:${look.colour}`},
                         shortened(run.name, room - 20, 13)));
  }
}

/** The value of a curve {x, y} at `x`, interpolated between its points. */
function interpolate({x: xs, y: ys}, x) {
  let i = 1;
  while (i < xs.length - 1 && xs[i] < x) ++i;
  if (xs.length < 2) return ys[0];
  const share = (x - xs[i - 1]) / (xs[i] - xs[i - 1] || 1);
  return ys[i - 1] + share * (ys[i] - ys[i - 1]);
}

/** The curves of a run's seeds: {whole: of the seeds that did not fail, failed}. Each is {x, y, steps}. */
function seedCurves(run, xKind, yKind) {
  const curves = {whole: [], failed: []};
  for (const seed of run.seeds) {
    const lists = seed[yKind.list], x = [], y = [], steps = [];
    (lists?.[xKind.key] ?? []).forEach((value, i) => {
      const other = lists[yKind.key][i];
      if (isNumber(value) && isNumber(other)) x.push(value), y.push(other), steps.push(lists.step[i]);
    });
    if (x.length) curves[seed.end === 'failed' ? 'failed' : 'whole'].push({x, y, steps});
  }
  return curves;
}

/**
 * Mean and range over the seeds: [{x, mean, low, high}]. Seeds with equal steps are averaged step by step. Seeds
 * without a common part of the axis have no mean: the result is every seed's own points, each {…, alone: true}.
 */
function meanCurve(curves) {
  if (!curves.length) return [];
  const [first] = curves;
  const equal = curves.every(({steps}) => steps.length === first.steps.length &&
                                          steps.every((step, i) => step === first.steps[i]));
  const mean = values => values.reduce((sum, value) => sum + value, 0) / values.length;
  const point = (x, ys) => ({x, mean: mean(ys), low: Math.min(...ys), high: Math.max(...ys)});
  if (equal) return first.x.map((_, i) => point(mean(curves.map(({x}) => x[i])), curves.map(({y}) => y[i])));
  const begin = Math.max(...curves.map(({x}) => x[0])), end = Math.min(...curves.map(({x}) => x.at(-1)));
  if (begin > end) {
    const own = ({x, y}) => x.map((value, i) => ({...point(value, [y[i]]), alone: true}));
    return curves.flatMap(own).sort((a, b) => a.x - b.x);
  }
  const inside = first.x.filter(x => x > begin && x < end);
  return [begin, ...inside, end].map(x => point(x, curves.map(curve => interpolate(curve, x))));
}

function buildCurves(section) {
  const has = ([, {list, key}]) => runs.some(run => run.seeds.some(seed => seed[list]?.[key]?.some(isNumber)));
  const ys = Object.entries(CURVE_Y).filter(has);
  if (!ys.length) return false;
  const state = {x: 'steps', y: ys[0][0], log: 'linear'};
  const host = el('div', 'chart-host'), readout = el('div', 'readout entries');
  readout.setAttribute('aria-live', 'polite');
  const redraw = () => draw();
  section.append(
      el('div', 'bar choices',
         choice('curve-y', 'Show', ys.map(([value, {name}]) => [value, name]), state.y,
                value => { state.y = value; redraw(); }),
         choice('curve-x', 'against', Object.entries(CURVE_X).map(([value, {name}]) => [value, name]), state.x,
                value => { state.x = value; redraw(); }),
         choice('curve-scale', 'Scale', [['linear', 'linear'], ['log', 'logarithmic']], state.log,
                value => { state.log = value; redraw(); })),
      host, readout);
  Object.assign(host, {tabIndex: 0, id: 'curves-chart'});
  host.setAttribute('role', 'application');
  host.setAttribute('aria-roledescription', 'chart');

  let drawn = null;  // {chart, lines: [{run, points}], xKind, yKind}
  function draw() {
    const xKind = CURVE_X[state.x], yKind = CURVE_Y[state.y], log = state.log === 'log';
    const lines = [...selection.visible()].reverse().map(run => {
      const {whole, failed} = seedCurves(run, xKind, yKind);
      const usable = ({x}) => !log || x > 0;
      return {run, look: lookOf(run), points: meanCurve(whole).filter(usable), seeds: whole.length,
              failed: failed.map(({x, y}) => x.map((value, i) => ({x: value, mean: y[i]})).filter(usable))};
    }).sort((a, b) => b.look.faded - a.look.faded);
    const every = lines.flatMap(({points, failed}) => [...points, ...failed.flat()]);
    const x = extent(every.map(point => point.x), {log, air: 0});
    const few = Math.max(...lines.map(({points}) => points.length)) < 8;
    const begins = log || few || !x ? 0 : x.low + BEGINNING * (x.high - x.low);
    const bounds = lines.flatMap(({points}) => points.filter((point, i) => point.x >= begins || i >= points.length - 2)
                                                     .flatMap(({mean, low, high}) => [mean, low, high]));
    const y = robustExtent(bounds.length ? bounds : every.map(point => point.mean), {reach: few ? 4 : 1.2});
    host.classList.toggle('empty', !x || !y);
    if (!x || !y) {
      drawn = null;
      host.replaceChildren(el('p', 'quiet', 'None of the runs shown has such a curve.'));
      return readout.replaceChildren();
    }
    if (!log) x.low = Math.min(x.low, 0);
    const chosen = lines.filter(({look}) => !look.faded).reverse();  // in the order of the table
    const room = host.clientWidth < 560 ? 84 : 190, labelled = chosen.length <= 14;
    const widest = Math.max(0, ...chosen.map(({run}) => measure(run.name, 13)));
    const chart = makeChart(host, {
      x: {...x, label: xKind.label, tick: xKind.tick}, y: {...y, label: yKind.label, tick: yKind.tick},
      height: host.clientWidth < 560 ? 320 : 400, right: labelled ? Math.min(room, widest + 22) : 16,
      name: `${yKind.label} against ${xKind.label}. The arrow keys walk along the curves.`,
    });
    const to = ({x: a, mean: b}) => [chart.x.at(a), chart.y.at(b)];
    /** Marks at the ends lie on the frame, which must not clip them. */
    const addMark = (look, x, y) => {
      if (y > chart.box.top - 6 && y < chart.box.bottom + 2) chart.svg.append(mark(look, x, y, 3.8));
    };
    const isLine = points => points.length > 0 && !points[0].alone;
    for (const {look, points} of chosen.filter(({points}) => isLine(points)))
      chart.field.append(svg('path', {class: 'band', fill: look.colour, d: linePath([
        ...points.map(({x, high}) => [chart.x.at(x), chart.y.at(high)]),
        ...[...points].reverse().map(({x, low}) => [chart.x.at(x), chart.y.at(low)])]) + 'Z'}));
    for (const {run, look, points, failed} of lines) {
      const stroke = {stroke: look.colour, class: look.faded ? 'curve faded' : 'curve'};
      const path = isLine(points) ? linePath(points.map(to)) : '';
      const line = svg('path', {...stroke, d: path, 'stroke-dasharray': look.dash || null});
      line.dataset.run = run.name;
      chart.field.append(line);
      for (const points of failed) {
        if (!points.length) continue;
        const [x, y] = to(points.at(-1));
        chart.field.append(svg('path', {...stroke, class: `${stroke.class} failed`, d: linePath(points.map(to))}),
                           svg('path', {class: 'failure', stroke: look.colour,
                                        d: `M${px(x - 4)},${px(y - 4)}l8,8m0,-8l-8,8`}));
      }
    }
    for (const {look, points} of lines.filter(({look}) => look.faded))
      if (points.length === 1 || !isLine(points)) for (const [x, y] of points.map(to)) addMark(look, x, y);
    for (const {look, points} of chosen) {
      const pixels = points.map(to);
      if (!isLine(points)) for (const [x, y] of pixels) addMark(look, x, y);
      else addMark(look, ...pixels.at(-1));
      let next = chart.box.left + 24 + look.slot * 13 % 96;  // marks of different runs stand at different places
      for (const [x, y] of pixels) {
        if (!isLine(points) || x < next || x > pixels.at(-1)[0] - 12) continue;
        chart.field.append(mark(look, x, y, 3.8));
        next = x + Math.max(96, (chart.box.right - chart.box.left) / 8);
      }
    }
    if (labelled) {
      const ends = chosen.filter(({points}) => points.length).map(({points, ...line}) => ({...line, ...points.at(-1)}));
      labelEnds(chart, ends.map(({run, look, x, mean}) => ({run, look, x, y: mean})), room);
    }
    const cursor = svg('g', {class: 'cursor-line'});
    chart.svg.append(cursor);
    drawn = {chart, chosen, cursor, xKind, yKind};
    tell(null);
  }

  /** The stops of the cursor: the points of the chosen run with the most points. */
  const stops = () => drawn?.chosen.reduce((most, {points}) => points.length > most.length ? points : most, []) ?? [];
  function tell(stop) {
    if (!drawn) return;
    const {chart, chosen, cursor, xKind, yKind} = drawn, at = stop === null ? null : stops()[stop].x;
    cursor.replaceChildren();
    const nodes = [el('span', 'entry-title', at === null ? 'At the end' : xKind.say(at))];
    if (at !== null) {
      const x = px(chart.x.at(at));
      cursor.append(svg('line', {x1: x, x2: x, y1: chart.box.top, y2: chart.box.bottom}));
    }
    for (const {run, look, points, seeds, failed} of chosen) {
      const point = at === null ? points.at(-1) : closest(points, at);
      if (!point && failed.length) nodes.push(el('span', 'entry', runName(run), el('b', 'bad', 'failed')));
      if (!point) continue;
      if (at !== null) cursor.append(mark(look, chart.x.at(point.x), chart.y.at(point.mean), 5));
      const entry = el('span', 'entry', runName(run), el('b', '', yKind.say(point.mean)));
      if (seeds > 1 && !point.alone)
        entry.append(el('span', 'quiet', `${yKind.number(point.low)} – ${yKind.say(point.high)}`));
      nodes.push(entry);
    }
    readout.replaceChildren(...nodes);
  }
  /** The point nearest to `x`; null where the curve ends long before. */
  function closest(points, x) {
    if (!points.length) return null;
    const best = points.reduce((near, point) => Math.abs(point.x - x) < Math.abs(near.x - x) ? point : near);
    const gap = points.length > 1 ? (points.at(-1).x - points[0].x) / (points.length - 1) : Infinity;
    return Math.abs(best.x - x) <= Math.max(gap, 1e-9) ? best : null;
  }
  walkable(host, {
    stops: () => stops().length, show: tell,
    nearest(x) {
      const points = stops();
      if (!points.length) return null;
      const distance = i => Math.abs(drawn.chart.x.at(points[i].x) - x);
      return points.reduce((best, _, i) => distance(i) < distance(best) ? i : best, 0);
    },
  });
  whenSelectionChanges(redraw);
  whenWidthChanges(host, redraw);
  return true;
}

// ---- The metric at other lengths ------------------------------------------------------------------------------------

/** The metric on texts of lengths other than the training length. */
function buildLengths(section) {
  const measured = runs.flatMap(run => run.lengths ?? []).map(({length}) => length);
  const lengths = [...new Set(measured)].sort((a, b) => a - b);
  if (lengths.length < 2) return false;
  const host = el('div', 'chart-host'), readout = el('div', 'readout entries');
  readout.setAttribute('aria-live', 'polite');
  const trained = new Set(runs.map(run => run.sequence_length).filter(isNumber));
  const note = trained.size === 1 ? ` All were trained at ${[...trained][0]} tokens (dashed line).` : '';
  section.append(el('p', 'quiet', `${metric.label} on texts of other lengths, mean over the seeds with its 95 % ` +
                                  `interval; ${betterSide}.${note}`), host, readout);
  Object.assign(host, {tabIndex: 0, id: 'lengths-chart'});
  host.setAttribute('role', 'application');
  host.setAttribute('aria-roledescription', 'chart');
  let drawn = null;
  function draw() {
    const lines = selection.visible().map(run => ({run, look: lookOf(run), points: run.lengths ?? []}))
                                     .filter(({points}) => points.length).sort((a, b) => b.look.faded - a.look.faded);
    const x = extent([...lengths, ...trained], {log: true, air: 0.03});
    const y = robustExtent(lines.flatMap(({points}) => points.map(({mean}) => mean)), {reach: 3, air: 0.08});
    if (!y) {
      drawn = null;
      return host.replaceChildren(el('p', 'quiet', 'None of the runs shown was measured at other lengths.'));
    }
    const chosen = lines.filter(({look}) => !look.faded), room = host.clientWidth < 560 ? 84 : 190;
    const widest = Math.max(0, ...chosen.map(({run}) => measure(run.name, 13)));
    const chart = makeChart(host, {
      x: {...x, label: 'tokens in a text', tick: lengthTick, marks: lengths}, y: {...y, label: metricLabel, tick: tickMetric},
      height: host.clientWidth < 560 ? 300 : 340, right: Math.min(room, widest + 22),
      name: `${metric.label} against the length of the text. The arrow keys go from length to length.`,
    });
    if (trained.size === 1) {
      const at = px(chart.x.at([...trained][0]));
      chart.field.append(svg('line', {class: 'reference', x1: at, x2: at, y1: chart.box.top, y2: chart.box.bottom}));
    }
    for (const {look, points} of lines) {
      const pixels = points.map(({length, mean}) => [chart.x.at(length), chart.y.at(mean)]);
      chart.field.append(svg('path', {class: look.faded ? 'curve faded' : 'curve', stroke: look.colour,
                                      d: linePath(pixels), 'stroke-dasharray': look.dash || null}));
      if (look.faded) continue;
      for (const {length, low, high} of points.filter(({low}) => isNumber(low))) {
        const at = px(chart.x.at(length));
        chart.field.append(svg('path', {class: 'whisker thin', stroke: look.colour,
                                        d: `M${at},${px(chart.y.at(low))}V${px(chart.y.at(high))}`}));
      }
      for (const [x, y] of pixels) chart.field.append(mark(look, x, y, 4.4));
    }
    const ends = chosen.map(({run, look, points}) => ({run, look, ...points.at(-1)}));
    labelEnds(chart, ends.map(({run, look, length, mean}) => ({run, look, x: length, y: mean})), room);
    drawn = {chart, chosen};
    tell(null);
  }
  function tell(stop) {
    const length = lengths[stop ?? lengths.length - 1];
    const entries = (drawn?.chosen ?? []).flatMap(({run, points}) => {
      const point = points.find(point => point.length === length);
      if (!point) return [];
      const entry = el('span', 'entry', runName(run), el('b', '', metricText(point.mean)));
      if (isNumber(point.low)) entry.append(el('span', 'quiet', `± ${metricText((point.high - point.low) / 2)}`));
      return [entry];
    });
    readout.replaceChildren(el('span', 'entry-title', `${length} tokens`), ...entries);
  }
  walkable(host, {
    stops: () => lengths.length, show: tell,
    nearest(x) {
      if (!drawn) return null;
      const distances = lengths.map(length => Math.abs(drawn.chart.x.at(length) - x));
      return distances.indexOf(Math.min(...distances));
    },
  });
  whenSelectionChanges(draw);
  whenWidthChanges(host, draw);
  return true;
}
