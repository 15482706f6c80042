#!/usr/bin/env python3
"""Checks the folders of sources against scripts/rooms.txt, and draws them in docs/architecture.md.

  scripts/check_rooms.py           fails on an include that points up or across, on a folder that is too full, and on
                                   a drawing that does not match the sources
  scripts/check_rooms.py --draw    writes the drawing
  scripts/check_rooms.py --root DIR   another checkout
"""

import argparse
import os
import re
import sys
from pathlib import Path

from page_section import with_section

MOST_SOURCES = 15  # a header and its .cpp count as one
BEGIN, END = "<!-- rooms: begin, made by scripts/check_rooms.py --draw -->", "<!-- rooms: end -->"
INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.MULTILINE)


def read_floors(root):
    """Folder -> what it is for, from the ground up."""
    floors = {}
    for line in (root / "scripts/rooms.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            folder, _, purpose = line.partition(" ")
            floors[folder] = purpose.strip()
    return floors


def sources_of(root, folder):
    return sorted(p for p in (root / folder).iterdir() if p.suffix in (".h", ".cpp"))


def folders_with_sources(root, floors):
    """Every folder below the top-level ones that holds sources."""
    found = set()
    for top in {folder.split("/")[0] for folder in floors}:
        for path, _, names in os.walk(root / top):
            if any(name.endswith((".h", ".cpp")) for name in names):
                found.add(str(Path(path).relative_to(root)))
    return found


def check(root, floors):
    """Problems, and the arrows as {folder: {folder it includes}}."""
    problems, arrows = [], {folder: set() for folder in floors}
    level = {folder: i for i, folder in enumerate(floors)}
    for folder in sorted(folders_with_sources(root, floors) - set(floors)):
        problems.append(f"{folder}: this folder has no floor; add it to scripts/rooms.txt")
    for folder in floors:
        sources = sources_of(root, folder)
        names = {p.stem for p in sources}
        if len(names) > MOST_SOURCES:
            problems.append(f"{folder}: {len(names)} sources, more than {MOST_SOURCES}: divide it")
        for source in sources:
            for included in INCLUDE.findall(source.read_text()):
                where, line = str(source.relative_to(root)), source.read_text().split(f'"{included}"')[0].count("\n") + 1
                target = included.rpartition("/")[0]
                if not (root / included).is_file():
                    problems.append(f"{where}:{line}: there is no \"{included}\"; includes are relative to the repository")
                elif target not in floors:
                    problems.append(f"{where}:{line}: \"{included}\" is not among the sources of the library")
                elif level[target] > level[folder]:
                    problems.append(f"{where}:{line}: {folder} includes {target}, which stands above it")
                elif target != folder:
                    arrows[folder].add(target)
    return problems, arrows


def reduced(arrows):
    """The arrows without those that a path of other arrows implies."""
    def reachable(start):
        seen, todo = set(), list(arrows[start])
        while todo:
            folder = todo.pop()
            if folder not in seen:
                seen.add(folder)
                todo += arrows[folder]
        return seen
    below = {folder: reachable(folder) for folder in arrows}
    return {folder: {t for t in targets if not any(t in below[other] for other in targets if other != t)}
            for folder, targets in arrows.items()}


def drawing(root, floors, arrows):
    node = {folder: folder.replace("/", "_") for folder in floors}
    lines = ["| folder | what is in it | sources | includes |", "|---|---|---|---|"]
    order = list(floors)
    for folder in reversed(order):
        included = ", ".join(sorted(arrows[folder], key=order.index)) or "–"
        count = len({p.stem for p in sources_of(root, folder)})
        lines.append(f"| `{folder}` | {floors[folder]} | {count} | {included} |")
    lines += ["", "The same as a picture, without the arrows that others imply:", "", "```mermaid", "flowchart TD"]
    lines += [f"  {node[folder]}[{folder}]" for folder in reversed(order)]
    fewer = reduced(arrows)
    for folder in reversed(order):
        lines += [f"  {node[folder]} --> {node[target]}" for target in sorted(fewer[folder], key=order.index, reverse=True)]
    return "\n".join(lines + ["```"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    arguments = parser.parse_args()
    root = arguments.root
    floors = read_floors(root)
    problems, arrows = check(root, floors)
    document = root / "docs/architecture.md"
    text = document.read_text()
    new = with_section(text, BEGIN, END, drawing(root, floors, arrows))
    if new is None:
        problems.append("docs/architecture.md: the marks around the drawing of the folders are missing")
    elif arguments.draw:
        document.write_text(new)
    elif new != text:
        problems.append("docs/architecture.md: the drawing does not match the sources; "
                        "run scripts/check_rooms.py --draw")
    for problem in problems:
        print(f"check_rooms: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
