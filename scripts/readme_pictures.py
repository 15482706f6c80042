#!/usr/bin/env python3
"""Draws the README's pictures, docs/images/positions-*.png: two parts of the page of docs/studies/positions.json, in a
headless Chromium. Needs build/release/zoo, which makes the page.

  scripts/readme_pictures.py
"""

import base64
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
from chromium import Browser, find_chromium  # noqa: E402

# The width of the window, and an expression for the rectangle [x, y, width, height]: the table up to its verdicts, and
# the chart up to the name of its axis.
PARTS = {
    "positions-results": (1000, """(() => {
      const card = document.getElementById('results').getBoundingClientRect();
      const head = document.querySelectorAll('#results thead th')[3].getBoundingClientRect();
      const last = [...document.querySelectorAll('#results tbody tr')].pop().getBoundingClientRect();
      return [card.left, card.top, head.left - card.left, last.bottom - card.top + 2];
    })()"""),
    "positions-lengths": (640, """(() => {
      const card = document.getElementById('lengths').getBoundingClientRect();
      const chart = document.querySelector('#lengths svg.chart').getBoundingClientRect();
      return [card.left, card.top, card.width, chart.bottom - card.top];
    })()"""),
}


def main():
    program = find_chromium()
    if program is None:
        sys.exit("readme_pictures: there is no Chromium on this machine")
    with tempfile.TemporaryDirectory() as work, Browser(program) as browser:
        subprocess.run([ROOT / "build/release/zoo", "compare", ROOT / "docs/studies/positions.json", "--out", work], check=True,
                       stdout=subprocess.DEVNULL)
        for name, (width, rectangle) in PARTS.items():
            browser.open(Path(work) / "report.html", width)
            x, y, w, h = browser.run(rectangle)
            clip = {"x": x, "y": y, "width": w, "height": h, "scale": 2}  # two pixels each way for one of the window
            image = browser.send("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
            (ROOT / f"docs/images/{name}.png").write_bytes(base64.b64decode(image["data"]))


if __name__ == "__main__":
    main()
