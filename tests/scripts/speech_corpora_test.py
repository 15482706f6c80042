#!/usr/bin/env python3
"""The strings of digits that scripts/data/make_fsdd_strings.py makes: deterministic, of one split and one speaker each, and
made of the recordings that their texts say."""

import subprocess
import sys
import tempfile
import unittest
import wave
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts/data"
DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
SPLITS = {"test": 0, "valid": 5, "train": 10}  # an index of each


def write_wav(path, value, n):
    """A recording whose samples all have one value, which says what it is."""
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(value.to_bytes(2, "little") * n)


def samples_of(path):
    with wave.open(str(path)) as file:
        data = file.readframes(file.getnframes())
    return [int.from_bytes(data[i : i + 2], "little") for i in range(0, len(data), 2)]


class SpeechCorpora(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.dir = Path(self.temporary.name)
        (self.dir / "published").mkdir()
        for s, speaker in enumerate(("ann", "bob")):
            for digit in range(10):
                for split, index in enumerate(SPLITS.values()):
                    value = 1 + digit + 100 * s + 1000 * split
                    write_wav(self.dir / f"published/{digit}_{speaker}_{index}.wav", value, 500 + digit)
        self.run_script("prepare_fsdd.py", "published", "fsdd")

    def tearDown(self):
        self.temporary.cleanup()

    def run_script(self, name, *arguments):
        subprocess.run([sys.executable, SCRIPTS / name, *arguments], cwd=self.dir, check=True)

    def test_strings_are_what_they_say(self):
        self.run_script("make_fsdd_strings.py", "fsdd", "strings", "50")
        n_digits = set()
        for split, name in enumerate(SPLITS):
            rows = [line.split("\t") for line in (self.dir / f"strings/{name}.tsv").read_text().splitlines()[1:]]
            self.assertGreater(len(rows), 5)
            for path, text, speaker in rows:
                samples = samples_of(self.dir / "strings" / path)
                spoken = [value for i, value in enumerate(samples) if value and (i == 0 or samples[i - 1] != value)]
                base = 1 + 100 * ("ann", "bob").index(speaker) + 1000 * split
                self.assertEqual(" ".join(DIGITS[value - base] for value in spoken), text)
                n_digits.add(len(spoken))
        self.assertEqual(n_digits, {3, 4, 5, 6, 7})

    def test_strings_are_always_the_same(self):
        for out in ("one", "two"):
            self.run_script("make_fsdd_strings.py", "fsdd", out, "100")
        for name in ("recordings.sha256", "train.tsv", "valid.tsv", "test.tsv"):
            self.assertEqual((self.dir / "one" / name).read_bytes(), (self.dir / "two" / name).read_bytes())
        sums = (self.dir / "one/recordings.sha256").read_text().splitlines()
        self.assertEqual(len(sums), len(list((self.dir / "one/recordings").iterdir())))


unittest.main()
