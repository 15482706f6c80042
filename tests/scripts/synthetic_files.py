"""What the tests of synthetic corpora share: small ones, or with ZOO_SYNTHETIC=DIR the full ones that
scripts/get_data.sh has put into DIR."""

import itertools
import os
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SPLITS = ("train", "valid", "test")
SUMS = dict(reversed(line.split()) for line in (ROOT / "scripts/data/SHA256SUMS").read_text().splitlines())
FULL = os.environ.get("ZOO_SYNTHETIC")


def make(name, out, part, hash_seed):
    script = ROOT / f"scripts/data/make_{name.replace('-', '_')}.py"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, script, out, str(part)], env=environment, check=True)


def corpora_with(parts):
    """The folder of the corpora, for a setUpModule(). parts: name -> the share of its lines that a small one has."""
    if FULL:
        return Path(FULL)
    temp = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(temp.cleanup)
    for name, part in parts.items():
        make(name, Path(temp.name) / name, part, hash_seed="1")
    return Path(temp.name)


def lines_of(path):
    text = path.read_text(encoding="utf-8")
    assert text.endswith("\n"), path
    return text.split("\n")[:-1]


class SyntheticTest(unittest.TestCase):
    def assert_different(self, *parts):
        """No element is twice in one of the parts or in two of them."""
        together = list(itertools.chain(*parts))
        self.assertTrue(all(parts), "a part is empty")
        self.assertEqual(len(set(together)), len(together))

    def assert_sizes(self, parts, full):
        """The parts have as many elements as the documentation says."""
        if FULL:
            self.assertEqual([len(part) for part in parts], full)

    def assert_even(self, values, expected):
        """The values are the expected ones, each about equally often."""
        counts = Counter(values)
        self.assertEqual(set(counts), set(expected))
        mean = len(values) / len(counts)
        for value, count in counts.items():
            self.assertLess(abs(count - mean), 6 * mean ** 0.5, value)


class DeterminismTest:
    """A test of a class that names corpora."""

    names = ()

    def test_the_files_are_the_same_in_every_process(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            for name in self.names:
                for seed in ("1", "2"):
                    make(name, folder / seed / name, 200, hash_seed=seed)
                files = sorted(path.name for path in (folder / "1" / name).iterdir())
                self.assertEqual(files, sorted(path.name for path in (folder / "2" / name).iterdir()))
                self.assertEqual([name + "/" + file for file in files],
                                 sorted(file for file in SUMS if file.startswith(name + "/")))
                for file in files:
                    first, second = (folder / seed / name / file for seed in ("1", "2"))
                    self.assertEqual(first.read_bytes(), second.read_bytes(), f"{name}/{file}")
