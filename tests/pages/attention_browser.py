#!/usr/bin/env python3
"""Opens the page of `zoo attention` in a headless Chromium without a network and uses it as a reader would.

    attention_browser.py PAGE.html...

Fails where the page logs an error or requests anything, where a map, a line, a number or a prediction differs from the
page's data, where sorting, a row of a table or a key does not work, where something is out of sight without a sign of it,
or where paper cuts something off. Without a Chromium the exit code is 77, or 1 if
ZOO_REQUIRE_REFERENCES is set.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from chromium import check, check_arguments  # noqa: E402

NUMBERS = {"Entropy": "entropy", "Distance": "distance", "First": "first", "Previous": "previous", "Itself": "itself",
           "Off the diagonal": "alignment_error"}
CELLS = "[...{table}.tBodies[0].rows].map(row => [...row.cells].map(cell => cell.textContent))"


def name_of(map_):
    return f"{map_['kind']}-{map_['layer']}-{map_.get('head', 'rollout')}"


def check_heads(page, kind, heads, table):
    """The table of one kind of attention: numbers, order, sorting."""
    cells = CELLS.format(table=table)
    rows = page.run(cells)
    titles = page.run(f"[...{table}.tHead.rows[0].cells].map(cell => cell.textContent)")
    check(len(rows) == len(heads), f"{kind}: {len(rows)} rows for {len(heads)} heads")
    known = [title for title, key in NUMBERS.items() if any(head[key] is not None for head in heads)]
    check(titles == ["Head", *known], f"{kind}: the columns are {titles}")
    for row, head in zip(rows, heads):
        check(row[0] == f"{head['layer']}.{head['head']}", f"{kind}: {row[0]} stands where another head is")
        for title, shown in zip(titles[1:], row[1:]):
            check(abs(float(shown) - head[NUMBERS[title]]) <= 0.00501, f"{kind} {row[0]}: {title} is shown as {shown}")
    for column, title in list(enumerate(titles[1:], 1))[:6 if len(heads) < 20 else 1]:
        heading = f"{table}.tHead.rows[0].cells[{column}]"
        page.run(f"{heading}.querySelector('button').focus()")
        for key, order in (("Enter", "descending"), (" ", "ascending"), ("Enter", "none")):
            page.press(key)
            check(page.run(f"{heading}.getAttribute('aria-sort')") == order, f"{kind}: {title} is not sorted {order}")
            values = [float(row[column]) for row in page.run(cells)]
            expected = [float(row[column]) for row in rows]
            if order != "none":
                expected.sort(reverse=order == "descending")
            check(values == expected, f"{kind}: {title} is out of order when {order}")


def check_rows_open_maps(page, table):
    """Rows open the map of their head by pointer and by key, in any order of sorting."""
    page.run(f"{table}.tHead.rows[0].cells[1].querySelector('button').click()")
    for i in some(range(page.run(f"{table}.tBodies[0].rows.length")), 8):
        row = f"{table}.tBodies[0].rows[{i}]"
        layer, head = page.run(f"{row}.cells[0].textContent").split(".")
        if i % 2:
            page.run(f"{row}.cells[1].click()")
        else:
            page.run(f"{row}.querySelector('button').focus()")
            page.press("Enter")
        hash_ = page.run("location.hash")
        check(hash_.endswith(f"-{layer}-{head}"), f"row {layer}.{head} opens {hash_}")
        title = page.run("document.getElementById('map-title').textContent")
        check(title.endswith(f"layer {layer}, head {head}"), f"row {layer}.{head} opens “{title}”")
        check(page.run("[...document.querySelectorAll('[aria-current]')].map(node => node.textContent)") ==
              [f"{layer}.{head}"], f"row {layer}.{head} is not marked as open, or another is")


def check_map(page, name, values, columns, causal):
    """The table of numbers of a map that was opened by its name."""
    page.run(f"location.hash = '{name}'")
    page.settle()
    page.run("document.getElementById('numbers').open = true")
    page.settle()
    shown = page.run("[...document.querySelectorAll('#table tbody tr')].map("
                     "row => [...row.querySelectorAll('td')].map(cell => cell.textContent))")
    check(sum(map(len, shown)) == len(values), f"{name}: {shown} for {len(values)} weights")
    for t, row in enumerate(shown):
        for s, text in enumerate(row):
            expected = "" if causal and s > t else f"{values[t * columns + s] / 999:.3f}"
            check(text == expected, f"{name}: row {t}, column {s} is “{text}”, not “{expected}”")


def check_scale(page, name, values, columns, causal):
    """The legend ends at the largest weight that is shown. A decoder's first row does not count: it sees only itself.
    Where that row exceeds it, the legend says so. The readout names the same weight."""
    page.run("document.querySelector('#scale-choice [value=relative]').click()")
    free = values[columns:] if causal and 1 < columns < len(values) else values
    shown, most = page.run("document.getElementById('ramp-end').textContent"), max(1, *free) / 999
    check(shown.startswith("≥ ") == (max(values) > max(1, *free)), f"{name}: {shown} ends a scale of {max(values)} / 999")
    check(abs(float(shown.removeprefix("≥ ")) - most) <= 0.00501, f"{name}: the scale ends at {shown}, not {most}")
    check(page.run("document.getElementById('ramp-end').classList.contains('beyond')") == shown.startswith("≥"),
          f"{name}: {shown} has the wrong mark")
    page.run("document.querySelector('#scale-choice [value=absolute]').click()")
    check(page.run("document.getElementById('ramp-end').textContent") == "1", f"{name}: the whole scale does not end at 1")
    largest = page.run("document.querySelector('#readout .value').textContent")
    check(abs(float(largest) - max(free) / 999) <= 0.00501, f"{name}: the largest weight is said to be {largest}")


def check_zoom(page, name):
    """The buttons change the size of the cells, down to cells whose tokens have no room, and the pointer still finds them."""
    page.run(f"location.hash = '{name}'")
    page.settle()
    width = "document.querySelector('#plot canvas').getBoundingClientRect().width"
    small, large = (f"document.querySelectorAll('#plot .zoom')[{i}].click()" for i in (0, 1))
    fits = page.run(width)
    page.run(large)
    check(page.run(width) > 1.2 * fits, f"{name}: larger cells make {fits} pixels {page.run(width)} wide")
    page.run(f"for (let i = 0; i < 20; ++i) {small}")
    check(page.run(width) < fits, f"{name}: smaller cells make {fits} pixels {page.run(width)} wide")
    check(page.run("getComputedStyle(document.querySelector('#plot .rows > *')).visibility") == "hidden",
          f"{name}: labels stand over each other")
    page.run(f"for (let i = 0; i < 40 && {width} < {fits}; ++i) {large}")
    check(page.run("getComputedStyle(document.querySelector('#plot .rows > *')).visibility") == "visible",
          f"{name}: labels stay away")


def check_mark(page):
    """Cells beyond the scale have a mark: a pixel in their corner differs from one in their middle."""
    page.load("pages/heat_map.js", "heatMap")
    pixels = page.run("""(() => {
        const canvas = document.createElement('canvas');
        const view = {values: [500, 100, 100, 100], rows: ['a', 'b'], columns: ['a', 'b'], isHidden: () => false, top: 100};
        heatMap.paint(canvas, view, 20);
        const copy = document.createElement('canvas');
        Object.assign(copy, {width: 40, height: 40});
        const pen = copy.getContext('2d', {willReadFrequently: true});
        pen.drawImage(canvas, 0, 0);
        return [[10, 10], [18, 1], [30, 10], [38, 1]].map(([x, y]) => [...pen.getImageData(x, y, 1, 1).data].join());
    })()""")
    check(pixels[0] == pixels[2] == pixels[3], f"two cells of the strongest colour differ: {pixels}")
    check(pixels[1] != pixels[0], "a cell beyond the scale has no mark")


def open_lines(page, name):
    page.run(f"location.hash = '{name}-lines'")
    page.settle()
    check(page.run("document.getElementById('lines').checkVisibility() && !document.getElementById('plot').checkVisibility()"),
          f"{name} is not shown as lines alone")


def lines_drawn(page):
    """For each colour the widths of the lines, one per line."""
    paths = page.run("[...document.querySelectorAll('#lines path')].map(path => [path.getAttribute('stroke'), "
                     "Number(path.getAttribute('stroke-width')), path.getAttribute('d').split('M').length - 1])")
    drawn = {}
    for colour, width, n in paths:
        drawn.setdefault(colour, []).extend([width] * n)
    return drawn


def choose_heads(page, heads):
    page.run("document.getElementById('no-heads').click()")
    for head in heads:
        page.run(f"document.querySelector('#head-boxes [value=\"{head}\"]').click()")
    page.settle()


def check_lines(page, data, map_, columns):
    """Lines of one head, of one token, and of two heads."""
    kind, (first, second) = map_["kind"], map_["layers"][0][:2]
    rows = len(first) // columns
    open_lines(page, f"{kind}-0-0")
    page.run("document.querySelector('#scale-choice [value=absolute]').click()")
    labels = "[...document.querySelectorAll('.side.{} .end .token')].map(token => token.title)"
    left, right = page.run(labels.format("from")), page.run(labels.format("to"))
    expected = data["target_next"] if kind == "cross" else data["target_tokens"] if kind == "decoder" else []
    check(left == (expected or data["source_tokens"]), f"{kind}: the tokens on the left are {left}")
    check(len(left) == rows and len(right) == columns, f"{kind}: {len(left)} and {len(right)} tokens beside the lines")
    drawn = lines_drawn(page)
    expected = sum(value >= 0.05 * 999 for value in first)
    check(sum(map(len, drawn.values())) == expected, f"{kind}: {drawn} are not {expected} lines")

    token = min(1, rows - 1)
    page.run("document.querySelector('.side.from .end').focus()")
    page.press("ArrowDown")
    check(page.run("document.activeElement.value") == str(token), f"{kind}: an arrow key does not move to the next token")
    own = first[token * columns:(token + 1) * columns]
    widths = [width for list_ in lines_drawn(page).values() for width in list_]
    check(len(widths) == sum(value >= 0.01 * 999 for value in own), f"{kind}: token {token} has {len(widths)} lines")
    check(abs(max(widths) - min(widths)) > 0.2 or max(own) - min(v for v in own if v >= 10) < 60,
          f"{kind}: all lines of token {token} are {widths} wide")
    shares = page.run("[...document.querySelectorAll('.side.to .share')].map(share => share.textContent)")
    for share, value in zip(shares, own):
        check(abs(float(share or 0) - value / 999) <= 0.00501, f"{kind}: {shares} stand beside the tokens, not {own}")
    best = right[own.index(max(own))]
    check(f"{max(own) / 999:.2f}" in page.run("document.getElementById('readout').textContent"),
          f"{kind}: the weight on {best} is not told")
    page.press("ArrowRight")
    check(page.run("document.activeElement.closest('.side').className") == "side to", f"{kind}: → stays on the left")
    into = page.run("Number(document.activeElement.value)")
    shares = page.run("[...document.querySelectorAll('.side.from .share')].map(share => share.textContent)")
    for share, value in zip(shares, first[into::columns]):
        check(abs(float(share or 0) - value / 999) <= 0.00501, f"{kind}: who looks at token {into}: {shares}")
    page.press("Escape")
    check(page.run("document.querySelectorAll('.end[aria-pressed=true]').length") == 0, f"{kind}: Escape keeps the token")

    choose_heads(page, (0, 1))
    drawn = lines_drawn(page)
    swatches = page.run("[...document.querySelectorAll('.head-box')].slice(0, 2).map("
                        "label => getComputedStyle(label.querySelector('.swatch')).backgroundColor)")
    spaced = {colour.replace(",", " ").replace("  ", " ") for colour in swatches}
    check({colour for colour in drawn} == spaced, f"{kind}: lines of two heads are {set(drawn)}, their boxes {spaced}")
    page.run("document.querySelector('.side.from .end').click()")
    page.settle()
    shares = page.run("[...document.querySelectorAll('.side.to .share')].map(share => share.textContent)")
    for share, one, two in zip(shares, first, second):
        check(abs(float(share or 0) - (one + two) / 2 / 999) <= 0.00501, f"{kind}: the mean of two heads is {shares}")
    choose_heads(page, ())
    check(not lines_drawn(page), f"{kind}: lines are drawn for no head")
    page.run("document.querySelector('#show-choice [value=map]').click()")
    check(page.run("document.getElementById('plot').checkVisibility()"), f"{kind}: the map does not come back")


def check_predictions(page, data):
    """Each position's tokens and probabilities, and the mark of the right one."""
    predictions, labels = data["predictions"], data["labels"]
    check(page.run("document.getElementById('predictions').checkVisibility()") == bool(predictions or labels),
          "the section of predictions is shown without any, or hidden")
    if labels:
        names = page.run("[...document.querySelectorAll('.classes .bar-row .token')].map(node => node.title)")
        check(names == [entry["label"] for entry in labels[:10]], f"the classes are {names}")
    shown = page.run("""[...document.querySelectorAll('.position')].map(position =>
        [...position.querySelectorAll('.bar-row')].map(row => [row.querySelector('.token').title,
            row.querySelector('.amount-text').textContent, row.classList.contains('right')]))""")
    check(len(shown) == len(predictions), f"{len(shown)} positions are shown, not {len(predictions)}")
    answered, source = data["target_tokens"], data["source_tokens"]
    masked = not answered and data["maps"][0]["kind"] == "encoder"
    right = data["target_next"] if answered else source if masked else source[1:] + [None]
    for t, (rows, expected) in enumerate(zip(shown, predictions)):
        check([row[0] for row in rows] == [entry["token"] for entry in expected], f"position {t}: the tokens are {rows}")
        for (token, text, marked), entry in zip(rows, expected):
            bound = float(text.strip("<> "))
            fits = (entry["probability"] < bound if text.startswith("<") else entry["probability"] > bound
                    if text.startswith(">") else abs(bound - entry["probability"]) <= 0.00501)
            check(fits, f"position {t}: {token} has {text}, not {entry['probability']}")
            check(marked == (token == right[t]), f"position {t}: {token} is marked wrongly; {right[t]} is right")


def check_recording(page, data):
    """The spectrogram, and under it one row for each token of the open map, or one for the mean of many."""
    recording = data.get("recording")
    page.run("document.querySelector('.heads button').click()")
    visible = page.run("document.getElementById('recording').checkVisibility()")
    check(visible == bool(recording), "the section of the recording is shown without one, or hidden")
    if not recording:
        return
    sizes = page.run("[...document.querySelectorAll('#recording canvas')].map(node => [node.width, node.height])")
    times, frames = len(data["source_tokens"]), len(recording["levels"]) // recording["bands"]
    rows = len(data["target_tokens"]) or 1  # the mean
    check(sizes == [[frames, recording["bands"]]] + rows * [[times, 1]], f"the pictures have {sizes} pixels")
    written = page.run("[...document.querySelectorAll('#recording .written span')].map(node => node.textContent)")
    check("".join(written) == ("" if data["target_tokens"] else data["target"]), f"written at its moments is {written}")
    strongest = page.run("""(() => {
        const row = document.querySelectorAll('#recording canvas')[1], pen = row.getContext('2d', {willReadFrequently: true});
        const light = x => { const [r, g, b] = pen.getImageData(x, 0, 1, 1).data; return r + g + b; };
        const all = Array.from({length: row.width}, (_, x) => light(x));
        return all.indexOf(Math.min(...all)); })()""")
    kind = {map_["kind"]: map_["layers"][0][0] for map_ in data["maps"]}
    values = kind["cross"][:times] if data["target_tokens"] else [sum(kind["encoder"][s::times]) for s in range(times)]
    check(values[strongest] >= max(values) * 0.99, f"the darkest moment is {strongest}")
    if data["target_tokens"]:
        page.run("[...document.querySelectorAll('#overview section')].at(-1).querySelector('button').click()")
        hidden = not page.run("document.getElementById('recording').checkVisibility()")
        check(hidden, "a map of the decoder's own tokens is shown over the recording")


def check_scrolling(page, path):
    """On a phone an overview that is too wide shows on which side there is more, and all of it can be reached."""
    page.open(path, width=390, height=844)
    frames = "[...document.querySelectorAll('#overview .scroller:has(.heads)')]"
    for i in range(page.run(f"{frames}.length")):
        frame = f"{frames}[{i}]"
        sides = f"['left', 'right'].map(side => {frame}.hasAttribute('data-' + side))"
        hidden = page.run(f"{frame}.firstChild.scrollWidth - {frame}.firstChild.clientWidth")
        check(page.run(sides) == [False, hidden > 1], f"overview {i}: {hidden} pixels are hidden, shown as {page.run(sides)}")
        if hidden <= 1:
            continue
        check(page.run(f"getComputedStyle({frame}, '::before').content").find("more") >= 0, "nothing says that there is more")
        page.run(f"{frame}.firstChild.scrollLeft = 10000")
        page.settle()
        check(page.run(sides) == [True, False], f"overview {i}: the end is shown as {page.run(sides)}")


def check_wide(page, path):
    """In a wide window no head is hidden."""
    page.open(path, width=1400, height=900)
    check(page.run("[...document.querySelectorAll('#overview .heads')].every(heads => heads.parentElement.scrollWidth <= "
                   "heads.parentElement.clientWidth + 1)"), "in a window of 1400 pixels a head is out of sight")


def check_paper(page, path, data):
    """On paper nothing is wider than the page, every weight is there, and folded tables stay out."""
    page.open(path, width=1280, height=900)
    page.run("document.getElementById('numbers').open = true")
    page.run("document.querySelector('.numbers').open = true")
    for view in ("map", "lines"):
        page.run(f"document.querySelector('#show-choice [value={view}]').click()")
        page.send("Emulation.setEmulatedMedia", media="print")
        page.resize(717, 1000)
        page.run("dispatchEvent(new Event('beforeprint'))")
        page.settle()
        wide = page.run("""[...document.querySelectorAll('#paper canvas, #lines svg, .side, table, .heads, .position')]
            .filter(node => node.checkVisibility() && node.getBoundingClientRect().right > 718)
            .map(node => `${node.tagName} ${node.className} ${node.getBoundingClientRect().right}`)""")
        check(not wide, f"{view}: on paper {wide[:3]} reach beyond the page")
        tall = page.run("Math.max(0, ...[...document.querySelectorAll('#paper canvas, #lines svg')].filter("
                        "node => node.checkVisibility()).map(node => node.getBoundingClientRect().height))")
        check(0 < tall < 950, f"{view}: a part of {tall} pixels does not fit on a page")
        small = page.run("Math.min(...[...document.querySelectorAll('#paper .token, #lines .token')].filter("
                         "node => node.checkVisibility()).map(node => parseFloat(getComputedStyle(node).fontSize)))")
        check(small >= 9, f"{view}: tokens of {small} pixels on paper cannot be read")
        shown = page.run("[...document.querySelectorAll('#table td')].filter(cell => /[0-9]/.test(cell.textContent)).length")
        map_ = next(map_ for map_ in data["maps"] if map_["kind"] == page.run("location.hash.slice(1).split('-')[0]"))
        n = len(map_["layers"][0][0])
        rows = len(data["target_tokens"] or data["source_tokens"])
        check(shown == (rows * (rows + 1) // 2 if map_["kind"] == "decoder" else n), f"{view}: {shown} numbers are printed")
        check(not page.run("[...document.querySelectorAll('.scroller')].some("
                           "node => getComputedStyle(node, '::before').display !== 'none')"), "“more” is printed")
        page.run("dispatchEvent(new Event('afterprint'))")
        page.settle()
        check(page.run("document.getElementById('paper').childElementCount") == 0, "parts for paper stay on the screen")
        page.send("Emulation.setEmulatedMedia", media="")
        page.resize(1280, 900)
    page.run("document.querySelectorAll('details').forEach(node => { node.open = false; })")
    page.send("Emulation.setEmulatedMedia", media="print")
    check(not page.run("[...document.querySelectorAll('table')].some(node => node.checkVisibility())"),
          "a folded table is printed")
    page.send("Page.printToPDF")
    page.send("Emulation.setEmulatedMedia", media="")


def some(values, most):
    """At most `most` of the values, evenly spread."""
    values = list(values)
    return values if len(values) <= most else [values[i * len(values) // most] for i in range(most)]


def check_page(page, path):
    page.problems.clear()
    page.open(path)
    data = json.loads(page.run("document.getElementById('data').textContent"))
    text = page.run("document.getElementById('text').textContent")
    check(data["text"] in text and data["target"] in text, f"the heading is {text!r}")
    kinds = [map_["kind"] for map_ in data["maps"]]
    shown = [kind for kind in ("cross", "encoder", "decoder") if kind in kinds]
    tables = [f"document.querySelectorAll('table.sortable')[{i}]" for i in range(len(shown))]
    check(page.run("document.querySelectorAll('table.sortable').length") == len(shown), "not one table per kind")
    check(page.run("[...document.querySelectorAll('details')].every(node => !node.open)"), "a table is not folded at first")
    thumbs = sum(len(heads) + 1 for map_ in data["maps"] for heads in map_["layers"]) + len(data["rollout"])
    check(page.run("document.querySelectorAll('.heads button').length") == thumbs, f"there are not {thumbs} maps")
    check_mark(page)
    check_predictions(page, data)
    check_recording(page, data)
    page.run("document.querySelectorAll('details').forEach(node => { node.open = true; })")
    for kind, table in zip(shown, tables):
        check_heads(page, kind, [head for head in data["heads"] if head["kind"] == kind], table)
        check_rows_open_maps(page, table)

    columns = {kind: len(data["source_tokens"]) for kind in kinds}
    if data["target_tokens"] and "decoder" in kinds:
        columns["decoder"] = len(data["target_tokens"])
    for map_ in data["maps"]:
        kind = map_["kind"]
        heads = [(layer, head, values) for layer, heads in enumerate(map_["layers"]) for head, values in enumerate(heads)]
        for layer, head, values in some(heads, 7 if len(heads) < 20 else 2):
            check_map(page, f"{kind}-{layer}-{head}", values, columns[kind], kind == "decoder")
            check_scale(page, f"{kind}-{layer}-{head}", values, columns[kind], kind == "decoder")
        check_zoom(page, f"{kind}-0-0")
        check_lines(page, data, map_, columns[kind])
    for map_ in some(data["rollout"], 2):
        check_map(page, name_of(map_), map_["rows"], columns[map_["kind"]], map_["kind"] == "decoder")
        check("roll-out" in page.run("document.getElementById('map-title').textContent"), "roll-out is not named")
    check_wide(page, path)
    check_paper(page, path, data)
    check_scrolling(page, path)

    for width, media in ((390, "light"), (390, "dark"), (1280, "dark")):
        for view in ("map", "lines"):
            page.open(path, width=width, height=844, media=media)
            page.run(f"document.querySelector('#show-choice [value={view}]').click()")
            page.settle()
            wide = page.run("document.documentElement.scrollWidth")
            check(wide <= width, f"the page is {wide} pixels wide in a window of {width}")
    page.open(path, width=390, height=844)
    page.run("document.querySelectorAll('details').forEach(node => { node.open = true; })")
    page.run(f"{tables[-1]}.scrollIntoView()")
    page.run(f"{tables[-1]}.tBodies[0].rows[0].cells[1].click()")
    page.settle()
    top = page.run("document.getElementById('detail').getBoundingClientRect().top")
    check(-1 <= top < 844, f"on a phone the map that was opened is out of sight, at {top}")


if __name__ == "__main__":
    sys.exit(check_arguments(check_page, __doc__))
