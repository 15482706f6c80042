#!/usr/bin/env python3
"""benchmarks/speech/nearest.py: dynamic time warping, and recordings whose nearest one is known."""

import math
import random
import struct
import subprocess
import sys
import tempfile
import unittest
import wave
from pathlib import Path

try:
    import numpy as np
except ImportError:
    print("needs numpy")
    sys.exit(77)

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks/speech/nearest.py"
sys.path.insert(0, str(SCRIPT.parent))
sys.dont_write_bytecode = True
from nearest import distances  # noqa: E402


def slow_distance(one, other):
    """The recursion of Sakoe & Chiba 1978, as it is written."""
    def best(i, j):
        if (i, j) not in known:
            here = math.dist(one[i], other[j])
            ways = [2 * here] if i == j == 0 else []
            if i > 0:
                ways.append(best(i - 1, j) + here)
            if j > 0:
                ways.append(best(i, j - 1) + here)
            if i > 0 and j > 0:
                ways.append(best(i - 1, j - 1) + 2 * here)
            known[i, j] = min(ways)
        return known[i, j]
    known = {}
    return best(len(one) - 1, len(other) - 1) / (len(one) + len(other))


def write_tone(path, pitches, seconds, draw):
    """A tone that glides over these pitches, with noise."""
    n, phase, samples = int(8000 * seconds), 0.0, []
    for i in range(n):
        place = i / n * (len(pitches) - 1)
        low = int(place)
        pitch = pitches[low] + (pitches[low + 1] - pitches[low]) * (place - low)
        phase += 2 * math.pi * pitch / 8000
        samples.append(int(9000 * math.sin(phase)) + draw.randrange(-300, 301))
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(struct.pack(f"<{n}h", *samples))


class Nearest(unittest.TestCase):
    def test_the_distance_is_that_of_the_recursion(self):
        draw = np.random.default_rng(1)
        one = draw.normal(size=(5, 3))
        lengths = np.array([1, 4, 7])
        others = np.zeros((3, 7, 3))
        for other, length in zip(others, lengths):
            other[:length] = draw.normal(size=(length, 3))
        expected = [slow_distance(one, other[:length]) for other, length in zip(others, lengths)]
        np.testing.assert_allclose(distances(one, others, lengths), expected, rtol=1e-6)
        self.assertAlmostEqual(distances(one, one[None], np.array([5]))[0], 0, places=6)

    def test_a_slower_one_is_the_same_digit(self):
        draw = random.Random(1)
        shapes = {"up": (400, 2500), "down": (2500, 400), "hill": (400, 2500, 400)}
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            for split, times in {"train": (0.3, 0.5), "test": (0.2, 0.4, 0.7)}.items():
                rows = ["audio\ttext"]
                for word, pitches in shapes.items():
                    for seconds in times:
                        name = f"{split}-{word}-{seconds}.wav"
                        write_tone(folder / name, pitches, seconds, draw)
                        rows.append(f"{name}\t{word}")
                (folder / f"{split}.tsv").write_text("\n".join(rows) + "\n")
            done = subprocess.run([sys.executable, SCRIPT, folder, "--json"], capture_output=True, encoding="utf-8")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith('{"wrong": 0, "of": 9,'), done.stdout)


if __name__ == "__main__":
    unittest.main()
