#!/usr/bin/env python3
"""Checks what the Markdown pages say of the repository: links, files, walks through the sources, components, translations,
and lengths.

  scripts/check_documents.py             fails if a page is wrong
  scripts/check_documents.py --root DIR  another checkout

- A link inside the repository leads to a file, and to a heading if it names one. A file that stands in the text as code is
  there (NAME in it stands for any name).
- The section "Four walks" of docs/architecture.md names functions as in: `models/stack.cpp` `Stack::forward()`. Each is in its
  file. Later functions of the same file may stand without it.
- The sources and tests in the table of docs/components.md are there.
- A page NAME.zh-CN.md says in Chinese what NAME.md says. Code, formulas, pictures, links and numbers are the same in each
  section; only comments of commands and of YAML are translated.
- docs/performance.md has at most 200 lines.
"""

import argparse
import re
import sys
from collections import Counter
from itertools import zip_longest
from pathlib import Path

from quote_sources import Problem, definition

WALKS, N_WALKS = "## Four walks", 4
MOST_LINES = {"docs/performance.md": 200}
NOT_OURS = {"build", "datasets", "runs"}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|<img src=\"([^\"]+)\"")
HEADING = re.compile(r"^(#+) +(.+)$", re.MULTILINE)
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def pages_of(root):
    return sorted(page for pattern in ("*.md", "docs/**/*.md", "configs/**/*.md") for page in root.glob(pattern))


def without_code(text):
    return FENCE.sub("", text)


# ---- links

def anchor_of(heading):
    """The name that GitHub gives a heading."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")


def anchors_of(page):
    return {anchor_of(match[2]) for match in HEADING.finditer(without_code(page.read_text()))}


def links_of(text):
    return [match[1] or match[2] for match in LINK.finditer(without_code(text))]


def problems_of_links(root, page):
    for link in links_of(page.read_text()):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page.resolve()
        if not target.exists():
            yield f"there is no {link}"
        elif anchor and target.suffix == ".md" and anchor not in anchors_of(target):
            yield f"{link}: the page has no such heading"


def problems_of_files(root, page):
    for word in re.findall(r"`([^`\n]+)`", without_code(page.read_text())):
        for name in word.split():
            found = re.fullmatch(r"([\w.\-]+)/[\w./\-]+\.(?:cpp|h|js|py|sh|cmake|yaml)", name)
            if not found or "NAME" in name or found[1] in NOT_OURS or not (root / found[1]).is_dir():
                continue
            if not (root / name).exists():
                yield f"there is no file {name}"


# ---- walks

def has_function(path, name):
    text = path.read_text()
    *scopes, last = name.split("::")
    if path.suffix == ".h":
        inside = all(re.search(rf"\b(?:class|struct|namespace) {re.escape(scope)}\b", text) for scope in scopes)
        return inside and re.search(rf"\b{re.escape(last)}\(", text) is not None
    try:
        definition(text.splitlines(), name)
        return True
    except Problem:
        return False


def problems_of_walks(root):
    page = root / "docs/architecture.md"
    _, found, rest = page.read_text().partition(f"{WALKS}\n")
    section = rest.split("\n## ")[0]
    walks = re.split(r"^\*\*.+\*\*$", section, flags=re.MULTILINE)[1:]
    if not found or len(walks) != N_WALKS:
        yield f"the section '{WALKS}' has {len(walks)} walks, not {N_WALKS}"
    for walk in walks:
        steps = re.split(r"^\d+\. ", walk, flags=re.MULTILINE)[1:]
        if not steps:
            yield "a walk has no steps"
        for number, step in enumerate(steps, 1):
            path = None
            n_functions = 0
            for word in re.findall(r"`([^`]+)`", step):
                if re.fullmatch(r"[\w/]+\.(?:cpp|h)", word):
                    path = root / word
                    if not path.is_file():
                        yield f"a walk names {word}, which is not there"
                        path = None
                elif path and (function := re.fullmatch(r"([\w:~]+)\(\)", word)):
                    n_functions += 1
                    if not has_function(path, function[1]):
                        yield f"a walk names {word} in {path.relative_to(root)}, which has no such function"
            if n_functions == 0:
                yield f"step {number} of a walk names no file with a function: {' '.join(step.split())[:60]}…"


# ---- components

def problems_of_components(root):
    """Names lack their endings, and a name without a folder is in the folder of the name before it."""
    for line in (root / "docs/components.md").read_text().splitlines():
        if not line.startswith("| ") or line.startswith("| component "):
            continue
        cells = re.split(r" (?<!\\)\| ", line.strip("| "))
        for cell, base in ((cells[1], root), (cells[3], root / "tests")):
            folder = ""
            for name in cell.split(", "):
                path = base / (name if "/" in name else folder + name)
                folder = name[:name.rindex("/") + 1] if "/" in name else folder
                if not path.exists() and not any(path.with_name(path.name + ending).is_file() for ending in (".h", ".cpp", ".py")):
                    yield f"'{cells[0][:40]}…' names {path.relative_to(base)}, which is not there"


# ---- translations

def plain_link(link):
    return link.replace(".zh-CN", "")


def sections_of(text):
    """Per heading: its level, and what must be equal in all languages."""
    blocks = [f"```{language}\n{uncommented(language, code)}" for language, code in FENCE.findall(text)]
    text = FENCE.sub("\x00", text)  # a block is one character; the headings in it do not count
    heads = [match.start() for match in HEADING.finditer(text)]
    sections = []
    for begin, end in zip([0, *heads], [*heads, len(text)]):
        part = text[begin:end]
        level = len(re.match(r"#*", part)[0])
        n_blocks = part.count("\x00")
        # Numbers within links, code and formulas are compared with these.
        prose = re.sub(r"\]\([^)]*\)|`[^`]*`|\$[^$]*\$|<[^>]*>", " ", part)
        prose = re.sub(r"^#+ .*$", "", prose, flags=re.MULTILINE)
        sections.append({"level of the heading": level,
                         "blocks of code and formulas": blocks[:n_blocks],
                         "quotations": re.findall(r"<!-- (.*?) -->", part),
                         "links and pictures": Counter(plain_link(link) for link in links_of(part)),
                         "code in the text": Counter(re.findall(r"`([^`]+)`", part)),
                         "formulas in the text": Counter(" ".join(words.split()) for words in re.findall(r"\$([^$]+)\$", part)),
                         "numbers": Counter(NUMBER.findall(prose))})
        blocks = blocks[n_blocks:]
    return sections


def uncommented(language, code):
    return code if language not in ("", "yaml") else re.sub(r"[ \t]*#.*$", "", code, flags=re.MULTILINE)


def difference(original, translated):
    if isinstance(original, Counter):
        missing, added = original - translated, translated - original
        return f"missing {list(missing.elements())[:3]}, in place of them {list(added.elements())[:3]}"
    if isinstance(original, list):
        if len(original) != len(translated):
            return f"{len(translated)}, not {len(original)}"
        lines = ("\n".join(str(item) for item in items).split("\n") for items in (original, translated))
        return next(f"'{b[:80]}' in place of '{a[:80]}'" for a, b in zip_longest(*lines, fillvalue="") if a != b)
    return f"{translated}, not {original}"


def problems_of_translation(root, page):
    original = page.with_name(page.name.replace(".zh-CN", ""))
    ours, theirs = sections_of(original.read_text()), sections_of(page.read_text())
    if len(ours) != len(theirs):
        yield f"has {len(theirs) - 1} headings, {original.name} has {len(ours) - 1}"
    for number, (a, b) in enumerate(zip(ours, theirs)):
        for what in a:
            if a[what] != b[what]:
                yield f"section {number}: other {what} than in {original.name}: {difference(a[what], b[what])}"
    for one, other in ((page, original), (original, page)):
        if other.name not in links_of(one.read_text()):
            yield f"{one.name} has no link to {other.name}"


def check(root):
    problems = []

    def add(page, found):
        problems.extend(f"{page.relative_to(root)}: {problem}" for problem in found)
    for page in pages_of(root):
        add(page, problems_of_links(root, page))
        add(page, problems_of_files(root, page))
        if page.name.endswith(".zh-CN.md"):
            add(page, problems_of_translation(root, page))
    add(root / "docs/architecture.md", problems_of_walks(root))
    add(root / "docs/components.md", problems_of_components(root))
    for name, most in MOST_LINES.items():
        n = len((root / name).read_text().splitlines())
        if n > most:
            problems.append(f"{name}: {n} lines, more than {most}: what was tried belongs to docs/log.md")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    problems = check(parser.parse_args().root)
    for problem in problems:
        print(f"check_documents: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
