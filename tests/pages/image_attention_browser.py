#!/usr/bin/env python3
"""Opens the page of `zoo attention --image` in a headless Chromium without a network and uses it as a reader would.

    image_attention_browser.py PAGE.html...

Fails where the page logs an error or requests anything, where a weight, a colour on the picture, an answer or a head's
number differs from the page's data, where a click, a key or an address does not choose what it should, or where paper or a
phone cuts something off. Without a Chromium the exit code is 77, or 1 if ZOO_REQUIRE_REFERENCES is set.
"""

import base64
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from chromium import at_widths, check, check_arguments, check_dark  # noqa: E402


def row_of(packed, t):
    """One row of a packed map as fractions."""
    values = base64.b64decode(packed["rows"])
    n = len(values) // len(packed["tops"])
    return [value / 255 * packed["tops"][t] / 1e6 for value in values[t * n:(t + 1) * n]]


def weights(data, kind, layer, head, t):
    if head == "rollout":
        return row_of(next(map_ for map_ in data["rollout"] if (map_["kind"], map_["layer"]) == (kind, layer)), t)
    heads = next(map_ for map_ in data["maps"] if map_["kind"] == kind)["layers"][layer]
    if head != "mean":
        return row_of(heads[head], t)
    rows = [row_of(packed, t) for packed in heads]
    return [sum(column) / len(rows) for column in zip(*rows)]


def go(page, name):
    page.run(f"location.hash = '{name}'")
    page.settle()
    check(page.run("location.hash") == f"#{name}", f"{name} does not open")


def check_numbers(page, data, kind, layer, head, t):
    """The table has the weights of the row, as they lie on the picture; the readout names the largest."""
    name = f"{kind}-{layer}-{head}-{t}"
    go(page, name)
    page.run("document.getElementById('numbers').open = true")
    page.settle()
    shown = page.run("[...document.querySelectorAll('#table tbody tr')].map("
                     "row => [...row.querySelectorAll('td')].map(cell => Number(cell.textContent)))")
    row = weights(data, kind, layer, head, t)
    places = row[data["special"]:]
    check([len(line) for line in shown] == [data["columns"]] * data["rows"], f"{name}: the table is {shown}")
    for value, expected in zip(sum(shown, []), places):
        check(abs(value - expected) <= 0.000501, f"{name}: {value} stands for {expected}")
    readout = page.run("document.getElementById('readout').textContent")
    names = data["source_tokens"] if kind == "encoder" else data["target_tokens"]
    largest = data["source_tokens"][data["special"] + places.index(max(places))]
    check(names[t] in readout and f"→ {largest}" in readout and f"{100 * max(places):.1f} %" in readout,
          f"{name}: the readout is “{readout}”, not {names[t]} → {largest} {max(places)}")
    for i in range(data["special"]):
        check(f"{100 * row[i]:.1f} % on the {data['source_tokens'][i]} token" in readout, f"{name}: “{readout}”")


# The colour in the middle of a place of the picture on the stage.
PIXELS = """(() => {
    const from = document.querySelector('#stage canvas'), copy = document.createElement('canvas');
    Object.assign(copy, {width: from.width, height: from.height});
    const pen = copy.getContext('2d', {willReadFrequently: true});
    pen.drawImage(from, 0, 0);
    const data = JSON.parse(document.getElementById('data').textContent);
    const [x, y, w, h] = data.part.map((at, i) => at / (i % 2 ? data.height : data.width));
    return Array.from({length: data.rows * data.columns}, (_, i) => {
        const row = Math.floor(i / data.columns), column = i % data.columns;
        const px = Math.floor((x + w * (column + 0.5) / data.columns) * from.width);
        const py = Math.floor((y + h * (row + 0.5) / data.rows) * from.height);
        return [...pen.getImageData(px, py, 1, 1).data].slice(0, 3);
    });
})()"""


def check_colours(page, data, kind, layer, head, t):
    """The weights shown alone have the colours of their shares."""
    go(page, f"{kind}-{layer}-{head}-{t}")
    places = weights(data, kind, layer, head, t)[data["special"]:]
    page.load("pages/picture_view.js", "pictureView")
    page.run("document.querySelector('#show-choice [value=alone]').click()")
    for scale, top in (("relative", max(places)), ("absolute", 1)):
        page.run(f"document.querySelector('#scale-choice [value={scale}]').click()")
        page.settle()
        expected = page.run(f"{json.dumps([min(1, place / top) for place in places])}.map("
                            "share => pictureView.heatColour(share).match(/[0-9]+/g).map(Number))")
        for pixel, colour in zip(page.run(PIXELS), expected):
            check(all(abs(a - b) <= 3 for a, b in zip(pixel, colour)), f"{scale}: a place is {pixel}, not {colour}")
        end = page.run("document.getElementById('ramp-end').textContent")
        check(end == f"{100 * top:.1f} %", f"the legend ends at {end}, not {top}")
    page.run("document.querySelector('#scale-choice [value=relative]').click()")
    page.run("document.querySelector('#show-choice [value=over]').click()")
    page.settle()
    strongest = page.run(PIXELS)[places.index(max(places))]
    check(strongest[0] > strongest[2] + 60, f"the strongest place on the picture is {strongest}, which is not orange")


def point_of(page, data, place):
    """The middle of a place in the window."""
    box = page.run("(() => { const box = document.querySelector('#stage canvas').getBoundingClientRect();"
                   " return [box.left, box.top, box.width, box.height]; })()")
    x, y, width, height = data["part"]
    column, row = place % data["columns"], place // data["columns"]
    return (box[0] + box[2] * (x + width * (column + 0.5) / data["columns"]) / data["width"],
            box[1] + box[3] * (y + height * (row + 0.5) / data["rows"]) / data["height"])


def check_choosing(page, data):
    """Clicks and keys choose a place; another map keeps it."""
    special, columns, n = data["special"], data["columns"], data["rows"] * data["columns"]
    go(page, f"encoder-0-0-{special}")
    page.run("scrollTo(0, 0)")
    for place in sorted({0, n - 1, n // 2}):
        point = point_of(page, data, place)
        page.drag(point, point)
        check(page.run("location.hash") == f"#encoder-0-0-{special + place}", f"a click at {place} chooses another place")
        check(not page.run("document.querySelector('.stage .mark.chosen').hidden"), "the chosen place has no mark")
    go(page, f"encoder-0-0-{special}")
    page.run("document.getElementById('stage').focus()")
    for key, place in (("ArrowRight", 1), ("ArrowDown", 1 + columns), ("ArrowLeft", columns), ("ArrowUp", 0),
                       ("ArrowUp", 0), ("ArrowLeft", 0)):
        page.press(key)
        check(page.run("location.hash") == f"#encoder-0-0-{special + place}", f"{key} goes to {page.run('location.hash')}")
    page.press("Escape")
    check(page.run("location.hash") == "#encoder-0-0-0", "Escape does not go back to the first row")
    go(page, f"encoder-0-0-{special + 1}")
    page.run("[...document.querySelectorAll('#overview .thumb')].find(thumb => thumb.title === "
             "document.getElementById('map-title').textContent.replace('head 0', 'head 1')).click()")
    check(page.run("location.hash.endsWith('-%d')" % (special + 1)), "another head forgets the chosen place")
    if special:
        page.run("document.querySelector('#from-choice button').click()")
        check(page.run("location.hash.endsWith('-0')"), "the button of the class token does not choose it")


def check_thumbs(page, data, kind):
    """Each head's small map shows the chosen row."""
    layers = next(map_ for map_ in data["maps"] if map_["kind"] == kind)["layers"]
    per_layer = len(layers[0]) + 1 + any(map_["kind"] == kind for map_ in data["rollout"])
    found = page.run(f"[...document.querySelectorAll('#overview .thumb')].filter("
                     f"button => button.title.startsWith(document.getElementById('map-title').textContent.split(',')[0]))"
                     f".length")
    missing = sum(not any((map_["kind"], map_["layer"]) == (kind, layer) for map_ in data["rollout"])
                  for layer in range(len(layers))) if per_layer > len(layers[0]) + 1 else 0
    check(found == per_layer * len(layers) - missing, f"{kind}: {found} small maps")


def check_heads(page, data):
    """The tables of numbers have the statistics of every head."""
    rows = page.run("[...document.querySelectorAll('.numbers table')].flatMap(table => {"
                    " const titles = [...table.tHead.rows[0].cells].map(cell => cell.textContent);"
                    " return [...table.tBodies[0].rows].map(row => Object.fromEntries([...row.cells].map("
                    "   (cell, i) => [titles[i], cell.textContent]))); })")
    kinds = page.run("[...document.querySelectorAll('#overview > section')].length")
    check(kinds == len(data["maps"]), f"{kinds} kinds of attention are shown")
    check(len(rows) == len(data["heads"]), f"{len(rows)} rows for {len(data['heads'])} heads")
    order = ["cross", "encoder", "decoder"]
    for row, head in zip(rows, sorted(data["heads"], key=lambda head: order.index(head["kind"]))):
        check(row["Head"] == f"{head['layer']}.{head['head']}", f"{row} stands where {head} is")
        for title, key in (("Entropy", "entropy"), ("Distance", "distance"), ("Itself", "itself")):
            check((title in row) == (head[key] is not None), f"{head['kind']}: {title} is shown, or is not")
            if title in row:
                check(abs(float(row[title]) - head[key]) <= 0.00501, f"{row} is not {head}")


def check_answers(page, data):
    shown = page.run("[...document.querySelectorAll('#answers .bar-row')].map(row => "
                     "[row.querySelector('.token').title, row.querySelector('.amount-text').textContent])")
    detects = "objects" in data
    expected = ([(o["label"], o["score"]) for o in data["objects"]] if detects  # every query's
                else [(entry["label"], entry["probability"]) for entry in data["labels"][:10]])
    check([label for label, _ in shown] == [label for label, _ in expected], f"the answers are {shown}")
    for (_, text), (label, value) in zip(shown, expected):
        check(abs(float(text.strip("<> ")) - value) <= 0.0101, f"{label} has {text}, not {value}")


def check_queries(page, data):
    """Objects, the list of queries, and keys choose a query, whose box is on the picture."""
    first = next(o for o in data["objects"] if o["query"] is not None)
    page.run("document.querySelector('#answers button').click()")
    page.settle()
    check(page.run("location.hash").startswith("#cross-") and page.run("location.hash").endswith(f"-{first['query']}"),
          f"an object opens {page.run('location.hash')}")
    box = page.run("(() => { const mark = document.querySelector('.stage .mark.object');"
                   " return mark.hidden ? null : ['left', 'top', 'width', 'height'].map(side => parseFloat(mark.style[side])); })()")
    sizes = [data["width"], data["height"]] * 2
    check(box and all(abs(share - 100 * at / size) < 0.01 for share, at, size in zip(box, first["box"], sizes)),
          f"the box on the picture is {box}, not that of {first}")
    page.run("document.getElementById('stage').focus()")
    go(page, "cross-0-0-0")
    page.press("ArrowRight")
    check(page.run("location.hash") == "#cross-0-0-1", "an arrow key does not go to the next query")
    page.run("(() => { const select = document.querySelector('#from-choice select'); select.value = '2';"
             " select.dispatchEvent(new Event('change', {bubbles: true})); })()")
    check(page.run("location.hash") == "#cross-0-0-2", "the list does not choose a query")
    names = page.run("[...document.querySelectorAll('#from-choice option')].map(option => option.textContent)")
    check(names == data["target_tokens"], f"the queries are {names}")

    page.run("location.hash = '#decoder-0-0'")
    page.settle()
    check(page.run("document.getElementById('plot').checkVisibility() && !document.getElementById('stage').checkVisibility()"),
          "the map among queries is not shown as a map")
    page.run("document.getElementById('numbers').open = true")
    page.settle()
    shown = page.run("[...document.querySelectorAll('#table td')].filter(cell => cell.textContent).map(cell => Number(cell.textContent))")
    n = len(data["target_tokens"])
    expected = sum((weights(data, "decoder", 0, 0, t) for t in range(n)), [])
    check(len(shown) == n * n and all(abs(a - b) <= 0.000501 for a, b in zip(shown, expected)), "numbers among queries differ")


def check_sizes(page, path):
    """Nothing is wider than a phone, a window or paper."""
    for width, media in at_widths(page, path, before_print="document.getElementById('numbers').open = true"):
        stage = page.run("document.getElementById('stage').getBoundingClientRect().right")
        check(0 < stage <= width, f"the picture ends at {stage} of {width} pixels {media}")


def check_page(page, path):
    page.open(path)
    page.run("new Promise(done => { const wait = () => 'ready' in document.body.dataset ? done() : setTimeout(wait, 10); wait(); })")
    data = json.loads(page.run("document.getElementById('data').textContent"))
    rows = data["special"] + data["rows"] * data["columns"]
    for kind, n in (("encoder", rows), ("cross", len(data["target_tokens"]))):
        layers = next((map_["layers"] for map_ in data["maps"] if map_["kind"] == kind), [])
        if not layers:
            continue
        for head in (0, len(layers[0]) - 1, "mean", "rollout"):
            check_numbers(page, data, kind, len(layers) - 1, head, n - 1)
        check_numbers(page, data, kind, 0, 0, 0)
        check_colours(page, data, kind, 0, 0, n // 2)
        check_thumbs(page, data, kind)
    check_choosing(page, data)
    check_heads(page, data)
    check_answers(page, data)
    if data["target_tokens"]:
        check_queries(page, data)
    go(page, f"encoder-0-mean-{rows - 1}")
    page.run("location.hash = '#encoder-99-0-0'")
    page.settle()
    check(page.run("document.getElementById('map-title').textContent").endswith("layer 0, mean of heads"),
          "an address without a map opens something else")
    check_sizes(page, path)
    check_dark(page, path)


if __name__ == "__main__":
    sys.exit(check_arguments(check_page, __doc__))
