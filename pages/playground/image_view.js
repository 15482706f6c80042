// Picture: the classes of a picture or the objects in it, and where the model looked.

import {largest} from '../heat_map.js';
import {placeLabels} from '../label_places.js';
import {el, option, roomInside, set, whenThemeChanges} from '../page.js';
import {percent, PictureView} from '../picture_view.js';
import {predictionBar} from '../prediction_bar.js';
import {post} from './api.js';
import {scoreOf} from './classify_view.js';
import {field, ModelChoice, Runner} from './forms.js';
import {PictureField} from './picture_field.js';

const MOST_LABELS = 10, WIDEST = 560;

/** The pointer or the focus on the line of an object, on its box, or the pointer on its label marks all three. */
function markTogether([bar, box, label]) {
  const nodes = [bar, box, label], mark = is => () => nodes.forEach(each => each.classList.toggle('on', is));
  for (const node of [bar, box]) node.tabIndex = 0;
  for (const node of nodes)
    for (const [event, is] of [['pointerenter', true], ['focus', true], ['pointerleave', false], ['blur', false]])
      node.addEventListener(event, mark(is));
}

export class ImageView {
  #form = el('form', 'card form'); #choice; #file; #runner; #changed; #image = new Image();
  #least = set(el('input'), {type: 'range', min: 0, max: 1, step: 0.05, value: 0.5, name: 'least'});
  #picture = el('div', 'stage plain'); #answers = el('ol', 'likeliest answers');
  #said = set(el('section', 'card result', el('h2', '', 'What the model says'), this.#picture, this.#answers),
              {hidden: true, 'aria-live': 'polite', 'aria-label': 'What the model says'});
  #looked; #prediction = null;
  node;

  constructor(models, changed) {
    this.#changed = changed;
    this.#choice = new ModelChoice(models, 'Model');
    this.#runner = new Runner(this.#form, 'Look', signal => this.#run(signal));
    this.#file = new PictureField(this.#form, read => this.#runner.start(async signal => {
      await read();
      await this.#run(signal);
    }));
    this.#form.append(this.#choice.node, this.#file.node, field('Least score of an object', this.#least), this.#runner.node);
    this.#least.parentElement.hidden = true;
    this.#looked = new WhereItLooked(() => this.#changed());
    this.node = el('div', 'view', this.#form, el('div', 'results beside', this.#said, this.#looked.node));
    this.#least.addEventListener('input', () => { this.#changed(); this.#showPrediction(); });
    new ResizeObserver(() => this.#fit()).observe(this.#said);
  }

  async #run(signal) {
    if (this.#file.uri) this.#changed();
    this.#runner.tell('Looking …');
    const {id, model} = this.#choice;
    await this.#file.decoded(this.#image);
    const {predictions: [prediction]} = await post('predict', {model: id, images: [this.#file.uri]}, signal);
    this.#prediction = prediction;
    this.#said.hidden = false;
    this.#showPrediction();
    this.#looked.hide();
    if (model.zoo.can.includes('attention'))
      this.#looked.show(this.#image, await post('attention', {model: id, image: this.#file.uri}, signal));
    this.#runner.tell(this.#file.isLarge ? 'The picture is too large for a link: a link restores all but the picture.' : '');
  }

  #showPrediction() {
    if (!this.#prediction) return;
    const {labels, objects, score} = this.#prediction;
    this.#least.parentElement.hidden = !objects;
    if (score !== undefined) {
      this.#picture.replaceChildren(this.#image);
      this.#fit();
      this.#answers.replaceChildren(el('li', '', scoreOf({score})));
      return;
    }
    const found = (objects ?? []).filter(({score}) => score >= Number(this.#least.value)).sort((a, b) => b.score - a.score);
    const boxes = found.map(({label, score, box}) => this.#boxOf(label, score, box));
    const tags = found.map(({label, score}) => set(el('span', 'label', `${label} ${score.toFixed(2)}`), {'aria-hidden': true}));
    this.#picture.replaceChildren(this.#image, ...boxes, ...tags);
    this.#fit();
    const likeliest = objects ? found.map(({label, score}) => ({label, probability: score})) : labels.slice(0, MOST_LABELS);
    const bars = likeliest.map(({label, probability}) => predictionBar({token: label, probability}));
    const none = el('li', 'quiet', 'No object has this score.');
    boxes.forEach((box, i) => markTogether([bars[i], box, tags[i]]));
    this.#answers.replaceChildren(...bars.length ? bars : [none]);
    this.#image.alt = bars.length ? `The picture: ${(found[0] ?? labels[0]).label}` : 'The picture';
  }

  #boxOf(label, score, [x, y, width, height]) {
    const {naturalWidth, naturalHeight} = this.#image;
    const node = set(el('div', 'mark object box'), {role: 'img', 'aria-label': `${label} ${score.toFixed(2)}`});
    const share = (value, whole) => `${100 * value / whole}%`;
    Object.assign(node.style, {left: share(x, naturalWidth), top: share(y, naturalHeight),
                               width: share(width, naturalWidth), height: share(height, naturalHeight),
                               zIndex: Math.round(1000 * (1 - width * height / (naturalWidth * naturalHeight)))});
    return node;
  }

  /** Small pictures are enlarged, so that their pixels can be seen. */
  #fit() {
    const {naturalWidth, naturalHeight} = this.#image, room = Math.min(roomInside(this.#said), WIDEST);
    if (!naturalWidth || !(room > 0)) return;
    const width = Math.min(room, Math.max(naturalWidth, 280), 480 * naturalWidth / naturalHeight);
    this.#image.style.width = `${width}px`;
    this.#image.style.imageRendering = width > 3 * naturalWidth ? 'pixelated' : 'auto';
    this.#placeLabels();
  }

  #placeLabels() {
    const within = selector => [...this.#picture.querySelectorAll(selector)], boxes = within('.box'), labels = within('.label');
    const sizes = labels.map(({offsetWidth: width, offsetHeight: height}, i) => {
      const {offsetLeft: left, offsetTop: top, offsetWidth, offsetHeight} = boxes[i];
      return {width, height, box: {left, top, width: offsetWidth, height: offsetHeight}};
    });
    placeLabels(sizes, {width: this.#picture.clientWidth, height: this.#picture.clientHeight}).forEach(({left, top}, i) =>
        Object.assign(labels[i].style, {left: `${left}px`, top: `${top}px`}));
  }

  get address() {
    return [['model', this.#choice.id], ['least', this.#least.value === '0.5' ? '' : this.#least.value],
            ...this.#looked.address, this.#file.address];
  }
  restore(values) {
    this.#choice.choose(values.get('model'));
    this.#least.value = values.get('least') ?? '0.5';
    this.#looked.restore(values);
    this.#file.restore(values);
    if (this.#file.uri) this.#runner.start();
  }
}

/** The picture with the weights of one head on it: where a patch of the picture, or an object, looks. */
class WhereItLooked {
  #changed; #maps = null; #picture = null; #from = 0; #seen = null; #grid = null; #wanted = {};
  #layer = set(el('select'), {name: 'layer'}); #head = set(el('select'), {name: 'head'});
  #source = set(el('select'), {name: 'from'});
  #stage = set(el('div', 'stage'), {tabIndex: 0, role: 'application', 'aria-roledescription': 'picture', 'aria-label':
      'Where the model looked. Arrow keys move from place to place.'});
  #readout = set(el('p', 'readout'), {'aria-live': 'polite'});
  #choices = el('div', 'grid', field('From', this.#source), field('Layer', this.#layer), field('Head', this.#head));
  #note = el('p', 'quiet', 'The stronger the orange, the more weight. Click on a place to see where it looks.');
  node = set(el('section', 'card result', el('h2', '', 'Where it looked'), this.#readout, this.#choices, this.#stage, this.#note),
             {hidden: true, 'aria-label': 'Where it looked'});

  constructor(changed) {
    this.#changed = changed;
    for (const select of [this.#layer, this.#head]) select.addEventListener('change', () => this.#chose());
    this.#source.addEventListener('change', () => { this.#from = Number(this.#source.value); this.#chose(); });
    whenThemeChanges(() => this.#draw());
    new ResizeObserver(() => this.#draw()).observe(this.node);
  }

  hide() { this.node.hidden = true; }

  /** Shows `answer`, the maps of a picture. */
  show(image, {source, target, maps, image: grid}) {
    const map = maps.find(({name}) => name.startsWith('cross')) ?? maps[0];
    if (!map || !grid) return;
    const [x, y, width, height] = grid.part, crosses = map.name.startsWith('cross');
    this.#grid = {rows: grid.rows, columns: grid.columns, special: grid.special ?? 0, crosses,
                  part: {x: x / grid.width, y: y / grid.height, width: width / grid.width, height: height / grid.height}};
    this.#maps = map.layers;
    const names = crosses ? target : source, n = map.layers[0].length, wanted = this.#wanted;
    this.#layer.replaceChildren(...map.layers.map((_, layer) => option(layer, `${layer}`)));
    const heads = Array.from({length: n}, (_, head) => option(head, `${head}`));
    this.#head.replaceChildren(option('mean', 'mean of heads'), ...heads);
    this.#source.replaceChildren(...names.map((name, i) => option(i, name)));
    const inRange = (value, n) => /^\d+$/.test(value ?? '') && Number(value) < n;
    this.#layer.value = inRange(wanted.layer, map.layers.length) ? wanted.layer : map.layers.length - 1;
    this.#head.value = inRange(wanted.head, n) ? wanted.head : 'mean';
    const middle = Math.floor(grid.rows / 2) * grid.columns + Math.floor(grid.columns / 2);
    const sure = names.findIndex(name => / \d\.\d+$/.test(name) && Number(name.split(' ').at(-1)) >= 0.5);
    const usual = crosses ? Math.max(0, sure) : this.#grid.special ? 0 : middle;
    this.#from = inRange(wanted.from, names.length) ? Number(wanted.from) : usual;
    this.#wanted = {};
    this.node.hidden = false;
    this.#picture = new PictureView(this.#stage, image, this.#grid, {
      choose: patch => { if (!crosses) this.#go(patch === null ? 0 : this.#grid.special + patch); },
      look: patch => { this.#seen = patch; this.#tell(); },
      step: (down, across) => this.#step(down, across),
    });
    this.#chose();
  }

  #step(down, across) {
    const {rows, columns, special, crosses} = this.#grid, clamp = (value, n) => Math.min(n - 1, Math.max(0, value));
    if (crosses) return this.#go(clamp(this.#from + down + across, this.#source.length));
    if (this.#from < special) return this.#go(special);
    const patch = this.#from - special;
    this.#go(special + clamp(Math.floor(patch / columns) + down, rows) * columns + clamp(patch % columns + across, columns));
  }
  #go(from) {
    this.#from = from;
    this.#chose();
  }
  #chose() {
    this.#source.value = this.#from;
    this.#changed();
    this.#draw();
  }

  /** The weights of the chosen row on the patches. */
  get #weights() {
    const heads = this.#maps[Number(this.#layer.value)];
    const rows = this.#head.value === 'mean' ? heads : [heads[Number(this.#head.value)]];
    const own = rows.map(head => head[this.#from]).map(row => row.slice(row.length - this.#grid.rows * this.#grid.columns));
    return own[0].map((_, i) => own.reduce((sum, row) => sum + row[i], 0) / own.length);
  }

  #draw() {
    const room = roomInside(this.node);
    if (!this.#picture || this.node.hidden || !(room > 0)) return;
    const values = this.#weights;
    this.#picture.show({values, top: Math.max(1e-9, largest(values)), over: true}, Math.min(room, 400));
    this.#tell();
  }
  #tell() {
    const {special, crosses, columns} = this.#grid, values = this.#weights;
    const seen = this.#seen ?? values.indexOf(largest(values));
    this.#picture.mark({chosen: crosses || this.#from < special ? null : this.#from - special, seen: this.#seen});
    this.#readout.replaceChildren(
        el('b', '', el('bdi', '', this.#source.options[this.#from].text)), ' → ',
        el('b', '', `row ${Math.floor(seen / columns)} column ${seen % columns}`), ` ${percent(values[seen])}`,
        el('span', 'hint', this.#seen === null ? 'the largest weight' : ''));
  }

  get address() {
    if (!this.#maps) return Object.entries(this.#wanted);
    const last = this.#maps.length - 1, layer = Number(this.#layer.value) === last ? '' : this.#layer.value;
    return [['layer', layer], ['head', this.#head.value === 'mean' ? '' : this.#head.value], ['from', this.#from]];
  }
  restore(values) {
    this.#maps = null;
    this.#wanted = {layer: values.get('layer'), head: values.get('head'), from: values.get('from')};
  }
}
