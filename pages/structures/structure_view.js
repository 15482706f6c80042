// A picture of a structure that can be turned: a ribbon or a trace on a canvas, in the order of depth.

import {ARROWS} from '../heat_map.js';
import {el, isPrinting, set, theme} from '../page.js';
import {add, cross, dot, length, piecesOf, pointsOf, ribbonOf, sub, unit} from './ribbon.js';

const CARD = {light: [255, 255, 255], dark: [23, 26, 32]};
const TURN = Math.PI / 18, ZOOM = 1.2, REACH = 18;  // of one step; pixels around a residue where it is chosen
const STEPS = [[300, 8], [1000, 5], [3000, 3], [Infinity, 1]];  // of a ribbon for one residue, by the number of residues

const product = (a, b) => a.map(row => [0, 1, 2].map(k => row[0] * b[0][k] + row[1] * b[1][k] + row[2] * b[2][k]));
const turned = (matrix, p) => matrix.map(row => dot(row, p));
const mix = (from, to, share) => from.map((x, k) => Math.round(x + (to[k] - x) * share));

/** Rows that turn the longest extent of points to the right, and the second one up. */
function principalAxes(points) {
  const axes = [];
  for (const start of [[1, 0.3, 0.1], [0.1, 1, 0.3]]) {
    let axis = unit(start);
    for (let round = 0; round < 60; ++round) {
      let next = [0, 0, 0];
      for (const p of points) next = add(next, p, dot(p, axis));
      for (const known of axes) next = add(next, known, -dot(next, known));
      if (length(next) < 1e-9) next = axes.length ? cross(axes[0], Math.abs(axes[0][0]) < 0.9 ? [1, 0, 0] : [0, 1, 0]) : [1, 0, 0];
      axis = unit(next);
    }
    axes.push(axis);
  }
  return [...axes, cross(axes[0], axes[1])];
}

/** Points of one structure in the view's middle, and the pieces that are drawn of it. */
function modelOf(trace, middle, steps) {
  const points = pointsOf(trace).map(p => sub(p, middle));
  const pieces = piecesOf(trace, points);
  return {points, lines: pieces.map(({from, to}) => points.slice(from, to).map((place, i) => ({place, half: 0, residue: from + i}))),
          ribbons: pieces.map(({from, to}) => ribbonOf(points.slice(from, to), from, steps))};
}

/**
 * `choose(residue or null)` is called when the pointer comes to a residue of the first structure. show() draws what its
 * state says: {mode: 'ribbon' or 'trace', colours: of each residue [r, g, b], withTruth, marked: residues}.
 */
export class StructureView {
  #canvas = el('canvas'); #host; #models; #radius; #axes; #turn; #zoom = 1; #state = null; #planned = false; #seen = [];
  #size = [0, 0]; #labels;

  constructor(host, trace, truth, {choose}) {
    this.#host = host;
    const all = pointsOf(trace), middle = all.reduce((sum, p) => add(sum, p, 1 / all.length), [0, 0, 0]);
    const steps = STEPS.find(([most]) => all.length <= most)[1];
    this.#models = [trace, ...truth ? [truth] : []].map(own => modelOf(own, middle, steps));
    this.#labels = [...trace.letters].map((letter, i) => `${letter}${trace.numbers[i]}`);
    const {points} = this.#models[0];
    this.#radius = points.reduce((most, p) => Math.max(most, length(p)), 0) + 3;
    this.#axes = this.#turn = principalAxes(points);
    set(this.#canvas, {'aria-hidden': 'true'});
    host.replaceChildren(this.#canvas);
    this.#listen(choose);
  }

  /** The buttons that do what the keys do, for a toolbar. */
  get actions() {
    return [['←', 'Turn left', () => this.turn(-TURN, 0)], ['→', 'Turn right', () => this.turn(TURN, 0)],
            ['↑', 'Turn up', () => this.turn(0, -TURN)], ['↓', 'Turn down', () => this.turn(0, TURN)],
            ['+', 'Larger', () => this.zoom(ZOOM)], ['−', 'Smaller', () => this.zoom(1 / ZOOM)],
            ['⟲', 'As at first', () => this.reset()]];
  }
  turn(across, down) {
    const [c, s, d, e] = [Math.cos(across), Math.sin(across), Math.cos(down), Math.sin(down)];
    this.#turn = product([[1, 0, 0], [0, d, e], [0, -e, d]], product([[c, 0, s], [0, 1, 0], [-s, 0, c]], this.#turn));
    this.#plan();
  }
  zoom(factor) {
    this.#zoom = Math.min(20, Math.max(0.4, this.#zoom * factor));
    this.#plan();
  }
  reset() {
    this.#turn = this.#axes;
    this.#zoom = 1;
    this.#plan();
  }
  show(state, width) {
    this.#state = state;
    this.#size = [width, Math.round(Math.min(560, Math.max(330, width * 0.72)))];
    this.#draw();
  }

  #plan() {
    if (this.#planned) return;
    this.#planned = true;
    requestAnimationFrame(() => this.#draw());
  }

  #listen(choose) {
    const host = this.#host, held = new Map();
    const spread = () => { const [a, b] = [...held.values()]; return Math.hypot(a.x - b.x, a.y - b.y); };
    host.addEventListener('pointerdown', event => {
      if (event.button) return;
      held.set(event.pointerId, {x: event.clientX, y: event.clientY});
      host.setPointerCapture(event.pointerId);
      choose(this.#residueAt(event));
    });
    host.addEventListener('pointermove', event => {
      const last = held.get(event.pointerId);
      if (!last) return event.pointerType === 'mouse' && choose(this.#residueAt(event));
      const before = held.size === 2 && spread();
      held.set(event.pointerId, {x: event.clientX, y: event.clientY});
      if (held.size === 1) this.turn((event.clientX - last.x) / 120, (event.clientY - last.y) / 120);
      else if (held.size === 2 && before) this.zoom(spread() / before);
    });
    for (const name of ['pointerup', 'pointercancel']) host.addEventListener(name, event => held.delete(event.pointerId));
    host.addEventListener('wheel', event => {
      if (!event.ctrlKey) return;
      event.preventDefault();  // the browser would enlarge the whole page
      this.zoom(event.deltaY < 0 ? ZOOM : 1 / ZOOM);
    }, {passive: false});
    host.addEventListener('keydown', event => {
      const arrow = ARROWS[event.key];
      if (arrow) this.turn(TURN * arrow[0], TURN * arrow[1]);
      else if (event.key === '+' || event.key === '=') this.zoom(ZOOM);
      else if (event.key === '-') this.zoom(1 / ZOOM);
      else if (event.key === '0') this.reset();
      else if (event.key === 'Escape') choose(null);
      else return;
      event.preventDefault();
    });
  }

  #residueAt(event) {
    const box = this.#canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    let best = null, least = REACH;
    this.#seen.forEach(([px, py, depth], i) => {
      const far = Math.hypot(px - x, py - y) - depth / this.#radius * 3;  // of two the one in front
      if (far < least) [best, least] = [i, far];
    });
    return best;
  }

  #draw() {
    this.#planned = false;
    const [width, height] = this.#size, density = Math.max(2, devicePixelRatio || 1), {mode, colours, withTruth, marked} = this.#state;
    // The canvas gets a picture and not the strokes, see heat_map.js.
    const sheet = new OffscreenCanvas(width * density, height * density), pen = sheet.getContext('2d');
    pen.scale(density, density);
    pen.lineCap = pen.lineJoin = 'round';
    const scale = Math.min(width, height) / 2 / this.#radius * this.#zoom * Math.min(1.25, Math.max(1, width / height));
    const card = CARD[theme()], radius = this.#radius;
    const seen = p => { const [x, y, z] = turned(this.#turn, p); return [width / 2 + x * scale, height / 2 - y * scale, z]; };
    const parts = [];
    this.#models.forEach((model, which) => {
      if (which && !withTruth) return;
      const own = which ? () => (theme() === 'dark' ? [176, 183, 196] : [104, 110, 122]) : i => colours[i];
      for (const rows of mode === 'ribbon' ? model.ribbons : model.lines) this.#collect(rows, seen, own, which, parts);
    });
    parts.sort((a, b) => a.depth - b.depth);
    const thread = Math.max(1.2, (mode === 'ribbon' ? 0.55 : 0.4) * scale);
    for (const {corners, depth, colour, shade, which} of parts) {
      const fog = Math.min(0.72, Math.max(0, 0.16 - 0.3 * depth / radius) + (which ? 0.35 : 0));
      pen.strokeStyle = pen.fillStyle = `rgb(${mix(mix([0, 0, 0], colour, shade), card, fog).join(' ')})`;
      pen.lineWidth = (which ? 0.6 : 1) * (corners.length > 2 ? Math.max(1, 0.3 * scale) : thread);
      pen.beginPath();
      corners.forEach(([x, y], i) => i ? pen.lineTo(x, y) : pen.moveTo(x, y));
      if (corners.length > 2) { pen.closePath(); pen.fill(); }
      pen.stroke();
    }
    this.#seen = this.#models[0].points.map(seen);
    this.#mark(pen, marked.filter(i => i !== null), card);
    Object.assign(this.#canvas, {width: sheet.width, height: sheet.height});
    Object.assign(this.#canvas.style, {width: `${width}px`, height: `${height}px`});
    this.#canvas.getContext('bitmaprenderer').transferFromImageBitmap(sheet.transferToImageBitmap());
  }

  /** The quadrangles and lines of one piece, with their depth, and how bright the light makes them. */
  #collect(rows, seen, colourOf, which, parts) {
    const put = (corners, ends, shade, residue) => parts.push(
      {corners, depth: ends.reduce((sum, p) => sum + p[2], 0) / ends.length, colour: colourOf(residue), shade, which});
    if (rows.length === 1) {  // a dot: a line without a length would not be drawn
      const at = seen(rows[0].place);
      put([at, [at[0] + 0.01, at[1]]], [at], 1, rows[0].residue);
    }
    for (let i = 1; i < rows.length; ++i) {
      const a = rows[i - 1], b = rows[i], ends = [seen(a.place), seen(b.place)];
      if (a.half < 0.05 && b.half < 0.05) {
        const middle = ends[0].map((x, k) => (x + ends[1][k]) / 2);
        put([ends[0], middle], [ends[0], middle], 0.94, a.residue);
        put([middle, ends[1]], [middle, ends[1]], 0.94, b.residue);
        continue;
      }
      const light = Math.abs(turned(this.#turn, unit(cross(sub(b.place, a.place), a.side)))[2]);
      const corner = ({place, side, half}, sign) => seen(add(place, side, sign * half));
      put([corner(a, 1), corner(b, 1), corner(b, -1), corner(a, -1)], ends, 0.6 + 0.4 * light, a.residue);
    }
  }

  /** Rings around the chosen residues, a line between two, and their names. */
  #mark(pen, marked, card) {
    if (!marked.length || isPrinting()) return;
    const ink = theme() === 'dark' ? '#e9ecf1' : '#16191f', back = `rgb(${card.join(' ')})`;
    const strokes = [[back, 5], [ink, 2]];
    const outlined = path => strokes.forEach(([colour, wide]) => {
      Object.assign(pen, {strokeStyle: colour, lineWidth: wide});
      pen.beginPath();
      path();
      pen.stroke();
    });
    const spots = marked.map(i => this.#seen[i]);
    if (spots.length === 2) {
      pen.setLineDash([6, 5]);
      outlined(() => spots.forEach(([x, y], i) => i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
      pen.setLineDash([]);
    }
    pen.font = `650 13px ${getComputedStyle(document.body).fontFamily}`;
    spots.forEach(([x, y], i) => {
      outlined(() => pen.arc(x, y, 7, 0, 2 * Math.PI));
      const name = this.#labels[marked[i]], isRight = x > this.#size[0] - 70;
      Object.assign(pen, {strokeStyle: back, lineWidth: 4, fillStyle: ink, textAlign: isRight ? 'right' : 'left'});
      pen.strokeText(name, x + (isRight ? -12 : 12), y - 8);
      pen.fillText(name, x + (isRight ? -12 : 12), y - 8);
    });
  }
}
