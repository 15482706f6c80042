// The field for a picture: chosen as a file, dropped on the form, or pasted.

import {el, set} from '../page.js';
import {field} from './forms.js';

const PICTURES = ['image/png', 'image/jpeg', 'image/webp'], MOST_IN_ADDRESS = 100_000;

/** The bytes of a file as a data URI. */
const dataUri = file => new Promise((done, fail) => {
  const reader = new FileReader();
  reader.onload = () => done(reader.result);
  reader.onerror = () => fail(new Error('The file cannot be read.'));
  reader.readAsDataURL(file);
});

export class PictureField {
  uri = '';
  node = el('div', 'drop');

  /** `take(read)` is called where a picture is chosen for `form`, and calls `read()`, which fills `uri`. */
  constructor(form, take) {
    const input = set(el('input'), {type: 'file', accept: PICTURES.join(','), name: 'picture'});
    const chosen = file => take(async () => { this.uri = await dataUri(file); });
    const over = is => event => { event.preventDefault(); this.node.classList.toggle('over', is); };
    this.node.append(field('Picture', input, 'PNG, JPEG or WebP. Drop one here, or paste one.'));
    input.addEventListener('change', () => { if (input.files[0]) chosen(input.files[0]); });
    for (const [name, is] of [['dragenter', true], ['dragover', true], ['dragleave', false]])
      form.addEventListener(name, event => { if (!this.node.hidden) over(is)(event); });
    form.addEventListener('drop', event => {
      if (this.node.hidden) return;
      over(false)(event);
      if (event.dataTransfer.files[0]) chosen(event.dataTransfer.files[0]);
    });
    addEventListener('paste', event => {
      const file = [...event.clipboardData.files].find(({type}) => PICTURES.includes(type));
      if (file && this.node.checkVisibility()) chosen(file);
    });
  }

  /** An image of it; an error where the browser shows none. */
  async decoded(image = new Image()) {
    if (!this.uri) throw new Error('Choose a picture first.');
    image.src = this.uri;
    await image.decode().catch(() => { throw new Error('This file is no picture that the browser can show.'); });
    return image;
  }

  /** Whether a link cannot hold it. */
  get isLarge() { return this.uri.length > MOST_IN_ADDRESS; }
  get address() { return ['picture', this.isLarge ? '' : this.uri]; }
  restore(values) {
    const uri = values.get('picture') ?? '';
    this.uri = PICTURES.some(type => uri.startsWith(`data:${type};base64,`)) ? uri : '';
  }
}
