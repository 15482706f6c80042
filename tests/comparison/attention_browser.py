#!/usr/bin/env python3
"""Opens the page of `zoo attention` in a headless Chromium without a network and uses it as a reader would.

    attention_browser.py PAGE.html...

Fails where the page logs an error or requests anything, where a map or a number differs from the page's data, or where
sorting, a row of the table or a key does not work. Without a Chromium the exit code is 77, or 1 if
ZOO_REQUIRE_REFERENCES is set.
"""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from chromium import Browser, Failure, find_chromium  # noqa: E402

SKIPPED = 77
NUMBERS = {"Entropy": "entropy", "Distance": "distance", "First": "first", "Previous": "previous", "Itself": "itself",
           "Off the diagonal": "alignment_error"}
CELLS = "[...{table}.tBodies[0].rows].map(row => [...row.cells].map(cell => cell.textContent))"


def check(condition, what):
    if not condition:
        raise Failure(what)


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
    for column, title in enumerate(titles[1:], 1):
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
    for i in range(page.run(f"{table}.tBodies[0].rows.length")):
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
    """“0 to the largest” leaves out a decoder's first row, which can only look at itself."""
    page.run("document.querySelector('#scale-choice [value=relative]').click()")
    free = values[columns:] if causal and 1 < columns < len(values) else values
    shown, most = page.run("document.getElementById('ramp-end').textContent"), max(1, *free) / 999
    check(abs(float(shown) - most) <= 0.00501, f"{name}: the scale ends at {shown}, not {most}")
    page.run("document.querySelector('#scale-choice [value=absolute]').click()")


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
    thumbs = sum(len(heads) + 1 for map_ in data["maps"] for heads in map_["layers"]) + len(data["rollout"])
    check(page.run("document.querySelectorAll('.heads button').length") == thumbs, f"there are not {thumbs} maps")
    for kind, table in zip(shown, tables):
        check_heads(page, kind, [head for head in data["heads"] if head["kind"] == kind], table)
        check_rows_open_maps(page, table)

    columns = {kind: len(data["source_tokens"]) for kind in kinds}
    if data["target_tokens"] and "decoder" in kinds:
        columns["decoder"] = len(data["target_tokens"])
    for map_ in data["maps"]:
        kind = map_["kind"]
        for layer, heads in enumerate(map_["layers"]):
            for head, values in enumerate(heads):
                check_map(page, f"{kind}-{layer}-{head}", values, columns[kind], kind == "decoder")
                check_scale(page, f"{kind}-{layer}-{head}", values, columns[kind], kind == "decoder")
    for map_ in data["rollout"]:
        check_map(page, name_of(map_), map_["rows"], columns[map_["kind"]], map_["kind"] == "decoder")
        check("roll-out" in page.run("document.getElementById('map-title').textContent"), "roll-out is not named")

    for width, media in ((390, "light"), (390, "dark"), (1280, "dark")):
        page.open(path, width=width, height=844, media=media)
        wide = page.run("document.documentElement.scrollWidth")
        check(wide <= width, f"the page is {wide} pixels wide in a window of {width}")
    page.open(path, width=390, height=844)
    page.run(f"{tables[-1]}.scrollIntoView()")
    page.run(f"{tables[-1]}.tBodies[0].rows[0].cells[1].click()")
    page.settle()
    top = page.run("document.getElementById('detail').getBoundingClientRect().top")
    check(-1 <= top < 844, f"on a phone the map that was opened is out of sight, at {top}")
    check(not page.problems, "; ".join(page.problems))


def main(paths):
    if not paths:
        print(__doc__, file=sys.stderr)
        return 2
    program = find_chromium()
    if not program:
        print("no chromium, chromium-browser or google-chrome on PATH: scripts/setup.sh --tests installs one")
        return 1 if os.environ.get("ZOO_REQUIRE_REFERENCES") else SKIPPED
    for path in paths:
        try:
            with Browser(program) as page:
                check_page(page, path)
        except Failure as failure:
            print(f"{path}: {failure}")
            return 1
        print(f"{path}: as it should be")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
