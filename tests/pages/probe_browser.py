#!/usr/bin/env python3
"""Opens the card of a part of a model in a headless Chromium without a network.

    probe_browser.py PAGE.html...

Fails where the page logs an error or requests anything, where a table differs from the page's data, or where paper or a phone
cuts something off. Without a Chromium the exit code is 77, or 1 if ZOO_REQUIRE_REFERENCES is set.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from chromium import at_widths, check, check_arguments, check_dark  # noqa: E402

TABLES = "[...document.querySelectorAll('.card table')].map(t => [...t.tBodies[0].rows].map(r => [...r.cells].map(c => c.textContent)))"
RESULTS = {True: "holds", False: "fails", None: "fact"}


def check_page(page, path):
    page.open(path)
    data = json.loads(page.run("document.getElementById('data').textContent"))
    check(page.run("document.getElementById('title').textContent") == data["name"], "the title is another one")
    check("1 check failed" in page.run("document.getElementById('summary').textContent"), "the summary hides a failure")
    check(data["refused"][0]["reason"] in page.run("document.body.textContent"), "nothing says why a role is refused")
    checks, costs, scores = page.run(TABLES)
    expected = [[c["name"], c["role"], RESULTS[c["holds"]], c["says"]] for c in data["checks"]]
    check(checks == expected, f"{checks} instead of {expected}")
    check(costs == [["attention", "64 to 128", "20.00 ms", "n^1.50 (1.50 to 1.50)", "2.0 MB", "n^1.50 (1.50 to 1.50)"]], f"{costs}")
    check(scores == [["recall", "accuracy", "75.0 %", "400"]], f"{scores}")
    for _ in at_widths(page, path):
        check(page.run("(box => box.scrollWidth <= box.clientWidth)(document.querySelector('.scroll'))"), "the checks are cut off")
    check_dark(page, path)


if __name__ == "__main__":
    sys.exit(check_arguments(check_page, __doc__))
