// Where the labels of boxes on a picture stand, so that none covers another.

const overlap = (a, b) => a.left < b.left + b.width && b.left < a.left + a.width &&
                          a.top < b.top + b.height && b.top < a.top + a.height;
const clamp = (value, most) => Math.min(Math.max(0, value), Math.max(0, most));

/**
 * The places {left, top} of labels {width, height, box: {left, top, width, height}} on a picture of this size, all in pixels.
 * A label stands in a corner of its box, above or below it; where others stand there, in the nearest free line. The first
 * labels choose first. One that finds no room covers others.
 */
export function placeLabels(labels, size) {
  const taken = [];
  return labels.map(({width, height, box}) => {
    const {left, top} = box, right = left + box.width - width, bottom = top + box.height;
    const corners = [[left, top], [left, top - height], [right, top], [left, bottom - height], [left, bottom],
                     [right, bottom - height], [right, top - height], [right, bottom]];
    const lines = Array.from({length: Math.floor(size.height / height)}, (_, i) => i * height)
        .sort((a, b) => Math.abs(a - top) - Math.abs(b - top)).flatMap(y => [[left, y], [right, y]]);
    const places = [...corners, ...lines].map(([x, y]) => ({
      left: clamp(x, size.width - width), top: clamp(y, size.height - height), width, height}));
    const place = places.find(each => !taken.some(other => overlap(each, other))) ?? places[0];
    taken.push(place);
    return place;
  });
}
