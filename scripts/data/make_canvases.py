#!/usr/bin/env python3
"""Canvases: pictures with several items of Fashion-MNIST, and a box around each, for object detection.

Usage: make_canvases.py FASHION_MNIST OUT [PART]      PART: only a PART-th of the pictures, for tests

FASHION_MNIST is the directory of the corpus of that name. OUT gets

    train.json, test.json    what is where, in COCO's format: 36,000 and 1,000 pictures
    images/*.png             the pictures, grey
    images.sha256            their checksums

A canvas is black, 64 to 96 pixels high and wide. 1 to 6 items lie on it, each resized to a square with sides of 16 to 44
pixels (bilinear interpolation). Pixels darker than 16 of 255 are no part of an item. Later items cover earlier ones; an
item that would leave less than half of an earlier one to be seen is put elsewhere with another size, and left out if 50
places did not do. The box is that of all pixels of the item, covered or not, and the area is their number. Training
canvases have training items only, test canvases test items.

The files are the same on every machine. All numbers are integers or from synthetic.Draw. Items are sorted by their pixels
before the first is drawn, because copies of Fashion-MNIST differ in their order. Each thousand of pictures has random
numbers of its own, so that all cores work. The pixels of the PNG files are not compressed: what zlib makes of them depends
on its version.
"""

import gzip
import hashlib
import json
import struct
import sys
import zlib
from functools import partial
from multiprocessing import Pool
from pathlib import Path

from synthetic import Draw

NAMES = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]
SPLITS = {"train": ("train", 36_000), "test": ("t10k", 1_000)}
SIDE = 28  # of an item in Fashion-MNIST
SHORTEST, LONGEST = 64, 96  # sides of a canvas
SMALLEST, LARGEST = 16, 44  # sides of an item on it
MOST_ITEMS = 6
DARKEST = 16
PLACES = 50
CHUNK = 1_000  # pictures that share their random numbers


def read_items(directory, split):
    """All (pixels, class) of a split, sorted."""
    with gzip.open(directory / f"{split}-images-idx3-ubyte.gz") as file:
        pixels = file.read()[16:]
    with gzip.open(directory / f"{split}-labels-idx1-ubyte.gz") as file:
        classes = file.read()[8:]
    n = SIDE * SIDE
    return sorted((pixels[i * n : (i + 1) * n], label) for i, label in enumerate(classes))


def taps(side):
    """For each of `side` new pixels: the two old ones that it lies between, and their weights, which sum to 2 · side."""
    result = []
    for i in range(side):
        centre = min(max((2 * i + 1) * SIDE - side, 0), (SIDE - 1) * 2 * side)
        first, weight = divmod(centre, 2 * side)
        result.append((first, min(first + 1, SIDE - 1), 2 * side - weight, weight))
    return result


TAPS = {side: taps(side) for side in range(SMALLEST, LARGEST + 1)}


def resized(pixels, side):
    """The pixels that are part of an item with this side, as (row, column, brightness)."""
    across = TAPS[side]
    rows = []
    for start in range(0, SIDE * SIDE, SIDE):
        row = pixels[start : start + SIDE]
        rows.append([row[a] * u + row[b] * v for a, b, u, v in across])
    scale = 4 * side * side
    result = []
    for y, (a, b, u, v) in enumerate(across):
        for x, (above, below) in enumerate(zip(rows[a], rows[b])):
            value = (above * u + below * v + scale // 2) // scale
            if value >= DARKEST:
                result.append((y, x, value))
    return result


def make_canvas(draw, items):
    """A canvas: its rows, and (class, box, area) of each item."""
    height, width = (SHORTEST + draw.below(LONGEST - SHORTEST + 1) for _ in range(2))
    rows = [bytearray(width) for _ in range(height)]
    owners = [[-1] * width for _ in range(height)]  # which item is to be seen there
    objects, seen = [], []  # how many pixels of each item are to be seen
    for _ in range(1 + draw.below(MOST_ITEMS)):
        pixels, label = draw.one_of(items)
        for _ in range(PLACES):
            side = SMALLEST + draw.below(LARGEST - SMALLEST + 1)
            top, left = draw.below(height - side + 1), draw.below(width - side + 1)
            part = [(top + y, left + x, value) for y, x, value in resized(pixels, side)]
            left_over = seen.copy()
            for y, x, _ in part:
                if owners[y][x] >= 0:
                    left_over[owners[y][x]] -= 1
            if part and all(2 * n >= area for n, (_, _, area) in zip(left_over, objects)):
                break
        else:
            continue
        for y, x, value in part:
            rows[y][x] = value
            owners[y][x] = len(objects)
        seen = [*left_over, len(part)]
        ys, xs = [y for y, _, _ in part], [x for _, x, _ in part]
        box = [min(xs), min(ys), max(xs) - min(xs) + 1, max(ys) - min(ys) + 1]
        objects.append((label, box, len(part)))
    return rows, objects


def png(rows):
    """A grey PNG file whose pixels are in one block without compression."""
    data = b"".join(b"\0" + bytes(row) for row in rows)  # each row: no filter
    stored = b"\x78\x01\x01" + struct.pack("<HH", len(data), 0xFFFF ^ len(data)) + data
    stored += struct.pack(">I", zlib.adler32(data))

    def chunk(name, content):
        checksum = zlib.crc32(name + content)
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", stored) + chunk(b"IEND", b"")


def make_chunk(name, items, out, numbers):
    """Writes the pictures with these numbers. Returns for each its size, its checksum and its objects."""
    draw = Draw(f"canvases {name} {numbers[0]}")
    made = []
    for number in numbers:
        rows, objects = make_canvas(draw, items)
        content = png(rows)
        (out / "images" / file_name(name, number)).write_bytes(content)
        made.append(((len(rows[0]), len(rows)), hashlib.sha256(content).hexdigest(), objects))
    return made


def file_name(name, number):
    return f"{name}-{number:05}.png"


def make_split(name, items, n, out):
    """Writes a split. Returns the lines with the checksums of its pictures."""
    chunks = [range(first, min(first + CHUNK, n + 1)) for first in range(1, n + 1, CHUNK)]
    with Pool() as pool:
        made = sum(pool.map(partial(make_chunk, name, items, out), chunks, chunksize=1), [])
    images, annotations, sums = [], [], []
    for number, ((width, height), checksum, objects) in enumerate(made, 1):
        file = file_name(name, number)
        sums.append(f"{checksum}  images/{file}\n")
        images.append({"id": number, "file_name": file, "width": width, "height": height})
        for label, box, area in objects:
            annotations.append({"id": len(annotations) + 1, "image_id": number, "category_id": label + 1, "bbox": box,
                                "area": area, "iscrowd": 0})
    categories = [{"id": i + 1, "name": label} for i, label in enumerate(NAMES)]
    content = {"images": images, "annotations": annotations, "categories": categories}
    with open(out / f"{name}.json", "w", encoding="ascii", newline="\n") as file:
        json.dump(content, file, separators=(",", ":"))
        file.write("\n")
    return sums


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    source, out = Path(sys.argv[1]), Path(sys.argv[2])
    part = int(sys.argv[3]) if len(sys.argv) == 4 else 1
    (out / "images").mkdir(parents=True, exist_ok=True)
    sums = []
    for name, (split, n) in SPLITS.items():
        sums += make_split(name, read_items(source, split), n // part, out)
    (out / "images.sha256").write_bytes("".join(sums).encode())


if __name__ == "__main__":
    main()
