#!/usr/bin/env python3
"""Turns the standard library of the Python that runs this script into functions to learn from.

Usage: prepare_python_stdlib.py OUT

OUT/{train,valid,test}.jsonl   a function a line: {"text": …}
OUT/SOURCES                    the version of Python and a hash of its modules

Functions and methods are taken from every module but those of tests, without the indentation of their class, in the one
form in which ast.unparse() writes them: without comments and without their first docstring. Functions of fewer than 3 or
more than 40 lines, and of more than 1,600 characters, are left out, and of equal ones all but the first. All functions of a
top-level module or package are in one split. A function of another split is left out
if it differs from a training function in its name only.
"""

import ast
import hashlib
import json
import re
import sys
import sysconfig
import warnings
from pathlib import Path

LEFT_OUT = re.compile(r"(^|/)(tests?|idle_test|site-packages|dist-packages|lib-dynload|__pycache__|turtledemo|pydoc_data)(/|$)"
                      r"|(^|/)test_[^/]*\.py$|_test\.py$|/__phello__")
LINES = range(3, 41)
MOST_CHARACTERS = 1600
LEAST_FUNCTIONS = 2000


def functions_of(tree):
    """The functions and methods of a module, not those within functions."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
        elif isinstance(node, (ast.ClassDef, ast.If, ast.Try)):
            yield from functions_of(node)


def text_of(function):
    """The function in the form of ast.unparse(), without its docstring; None if nothing else is in it."""
    body = function.body
    if ast.get_docstring(function, clean=False) is not None:
        body = body[1:]
    if not body:
        return None
    function.body = body
    return ast.unparse(function)


def is_usable(text):
    return len(text.splitlines()) in LINES and len(text) <= MOST_CHARACTERS and text.isascii()


def without_name(text):
    return re.sub(r"\bdef \w+", "def", text, count=1)


def split_of(module):
    """8 % of the modules are for validation, 8 % for the test."""
    share = int(hashlib.sha256(("split " + module).encode()).hexdigest()[:8], 16) / 16**8
    return "valid" if share < 0.08 else "test" if share < 0.16 else "train"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out, library = Path(sys.argv[1]), Path(sysconfig.get_paths()["stdlib"])
    warnings.simplefilter("ignore")  # of old escapes in old modules
    splits, seen, digest = {"train": [], "valid": [], "test": []}, set(), hashlib.sha256()
    for path in sorted(library.rglob("*.py")):
        name = path.relative_to(library).as_posix()
        if LEFT_OUT.search(name):
            continue
        try:
            content = path.read_bytes()
            tree = ast.parse(content)
        except (OSError, SyntaxError, ValueError):
            continue
        digest.update(f"{name} {hashlib.sha256(content).hexdigest()}\n".encode())
        for function in functions_of(tree):
            text = text_of(function)
            if text and is_usable(text) and text not in seen:
                seen.add(text)
                splits[split_of(name.split("/")[0].removesuffix(".py"))].append(text)
    known = {without_name(text) for text in splits["train"]}
    for split in ("valid", "test"):
        splits[split] = [text for text in splits[split] if without_name(text) not in known]
        known |= {without_name(text) for text in splits[split]}
    n = sum(map(len, splits.values()))
    if n < LEAST_FUNCTIONS or not all(splits.values()):
        sys.exit(f"{library} has only {n} functions: the sources of Python's library are missing")
    for split, texts in splits.items():
        with open(out / f"{split}.jsonl", "w", encoding="utf-8", newline="\n") as file:
            file.writelines(json.dumps({"text": text}) + "\n" for text in texts)
        print(f"{split}: {len(texts)} functions, {sum(map(len, texts))} characters", file=sys.stderr)
    version = ".".join(map(str, sys.version_info[:3]))
    (out / "SOURCES").write_text(f"Python {version}\n{digest.hexdigest()}  modules\n")


if __name__ == "__main__":
    main()
