// The shape of a chain from its CA atoms: which residues are in helices and strands, and the pieces of its ribbon.

export const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
export const add = (a, b, scale = 1) => [a[0] + scale * b[0], a[1] + scale * b[1], a[2] + scale * b[2]];
export const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
export const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
export const length = a => Math.sqrt(dot(a, a));
export const distance = (a, b) => length(sub(a, b));
export const unit = a => { const n = length(a) || 1; return [a[0] / n, a[1] / n, a[2] / n]; };

export const pointsOf = ({places}) => Array.from({length: places.length / 3}, (_, i) => places.slice(3 * i, 3 * i + 3));

/** Runs of residues that hang together: {from, to}, without `to`. A gap is where numbers and places both leap. */
export function piecesOf(trace, points) {
  const pieces = [], farthest = 4.5;  // Å; neighbours are 3.8 Å apart
  const goesOn = i => trace.chain[i] === trace.chain[i - 1] &&
      (Math.abs(parseInt(trace.numbers[i]) - parseInt(trace.numbers[i - 1])) <= 1 || distance(points[i], points[i - 1]) < farthest);
  for (let i = 0; i < points.length; ++i)
    if (i && goesOn(i)) pieces.at(-1).to = i + 1;
    else pieces.push({from: i, to: i + 1});
  return pieces;
}

// Distances between the CA atoms of five residues in a row, two, three and four apart, as in TM-align (Zhang & Skolnick
// 2005).
const SHAPES = [
  {name: 'helix', two: 5.45, three: 5.18, four: 6.37, within: 2.1},
  {name: 'strand', two: 6.1, three: 10.4, four: 13, within: 1.42},
];

/** 'helix', 'strand' or 'coil' for each point of a piece. */
function shapesOf(points) {
  const shapes = points.map((_, i) => {
    const five = points.slice(Math.max(0, i - 2), i + 3);
    if (five.length < 5 || i < 2) return 'coil';
    const isLike = (a, b, right, within) => Math.abs(distance(five[a], five[b]) - right) < within;
    return SHAPES.find(({two, three, four, within}) =>
      isLike(0, 4, four, within) && [0, 1].every(a => isLike(a, a + 3, three, within)) &&
      [0, 1, 2].every(a => isLike(a, a + 2, two, within)))?.name ?? 'coil';
  });
  // Two residues are neither a helix nor a strand.
  for (let from = 0, to; from < shapes.length; from = to) {
    for (to = from + 1; shapes[to] === shapes[from];) ++to;
    if (to - from < 3) shapes.fill('coil', from, to);
  }
  return shapes;
}

const HALF_WIDTHS = {helix: 1.35, strand: 1.15, coil: 0}, HEAD = 1.9;  // Å; of the head of a strand's arrow

/** Cubic through b and c (Catmull & Rom 1974). */
const between = (a, b, c, d, t) => b.map((_, k) =>
  0.5 * (2 * b[k] + (c[k] - a[k]) * t + (2 * a[k] - 5 * b[k] + 4 * c[k] - d[k]) * t * t + (3 * b[k] - a[k] - 3 * c[k] + d[k]) * t ** 3));

/**
 * The places along a piece in steps of 1 / `steps` residue: {place, side, half, residue}. `side` points across the ribbon,
 * `half` is half its width in Å, and 0 where it is a thread.
 */
export function ribbonOf(points, from, steps) {
  const n = points.length, shapes = shapesOf(points), at = (list, i) => list[Math.min(n - 1, Math.max(0, i))];
  // The pleats of a strand are smoothed away.
  const smooth = points.map((p, i) => shapes[i] === 'strand' && i > 0 && i < n - 1
    ? p.map((x, k) => (points[i - 1][k] + 2 * x + points[i + 1][k]) / 4) : p);
  const sides = [];
  points.forEach((p, i) => {
    const own = cross(sub(p, at(points, i - 1)), sub(at(points, i + 1), p));
    const side = length(own) > 0.01 ? unit(own) : null, last = sides.at(-1);
    sides.push(side ? last && dot(last, side) < 0 ? side.map(x => -x) : side : last ?? [0, 0, 1]);
  });
  if (n > 2) [sides[0], sides[n - 1]] = [sides[1], sides[n - 2]];
  const rows = [];
  for (let i = 0; i < n; ++i)
    for (let k = 0; k < (i === n - 1 ? 1 : steps); ++k) {
      const t = k / steps, next = Math.min(n - 1, i + 1);
      const isHead = shapes[i] === 'strand' && shapes[next] !== 'strand';
      const half = isHead ? HEAD * (1 - t)
        : shapes[i] === shapes[next] || shapes[i] === 'strand' ? HALF_WIDTHS[shapes[i]]
        : HALF_WIDTHS[shapes[i]] * (1 - t) + HALF_WIDTHS[shapes[next]] * t;
      rows.push({place: between(at(smooth, i - 1), smooth[i], smooth[next], at(smooth, i + 2), t),
                 side: unit(add(sides[i].map(x => x * (1 - t)), sides[next], t)), half,
                 residue: from + (t < 0.5 ? i : next)});
    }
  return rows;
}
