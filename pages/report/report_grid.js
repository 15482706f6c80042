// What tells the runs apart: labels, looks and panels, for a grid from its variants and keys, else from the names.

const MANY = 24;  // with more runs than this, a part of them is highlighted

/** The variant and the keys of the grid that have several values: {key, label, values, of: run → value}. */
const factors = (() => {
  const keys = data.grid ?? [];
  if (!keys.length) return [];
  const variant = {key: 'variant', label: '', values: data.variants ?? [], of: run => run.variant};
  const all = [variant, ...keys.map(({key, label, values}) =>
      ({key, label: key === 'size' ? '' : label, values, of: run => run.grid?.[key]}))]
      .filter(({values}) => values.length > 1);
  const cells = new Set(runs.map(run => JSON.stringify(all.map(({of}) => of(run)))));
  return cells.size === runs.length ? all : [];
})();
const factorText = ({label}, value) => label ? `${label}=${value}` : value;

/**
 * What tells a run from the others, or the name of anything else. A panel's title says the values of the factors `said`.
 */
function labelOf(run, said = []) {
  const rest = runs.includes(run) ? factors.filter(factor => !said.includes(factor)) : [];
  return rest.length ? rest.map(factor => factorText(factor, factor.of(run))).join(', ') : run.name;
}

/** How a grid is drawn: the factor of the colours, of the dashes (or null), and those of the panels; null without one. */
const roles = (() => {
  if (!factors.length || runs.length > MANY) return null;
  if (factors.length === 1) return {colour: factors[0], dash: null, panels: []};
  const keys = factors.filter(({key}) => key !== 'variant');
  const most = keys.reduce((best, factor) => factor.values.length > best.values.length ? factor : best);
  const [colour, ...rest] = factors.filter(factor => factor !== most);
  const dash = rest.find(({values}) => values.length <= DASHES.length) ?? null;
  return {colour, dash, panels: [most, ...rest.filter(factor => factor !== dash)]};
})();

/** The panels of a grid in its order: [{title, runs}]; without a grid one panel without a title. */
function panelsOf(list) {
  if (!roles?.panels.length) return [{title: '', runs: list}];
  const title = run => roles.panels.map(factor => factorText(factor, factor.of(run))).join(', ');
  const titles = [...new Set(runs.map(title))];
  return titles.map(text => ({title: text, runs: list.filter(run => title(run) === text)}))
               .filter(({runs: own}) => own.length);
}

/** The look of a run in charts: in a grid by its factors, else by its slot with shapes and dashes for further turns. */
function lookOf(run) {
  const slot = selection.slots.get(run);
  if (slot === undefined) return {colour: 'var(--faded)', shape: 'circle', dash: '', faded: true, slot: 0};
  if (roles) {
    const indexIn = factor => factor.values.indexOf(factor.of(run)), c = indexIn(roles.colour);
    const d = indexIn(roles.dash ?? roles.colour);
    return {colour: `var(--run-${c % COLOURS})`, shape: SHAPES[d % SHAPES.length], dash: DASHES[d % DASHES.length],
            faded: false, slot: c + d};
  }
  const turn = Math.floor(slot / COLOURS);
  return {colour: `var(--run-${slot % COLOURS})`, shape: SHAPES[(slot + 3 * turn) % SHAPES.length],
          dash: DASHES[(slot + 5 * turn) % DASHES.length], faded: false, slot};
}

/** The entries of a legend: {text, look, factor, value} for a grid, else {text, look, run}. */
function legendEntries() {
  if (!roles) return selection.chosen().map(run => ({text: run.name, look: lookOf(run), run}));
  const entry = (factor, look) => factor.values.map((value, i) =>
      ({text: factorText(factor, value), look: look(i), factor, value}));
  const plain = {colour: 'var(--ink)', shape: '', dash: ''};
  return [
    ...entry(roles.colour, i => ({colour: `var(--run-${i % COLOURS})`, shape: roles.dash ? '' : SHAPES[i % SHAPES.length],
                                  dash: roles.dash ? '' : DASHES[i % DASHES.length]})),
    ...roles.dash ? entry(roles.dash, i => ({...plain, shape: SHAPES[i % SHAPES.length], dash: DASHES[i]})) : [],
    ...roles.panels.flatMap(factor => entry(factor, () => null)),
  ];
}

// ---- Short labels ---------------------------------------------------------------------------------------------------

/** What is left of texts without the beginning that all of them share. */
function withoutCommonStart(texts) {
  let n = 0;
  while (texts.every(text => n < text.length - 1 && text[n] === texts[0][n])) ++n;
  return n > 1 ? texts.map(text => `…${text.slice(n)}`) : texts;
}

/** The labels of runs for `room` pixels: run → text. No two different labels become the same text. */
function shortLabels(list, room, size, said = [], weight = 400) {
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
