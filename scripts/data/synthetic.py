"""What the scripts make_*.py share: random numbers, the command line, and files.

Each of these scripts makes a synthetic corpus, with Python's standard library only:

Usage: make_NAME.py OUT [PART]      PART: only a PART-th of the lines, for tests

The files are the same on every machine and with every Python from 3.9 on, because scripts/data/SHA256SUMS has their
checksums.
"""

import hashlib
import random
import sys
from pathlib import Path


class Draw:
    """Random numbers that depend on a name only.

    Python promises one thing across its versions (library reference, random, "Notes on Reproducibility"): the same seed
    gives the same sequence of random(). So everything here is made of random(). Methods such as choice(), sample() and
    shuffle() have changed in the past. The product in below() is rounded by IEEE 754 and is the same everywhere, too.
    """

    def __init__(self, name):
        seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
        generator = random.Random()
        generator.seed(seed, version=2)
        self.random = generator.random  # a multiple of 2^-53 in [0, 1)

    def below(self, n):
        """One of 0, …, n - 1. n must be far smaller than 2^53."""
        return int(self.random() * n)

    def one_of(self, items):
        return items[self.below(len(items))]

    def some_of(self, items, n):
        """n different ones of the items, in a random order (Fisher & Yates)."""
        items = list(items)
        for i in range(n):
            j = i + self.below(len(items) - i)
            items[i], items[j] = items[j], items[i]
        return items[:n]

    def shuffled(self, items):
        return self.some_of(items, len(items))


def distinct(make, n, seen):
    """n results of make() that differ from each other and from those in `seen`, which gets them, too."""
    results = []
    while len(results) < n:
        result = make()
        if result not in seen:
            seen.add(result)
            results.append(result)
    return results


def run(doc, files):
    """The command line. files(part) gives (name of a file, its lines) of each file."""
    if len(sys.argv) not in (2, 3):
        sys.exit(doc)
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for name, lines in files(int(sys.argv[2]) if len(sys.argv) == 3 else 1):
        with open(out / name, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(line + "\n" for line in lines)
