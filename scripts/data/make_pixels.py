#!/usr/bin/env python3
"""Pixels: pictures of Fashion-MNIST as texts, read from the upper left corner line by line.

Usage: make_pixels.py FASHION_MNIST OUT [PART]      PART: only a PART-th of the lines, for tests

FASHION_MNIST is the directory of the corpus of that name. OUT gets

    {train,valid,test}.tsv   10,000, 1,000 and 2,000 pictures

A line is label<TAB>sentence, after a header with these names. The label is the class, a digit. The sentence has a
character for each of the 28 × 28 pixels: one of 64 from 0 (black) to o (white), without anything between the lines of
the picture (task: text_classification). train and valid are drawn from the training pictures, test from the others.

This is the task "pixel-level image classification" of the Long Range Arena (Tay et al. 2021) with other pictures: a
model must find out which pixels are neighbours. Differences:

- The Long Range Arena has CIFAR-10: 32 × 32 pixels, made grey, with 45,000 pictures for training.
- It has 256 tokens, one for each brightness.
"""

import sys
from pathlib import Path

from make_canvases import read_items
from synthetic import Draw, run

FIRST, SHADES = 0x30, 64
SPLITS = {"train": ("train", 0, 10_000), "valid": ("train", 10_000, 1_000), "test": ("t10k", 0, 2_000)}


def line(item):
    pixels, label = item
    return f"{label}\t" + "".join(chr(FIRST + pixel * SHADES // 256) for pixel in pixels)


def files(source, part):
    # Sorted by their pixels, because copies of Fashion-MNIST differ in their order.
    items = {name: Draw(f"pixels {name}").shuffled(read_items(source, name)) for name in ("train", "t10k")}
    for split, (name, begin, n) in SPLITS.items():
        chosen = items[name][begin // part:(begin + n) // part]
        yield f"{split}.tsv", ["label\tsentence"] + [line(item) for item in chosen]


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    folder = Path(sys.argv.pop(1))
    run(__doc__, lambda part: files(folder, part))
