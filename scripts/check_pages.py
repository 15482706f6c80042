#!/usr/bin/env python3
"""Checks the modules of the pages' JavaScript: imports of what is not there, imports and exports that nothing uses, circles,
names that nothing declares, and what else oxlint finds (pages/.oxlintrc.json).

  scripts/check_pages.py             the exit code is 77 without oxlint, or 1 if ZOO_REQUIRE_REFERENCES is set
  scripts/check_pages.py --root DIR  another checkout
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
SKIPPED = 77
IMPORT = re.compile(r"^import \{([^}]*)\} from '([^']+)';$", re.MULTILINE)
EXPORT = re.compile(r"^export (?:const|let|class|(?:async )?function\*?) ([\w$]+)", re.MULTILINE)


def names_in(text):
    return [name.strip() for name in text.split(",")]


def problems_of_names(root):
    """Imports that nothing exports, and exports that nothing imports: a bundler would drop those without a word."""
    texts = {path.resolve(): path.read_text(encoding="utf-8") for path in sorted((root / "pages").rglob("*.js"))}
    exported = {path: set(EXPORT.findall(text)) for path, text in texts.items()}
    unused = {path: set(names) for path, names in exported.items()}
    problems = []
    for path, text in texts.items():
        where = path.relative_to(root.resolve())
        if len(EXPORT.findall(text)) != len(re.findall(r"^\s*export\b", text, re.MULTILINE)):
            problems.append(f"{where}: export one name where it is declared, in front of const, let, class or function")
        if len(IMPORT.findall(text)) != len(re.findall(r"^\s*import\b|\bimport\(", text, re.MULTILINE)):
            problems.append(f"{where}: import names, as in: import {{el}} from './page.js';")
        for names, source in IMPORT.findall(text):
            target = (path.parent / source).resolve()
            if target not in texts:
                problems.append(f"{where}: there is no '{source}'")
                continue
            missing = set(names_in(names)) - exported[target]
            problems += [f"{where}: '{source}' exports no {name}" for name in sorted(missing)]
            unused[target] -= set(names_in(names))
    for path, names in unused.items():
        problems += [f"{path.relative_to(root.resolve())}: no module imports {name}" for name in sorted(names)]
    return problems


def find_oxlint():
    """The path of oxlint, or None. The tests' packages are in .venv (scripts/references.txt)."""
    return shutil.which("oxlint", path=f"{HOME / '.venv/bin'}{os.pathsep}{os.environ.get('PATH', '')}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=HOME)
    root = parser.parse_args().root
    problems = problems_of_names(root)
    for problem in problems:
        print(f"check_pages: {problem}", file=sys.stderr)
    oxlint = find_oxlint()
    if not oxlint:
        print("check_pages: no oxlint in .venv or on PATH: scripts/setup.sh --tests installs it", file=sys.stderr)
        return 1 if problems or os.environ.get("ZOO_REQUIRE_REFERENCES") else SKIPPED
    done = subprocess.run([oxlint, "--config", "pages/.oxlintrc.json", "--format", "unix", "--deny-warnings", "pages"], cwd=root,
                          stdout=sys.stderr, check=False)
    return 1 if problems or done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
