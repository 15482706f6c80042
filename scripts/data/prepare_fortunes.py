#!/usr/bin/env python3
"""Turns the text files of Debian's `fortunes` package into a corpus.

Usage: prepare_fortunes.py /usr/share/games/fortunes OUT

OUT/{train,valid}.txt  every fortune unchanged, followed by a line with only %
OUT/{train,valid}.tsv  sentence<TAB>label, one fortune per line; the label is the file of the fortune. Only files with
                       at least MIN_RECORDS fortunes, so that every label has enough examples

Every 20th fortune of a file goes to valid; the choice is always the same.
"""

import re
import sys
from pathlib import Path

VALID_EVERY = 20
MIN_RECORDS = 150


def clean(text):
    """`text` without the control characters of old terminals, such as overstriking (x, backspace, x)."""
    text = re.sub(r"[^\n]\x08", "", text.replace("\r\n", "\n"))
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f\ufeff]", "", text)


def records(path):
    """The fortunes of a file: the blocks between lines with only %."""
    text = clean(path.read_bytes().decode("utf-8"))
    blocks = re.split(r"^%+[ \t]*$", text, flags=re.MULTILINE)
    return [block.strip("\n") for block in blocks if block.strip()]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, out = Path(sys.argv[1]), Path(sys.argv[2])
    files = sorted(p for p in source.iterdir() if p.is_file() and not p.is_symlink() and "." not in p.name)
    seen = set()
    documents = {"train": [], "valid": []}
    labelled = {"train": [], "valid": []}
    for path in files:
        try:
            fortunes = records(path)
        except UnicodeDecodeError:
            print(f"skipped, not UTF-8: {path.name}", file=sys.stderr)
            continue
        lines = [" ".join(fortune.split()) for fortune in fortunes]
        # Several files may have the same fortune. It must not be in both splits and must not have two labels.
        fresh = [i for i, line in enumerate(lines) if line not in seen and lines.index(line) == i]
        seen.update(lines)
        for n, i in enumerate(fresh, start=1):
            split = "valid" if n % VALID_EVERY == 0 else "train"
            documents[split].append(fortunes[i])
            if len(fresh) >= MIN_RECORDS:
                labelled[split].append((lines[i], path.name))
    if not documents["train"]:
        sys.exit(f"no fortunes in {source}")
    out.mkdir(parents=True, exist_ok=True)
    for split in documents:
        with open(out / f"{split}.txt", "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{text}\n%\n" for text in documents[split])
        with open(out / f"{split}.tsv", "w", encoding="utf-8", newline="\n") as file:
            file.write("sentence\tlabel\n")
            file.writelines(f"{text}\t{label}\n" for text, label in labelled[split])


if __name__ == "__main__":
    main()
