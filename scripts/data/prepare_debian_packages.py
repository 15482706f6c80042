#!/usr/bin/env python3
"""Turns the packages that apt knows into a corpus of short descriptions.

Usage: apt-cache dumpavail | prepare_debian_packages.py OUT

For each split (train, valid, test), with the packages in the same order:
OUT/SPLIT.txt                  descriptions, one a line: language modelling
OUT/SPLIT.tsv                  sentence<TAB>label: the description and the section of its package
OUT/SPLIT.{description,name}   parallel texts: line i of SPLIT.description describes the package in line i of SPLIT.name

Packages are sorted by source, then by name, and each description occurs once. The splits are made of runs of about
twenty neighbouring sources: the packages of one source have descriptions alike ("… - development files",
"… (documentation)"), and so have sources whose names are alike (gcc-11, gcc-12). A description of valid or test is left
out if it differs from one of another split only in such an ending, in numbers or in punctuation.
"""

import hashlib
import re
import sys
from pathlib import Path

LEAST_PACKAGES = 1000
WORDS = range(2, 25)
SOURCES_IN_A_RUN = 20  # on average
PER_MILLE = 30  # of the runs, for each of valid and test; the others are for training

EMPTY_PACKAGE = re.compile(r"\b(transitional|dummy|empty) ", re.IGNORECASE)
ENDING = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\s[-–—]+\s.*|[;,:].*")


def packages(dump):
    """The fields of each package in the format of `apt-cache dumpavail`, without continued lines."""
    fields = {}
    for line in dump:
        line = line.rstrip("\r\n")
        if not line:
            if fields:
                yield fields
            fields = {}
        elif not line[0].isspace():
            key, _, value = line.partition(":")
            fields[key] = value.strip()
    if fields:
        yield fields


def number_of(text):
    """A number that looks random, the same for the same text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def splits_of(sources):
    """The split of each of the sorted sources. A run begins at a source whose name says so, so that new sources change
    the splits of few others."""
    splits, split = {}, "train"
    for source in sources:
        if number_of("run " + source) % SOURCES_IN_A_RUN == 0:
            draw = number_of("split " + source) % 1000
            split = "valid" if draw < PER_MILLE else "test" if draw < 2 * PER_MILLE else "train"
        splits[source] = split
    return splits


def stem(description):
    """What related packages have in common: "libfoo2 - debug files" and "LibFoo (documentation)" give "libfoo"."""
    text = ENDING.sub(" ", description.casefold())
    words = re.findall(r"[^\W\d_]+", text)
    return " ".join(words) or description.casefold()


def usable(package):
    description = package.get("Description", "")
    return (package.get("Package") and package.get("Section") and "\ufffd" not in description
            and len(description.split()) in WORDS and description.isprintable()
            and not EMPTY_PACKAGE.search(description + " "))


def rows_of(dump):
    """(split, name, section, description) of each description, sorted by source and name."""
    by_name = {}
    for package in packages(dump):
        if usable(package):
            name = package["Package"]
            source = (package.get("Source") or name).split()[0]  # "name (version)"
            by_name.setdefault((source, name), package)  # the same package may be there for several architectures
    splits = splits_of(sorted({source for source, _ in by_name}))
    rows, seen = [], set()
    for source, name in sorted(by_name):
        package = by_name[source, name]
        description = " ".join(package["Description"].split())
        if description.casefold() in seen:
            continue
        seen.add(description.casefold())
        section = package["Section"].split("/")[-1]  # "contrib/net"
        rows.append((splits[source], name, section, description))
    return rows


def without_leaks(rows):
    """The splits, without held-out descriptions whose stem is in a split before."""
    splits, stems = {}, set()
    for split in ("train", "valid", "test"):
        part = [row for row in rows if row[0] == split and (split == "train" or stem(row[3]) not in stems)]
        stems.update(stem(row[3]) for row in part)
        splits[split] = part
    return splits


def write(path, lines):
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in lines)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = Path(sys.argv[1])
    with open(sys.stdin.fileno(), encoding="utf-8", errors="replace", newline="\n") as dump:
        splits = without_leaks(rows_of(dump))
    n_rows = sum(map(len, splits.values()))
    if n_rows < LEAST_PACKAGES or not all(splits.values()):
        sys.exit(f"apt knows only {n_rows} packages with descriptions")
    out.mkdir(parents=True, exist_ok=True)
    for split, rows in splits.items():
        write(out / f"{split}.txt", (description for _, _, _, description in rows))
        write(out / f"{split}.tsv",
              ["sentence\tlabel"] + [f"{description}\t{section}" for _, _, section, description in rows])
        write(out / f"{split}.description", (description for _, _, _, description in rows))
        write(out / f"{split}.name", (name for _, name, _, _ in rows))


if __name__ == "__main__":
    main()
