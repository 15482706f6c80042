#!/usr/bin/env python3
"""Opens pages of causes in a headless Chromium without a network and uses them as a reader would.

    causes_browser.py PAGE.html...

Fails where a page logs an error or requests anything, where a cell or a bar differs from the page's data, where a key does not
lead where it should, or where paper or a phone cuts something off. Without a Chromium the exit code is 77, or 1 if
ZOO_REQUIRE_REFERENCES is set.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from chromium import check, check_arguments, check_dark, check_widths  # noqa: E402

CELLS = "[...document.querySelectorAll('table.grid')].map(t => [...t.tBodies[0].rows].map(r => [...r.cells].slice(1).map(c => {})))"
FOCUSED = "[document.activeElement.closest('tr')?.rowIndex, document.activeElement.cellIndex]"


def check_columns(page):
    """Each name stands above its column."""
    off = page.run("""[...document.querySelectorAll('table.grid')].flatMap(table => [...table.tBodies[0].rows[0].cells].map((cell, i) => {
        const [name, below] = [table.tHead.rows[0].cells[i], cell].map(node => node.getBoundingClientRect());
        return [name.left - below.left, name.bottom - below.top];
    })).filter(([left, down]) => Math.abs(left) > 1.5 || down > 1.5)""")
    check(not off, f"names are beside their columns by {off[:3]}")


def check_cells(page, data):
    check_columns(page)
    texts = page.run(CELLS.format("c.textContent"))
    check(len(texts) == len(data["grids"]), f"{len(texts)} tables for {len(data['grids'])} grids")
    for grid, rows in zip(data["grids"], texts):
        check([len(rows), len(rows[0])] == [len(grid["rows"]), len(grid["columns"])], f"{grid['title']}: another size")
        for i, row in enumerate(rows):
            for j, text in enumerate(row):
                value = grid["values"][i][j]
                if grid["texts"]:
                    continue
                check(text == ("–" if value is None else f"{value:.3f}"), f"{grid['title']}: {text} for {value}")
    for grid, rows in zip(data["grids"], page.run(CELLS.format("getComputedStyle(c).backgroundColor"))):
        for i, row in enumerate(rows):
            for j, colour in enumerate(row):
                if grid["values"][i][j]:
                    check(colour != "rgba(0, 0, 0, 0)", f"{grid['title']}: a number without a colour")


def check_texts(page, data):
    """Tokens have colours, and the arrow keys lead from one to the next."""
    texts = page.run("[...document.querySelectorAll('.coloured')].map(t => [...t.children].map(c => getComputedStyle(c).backgroundColor))")
    check([len(colours) for colours in texts] == [len(text["tokens"]) for text in data.get("texts", [])], "another number of tokens")
    for text, colours in zip(data.get("texts", []), texts):
        check(all(colour != "rgba(0, 0, 0, 0)" for colour in colours), f"{text['title']}: a token without a colour")
        check(len(set(colours)) == len(set(text["values"])), f"{text['title']}: equal colours of different numbers")
    if not texts:
        return
    page.tab_to(".coloured .place")
    for i in range(1, min(4, len(texts[0]))):
        page.press("ArrowRight")
        said = page.run("document.activeElement.closest('.card').querySelector('.readout').textContent")
        expected = f"{i} “{data['texts'][0]['tokens'][i]}”: {data['texts'][0]['values'][i]:.4f}"
        check(said == expected, f"“{said}” is said, not “{expected}”")


def check_pictures(page, data):
    """The parts stand where they are in the picture, and can be reached by keys."""
    for picture in data.get("pictures", []):
        frame, table = page.run("['.pictured', '.squares'].map(s => document.querySelector(s).getBoundingClientRect())"
                                ".map(r => [r.x, r.y, r.width, r.height])")
        width, height = picture["size"]
        scale = frame[2] / width
        check(abs(frame[3] - height * scale) < 1.5, "the picture has another shape")
        x, y, w, h = picture["part"] or [0, 0, width, height]
        expected = [frame[0] + x * scale, frame[1] + y * scale, w * scale, h * scale]
        check(all(abs(a - b) < 1.5 for a, b in zip(table, expected)), f"the parts are at {table}, not at {expected}")
        page.tab_to(".squares td")
        page.press("ArrowDown")
        said = page.run("document.activeElement.closest('.card').querySelector('.readout').textContent")
        check(said == f"row 1 column 0: {picture['values'][1][0]:.4f}", f"“{said}” is said")


def check_keys(page, data):
    """The tab key leads to a table, arrows lead through it, and the line above says what stands there."""
    if not data["grids"]:
        return
    grid = data["grids"][0]
    page.tab_to("table.grid td")
    check(page.run(FOCUSED) == [1, 1], "the first cell is not the first that is reached")
    rows, columns = len(grid["rows"]), len(grid["columns"])
    at = [0, 0]
    for key, step in (("ArrowRight", (0, 1)), ("ArrowDown", (1, 0)), ("ArrowLeft", (0, -1)), ("ArrowUp", (-1, 0)), ("ArrowUp", (-1, 0))):
        page.press(key)
        to = [at[0] + step[0], at[1] + step[1]]
        if 0 <= to[0] < rows and 0 <= to[1] < columns:
            at = to
        check(page.run(FOCUSED) == [at[0] + 1, at[1] + 1], f"{key} leads to {page.run(FOCUSED)}")
        said = page.run("document.querySelector('.readout').textContent")
        hint = grid["hints"][at[0]][at[1]] if grid["hints"] else ""
        check(said == hint if hint else grid["rows"][at[0]] in said, f"“{said}” is said of {at}")


def check_bars(page, data):
    bars = page.run("[...document.querySelectorAll('.bars li')].map(li => [li.children[0].textContent, li.children[1].textContent,"
                    " li.querySelector('.length').getBoundingClientRect().width])")
    items = [item for each in data["bars"] for item in each["items"]]
    check([name for name, _, _ in bars] == [item["name"] for item in items], "other bars")
    check(all(text == f"{item['value']:.4f}" for (_, text, _), item in zip(bars, items)), "other numbers beside bars")
    for each in data["bars"]:
        most = max(abs(item["value"]) for item in each["items"])
        widest = max(width for _, _, width in bars)
        for (_, _, width), item in zip(bars, each["items"]):
            check(abs(width / widest - abs(item["value"]) / most) < 0.02, f"a bar of {width} pixels for {item['value']}")


def check_page(page, path):
    page.open(path)
    data = json.loads(page.run("document.getElementById('data').textContent"))
    check(page.run("document.getElementById('title').textContent") == data["title"], "the title is another one")
    check(page.run("document.getElementById('summary').textContent") == data["summary"], "the summary is another one")
    check_cells(page, data)
    check_texts(page, data)
    check_pictures(page, data)
    check_keys(page, data)
    check_bars(page, data)
    check_widths(page, path)
    check_dark(page, path)
    check_cells(page, data)


if __name__ == "__main__":
    sys.exit(check_arguments(check_page, __doc__))
