#!/usr/bin/env python3
"""Writes the README.md of a folder of studies from its pages NAME.md.

    scripts/studies_index.py DIR

Reads only the pages: their results need not be on this machine.
"""
import sys
from pathlib import Path

HEAD = """# Studies

Each study compares a few variants of one model on the same data under the same budget, with several seeds. It shows
what people say and what was measured here, at a small size. `scripts/studies.sh` makes the pages; every page ends with
its command. `zoo compare NAME.json --out DIR` makes the page of a study for a browser, with curves, costs, samples and
attention maps: `DIR/report.html`.
"""
SAID, MEASURED, NOTE = "**What people say.** ", "**What was measured.** ", "**Note.** "


def entry(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    after = lambda begin: next((line.removeprefix(begin) for line in lines if line.startswith(begin)), "")
    said, measured, note, name = after(SAID), after(MEASURED), after(NOTE), page.stem
    parts = [f"## [{after('# ') or name}]({page.name})", said, measured and f"**Measured:** {measured}",
             note and f"**Note:** {note}",
             f"[Table]({page.name}), [results]({name}.json)"]
    return "\n\n".join(filter(None, parts)) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        pages = sorted(page for page in Path(sys.argv[1]).glob("*.md") if page.name != "README.md")
        (Path(sys.argv[1]) / "README.md").write_text("\n".join([HEAD, *map(entry, pages)]), encoding="utf-8")
    except OSError as error:
        sys.exit(f"studies_index: {error}")
