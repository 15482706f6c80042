#!/usr/bin/env python3
"""Keeps the source code that Markdown pages quote equal to the sources.

  scripts/quote_sources.py [PAGE…]           fails if a quotation differs from its source
  scripts/quote_sources.py --write [PAGE…]   writes the quotations into the pages

A quotation is the code block that follows one of these lines. PAGE: default README*.md and docs/*.md.
  <!-- quote FILE -->                              the whole file
  <!-- quote FILE NAME -->                         the definition of the function or method NAME
  <!-- quote FILE NAME from "TEXT" to "TEXT" -->   its lines from the first that contains one text to the next that
                                                   contains the other
"""

import argparse
import re
import shlex
import sys
import textwrap
from pathlib import Path

MARK = re.compile(r"<!-- quote (?P<what>[^\n]+) -->\n+```(?P<language>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


class Problem(Exception):
    pass


def definition(lines, name):
    """The lines of a definition in clang-format's layout: it begins in column 0 and ends with "}" there."""
    start = re.compile(rf"^(?![\s/#}}]).*\b{re.escape(name)}\(")
    for first, line in enumerate(lines):
        if not start.search(line):
            continue
        for last in range(first, len(lines)):
            if lines[last].rstrip() == "}" or (last == first and lines[last].endswith("}")):
                return lines[first:last + 1]
            if lines[last].endswith(";") and not lines[last].startswith(" "):
                break  # a declaration
    raise Problem(f"there is no definition of {name}")


def between(lines, begin, end):
    for first, line in enumerate(lines):
        if begin in line:
            for last in range(first, len(lines)):
                if end in lines[last]:
                    return lines[first:last + 1]
            raise Problem(f"no line contains '{end}' after '{begin}'")
    raise Problem(f"no line contains '{begin}'")


def quotation(root, what):
    words = shlex.split(what)
    path = root / words[0]
    if not path.is_file():
        raise Problem("there is no such file")
    lines = path.read_text().splitlines()
    if len(words) >= 2:
        lines = definition(lines, words[1])
    if len(words) == 6 and words[2] == "from" and words[4] == "to":
        lines = between(lines, words[3], words[5])
    elif len(words) > 2:
        raise Problem('write FILE NAME from "TEXT" to "TEXT"')
    lines = [line for line in lines if not line.lstrip().startswith("// NOLINT")]  # for clang-tidy, not for readers
    return textwrap.dedent("\n".join(lines)).strip("\n") + "\n"


def renewed(root, page, problems):
    """The page's text with every quotation renewed."""
    text = page.read_text()

    def renew(match):
        what = match["what"]
        try:
            code = quotation(root, what)
        except Problem as problem:
            problems.append(f"{page.relative_to(root)}: quote {what}: {problem}")
            return match[0]
        return f"<!-- quote {what} -->\n```{match['language']}\n{code}```"
    new = MARK.sub(renew, text)
    if text.count("<!-- quote ") != len(MARK.findall(text)):
        problems.append(f"{page.relative_to(root)}: a quote is not followed by a code block")
    return text, new


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("pages", nargs="*")
    arguments = parser.parse_args()
    root = arguments.root
    pages = [root / name for name in arguments.pages] or [*sorted(root.glob("README*.md")), *sorted(root.glob("docs/*.md"))]
    problems = []
    for page in filter(Path.is_file, pages):
        old, new = renewed(root, page, problems)
        if old == new:
            continue
        if arguments.write:
            page.write_text(new)
        else:
            problems.append(f"{page.relative_to(root)}: a quotation differs from its source; run scripts/quote_sources.py --write")
    for problem in problems:
        print(f"quote_sources: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
