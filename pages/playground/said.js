// The text of an answer with its code, as Markdown marks it. Everything becomes text nodes: what a model writes is never markup.

import {el, set} from '../page.js';

const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`]*)$/;
// A row of backticks, the code, and a row of as many.
const INLINE = /(?<!`)(`+)(?!`)([^]+?)(?<!`)\1(?!`)/g;

/** The lines between fences and those around them, in order: [{text, language}]; `language` is null where there is no code. */
function partsOf(text) {
  const parts = [];
  let fence = null, language = null, lines = [];
  const close = () => {
    if (lines.length) parts.push({text: lines.join('\n'), language});
    lines = [];
  };
  for (const line of text.split('\n')) {
    const [, mark, rest] = FENCE.exec(line) ?? [];
    const ends = fence && mark?.startsWith(fence) && !rest.trim();
    if (!mark || fence && !ends) { lines.push(line); continue; }
    close();
    [fence, language] = ends ? [null, null] : [mark, rest.trim()];
  }
  close();
  return parts;
}

/** A paragraph in which what is between backticks is code. */
function paragraph(text) {
  const node = el('p');
  let end = 0;
  for (const found of text.matchAll(INLINE)) {
    const code = /^ .*[^ ].* $/s.test(found[2]) ? found[2].slice(1, -1) : found[2];  // room for a backtick at an end
    node.append(text.slice(end, found.index), el('code', '', code));
    end = found.index + found[0].length;
  }
  node.append(text.slice(end));
  return node;
}

/** The nodes of an answer, also of one that is not finished: then the last code may have no end. */
export function said(text) {
  return partsOf(text).flatMap(({text: part, language}) => {
    if (language === null) return part.split(/\n\s*\n/).map(each => each.trim()).filter(Boolean).map(paragraph);
    return [set(el('pre', '', el('code', '', part)), {tabIndex: 0, title: language})];
  });
}
