// Attention: where each token looks, in every head of every layer. A token, a layer and a head are chosen. The text shows
// where the token looks there, and a map or lines show the whole head.

import {nameOf, Overview} from '../attention_overview.js';
import {ARROWS, fraction, HeatMap, largest, MOST, numbersTable, readMaps, showLegend, weightText} from '../heat_map.js';
import {headColour, LineView} from '../line_view.js';
import {colour, count, el, inkOn, plain, roomInside, set, showScrolling, whenResized, whenThemeChanges} from '../page.js';
import {post} from './api.js';
import {field, FormView, textArea} from './forms.js';

const kindOf = name => ['cross', 'decoder', 'encoder'].find(kind => name.startsWith(kind)) ?? 'encoder';

/** The API's maps as heat_map.js reads them: integers, row after row. A row of cross-attention is the token being written. */
function mapsOf({source, target, target_next, maps}) {
  const reading = readMaps({
    source_tokens: source, target_tokens: target,
    maps: maps.map(({name, layers}) => ({
      kind: kindOf(name),
      layers: layers.map(heads => heads.map(rows => rows.flat().map(weight => Math.round(weight * MOST))))})),
  });
  if (target_next?.length) reading.KINDS.cross.rows = target_next;
  return reading;
}

export class AttentionView extends FormView {
  #answer;
  #reading = null; #overview = null; #map = null; #token = 0; #wanted = null;
  #title = el('h2'); #from = el('div', 'places'); #to = el('div', 'places looked');
  #readout = set(el('p', 'readout'), {'aria-live': 'polite'});
  #plot = set(el('div', 'plot'), {tabIndex: 0, role: 'application', 'aria-roledescription': 'heat map'});
  #lines = el('div', 'lines');
  #heatMap = new HeatMap(this.#plot, this.#readout); #lineView = new LineView(this.#lines, this.#readout);
  #ramp = el('span', 'ramp'); #rampEnd = el('span'); #table = el('div', 'scroll');
  #show = choiceOf('Show the head as', 'attention-show', [['map', 'map'], ['lines', 'lines']]);
  #scale = choiceOf('Colours', 'attention-scale', [['relative', '0 to the largest'], ['absolute', '0 to 1']]);
  #numbers = el('details', '', el('summary', '', 'This head as a table of numbers'), this.#table);
  #detail; #heads = el('div', 'overview');
  #results;

  constructor(models, changed) {
    const inputs = {text: textArea(3, {placeholder: 'It was late.', required: true}), target: textArea(2)};
    super(models, changed, 'Look', inputs, () => this.#fitForm());
    this.#answer = field('Answer', inputs.target, 'Without one, the model writes its own.');
    this.form.append(this.choice.node, field('Text', inputs.text), this.#answer, this.runner.node);
    this.#fitForm();
    const legend = el('div', 'legend', el('span', '', '0'), this.#ramp, this.#rampEnd);
    const parts = [this.#title, this.#from, this.#to, this.#readout, this.#show, this.#lines, this.#plot,
                   el('div', 'bar under', legend, this.#scale), this.#numbers];
    this.#detail = set(el('section', 'card detail', ...parts), {'aria-label': 'One head'});
    this.#results = set(el('div', 'maps', this.#heads, this.#detail), {hidden: true});
    this.node = el('div', 'view wide', this.form, this.#results);
    showScrolling(this.#plot, '');
    showScrolling(this.#lines, 'Lines of attention');
    showScrolling(this.#table, 'This head as a table of numbers');
    for (const fieldset of [this.#show, this.#scale])
      fieldset.addEventListener('change', () => { this.changed(); this.#render(); });
    this.#numbers.addEventListener('toggle', () => this.#fillTable());
    whenThemeChanges(() => this.#render());
    whenResized(this.#detail, () => this.#render());
  }

  /** Only models that translate or answer have an answer to look at. */
  #fitForm() { this.#answer.hidden = !this.choice.model.zoo.can.includes('translate'); }

  async run(signal) {
    this.#fitForm();
    this.#wanted ??= this.#map && {name: nameOf(this.#map), token: null};
    this.changed();
    this.runner.tell('Looking …');
    const target = this.#answer.hidden ? '' : this.inputs.target.value;
    const body = {model: this.choice.id, text: this.inputs.text.value, ...target ? {target} : {}};
    const answer = await post('attention', body, signal), reading = this.#reading = mapsOf(answer);
    const {kinds, maps} = reading, [kind, layer, head] = (this.#wanted?.name ?? '').split('-');
    const wanted = {kind, layer: Number(layer), head: head === 'mean' ? head : Number(head)};
    const usual = {kind: kinds[0], layer: maps[kinds[0]].length - 1, head: 'mean'};
    this.#heads.replaceChildren();
    this.#overview = new Overview(this.#heads, reading, map => this.#viewOf(map), map => {
      this.#open(map);
      const {top, bottom} = this.#detail.getBoundingClientRect();  // on a phone it is below the small maps
      if (bottom < 160 || top > innerHeight - 160) this.#detail.scrollIntoView({block: 'start'});
    });
    this.#heatMap.forget();
    this.#lineView.forget();
    this.#results.hidden = false;
    const map = kinds.includes(wanted.kind) && reading.weights(wanted) ? wanted : usual;
    const last = reading.KINDS[map.kind].rows.length - 1;
    this.#token = Math.min(last, this.#wanted?.token ?? last);
    this.#wanted = null;
    this.#open(map);
    const ofAnswer = answer.target.length ? ` and ${answer.target.length} of the answer` : '';
    this.runner.tell(`${count(answer.source.length, 'token')}${ofAnswer}.`);
  }

  #open(map) {
    const rows = this.#reading.KINDS[map.kind].rows.length;
    this.#map = map;
    this.#token = Math.min(this.#token, rows - 1);
    this.changed();
    this.#render();
  }

  #topOf(map) { return valueOf(this.#scale) === 'absolute' ? MOST : Math.max(1, largest(this.#reading.free(map))); }
  #viewOf(map) {
    const {KINDS, weights, isHidden} = this.#reading, {rows, columns} = KINDS[map.kind];
    return {values: weights(map), rows, columns, isHidden: (t, s) => isHidden(map.kind, t, s), top: this.#topOf(map)};
  }

  #render() {
    const map = this.#map;
    if (!map || !this.#reading) return;
    const view = this.#viewOf(map), asLines = valueOf(this.#show) === 'lines', room = roomInside(this.#detail);
    this.#overview.paint();
    this.#overview.mark(map);
    this.#title.textContent = this.#reading.titleOf(map);
    this.#showPlaces(view);
    showLegend(this.#ramp, this.#rampEnd, view);
    this.#lines.parentElement.hidden = !asLines;
    this.#plot.parentElement.hidden = asLines;
    this.#plot.setAttribute('aria-label', `${this.#title.textContent}. Arrow keys move from weight to weight.`);
    this.#fillTable();
    if (!(room > 0)) return;  // the view is not open
    if (asLines) {
      const n = this.#reading.maps[map.kind][0].length, colour = headColour(map.head === 'mean' ? 0 : map.head, n);
      const heads = [{values: view.values, colour}];
      this.#lineView.show({...view, titles: ['Token', 'Looks at'], heads}, room);
    } else this.#heatMap.show(view, room, Math.max(320, innerHeight - 420));
  }

  /** The tokens among which one is chosen, and those that it looks at, in the colours of its weights. */
  #showPlaces({values, rows, columns, isHidden}) {
    const same = rows === columns, t = this.#token, own = values.slice(t * columns.length, (t + 1) * columns.length);
    const top = Math.max(1, largest(own));  // a token that looks at many would be pale beside others
    const places = rows.map((token, i) => {
      const node = this.#placeOf(token, i === t ? 'place chosen' : 'place', same && !isHidden(t, i) ? own[i] : null, top);
      set(node, {role: 'radio', 'aria-checked': i === t, tabIndex: i === t ? 0 : -1});
      node.addEventListener('click', () => this.#choose(i));
      node.addEventListener('keydown', event => this.#step(event, i));
      return node;
    });
    this.#from.replaceChildren(el('span', 'quiet', same ? 'This token looks at: ' : 'This token of the answer: '), ...places);
    set(this.#from, {role: 'radiogroup', 'aria-label': 'The token that looks'});
    this.#to.hidden = same;
    const seen = columns.map((token, s) => this.#placeOf(token, 'place', own[s], top));
    this.#to.replaceChildren(el('span', 'quiet', 'looks at: '), ...seen);
  }
  #placeOf(token, className, weight, top) {
    const node = el('span', className, el('bdi', '', plain(token)));
    if (weight === null) return node;
    const share = fraction(weight, top);
    Object.assign(node.style, {background: colour(share), color: inkOn(share)});
    return set(node, {title: weightText(weight)});
  }
  #step(event, i) {
    if (!ARROWS[event.key]) return;
    event.preventDefault();
    const [across, down] = ARROWS[event.key], last = this.#reading.KINDS[this.#map.kind].rows.length - 1;
    this.#choose(Math.min(last, Math.max(0, i + across + down)));
    this.#from.querySelector('.chosen').focus();
  }
  #choose(token) {
    this.#token = token;
    this.changed();
    this.#showPlaces(this.#viewOf(this.#map));
  }

  #fillTable() {
    if (!this.#numbers.open || !this.#map) return;
    this.#table.replaceChildren(numbersTable(this.#viewOf(this.#map), this.#title.textContent));
  }

  get address() {
    const map = this.#wanted?.name ?? (this.#map && nameOf(this.#map));
    const token = this.#wanted ? this.#wanted.token : this.#map && this.#token;
    return [...super.address, ['map', map], ['token', token], ['show', valueOf(this.#show) === 'lines' ? 'lines' : ''],
            ['scale', valueOf(this.#scale) === 'absolute' ? 'absolute' : '']];
  }
  restore(values) {
    setValue(this.#show, values.get('show') ?? 'map');
    setValue(this.#scale, values.get('scale') ?? 'relative');
    this.#map = null;
    const token = values.has('token') ? Number(values.get('token')) : null;
    this.#wanted = values.has('map') ? {name: values.get('map'), token} : null;
    super.restore(values);
  }
}

/** A fieldset of radio buttons, the first one chosen; `choices` is a list of [value, text]. */
function choiceOf(title, name, choices) {
  const labels = choices.map(([value, text], i) =>
      el('label', '', set(el('input'), {type: 'radio', name, value, checked: i === 0}), ` ${text}`));
  return el('fieldset', 'choice', el('legend', '', title), ...labels);
}
const valueOf = fieldset => fieldset.querySelector(':checked').value;
function setValue(fieldset, value) {
  for (const input of fieldset.querySelectorAll('input')) input.checked = input.value === value;
}
