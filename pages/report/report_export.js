// Saves a chart as SVG that needs no style sheet, and its numbers as CSV.

import {button, data, el, set} from '../page.js';
import {px, svg, swatch} from './report_chart.js';
import {measure} from './report_labels.js';
import {legendEntries} from './report_looks.js';

const COPIED_STYLES = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-linejoin', 'opacity', 'paint-order',
                       'font-family', 'font-size', 'font-weight', 'visibility'];

/** A copy of a node with its styles in itself. */
function styledCopy(node) {
  const copy = node.cloneNode(true), copies = [copy, ...copy.querySelectorAll('*')];
  [node, ...node.querySelectorAll('*')].forEach((original, i) => {
    const style = getComputedStyle(original);
    for (const name of COPIED_STYLES) copies[i].style.setProperty(name, style.getPropertyValue(name));
    for (const name of ['class', 'fill', 'stroke']) copies[i].removeAttribute(name);
  });
  return copy;
}

/** The charts in `host` with their titles, at their places, above the legend: one SVG element. */
function wholePicture(host, title) {
  const outer = host.getBoundingClientRect(), ink = getComputedStyle(host).color, width = Math.ceil(outer.width);
  const font = getComputedStyle(document.body).fontFamily;
  const text = (x, y, content, size, weight = 400) =>
      svg('text', {x: px(x), y: px(y), fill: ink, 'font-family': font, 'font-size': size, 'font-weight': weight}, content);
  const top = 34, nodes = [text(0, 18, title, 15, 650)];
  for (const heading of host.querySelectorAll('.panel-title')) {
    const box = heading.getBoundingClientRect();
    nodes.push(text(box.left - outer.left, box.bottom - outer.top + top - 5, heading.textContent, 14, 650));
  }
  for (const chart of host.querySelectorAll('svg.chart')) {
    const box = chart.getBoundingClientRect(), copy = styledCopy(chart);
    for (const [name, value] of [['x', box.left - outer.left], ['y', box.top - outer.top + top], ['width', box.width],
                                 ['height', box.height]]) copy.setAttribute(name, px(value));
    nodes.push(copy);
  }
  let x = 0, y = top + outer.height + 18;
  for (const {text: label, look} of legendEntries().filter(({look}) => look)) {
    const wide = 38 + measure(label, 13) + 20;
    if (x && x + wide > width) [x, y] = [0, y + 20];
    const piece = swatch(look);
    host.append(piece);  // its styles are known only in the page
    const copy = styledCopy(piece);
    piece.remove();
    copy.setAttribute('x', x);
    copy.setAttribute('y', y - 11);
    nodes.push(copy, text(x + 38, y, label, 13));
    x += wide;
  }
  const margin = 14, [w, h] = [width + 2 * margin, Math.ceil(y) + 2 * margin];
  const paper = svg('rect', {x: -margin, y: -margin, width: w, height: h,
                             fill: getComputedStyle(host.closest('.card')).backgroundColor});
  return svg('svg', {width: w, height: h, viewBox: `${-margin} ${-margin} ${w} ${h}`, role: 'img', 'aria-label': title},
             paper, ...nodes);
}

const csvCell = value => {
  const text = value === null || value === undefined ? '' : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
const csvText = rows => rows.map(row => row.map(csvCell).join(',')).join('\r\n') + '\r\n';

function download(text, type, name) {
  const link = set(el('a'), {href: URL.createObjectURL(new Blob([text], {type})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/**
 * Buttons that save the charts in `host`. `name` is a part of the files' names, `title` stands above the picture, `rows`
 * returns the numbers: a row of headings, then the others.
 */
export function saveButtons(host, {name, title, rows}) {
  const file = ending => `${data.name}-${name}.${ending}`.replace(/[^\w.-]+/g, '-');
  const saver = (text, title, act) => button('save', text, act, {title, 'data-chart': name});
  const picture = () => new XMLSerializer().serializeToString(wholePicture(host, title()));
  return el('div', 'saves',
            saver('SVG', 'Save this picture', () => download(picture(), 'image/svg+xml', file('svg'))),
            saver('CSV', 'Save the numbers of this picture', () => download(csvText(rows()), 'text/csv', file('csv'))));
}
