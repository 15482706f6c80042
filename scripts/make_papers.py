#!/usr/bin/env python3
"""Keeps docs/papers.md, the list of papers that the sources cite, complete.

  scripts/make_papers.py             fails if a cited paper is missing, a row is cited nowhere, or its files are other ones
  scripts/make_papers.py --write     writes the files into the rows
  scripts/make_papers.py --root DIR  another checkout

A source cites a paper as "Vaswani et al. 2017" or "Press & Wolf 2017", or by a link to arXiv. A row of the page has this name, the
title with a link, and the files. Papers of the same first author and year share a row.
"""

import argparse
import re
import sys
from pathlib import Path

from check_rooms import read_floors, top_folder

PAGE = "docs/papers.md"
ENDINGS = (".cpp", ".h", ".js", ".py", ".yaml")
WORD = r"[A-ZÀ-Ž][\w’'\-]+"
CITATION = re.compile(rf"\b({WORD}|bloc97|nostalgebraist)((?:, {WORD})* (?:&|and) {WORD}| et al\.| Team)?,? \(?((?:18|19|20)\d\d[a-z]?)\b(?!-)")
NO_AUTHORS = {"July", "LLM", "ListOps", "RFC", "Toolbox"}  # words that stand before a year
ARXIV = re.compile(r"arxiv\.org/abs/([\d.]+\d)")
ROW = re.compile(r"^\| (?P<name>(?!cited as)[^|]+?) \| (?P<title>[^|]+) \| (?P<files>[^|]*?) \|$", re.MULTILINE)
MOST_CONFIGS = 3


def plain_text(source):
    """The text of a source with its comments and strings on one line each."""
    text = re.sub(r"\n\s*(?:///?|#|\*)\s?", " ", source)
    text = re.sub(r'"\s*\n\s*"', "", text)
    return re.sub(r"\n\s+", " ", text)


def key_of(name):
    found = CITATION.search(name)
    return (re.sub(r"['’]s$", "", found[1]), found[3]) if found and found[1] not in NO_AUTHORS else None


def citations(root):
    """(surname, year) -> files, and arXiv's number -> files."""
    papers, links = {}, {}
    folders = {top_folder(room) for room in read_floors(root)} | {"benchmarks", "configs", "scripts"}
    for folder in sorted(folders):
        for path in sorted(p for p in (root / folder).rglob("*") if p.suffix in ENDINGS and "__pycache__" not in p.parts):
            name = str(path.relative_to(root))
            if name == "scripts/make_papers.py":
                continue
            source = path.read_text(encoding="utf-8")
            for match in CITATION.finditer(plain_text(source)):
                if key := key_of(match[0]):
                    papers.setdefault(key, set()).add(name)
            for number in ARXIV.findall(source):
                links.setdefault(number, set()).add(name)
    return papers, links


def shown(files):
    """The files of a row: sources, each without its .cpp where the .h cites the paper, too; configurations where no source does."""
    sources = sorted(name for name in files if not name.startswith("configs/"))
    if not sources:
        sources = sorted(files)[:MOST_CONFIGS]
    return ", ".join(f"`{name}`" for name in sources if not (name.endswith(".cpp") and name[:-4] + ".h" in files))


def check(root):
    """The page's text with the files renewed, and problems."""
    text = (root / PAGE).read_text(encoding="utf-8")
    papers, links = citations(root)
    problems, listed = [], set()

    def renewed(match):
        key = key_of(match["name"])
        if key not in papers:
            problems.append(f"{PAGE}: no source cites {match['name']}")
            return match[0]
        listed.add(key)
        return f"| {match['name']} | {match['title']} | {shown(papers[key])} |"
    new = ROW.sub(renewed, text)
    for key in sorted(set(papers) - listed):
        problems.append(f"{PAGE}: {' '.join(key)} is missing, which {sorted(papers[key])[0]} cites: add a row with its link")
    for number in sorted(set(links) - set(ARXIV.findall(text))):
        problems.append(f"{PAGE}: arXiv {number} is missing, which {sorted(links[number])[0]} cites")
    names = [match["name"] for match in ROW.finditer(text)]
    problems += [f"{PAGE}: two rows for {name}" for name in sorted({name for name in names if names.count(name) > 1})]
    return text, new, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    arguments = parser.parse_args()
    text, new, problems = check(arguments.root)
    if new != text and arguments.write:
        (arguments.root / PAGE).write_text(new, encoding="utf-8")
    elif new != text:
        problems.append(f"{PAGE}: the files of a row are other ones; run scripts/make_papers.py --write")
    for problem in problems:
        print(f"make_papers: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
