// What the first screen of each view says: how it is used, and examples to click.

import {dataUriOf, wavOf} from './sounds.js';

/** A picture of shapes as a data URI, white on black like Fashion-MNIST; `shapes` are lists of points in shares of its sides. */
function drawing(width, height, shapes) {
  const canvas = document.createElement('canvas'), pen = canvas.getContext('2d');
  Object.assign(canvas, {width, height});
  pen.fillRect(0, 0, width, height);
  pen.fillStyle = '#d8d8d8';
  for (const points of shapes) {
    pen.beginPath();
    for (const [x, y] of points) pen.lineTo(x * width, y * height);
    pen.fill();
  }
  return canvas.toDataURL('image/png');
}
const placed = (shape, x, y, width, height) => shape.map(([a, b]) => [x + a * width, y + b * height]);

const SHIRT = [[.3, .1], [.42, .16], [.58, .16], [.7, .1], [.95, .3], [.84, .44], [.72, .36], [.72, .92], [.28, .92], [.28, .36],
               [.16, .44], [.05, .3]];
const TROUSERS = [[.3, .05], [.7, .05], [.78, .95], [.58, .95], [.5, .3], [.42, .95], [.22, .95]];
const PICTURES = [
  ['A shirt', () => drawing(56, 56, [SHIRT])],
  ['Trousers', () => drawing(56, 56, [TROUSERS])],
  ['Both', () => drawing(96, 72, [placed(SHIRT, .06, .1, .38, .5), placed(TROUSERS, .6, .3, .32, .6)])],
];

/** A recording as a data URI; hertz(t) is the pitch at the moment t in seconds, 0 where there is silence. */
function sounding(seconds, hertz) {
  const rate = 8000, samples = new Float32Array(seconds * rate);
  let turns = 0;
  for (let t = 0; t < samples.length; ++t) {
    turns += hertz(t / rate) / rate;
    samples[t] = hertz(t / rate) ? 0.5 * Math.sin(2 * Math.PI * turns) : 0;
  }
  return dataUriOf(wavOf({samples, rate}));
}
const RECORDINGS = [
  ['Three tones', () => sounding(1.2, t => t % 0.4 < 0.3 ? 330 * (1 + Math.floor(t / 0.4) / 4) : 0)],
  ['A rising tone', () => sounding(1, t => 200 + 1000 * t)],
  ['Silence', () => sounding(1, () => 0)],
];

const PROMPTS = ['It was a dark and stormy night', 'Once upon a time, there was', 'ROMEO:', 'def fibonacci(n):'];
const continued = PROMPTS.map(prompt => ({title: prompt, values: {prompt}}));
const texts = list => list.map(text => ({title: text, values: {text}}));

/** {name of a view: {how: sentences, examples: [{title, values (of the view's address, or functions that make them)}]}} */
export const BEGINNINGS = {
  text: {
    how: ['Write a prompt and press Go on (Ctrl+Enter): the model writes what could come next.',
          'The colour of a token is its probability. A pale one was to be expected, a strong one is a surprise.',
          'Point at a token to see what else could have stood there, and choose one to go on from it.'],
    examples: continued,
  },
  compare: {
    how: ['Choose two models and write a prompt: both go on with it side by side.',
          'The same seed and settings hold for both. The lower the perplexity of a text, the less it surprises a model.'],
    examples: continued,
  },
  chat: {
    how: ['Write a message below and press Enter. Escape stops an answer, Answer again writes another one.',
          'A system prompt says how the model should answer. Temperature 0 gives the same answer each time.'],
    examples: ['What is a Transformer, in two sentences?', 'Write a function in Python that reverses a list.',
               'Write a short poem about snow.'].map(message => ({title: message, values: {message}})),
  },
  fill: {
    how: ['Put <mask> where a token is missing: the model says what it would put there, the likeliest first.',
          'Choose a candidate to take it into the text. Other masks are then filled again.'],
    examples: texts(['It was a <mask> day.', 'The <mask> is the capital of the country.', 'She <mask> the book on the <mask>.']),
  },
  translate: {
    how: ['Write one text a line. Beam search keeps so many translations at once and shows the likeliest.',
          'The lines below a translation show where the model looked in the source while it wrote each token.'],
    examples: texts(['Ein Hund läuft durch den Schnee.', 'Zwei Kinder spielen im Garten.', 'A man is riding a bicycle.']),
  },
  classify: {
    how: ['Write a text: the model says how likely each label is, or labels each of its words.',
          'Models of pairs, such as “does the second follow from the first?”, also read the second text.'],
    examples: [...texts(['A moving film with a wonderful cast.', 'The plot is thin and the jokes are old.',
                         'Anna met Peter in Berlin.']),
               {title: 'A dog is asleep. / An animal rests.', values: {text: 'A dog is asleep.', second: 'An animal rests.'}}],
  },
  picture: {
    how: ['Choose a picture, drop one on the form, or paste one. It is sent to this server and to nobody else.',
          'A classifier says what it is, a detector where each object is. A map shows where the model looked.'],
    examples: PICTURES.map(([title, picture]) => ({title, values: {picture}})),
  },
  recordings: {
    how: ['Choose a recording, drop one on the form, or press Record and speak. It is sent to this server and to nobody else.',
          'A model of speech writes down what is said; others say how likely each label is.',
          'The examples have no words: what a model of speech hears in them, it makes up.'],
    examples: RECORDINGS.map(([title, recording]) => ({title, values: {recording}})),
  },
  structure: {
    how: ['Write the sequence of a protein: the model says where its residues are in space.',
          'Turn the structure with the mouse, fingers or the arrow keys. What is chosen in one part is marked in the others.',
          'Models that were trained on a few hundred chains fold badly. One that knows its errors says how sure it is.'],
    examples: [['Crambin, 46 residues', 'TTCCPSIVARSNFNVCRLPGTPEALCATYTGCIIIPGATCPGDYAN'],
               ['Trp-cage, 20 residues', 'NLYIQWLKDGGPSSGRPPPS'],
               ['A helix', 'AEAAAKEAAAKEAAAKEAAAKA']].map(([title, sequence]) => ({title, values: {sequence}})),
  },
  attention: {
    how: ['Write a text: every head of every layer becomes a small map. A row shows where one token looks.',
          'Choose a head to see it large, and a token to see its weights on the text. Arrow keys go on from there.'],
    examples: texts(['The dog did not cross the street because it was tired.', 'Ein Hund läuft durch den Schnee.',
                     'It was late.']),
  },
  causes: {
    how: ['Write a text, or choose a picture, and what is shown. The model is asked for one answer: the next token, what a mask hides, a class.',
          'After each layer: what the model would say if the others were left out, and which parts its answer is the sum of.',
          'The parts of the input that an answer rests on are found by gradients, those of the model by leaving one out after the other.',
          'To bring an answer back, two texts are read, and the one gets one activation of the other after the other.'],
    examples: [{title: 'After each layer: It was late.', values: {text: 'It was late.', show: 'lens'}},
               {title: 'What it rests on: It was late.', values: {text: 'It was late.', show: 'attribute'}},
               {title: 'Without a part: It was late.', values: {text: 'It was late.', show: 'ablate'}},
               ...PICTURES.slice(0, 2).map(([title, picture]) => ({title, values: {picture, show: 'attribute'}}))],
  },
};
