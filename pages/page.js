// Shared by all pages: data, elements, tokens, colours, sortable tables.

export const data = JSON.parse(document.getElementById('data').textContent);
export const $ = id => document.getElementById(id);
export const el = (tag, className, ...children) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
};
/** Sets properties of a node, and attributes with a hyphen such as aria-label, and returns the node. */
export function set(node, values) {
  for (const [name, value] of Object.entries(values))
    name.includes('-') ? node.setAttribute(name, value) : node[name] = value;
  return node;
}
/** A button that calls `act`, with a class, content, and what else set() gives it. */
export function button(className, content, act, values) {
  const node = set(el('button', className, ...[content].flat()), {type: 'button', ...values});
  node.addEventListener('click', act);
  return node;
}
export const option = (value, text) => set(el('option', '', text), {value});
export const headCell = (content, scope, values) => set(el('th', '', ...[content].flat()), {scope, ...values});
export const count = (n, what) => `${n} ${what}${n === 1 ? '' : 's'}`;

/** The width inside the padding of an element. */
export const roomInside = node => node.clientWidth - 2 * parseFloat(getComputedStyle(node).paddingLeft);

/** Calls `act` when the width of an element changes. */
export function whenResized(node, act) {
  let width = node.clientWidth;
  new ResizeObserver(() => {
    if (node.clientWidth === width) return;
    width = node.clientWidth;
    act();
  }).observe(node);
}

// ---- Tokens -------------------------------------------------------------------------------------------------------

/** A token in a sentence, without SentencePiece's mark for the beginning of a word. */
export const plain = token => token.length > 1 && token.startsWith('▁') ? token.slice(1) : token.trim() ? token : '␣';

export function tokenLabel(token) {
  const label = el('div', /^<[^<>]+>$/.test(token) ? 'token special' : 'token');
  label.title = token;
  if (plain(token).length < token.length) label.append(el('span', 'mark', '▁'));
  label.append(el('bdi', '', plain(token)));
  return label;
}

// ---- Colours ------------------------------------------------------------------------------------------------------

/** sRGB of a colour in OKLCH (Ottosson 2020), where equal steps of lightness look equal. */
export function oklch(lightness, chroma, hue) {
  const a = chroma * Math.cos(hue * Math.PI / 180), b = chroma * Math.sin(hue * Math.PI / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3;
  return [4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
          -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
          -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s].map(linear => {
    const x = Math.min(1, Math.max(0, linear));
    return Math.round(255 * (x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055));
  });
}

// One hue with even steps of lightness from the card's colour to its opposite: readable without colour vision.
export const makeRamp = color => Array.from({length: 256}, (_, i) => `rgb(${color(i / 255).join(' ')})`);
const RAMPS = {
  light: makeRamp(t => oklch(0.972 - 0.652 * t, 0.006 + 0.165 * t ** 0.8, 258)),
  dark: makeRamp(t => oklch(0.255 + 0.675 * t, 0.018 + 0.118 * Math.sin(Math.PI * t ** 1.1), 252)),
};

// What is dark is said once: page.css has both colours of everything, and the attribute data-theme chooses for the reader.
const THEMES = ['system', 'light', 'dark'], KEY_OF_THEME = 'zoo-theme';
const prefersDark = matchMedia('(prefers-color-scheme: dark)'), repaints = [];
let printing = false, wanted = THEMES[0];
export const theme = () => printing || (wanted === 'system' ? !prefersDark.matches : wanted === 'light') ? 'light' : 'dark';
/** The colour of a share between 0 and 1. */
export const colour = share => RAMPS[theme()][Math.round(255 * share)];
/** A colour for text that is readable on colour(share). */
export const inkOn = share => theme() === 'light' ? (share > 0.56 ? '#fff' : '#16191f')
                                           : (share > 0.46 ? '#0b1220' : '#e9ecf1');
export const rampGradient = () =>
    `linear-gradient(to right, ${Array.from({length: 17}, (_, i) => colour(i / 16)).join(', ')})`;

export const isPrinting = () => printing;
/** Calls `repaint` when the theme changes, and before and after printing. */
export function whenThemeChanges(repaint) { repaints.push(repaint); }
function repaintAll() { for (const repaint of repaints) repaint(); }
prefersDark.addEventListener('change', repaintAll);
for (const [event, is] of [['beforeprint', true], ['afterprint', false]])
  addEventListener(event, () => {
    printing = is;
    document.documentElement.classList.toggle('printing', is);
    repaintAll();
  });

/** Puts the button for the theme at the top of the page. The browser remembers a choice where a page may store something. */
function addThemeButton() {
  const change = to => {
    wanted = to;
    to === 'system' ? delete document.documentElement.dataset.theme : document.documentElement.dataset.theme = to;
    chooser.textContent = `Colours: ${to}`;
  };
  const choose = () => {
    change(THEMES[(THEMES.indexOf(wanted) + 1) % THEMES.length]);
    try {
      wanted === 'system' ? localStorage.removeItem(KEY_OF_THEME) : localStorage.setItem(KEY_OF_THEME, wanted);
    } catch {}  // nothing may be stored here
    repaintAll();
  };
  const chooser = button('theme', '', choose, {title: 'The colours of the system, light, or dark'});
  let stored = null;
  try { stored = localStorage.getItem(KEY_OF_THEME); } catch {}  // nothing is stored here
  change(THEMES.includes(stored) ? stored : 'system');
  document.querySelector('header')?.prepend(chooser);
}
addThemeButton();

// ---- Scrolling ------------------------------------------------------------------------------------------------------

/**
 * Shows at the edges of an element that scrolls where there is more of it. The arrow keys scroll it, too: it can be
 * focused while there is more, unless something in it can be. `name` says what it is to people who do not see it; ''
 * where the element has a meaning of its own, such as a heading.
 */
export function showScrolling(node, name) {
  const frame = el('div', 'scroller');
  node.replaceWith(frame);
  frame.append(node);
  const reachable = node.tabIndex >= 0;
  const update = () => {
    const {scrollLeft: x, scrollTop: y, scrollWidth, scrollHeight, clientWidth, clientHeight} = node;
    const more = {left: x > 1, right: x + clientWidth < scrollWidth - 1, top: y > 1,
                  bottom: y + clientHeight < scrollHeight - 1};
    for (const [side, isMore] of Object.entries(more)) frame.toggleAttribute(`data-${side}`, isMore);
    if (reachable) return;
    const scrolls = Object.values(more).some(Boolean) && !node.querySelector('button');
    const marks = [['tabindex', '0'], ...name ? [['role', 'region'], ['aria-label', name]] : []];
    for (const [key, value] of marks)
      scrolls ? node.setAttribute(key, value) : node.removeAttribute(key);
  };
  node.addEventListener('scroll', update, {passive: true});
  new ResizeObserver(update).observe(node);
  new MutationObserver(update).observe(node, {childList: true, subtree: true});
}

// ---- Tables ---------------------------------------------------------------------------------------------------------

/**
 * A table with headings that sort it. The first click puts the best or the largest on top, the second reverses the
 * order, the third restores the original order. A column is {title, value: row → number, text or null}, and may have
 *   cell    row → what is shown instead of the value
 *   better  'lower' or 'higher': the best value is set in bold
 *   mayWin  whether the best value of this column may be a row's
 *   same    (value, value) → whether both are shown alike, and count as equally good
 *   hint    an explanation of the heading
 * The first column names the row. Rows without a value come last. A row for which `mayWin` is false is never the best.
 * `onSort` gets the rows in their new order.
 */
export function sortableTable({caption = '', columns, rows, mayWin = () => true, onSort = () => {}}) {
  const sorted = {column: null, descending: false};
  const body = el('tbody', '');
  const order = () => {
    if (!sorted.column) return rows;
    const {value} = sorted.column, sign = sorted.descending ? -1 : 1;
    const compare = (a, b) => typeof a === 'string' ? a.localeCompare(b, 'en', {numeric: true}) : a - b;
    return [...rows].sort((a, b) => {
      const [x, y] = [value(a) ?? null, value(b) ?? null];
      return x === null || y === null ? (x === null) - (y === null) : sign * compare(x, y);
    });
  };
  const fill = () => {
    const best = columns.map(({value, better, same = Object.is}) => {
      const values = better ? rows.filter(mayWin).map(value).filter(Number.isFinite) : [];
      const [low, high] = [Math.min(...values), Math.max(...values)];
      if (values.length < 2 || same(low, high)) return null;  // all are equal: none is best
      return better === 'lower' ? low : high;
    });
    body.replaceChildren(...order().map(row => el('tr', '', ...columns.map((column, i) => {
      const {value, cell, same = Object.is} = column, own = column.mayWin ?? (() => true);
      const content = cell ? cell(row) : value(row) ?? '–';
      const wins = best[i] !== null && mayWin(row) && own(row) && same(value(row), best[i]);
      return i === 0 ? headCell(content, 'row', {className: wins ? 'best' : ''}) : el('td', wins ? 'best' : '', content);
    }))));
  };
  const headings = columns.map(column => {
    const sort = () => {
      const first = column.better !== 'lower' && typeof (rows.map(column.value).find(v => v !== null)) !== 'string';
      if (sorted.column !== column) Object.assign(sorted, {column, descending: first});
      else if (sorted.descending === first) sorted.descending = !first;
      else sorted.column = null;
      headings.forEach((heading, i) => heading.setAttribute('aria-sort',
          columns[i] !== sorted.column ? 'none' : sorted.descending ? 'descending' : 'ascending'));
      fill();
      onSort(order());
    };
    const opener = button('sort', el('span', '', column.title), sort, column.hint && {title: column.hint});
    return headCell(opener, 'col', {'aria-sort': 'none'});
  });
  const table = el('table', 'sortable', el('thead', '', el('tr', '', ...headings)), body);
  if (caption) table.prepend(el('caption', '', caption));
  fill();
  return {table, setRows(to) { rows = to; fill(); }, order};
}
