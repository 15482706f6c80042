// How each variant chose its values: the metric of every candidate after a short training.

/** "lr=0.001" → 0.001; null for a candidate of several keys or without a number. */
const candidateNumber = name => /^[^,=]+=[^,=]+$/.test(name) && Number(name.split('=')[1]) > 0
    ? Number(name.split('=')[1]) : null;

function buildTuning(section) {
  const tuning = data.tuning, variants = tuning?.variants ?? [];
  if (!variants.length) return false;
  const share = `${withDigits(100 * tuning.share, 2)}${THIN}%`;
  section.append(el('p', 'quiet', `Each run chose its values by short trainings with ${share} of the budget and ` +
      `${tuning.seeds.length === 1 ? 'another seed' : 'other seeds'} than the comparison; all runs had the same number ` +
      `of them. The best ${metric.label} was chosen.`));
  const names = [...new Set(variants.flatMap(variant => variant.candidates.map(({name}) => name)))];
  const valueOf = (variant, name) => variant.candidates.find(candidate => candidate.name === name)?.metric ?? null;
  if (names.every(name => candidateNumber(name) !== null) && names.length > 1) tuningChart(section, variants, names);
  const cellOf = name => variant => {
    const value = valueOf(variant, name);
    return isNumber(value) ? el(variant.chosen === name ? 'b' : 'span', '', metricNumber(value)) : 'failed';
  };
  const columns = [
    {title: 'run', value: ({name}) => name},
    {title: 'chosen', value: ({chosen}) => chosen, cell: variant => variant.at_edge
        ? el('span', 'bad', `${variant.chosen}, at the edge of the grid`) : variant.chosen},
    ...names.map(name => ({title: name, value: variant => valueOf(variant, name), cell: cellOf(name)})),
    {title: 'FLOPs', value: ({flops}) => flops, cell: ({flops}) => si(flops)},
    {title: 'time', value: ({seconds}) => seconds, cell: ({seconds}) => duration(seconds)},
  ];
  section.append(el('div', 'scroll tall', sortableTable({columns, rows: variants}).table));
  return true;
}

/** The metric against the value of the only key. */
function tuningChart(section, variants, names) {
  const host = el('div', 'chart-host');
  section.append(host);
  const values = names.map(candidateNumber), key = names[0].split('=')[0];
  const lines = () => variants.map(variant => ({
    run: runs.find(run => run.name === variant.name), chosen: candidateNumber(variant.chosen),
    points: variant.candidates.map(({name, metric: value}) => ({x: candidateNumber(name), y: value}))
                              .filter(({y}) => isNumber(y)).sort((a, b) => a.x - b.x),
  })).filter(({run, points}) => run && points.length && selection.matches(run));
  function draw() {
    const all = lines(), y = robustExtent(all.flatMap(({points}) => points.map(point => point.y)), {reach: 3, air: 0.08});
    if (!y) return host.replaceChildren(el('p', 'quiet', 'None of the runs shown was tuned.'));
    const narrow = host.clientWidth < 560, room = narrow ? 84 : 190;
    const chosen = all.filter(({run}) => !lookOf(run).faded);
    const widest = Math.max(0, ...chosen.map(({run}) => measure(run.name, 13)));
    const chart = makeChart(host, {
      x: {...extent(values, {log: true, air: 0.03}), label: key, marks: values, tick: value => String(value)},
      y: {...y, label: metricLabel, tick: tickMetric}, height: narrow ? 280 : 320, right: Math.min(room, widest + 22),
      name: `${metric.label} of the short trainings against ${key}; the chosen value has a ring.`,
    });
    for (const {run, points, chosen: best} of all) {
      const look = lookOf(run), pixels = points.map(point => [chart.x.at(point.x), chart.y.at(point.y)]);
      chart.field.append(svg('path', {class: look.faded ? 'curve faded' : 'curve', stroke: look.colour,
                                      d: linePath(pixels), 'stroke-dasharray': look.dash || null}));
      if (look.faded) continue;
      pixels.forEach(([x, y], i) => {
        chart.field.append(mark(look, x, y, 4.4));
        if (points[i].x === best)
          chart.field.append(svg('circle', {class: 'ring', cx: px(x), cy: px(y), r: 8, fill: 'none', stroke: look.colour}));
      });
    }
    labelEnds(chart, chosen.map(({run, points}) => ({run, look: lookOf(run), ...points.at(-1)})), room);
  }
  whenSelectionChanges(draw);
  whenWidthChanges(host, draw);
}
