// Recordings: what is said in a recording, or its labels.

import {button, el, set} from '../page.js';
import {predictionBar} from '../prediction_bar.js';
import {post} from './api.js';
import {scoreOf} from './classify_view.js';
import {field, ModelChoice, Runner} from './forms.js';
import {bytesOf, dataUriOf, decoded, mayRecord, record, typeOf, wavOf} from './sounds.js';
import {Waveform} from './waveform.js';

const MOST_LABELS = 10, MOST_IN_ADDRESS = 100_000, USUAL_SECONDS = 30;
const NO_RECORDING = 'This file is no recording that the browser or the server can read: choose a WAV or FLAC file.';

/** A form with these fields. */
const formOf = values => {
  const form = new FormData();
  for (const [name, value] of Object.entries(values)) form.append(name, value);
  return form;
};

export class RecordingsView {
  #form = el('form', 'card form'); #choice; #file; #runner; #changed; #bytes = null; #uri = ''; #endRecording = null;
  #drop = el('div', 'drop'); #record = button('', 'Record', () => this.#listen());
  #facts = el('p', 'quiet sound-facts'); #audio = set(el('audio'), {controls: true, 'aria-label': 'The recording'});
  #heard = set(el('section', 'card result', el('h2', '', 'The recording')), {hidden: true, 'aria-label': 'The recording'});
  #waveform = new Waveform(this.#heard);
  #said = set(el('section', 'card result'), {hidden: true, 'aria-live': 'polite', 'aria-label': 'What the model says'});
  node;

  constructor(models, changed) {
    this.#changed = changed;
    this.#choice = new ModelChoice(models, 'Model');
    this.#file = set(el('input'), {type: 'file', accept: 'audio/*,.wav,.flac', name: 'recording'});
    this.#file.addEventListener('change', () => { if (this.#file.files[0]) this.#take(this.#file.files[0]); });
    this.#drop.append(field('Recording', this.#file, 'WAV or FLAC; the browser turns others into WAV. Drop one here.'));
    this.#runner = new Runner(this.#form, 'Listen', signal => this.#run(signal));
    this.#form.append(this.#choice.node, this.#drop, this.#microphone(), this.#runner.node);
    this.#heard.append(this.#waveform.node, this.#audio, this.#facts);
    this.node = el('div', 'view', this.#form, el('div', 'results', this.#heard, this.#said));
    this.#takeDrops();
  }

  #microphone() {
    if (mayRecord()) return el('div', 'buttons', this.#record);
    return el('p', 'quiet note', 'Browsers open the microphone only to pages of this machine and to pages with HTTPS.');
  }

  #takeDrops() {
    const over = is => event => { event.preventDefault(); this.#drop.classList.toggle('over', is); };
    for (const [name, is] of [['dragenter', true], ['dragover', true], ['dragleave', false]])
      this.#form.addEventListener(name, over(is));
    this.#form.addEventListener('drop', event => {
      over(false)(event);
      if (event.dataTransfer.files[0]) this.#take(event.dataTransfer.files[0]);
    });
  }

  #take(file) {
    return this.#runner.start(async signal => {
      await this.#show(await file.arrayBuffer().catch(() => { throw new Error('The file cannot be read.'); }), file.name);
      await this.#run(signal);
    });
  }

  /** Records with the microphone until the button is pressed again. */
  async #listen() {
    if (this.#endRecording) return this.#endRecording();
    const most = this.#choice.model.zoo.max_seconds ?? USUAL_SECONDS;
    await this.#runner.start(async signal => {
      try {
        const bytes = await record({most, signal,
          begun: end => { this.#endRecording = end; this.#record.textContent = 'End the recording'; },
          tell: seconds => this.#runner.tell(`Recording: ${Math.floor(seconds)} of at most ${most} s`)});
        await this.#show(bytes, 'Recorded here');
      } finally {
        this.#endRecording = null;
        this.#record.textContent = 'Record';
      }
      await this.#run(signal);
    });
  }

  /** Shows the recording of these bytes, and keeps it as bytes that the server reads. Throws where there is none. */
  async #show(bytes, name) {
    this.#said.hidden = true;
    const sound = await decoded(bytes);
    if (!sound && !typeOf(bytes)) throw new Error(NO_RECORDING);
    const seconds = sound && sound.samples.length / sound.rate, most = this.#choice.model.zoo.max_seconds;
    if (seconds > most) throw new Error(`The recording is ${seconds.toFixed(1)} s long, and ${this.#choice.id} reads at most ${most} s.`);
    this.#bytes = typeOf(bytes) ? bytes : wavOf(sound);
    const size = this.#bytes.byteLength * 4 / 3;
    this.#uri = size < MOST_IN_ADDRESS ? dataUriOf(this.#bytes) : '';
    this.#changed();
    URL.revokeObjectURL(this.#audio.src);
    this.#audio.src = URL.createObjectURL(new Blob([this.#bytes], {type: typeOf(this.#bytes)}));
    this.#audio.hidden = !sound;
    const length = sound ? `${seconds.toFixed(2)} s` : 'the browser cannot play it';
    this.#facts.replaceChildren(...name ? [el('bdi', '', name), ' · '] : [], length);
    this.#heard.hidden = false;
    this.#waveform.show(sound);
  }

  async #run(signal) {
    if (!this.#bytes) throw new Error('Choose a recording first, or record one.');
    this.#changed();
    this.#runner.tell('Listening …');
    const {id, model} = this.#choice, file = new File([this.#bytes], 'recording', {type: typeOf(this.#bytes)});
    const answer = model.zoo.can.includes('transcribe')
        ? transcriptOf(await post('v1/audio/transcriptions', formOf({model: id, file}), signal))
        : answerOf((await post('predict', {model: id, recordings: [dataUriOf(this.#bytes)]}, signal)).predictions[0]);
    this.#said.replaceChildren(el('h2', '', 'What the model says'), answer);
    this.#said.hidden = false;
    this.#runner.tell(this.#uri ? '' : 'The recording is too long for a link: a link restores all but the recording.');
  }

  get address() { return [['model', this.#choice.id], ['recording', this.#uri]]; }
  restore(values) {
    this.#choice.choose(values.get('model'));
    const bytes = bytesOf(values.get('recording') ?? '');
    if (bytes) this.#runner.start(async signal => { await this.#show(bytes, ''); await this.#run(signal); });
  }
}

function transcriptOf({text}) {
  return text.trim() ? el('p', 'whole transcript', el('bdi', '', text)) : el('p', 'quiet', 'It hears nothing that it could write.');
}

function answerOf({text, labels, score}) {
  if (text !== undefined) return transcriptOf({text});
  if (score !== undefined) return scoreOf({score});
  const bars = labels.slice(0, MOST_LABELS).map(({label, probability}) => predictionBar({token: label, probability}));
  return el('ol', 'likeliest answers', ...bars);
}
