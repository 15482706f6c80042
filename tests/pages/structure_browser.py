#!/usr/bin/env python3
"""Opens pages of structures in a headless Chromium without a network and uses them as a reader would.

    structure_browser.py PAGE.html...

Fails where a page logs an error or requests anything, where a number differs from the page's data, where the pointer, a
key or a button does not do what it should, or where paper or a phone cuts something off. Without a Chromium the exit code
is 77, or 1 if ZOO_REQUIRE_REFERENCES is set.
"""

import base64
import json
import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from chromium import at_widths, check, check_arguments, check_dark  # noqa: E402

READOUT = "document.querySelector('.readout').textContent"
CHOSEN = "[...document.querySelectorAll('.letter.on')].map(node => Number(node.id.slice(8)))"
# The picture as numbers that change with it, and how many of its pixels are drawn.
PICTURE = """(() => {
    const from = document.querySelector('.structure-stage canvas'), copy = document.createElement('canvas');
    Object.assign(copy, {width: from.width, height: from.height});
    const pen = copy.getContext('2d');
    pen.drawImage(from, 0, 0);
    const pixels = pen.getImageData(0, 0, copy.width, copy.height).data;
    let sum = 0, drawn = 0;
    for (let i = 3; i < pixels.length; i += 4)
        if (pixels[i]) {
            ++drawn;
            sum = (sum * 31 + pixels[i - 3] + 7 * pixels[i - 2] + 11 * pixels[i - 1] + i) % 1000003;
        }
    return {sum, drawn};
})()"""


def picture(page):
    page.settle()
    return page.run(PICTURE)


def place(trace, i):
    return trace["places"][3 * i:3 * i + 3]


def touch(page, *steps):
    """Moves fingers through lists of points (x, y), one for each finger, and lifts them."""
    for i, points in enumerate(steps):
        page.send("Input.dispatchTouchEvent", type="touchMove" if i else "touchStart",
                  touchPoints=[{"x": x, "y": y, "id": finger} for finger, (x, y) in enumerate(points)])
    page.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])


def focus(page, selector):
    page.run(f"document.querySelector({json.dumps(selector)}).focus()")


def check_picture(page, data):
    """Keys, the mouse and buttons turn the picture, change its size, and bring the first one back."""
    first = picture(page)
    check(first["drawn"] > 20, "nothing is drawn")
    if len(data["trace"]["letters"]) < 2:
        return
    focus(page, ".structure-stage")
    last = first
    for key in ("ArrowLeft", "ArrowUp", "+"):
        page.press(key)
        now = picture(page)
        check(now != last, f"{key} changes nothing")
        last = now
    page.press("0")
    check(picture(page) == first, "0 does not bring the first picture back")
    for title in ("Turn left", "Turn down", "Smaller"):
        page.run(f"document.querySelector('[aria-label={json.dumps(title)}]').click()")
        check(picture(page) != first, f"{title} changes nothing")
        page.run("document.querySelector('[aria-label=\"As at first\"]').click()")
        check(picture(page) == first, f"the picture differs after {title} and back")
    page.run("document.querySelector('.structure-stage').scrollIntoView({block: 'center'})")
    box = page.run("(() => { const box = document.querySelector('.structure-stage').getBoundingClientRect();"
                   " return [box.left, box.top, box.width, box.height]; })()")
    middle = (box[0] + box[2] / 2, box[1] + box[3] / 2)
    page.drag(middle, (middle[0] + 60, middle[1] + 20))
    page.press("Escape")  # what the pointer chose
    check(picture(page) != first, "a drag turns nothing")
    page.press("0")
    x, y = middle
    for name, steps in (("one finger", [[(x, y)], [(x + 40, y + 30)]]),
                        ("two fingers", [[(x - 30, y), (x + 30, y)], [(x - 60, y), (x + 60, y)]])):
        touch(page, *steps)
        page.press("Escape")
        check(picture(page) != first, f"{name} change nothing")
        page.press("0")
        check(picture(page) == first, f"the picture differs after {name} and back")
    for value in ("trace", "ribbon"):
        before = picture(page)
        page.run(f"document.querySelector('[name=mode][value={value}]').click()")
        check(picture(page) != before, f"as {value} the picture is the same")
    looks = set()
    for value in page.run("[...document.querySelectorAll('[name=colours]')].map(input => input.value)"):
        page.run(f"document.querySelector('[name=colours][value={value}]').click()")
        looks.add(picture(page)["sum"])
        check(page.run("document.querySelector('.bar.under').textContent.trim()"), f"{value} has no legend")
    check(len(looks) == page.run("document.querySelectorAll('[name=colours]').length"), "two ways to colour look alike")
    if data["truth"]:
        both = picture(page)
        page.run("document.querySelector('.with-truth').click()")
        check(picture(page) != both, "the truth stays")
        page.run("document.querySelector('.with-truth').click()")
        check(picture(page) == both, "the truth does not come back")


def check_sequence(page, data):
    """Keys go through the sequence; the readout says what the data have; the pointer on the picture finds the residue."""
    trace = data["trace"]
    n = len(trace["letters"])
    check(page.run("[...document.querySelectorAll('.letter')].map(node => node.textContent).join('')") == trace["letters"],
          "the letters are not the sequence")
    page.tab_to("[role=listbox]")
    for key, expected in (("End", n - 1), ("Home", 0), ("ArrowRight", min(1, n - 1)), ("ArrowDown", min(11, n - 1)),
                          ("ArrowLeft", max(0, min(11, n - 1) - 1))):
        page.press(key)
        check(page.run(CHOSEN) == [expected], f"{key} leads to {page.run(CHOSEN)}, not {expected}")
        readout = page.run(READOUT)
        check(readout.startswith(f"{trace['letters'][expected]}{trace['numbers'][expected]}") and f"{trace['b'][expected]:.1f}" in readout,
              f"residue {expected} is said to be “{readout}”")
    page.press("End")
    if data["truth"]:
        i, j = data["truth"]["pairs"][-1]
        far = math.dist(place(trace, i), place(data["truth"]["trace"], j))
        check(f"{far:.1f} Å from" in page.run(READOUT), f"“{page.run(READOUT)}” does not say {far} Å")
        if data["truth"]["pairs"][0][0] > 0:
            page.press("Home")
            check("no partner" in page.run(READOUT), f"“{page.run(READOUT)}” names a partner")
    page.press("Escape")
    check(page.run(CHOSEN) == [], "Escape chooses something")
    box = page.run("(() => { const stage = document.querySelector('.structure-stage'); stage.scrollIntoView({block: 'center'});"
                   " const box = stage.getBoundingClientRect(); return [box.left, box.top, box.width, box.height]; })()")
    found = set()
    for step in range(65):
        across, down = (step % 13 + 0.5) / 13, (step // 13 + 0.5) / 5
        page.move_to(box[0] + box[2] * across, box[1] + box[3] * down)
        found.update(page.run(CHOSEN))
    check(found, "the pointer finds no residue in the picture")


def check_maps(page, data):
    """The keys go through a map, whose values are the distances; the errors are those of the data."""
    trace, n = data["trace"], len(data["trace"]["letters"])
    if n < 3:
        return
    expected = 1 + bool(data["truth"]) + bool(data["aligned_error"])
    check(page.run("document.querySelectorAll('.pairs').length") == expected, "there are not as many maps as there should be")
    page.tab_to(".pairs")
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        page.press(key)
    readout = page.run(READOUT)
    check(page.run(CHOSEN) == [1, 2], f"the map leads to {page.run(CHOSEN)}")
    check(f"{math.dist(place(trace, 1), place(trace, 2)):.1f} Å" in readout, f"“{readout}” has another distance")
    if data["aligned_error"]:
        rows = base64.b64decode(data["aligned_error"]["rows"])
        check(f"error {rows[n + 2] / 4:.1f} Å" in readout, f"“{readout}” has another error")
    page.press("Escape")


def check_numbers(page, data):
    """The figures and the table."""
    figures = page.run("document.querySelector('.figures').textContent")
    wanted = [str(len(data["trace"]["letters"]))]
    if data["truth"]:
        truth = data["truth"]
        wanted += [f"{truth['tm_score']:.3f}", f"{truth['lddt']:.3f}", f"{truth['rmsd']:.2f} Å", str(len(truth["pairs"]))]
    if data["tm_score"] is not None:
        wanted.append(f"{data['tm_score']:.3f}")
    for number in wanted:
        check(number in figures, f"{number} is not among “{figures}”")
    page.run("document.querySelector('details').open = true")
    page.settle()
    rows = page.run("[...document.querySelectorAll('tbody tr')].map(row => row.cells[1].textContent)")
    check(rows == [f"{b:.1f}" for b in data["trace"]["b"]], f"the table has {rows[:5]}…")


def check_sizes(page, path):
    """Nothing is wider than a phone, a window or paper, and paper has a picture in light colours."""
    for width, media in at_widths(page, path):
        check(picture(page)["drawn"] > 20, f"nothing is drawn at {width} pixels {media}")
        right = page.run("Math.max(...[...document.querySelectorAll('canvas')].map(node => node.getBoundingClientRect().right))")
        check(0 < right <= width, f"a picture ends at {right} of {width} pixels {media}")


def check_page(page, path):
    page.open(path)
    data = json.loads(page.run("document.getElementById('data').textContent"))
    check(page.run("document.getElementById('title').textContent") == data["title"], "the title is another one")
    check_picture(page, data)
    check_sequence(page, data)
    check_maps(page, data)
    check_numbers(page, data)
    check_sizes(page, path)
    check_dark(page, path)


if __name__ == "__main__":
    sys.exit(check_arguments(check_page, __doc__))
