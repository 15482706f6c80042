// Chat: a conversation with a model, with a system prompt.

import {button, count, el, set} from '../page.js';
import {events} from './api.js';
import {Announcer, field, ModelChoice, Runner, Sampling, textArea} from './forms.js';
import {said} from './said.js';

const NAMES = {user: 'You', assistant: 'Model', system: 'System'};

export class ChatView {
  #form = el('form', 'card form'); #choice; #system; #sampling; #runner; #changed; #announcer = new Announcer();
  #log = set(el('ol', 'chat'), {'aria-label': 'Conversation'});
  #message = textArea(3, {placeholder: 'Ask something', name: 'message', 'aria-label': 'Message'});
  #messages = [];  // {role, content, node}
  #again = button('', 'Answer again', () => this.#answerAgain(), {hidden: true});
  node;

  constructor(models, changed) {
    this.#changed = changed;
    this.#choice = new ModelChoice(models, 'Model');
    this.#system = textArea(2, {placeholder: 'You are a helpful assistant.', name: 'system'});
    this.#sampling = new Sampling({only_openai: true, max_tokens: 400});
    this.#runner = new Runner(this.#form, 'Send', signal => this.#send(signal));
    const fresh = button('', 'New chat', () => this.#restart());
    this.#runner.node.firstChild.append(this.#again, fresh);
    this.#message.addEventListener('keydown', event => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.#form.requestSubmit();
    });
    this.#form.append(this.#choice.node, field('System prompt', this.#system), this.#sampling.node);
    const message = field('Message', this.#message, 'Enter sends, Shift+Enter begins a line.');
    const writing = el('div', 'writing', message, this.#runner.node);
    const conversation = el('section', 'card result', this.#log, this.#announcer.node, writing);
    // The message and its button belong to the form, which they stand beside.
    this.#form.id = 'chat-form';
    for (const input of writing.querySelectorAll('textarea, [type=submit]')) input.setAttribute('form', this.#form.id);
    this.node = el('div', 'view', this.#form, el('div', 'results', set(conversation, {'aria-label': 'Conversation'})));
  }

  #add(role, content) {
    const text = el('div', 'said', ...said(content)), node = el('li', `message ${role}`, el('p', 'who', NAMES[role]), text);
    this.#log.append(node);
    this.#messages.push({role, content, node, text});
    return this.#messages.at(-1);
  }

  async #send(signal) {
    const content = this.#message.value.trim();
    if (!content) throw new Error('Write a message first.');
    this.#add('user', content);
    this.#message.value = '';
    await this.#answer(signal);
  }

  async #answer(signal) {
    this.#changed();
    const system = this.#system.value.trim();
    const messages = [...system ? [{role: 'system', content: system}] : [],
                      ...this.#messages.map(({role, content}) => ({role, content}))];
    const body = {model: this.#choice.id, messages, ...this.#sampling.values, stream_options: {include_usage: true}};
    const answer = this.#add('assistant', '');
    this.#announcer.clear();
    this.#runner.tell('Answering …');
    answer.node.setAttribute('aria-busy', 'true');
    const begin = performance.now();
    let end = null, n = 0;
    try {
      for await (const {choices: [choice], usage} of events('v1/chat/completions', body, signal)) {
        n = usage?.completion_tokens ?? n;
        end = choice?.finish_reason ?? end;
        if (!choice?.delta?.content) continue;
        answer.content += choice.delta.content;
        answer.text.replaceChildren(...said(answer.content));
        this.#announcer.add(choice.delta.content);
        this.#keepEndInSight();
      }
    } finally {
      answer.node.removeAttribute('aria-busy');
      if (!answer.content) this.#drop(answer);
      this.#again.hidden = this.#messages.at(-1)?.role !== 'assistant';
      this.#changed();
    }
    const seconds = (performance.now() - begin) / 1000, speed = `${(n / seconds).toFixed(1)} tokens/s`;
    const cut = end === 'length' ? ' It is cut: the settings allow no more tokens.' : '';
    this.#runner.tell(`The answer has ${count(n, 'token')} (${speed}).${cut}`);
  }

  #drop(message) {
    message.node.remove();
    this.#messages.splice(this.#messages.indexOf(message), 1);
  }
  #answerAgain() {
    if (this.#messages.at(-1)?.role === 'assistant') this.#drop(this.#messages.at(-1));
    this.#sampling.reseed();
    return this.#runner.start(signal => this.#answer(signal));
  }
  #restart() {
    this.#runner.stop();
    this.#log.replaceChildren();
    this.#messages = [];
    this.#again.hidden = true;
    this.#message.focus();
    this.#changed();
  }
  /** Follows the answer where the reader is at its end. */
  #keepEndInSight() {
    const {scrollTop, scrollHeight, clientHeight} = this.#log;
    if (scrollHeight - scrollTop - clientHeight < 120) this.#log.scrollTop = scrollHeight;
  }

  get address() {
    const messages = this.#messages.map(({role, content}) => [role[0], content]);
    return [['model', this.#choice.id], ['system', this.#system.value], ...this.#sampling.address,
            ['messages', messages.length ? JSON.stringify(messages) : '']];
  }
  /** Shows the conversation of an address. Nothing is asked again. */
  restore(values) {
    this.#choice.choose(values.get('model'));
    this.#system.value = values.get('system') ?? '';
    this.#sampling.restore(values);
    this.#log.replaceChildren();
    this.#messages = [];
    for (const [role, content] of messagesIn(values.get('messages')))
      this.#add(role === 'u' ? 'user' : 'assistant', content);
    this.#again.hidden = this.#messages.at(-1)?.role !== 'assistant';
    if (this.#messages.length) this.#changed();
  }
  /** Sends the message of an example. */
  begin(values) {
    this.#message.value = values.get('message');
    this.#form.requestSubmit();
  }
}

function messagesIn(text) {
  try {
    const list = JSON.parse(text ?? '[]');
    return Array.isArray(list) ? list.filter(each => Array.isArray(each) && typeof each[1] === 'string') : [];
  } catch {
    return [];  // an address that was cut
  }
}
