// The page of zoo serve: views of what its models can do. The address names the view and what it shows.

import {$, count, el, set} from '../page.js';
import {addressOf, readAddress, setAddress} from './address.js';
import {get} from './api.js';
import {AttentionView} from './attention_view.js';
import {Beginning} from './beginning.js';
import {CausesView} from './causes_view.js';
import {ChatView} from './chat_view.js';
import {ClassifyView} from './classify_view.js';
import {FillView} from './fill_view.js';
import {ImageView} from './image_view.js';
import {RecordingsView} from './recordings_view.js';
import {FoldView} from './structure_view.js';
import {CompareView, TextView} from './text_view.js';
import {TranslateView} from './translate_view.js';

// What a view needs of models: `can` is what they can do (and `cannot`), `least` how many there must be.
const VIEWS = [
  {name: 'text', title: 'Text', make: TextView, can: 'completions', cannot: 'translate', need: 'a model that continues texts'},
  {name: 'compare', title: 'Compare', make: CompareView, can: 'completions', cannot: 'translate', least: 2,
   need: 'two models that continue texts'},
  {name: 'chat', title: 'Chat', make: ChatView, can: 'chat', need: 'a model that has a chat template'},
  {name: 'fill', title: 'Fill', make: FillView, can: 'fill', need: 'a model that was trained to fill masks'},
  {name: 'translate', title: 'Translate', make: TranslateView, can: 'translate', need: 'an encoder-decoder for texts'},
  {name: 'classify', title: 'Classify', make: ClassifyView, can: 'predict_text',
   need: 'a model that classifies texts or their words'},
  {name: 'picture', title: 'Picture', make: ImageView, can: 'predict_image',
   need: 'a model that classifies pictures or finds objects'},
  {name: 'recordings', title: 'Recordings', make: RecordingsView, can: 'predict_recording',
   need: 'a model that reads recordings'},
  {name: 'structure', title: 'Structure', make: FoldView, can: 'fold', need: 'a model that folds proteins'},
  {name: 'attention', title: 'Attention', make: AttentionView, can: 'attention', cannot: 'predict_image',
   need: 'a Transformer that reads texts'},
  {name: 'causes', title: 'Causes', make: CausesView, can: 'causes',
   need: 'a Transformer that predicts tokens or classes'},
];

const opened = new Map();  // name → the view
let models = [], shown = null;

const modelsFor = ({can, cannot}) => models.filter(({zoo}) => zoo.can.includes(can) && !zoo.can.includes(cannot));
function missing(view) {
  if (modelsFor(view).length >= (view.least ?? 1)) return '';
  const absent = view.least === 2 ? 'them' : 'one';
  return `This view needs ${view.need}. zoo serve was started without ${absent}: zoo serve RUN… takes several models.`;
}

/** A view with its first screen, which goes when the view has something to show. */
function begun(definition) {
  const {name, make: View} = definition, usable = modelsFor(definition);
  let beginning = null;
  const view = new View(usable, () => {
    beginning?.node.remove();
    if (shown === view) changed(name, view);
  });
  beginning = new Beginning(name, view, usable, linksFor);
  const results = view.node.querySelector('.results');
  results ? results.prepend(beginning.node) : view.node.append(beginning.node);
  return view;
}

/** Links to the views that a model can be used in. */
const linksFor = model => VIEWS.filter(view => modelsFor(view).includes(model) && !missing(view)).map(({name, title}) =>
    set(el('a', '', title), {href: addressOf(name, [['model', model.id]])}));

function viewOf(definition) {
  const {name, title} = definition;
  if (!opened.has(name)) {
    const problem = missing(definition);
    const view = problem ? {node: el('p', 'card quiet', problem), address: [], restore() {}} : begun(definition);
    view.node.prepend(set(el('h1', 'heard', title), {tabIndex: -1}));
    $('main').append(view.node);
    opened.set(name, view);
  }
  return opened.get(name);
}

function changed(name, view) {
  setAddress(name, view.address);
  linkOf(name).href = location.hash;  // to come back to what it showed
}

const linkOf = name => $('views').querySelector(`[data-view="${name}"]`);

/** Opens the view that the address names, with what the address says. */
function open() {
  const {view: name, values} = readAddress(), found = VIEWS.find(view => view.name === name);
  const definition = found ?? VIEWS.find(view => !missing(view)) ?? VIEWS[0];
  const isOpen = opened.has(definition.name), view = viewOf(definition), before = shown;
  shown = view;
  for (const each of opened.values()) each.node.hidden = each !== view;
  for (const link of $('views').children) link.toggleAttribute('data-open', link.dataset.view === definition.name);
  for (const link of $('views').children)
    link.dataset.open === undefined ? link.removeAttribute('aria-current') : link.setAttribute('aria-current', 'page');
  document.title = `${definition.title} · zoo serve`;
  // A click on the link of a view that is there shows it as it was left.
  if (!isOpen || location.hash !== addressOf(definition.name, view.address)) view.restore(values);
  if (before) view.node.querySelector('h1').focus({preventScroll: true});
}

function showLinks() {
  $('views').replaceChildren(...VIEWS.map(view => {
    const problem = missing(view);
    const link = set(el('a', problem ? 'off' : '', view.title), {href: `#${view.name}`, title: problem});
    if (problem) link.append(el('span', 'heard', ' (no model)'));
    link.dataset.view = view.name;
    return link;
  }));
}

async function begin() {
  try {
    models = (await get('v1/models')).data;
  } catch (error) {
    set($('waiting'), {className: 'card problem', textContent: error.message, role: 'alert'});
    return;
  }
  $('waiting').remove();
  $('server').textContent = `· ${count(models.length, 'model')}`;
  showLinks();
  addEventListener('hashchange', open);
  open();
}
begin();
