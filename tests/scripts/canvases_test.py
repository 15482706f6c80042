#!/usr/bin/env python3
"""The corpus canvases of scripts/data/make_canvases.py, made from a few made-up items, and its checks in
scripts/get_data.sh."""

import gzip
import hashlib
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
N_CLASSES, SIDE, PART = 10, 28, 200
DARKEST = 16


def brightness(label):
    return 60 + 19 * label


def make_items(shuffle_seed):
    """For each split: 30 items, rectangles with the brightness of their class and dark noise around them, in an order of
    that seed."""
    splits = {}
    for split in ("train", "t10k"):
        draw, items = random.Random(split), []
        for i in range(30):
            rows = [[draw.randrange(DARKEST // 2) for _ in range(SIDE)] for _ in range(SIDE)]
            top, left = draw.randrange(10), draw.randrange(10)
            for y in range(top, top + 18):
                for x in range(left, left + 12 + i % 7):
                    rows[y][x] = brightness(i % N_CLASSES)
            items.append((bytes(sum(rows, [])), i % N_CLASSES))
        random.Random(shuffle_seed).shuffle(items)
        splits[split] = items
    return splits


def write_items(folder, shuffle_seed):
    folder.mkdir(parents=True)
    for split, items in make_items(shuffle_seed).items():
        with gzip.open(folder / f"{split}-images-idx3-ubyte.gz", "wb") as file:
            file.write(struct.pack(">4I", 0x803, len(items), SIDE, SIDE) + b"".join(pixels for pixels, _ in items))
        with gzip.open(folder / f"{split}-labels-idx1-ubyte.gz", "wb") as file:
            file.write(struct.pack(">2I", 0x801, len(items)) + bytes(label for _, label in items))


def make(items, out):
    environment = {**os.environ, "PYTHONHASHSEED": "random", "PYTHONDONTWRITEBYTECODE": "1"}
    script = ROOT / "scripts/data/make_canvases.py"
    subprocess.run([sys.executable, script, items, out, str(PART)], env=environment, check=True)


def read_png(content):
    """The rows of a grey PNG file without filters. All checksums must be right."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(content):
        n, name = struct.unpack(">I4s", content[at : at + 8])
        data, checksum = content[at + 8 : at + 8 + n], struct.unpack(">I", content[at + 8 + n : at + 12 + n])[0]
        assert zlib.crc32(name + data) == checksum
        chunks[name], at = data, at + 12 + n
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert rest == [8, 0, 0, 0, 0] and b"IEND" in chunks
    lines = zlib.decompress(chunks[b"IDAT"])
    rows = [lines[y * (width + 1) : (y + 1) * (width + 1)] for y in range(height)]
    assert len(lines) == height * (width + 1) and all(row[0] == 0 for row in rows)
    return [row[1:] for row in rows]


def setUpModule():
    global temp, folder
    temp = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(temp.cleanup)
    folder = Path(temp.name)
    write_items(folder / "items", shuffle_seed=1)
    make(folder / "items", folder / "canvases")


class Canvases(unittest.TestCase):
    def pictures(self, split):
        """(rows, annotations) of each picture."""
        content = json.loads((folder / f"canvases/{split}.json").read_text())
        self.assertEqual([c["id"] for c in content["categories"]], list(range(1, N_CLASSES + 1)))
        numbers = [a["id"] for a in content["annotations"]]
        self.assertEqual(len(set(numbers)), len(numbers))
        for image in content["images"]:
            rows = read_png((folder / "canvases/images" / image["file_name"]).read_bytes())
            self.assertEqual((image["height"], image["width"]), (len(rows), len(rows[0])))
            yield rows, [a for a in content["annotations"] if a["image_id"] == image["id"]]

    def all_pictures(self):
        return [*self.pictures("train"), *self.pictures("test")]

    def test_sizes_are_as_documented(self):
        pictures = self.all_pictures()
        self.assertEqual(len(pictures), 36_000 // PART + 1_000 // PART)
        for rows, objects in pictures:
            self.assertTrue(64 <= len(rows) <= 96 and 64 <= len(rows[0]) <= 96)
            self.assertTrue(1 <= len(objects) <= 6)
        self.assertEqual(set(Counter(len(objects) for _, objects in pictures)), set(range(1, 7)))

    def test_boxes_hold_all_that_is_to_be_seen(self):
        for rows, objects in self.all_pictures():
            bright = {(y, x) for y, row in enumerate(rows) for x, value in enumerate(row) if value}
            self.assertTrue(all(rows[y][x] >= DARKEST for y, x in bright))
            covered = set()
            for a in objects:
                left, top, width, height = a["bbox"]
                self.assertTrue(0 <= left <= left + width <= len(rows[0]) and 0 <= top <= top + height <= len(rows))
                self.assertTrue(0 < a["area"] <= width * height)
                inside = {(y, x) for y in range(top, top + height) for x in range(left, left + width)}
                covered |= inside
            self.assertLessEqual(bright, covered)

    def test_no_item_is_hidden(self):
        for rows, objects in self.all_pictures():
            classes = Counter(a["category_id"] for a in objects)
            for a in objects:
                if classes[a["category_id"]] > 1:
                    continue
                inner = sum(row.count(brightness(a["category_id"] - 1)) for row in rows)
                self.assertGreater(8 * inner, a["area"])  # half is to be seen, but edges have another brightness

    def test_the_box_of_a_single_item_is_tight(self):
        single = [(rows, objects[0]) for rows, objects in self.all_pictures() if len(objects) == 1]
        self.assertGreater(len(single), 3)
        for rows, found in single:
            bright = [(x, y) for y, row in enumerate(rows) for x, value in enumerate(row) if value]
            left, top = (min(p[k] for p in bright) for k in range(2))
            right, bottom = (max(p[k] for p in bright) + 1 for k in range(2))
            self.assertEqual(found["bbox"], [left, top, right - left, bottom - top])
            self.assertEqual(found["area"], len(bright))

    def test_the_order_of_the_items_makes_no_difference(self):
        write_items(folder / "shuffled", shuffle_seed=2)
        make(folder / "shuffled", folder / "again")
        files = sorted(p.relative_to(folder / "canvases") for p in (folder / "canvases").rglob("*.*"))
        self.assertGreater(len(files), 36_000 // PART)
        for file in files:
            self.assertEqual((folder / "canvases" / file).read_bytes(), (folder / "again" / file).read_bytes(), file)


class GetData(unittest.TestCase):
    """A copy of scripts/get_data.sh that knows the checksums of the small corpus."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        shutil.copytree(ROOT / "scripts", self.folder / "scripts")
        write_items(self.folder / "items", shuffle_seed=1)
        script = self.folder / "scripts/data/make_canvases.py"
        text = script.read_text()
        for split, n in (("train", "36_000"), ("t10k", "1_000")):
            text = text.replace(f'("{split}", {n})', f'("{split}", {int(n) // PART})')
        script.write_text(text)
        sums = []
        for corpus, folder_of in (("canvases", folder / "canvases"), ("fashion-mnist", self.folder / "items")):
            for file in sorted(p for p in folder_of.iterdir() if p.is_file()):
                sums.append(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {corpus}/{file.name}\n")
        (self.folder / "scripts/data/SHA256SUMS").write_text("".join(sums))

    def get(self, mirror):
        result = subprocess.run(
            [self.folder / "scripts/get_data.sh", "canvases"], capture_output=True, text=True, check=False,
            env={**os.environ, "ZOO_DATA": str(self.folder / "data"), "ZOO_DATA_MIRROR": str(mirror),
                 "PYTHONDONTWRITEBYTECODE": "1"})
        return result.returncode, result.stdout + result.stderr

    def names(self):
        return sorted(os.listdir(self.folder / "data"))

    def test_canvases_are_made_from_fashion_mnist_which_comes_first(self):
        (self.folder / "items").rename(self.folder / "fashion-mnist")
        code, output = self.get(self.folder)
        self.assertEqual(code, 0, output)
        self.assertEqual(self.names(), ["canvases", "fashion-mnist"])
        self.assertIn("from scripts/data/make_canvases.py", output)
        picture = self.folder / "data/canvases/images/train-00003.png"
        right = picture.read_bytes()
        picture.unlink()
        self.assertEqual(self.get(self.folder)[0], 0)
        self.assertEqual(picture.read_bytes(), right)
        code, output = self.get(self.folder)
        self.assertEqual(output.count("already"), 1, output)  # fashion-mnist is not needed any more

    def test_pictures_of_the_mirror_are_checked(self):
        mirror = self.folder / "mirror"
        shutil.copytree(folder / "canvases", mirror / "canvases")
        self.assertEqual(self.get(mirror)[0], 0)
        self.assertEqual(self.names(), ["canvases"])
        shutil.rmtree(self.folder / "data/canvases")
        with open(mirror / "canvases/images/test-00002.png", "ab") as file:
            file.write(b"x")
        code, output = self.get(mirror)
        self.assertEqual((code, output.count("\n")), (2, 1), output)
        self.assertIn("images/test-00002.png is missing or damaged", output)
        shutil.rmtree(mirror / "canvases/images")
        code, output = self.get(mirror)
        self.assertEqual((code, output.count("\n")), (1, 1), output)
        self.assertEqual(self.names(), [])


if __name__ == "__main__":
    unittest.main()
