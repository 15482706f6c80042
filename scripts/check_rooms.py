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

# Lines of C++ and JavaScript that are neither blank nor only a comment.
MOST_LINES_OF_ROOM = 3000
MOST_LINES_OF_TOP_FOLDER = 12000
BEGIN, END = "<!-- rooms: begin, made by scripts/check_rooms.py --draw -->", "<!-- rooms: end -->"
COMMENT = re.compile(r"\s*(//|/\*|\*/|\* )")
# Programs that use the first folder do not need the second one.
APART = [("serving", "training")]
INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.MULTILINE)


def read_floors(root):
    """Folder -> what it is for, from the ground up."""
    floors = {}
    for line in (root / "scripts/rooms.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            folder, _, purpose = line.partition(" ")
            floors[folder] = purpose.strip()
    return floors


def top_folder(folder):
    return folder.split("/")[0]


def sources_of(root, folder):
    return sorted(p for p in (root / folder).iterdir() if p.suffix in (".h", ".cpp"))


def lines_of(root, folder):
    scripts = (p for p in (root / folder).iterdir() if p.suffix in (".h", ".cpp", ".js"))
    return sum(1 for p in scripts for line in p.read_text().splitlines() if line.strip() and not COMMENT.match(line))


def folders_with_sources(root, floors):
    """Every folder below the top-level ones that holds sources."""
    found = set()
    for top in {top_folder(folder) for folder in floors}:
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
    lines = {folder: lines_of(root, folder) for folder in floors}
    for top in sorted({top_folder(folder) for folder in floors}):
        total = sum(count for folder, count in lines.items() if top_folder(folder) == top)
        if total > MOST_LINES_OF_TOP_FOLDER:
            problems.append(f"{top}: {total} lines with its subfolders, more than {MOST_LINES_OF_TOP_FOLDER}: divide it")
    for folder in floors:
        if lines[folder] > MOST_LINES_OF_ROOM:
            problems.append(f"{folder}: {lines[folder]} lines, more than {MOST_LINES_OF_ROOM}: divide it")
        for source in sources_of(root, folder):
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
    for top, other in APART:
        for folder in floors:
            if top_folder(folder) != top:
                continue
            for target in sorted(reachable(arrows, folder)):
                if top_folder(target) == other:
                    problems.append(f"{folder}: a path of includes leads to {target}, which {top} has to do without")
    return problems, arrows


def reachable(arrows, start):
    seen, todo = set(), list(arrows[start])
    while todo:
        folder = todo.pop()
        if folder not in seen:
            seen.add(folder)
            todo += arrows[folder]
    return seen


def reduced(arrows):
    """The arrows without those that a path of other arrows implies."""
    below = {folder: reachable(arrows, folder) for folder in arrows}
    return {folder: {t for t in targets if not any(t in below[other] for other in targets if other != t)}
            for folder, targets in arrows.items()}


def picture(names, arrows):
    """A chart of nodes; names: node -> what is written in it."""
    lines = ["```mermaid", "flowchart TD"]
    lines += [f"  {node.replace('/', '_')}[{name}]" for node, name in names.items()]
    for node in names:
        lines += [f"  {node.replace('/', '_')} --> {target.replace('/', '_')}" for target in names if target in arrows[node]]
    return lines + ["```"]


def drawing(root, floors, arrows):
    """A picture of the top-level folders, and for each of them a table of its rooms, with a picture if it has several."""
    rooms = {}
    for folder in reversed(floors):
        rooms.setdefault(top_folder(folder), []).append(folder)
    between = {top: {top_folder(target) for room in rooms[top] for target in arrows[room]} - {top} for top in rooms}
    lines = ["The top-level folders, without the arrows that others imply:", ""]
    lines += picture({top: top for top in rooms}, reduced(between))
    for top in rooms:
        lines += ["", f"### {top}/", "", "| room | what is in it | includes |", "|---|---|---|"]
        for room in rooms[top]:
            inside = [target for target in rooms[top] if target in arrows[room]]
            outside = [other for other in rooms if other != top and other in {top_folder(t) for t in arrows[room]}]
            lines.append(f"| `{room}` | {floors[room]} | {', '.join(inside + outside) or '–'} |")
        if len(rooms[top]) > 2:
            own = {room: arrows[room] & set(rooms[top]) for room in rooms[top]}
            lines += [""] + picture({room: room for room in rooms[top]}, reduced(own))
    return "\n".join(lines)


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
