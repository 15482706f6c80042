// How the loss falls with the compute: every run of every size, and a power law for each variant.

function estimateText({value, low, high}, digits) {
  const text = value.toFixed(digits);
  return isNumber(low) ? `${text} (${low.toFixed(digits)} to ${high.toFixed(digits)})` : text;
}

function buildSizes(section) {
  const fit = data.sizes;
  if (!fit) return false;
  const equal = isNumber(fit.p_equal_exponents) ? ` Equal exponents: ${pValue(fit.p_equal_exponents)}.` : '';
  section.append(el('p', 'quiet', `${fit.loss} against the FLOPs of the training at the sizes ${fit.names.join(', ')}. Lines ` +
      'are fits of A · FLOPs to the power of minus the exponent, over all seeds; they hold between the sizes, not beyond. ' +
      `The compute is for the same loss as ${fit.variants[0].name}, with the common exponent ` +
      `${estimateText(fit.exponent, 4)}.${equal}`));
  const host = el('div', 'chart-host');
  section.append(host);
  const first = name => runs.find(run => fit.points.some(point => point.variant === name && point.run === run.name));
  function draw() {
    const x = extent(fit.points.map(({flops}) => flops), {log: true, air: 0.05});
    const y = extent(fit.points.map(({loss}) => loss), {log: true, air: 0.08});
    const narrow = host.clientWidth < 560, room = narrow ? 84 : 190;
    const widest = Math.max(0, ...fit.variants.map(({name}) => measure(name, 13)));
    const chart = makeChart(host, {
      x: {...x, label: 'FLOPs of the training', tick: siTick}, y: {...y, label: fit.loss, tick: value => value.toPrecision(3)},
      height: narrow ? 300 : 360, right: Math.min(room, widest + 22), name: `${fit.loss} against FLOPs, with fitted lines.`,
    });
    const ends = fit.variants.map(({name, exponent, scale}) => {
      const look = {...lookOf(first(name) ?? runs[0]), faded: false};
      const points = fit.points.filter(point => point.variant === name), flops = points.map(point => point.flops);
      const ends = [Math.min(...flops), Math.max(...flops)], at = c => scale * c ** -exponent.value;
      chart.field.append(svg('path', {class: 'curve', stroke: look.colour, 'stroke-dasharray': look.dash || null,
                                      d: linePath(ends.map(c => [chart.x.at(c), chart.y.at(at(c))]))}));
      for (const point of points) chart.field.append(mark(look, chart.x.at(point.flops), chart.y.at(point.loss), 4));
      return {run: {name}, look, x: ends[1], y: at(ends[1])};
    });
    labelEnds(chart, ends, room);
  }
  whenWidthChanges(host, draw);
  const columns = [
    {title: 'variant', value: ({name}) => name},
    {title: 'exponent', value: ({exponent}) => exponent.value, cell: ({exponent}) => estimateText(exponent, 4)},
    {title: 'compute for the same loss', value: row => row.compute_ratio.value,
     cell: row => estimateText(row.compute_ratio, 3)},
  ];
  section.append(el('div', 'scroll tall', sortableTable({columns, rows: fit.variants}).table));
  return true;
}
