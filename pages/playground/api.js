// Requests to the server that sent this page. Addresses are relative, so that the page also works behind a proxy. An
// error has a message of one line.

import {$} from '../page.js';

const KEY = 'zoo-api-key';  // in sessionStorage: a key is forgotten with the tab
const NO_ANSWER = 'The server does not answer. Is zoo serve still running?';
const BROKEN_OFF = 'The server ended the answer in its middle.';
let asking = null;  // the question for a key that is open

/** Asks for the key in a dialog. Several requests at once ask once. The promise is true if there is a key now. */
function askForKey() {
  asking ??= new Promise(done => {
    const dialog = $('key-dialog'), hadKey = sessionStorage.getItem(KEY) !== null;
    $('key-note').textContent = hadKey ? 'The key that you gave is not the right one.'
                                       : 'It was started with --api-key. The key stays in this tab.';
    $('key').value = '';
    let given = false;
    $('no-key').onclick = () => dialog.close();
    dialog.querySelector('form').onsubmit = () => {
      given = true;
      sessionStorage.setItem(KEY, $('key').value);
    };
    dialog.onclose = () => { asking = null; done(given); };
    dialog.showModal();
  });
  return asking;
}

async function messageOf(response) {
  const text = await response.text();
  try {
    return JSON.parse(text).error.message;
  } catch {
    return `The server answered ${response.status} ${response.statusText}`.trim() + '.';
  }
}

async function request(path, body, signal) {
  for (;;) {
    const key = sessionStorage.getItem(KEY), headers = {}, isForm = body instanceof FormData;
    if (key !== null) headers.Authorization = `Bearer ${key}`;
    if (body && !isForm) headers['Content-Type'] = 'application/json';  // the browser declares a form itself
    const options = {method: body ? 'POST' : 'GET', headers, body: body && !isForm ? JSON.stringify(body) : body, signal,
                     credentials: 'omit', cache: 'no-store'};
    let response;
    try {
      response = await fetch(path, options);
    } catch (error) {
      throw signal?.aborted ? error : new Error(NO_ANSWER);
    }
    if (response.status === 401) {
      if (await askForKey()) continue;
      throw new Error('The server asks for its key (zoo serve --api-key).');
    }
    if (!response.ok) throw new Error(await messageOf(response));
    return response;
  }
}

/** The JSON that the server answers to a GET. */
export const get = async path => (await request(path)).json();
/** The JSON that the server answers to a POST of `body`: an object, sent as JSON, or a FormData. */
export const post = async (path, body, signal) => (await request(path, body, signal)).json();

/** The events of a stream, one after the other. An event with an error ends them with it. */
export async function* events(path, body, signal) {
  const response = await request(path, {...body, stream: true}, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let unread = '';
  try {
    for (;;) {
      const {done, value} = await reader.read();
      if (done) throw new Error(BROKEN_OFF);
      const parts = (unread + value).split(/\r?\n\r?\n/);
      unread = parts.pop();
      for (const part of parts) {
        const lines = part.split(/\r?\n/).filter(line => line.startsWith('data:'));
        const data = lines.map(line => line.slice(5).trimStart()).join('\n');
        if (data === '[DONE]') return;
        if (!data) continue;  // a comment that keeps the connection
        const event = JSON.parse(data);
        if (event.error) throw new Error(event.error.message);
        yield event;
      }
    }
  } catch (error) {
    throw error instanceof TypeError && !signal?.aborted ? new Error(BROKEN_OFF) : error;
  } finally {
    reader.cancel().catch(() => {});
  }
}
