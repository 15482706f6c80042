#!/usr/bin/env python3
"""Python functions: scripts/data/prepare_python_stdlib.py and benchmarks/code/functions.py."""

import ast
import json
import random
import re
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks/code"), str(ROOT / "scripts/data")]
sys.dont_write_bytecode = True
from functions import Gap, Trigrams, form, is_function  # noqa: E402
from prepare_python_stdlib import LEFT_OUT, functions_of, split_of, text_of, without_name  # noqa: E402

MODULE = '''
import os

def first(x):
    """A docstring."""
    # a comment
    return (x + 1)

class A:
    @property
    def second(self):
        if self.x: return 1
        def inner(): pass
    async def third(self): "only a docstring"
'''


class Corpus(unittest.TestCase):
    def test_functions_and_methods_are_taken_in_one_form(self):
        texts = [text_of(function) for function in functions_of(ast.parse(MODULE))]
        self.assertEqual(texts, ["def first(x):\n    return x + 1",
                                 "@property\ndef second(self):\n    if self.x:\n        return 1\n\n"
                                 "    def inner():\n        pass", None])

    def test_tests_are_left_out(self):
        for name in ("test/test_ast.py", "unittest/test/x.py", "idlelib/idle_test/a.py", "site-packages/a.py", "a/test_b.py"):
            self.assertTrue(LEFT_OUT.search(name), name)
        for name in ("ast.py", "unittest/case.py", "doctest.py", "json/decoder.py"):
            self.assertFalse(LEFT_OUT.search(name), name)

    def test_the_name_is_all_that_differs(self):
        self.assertEqual(without_name("@a\ndef f(x):\n    def g(): pass"), without_name("@a\ndef h(x):\n    def g(): pass"))

    def test_the_library_of_this_python(self):
        with tempfile.TemporaryDirectory() as out:
            subprocess.run([sys.executable, ROOT / "scripts/data/prepare_python_stdlib.py", out], check=True,
                           capture_output=True)
            splits = {split: [json.loads(line)["text"] for line in (Path(out) / f"{split}.jsonl").read_text().splitlines()]
                      for split in ("train", "valid", "test")}
            self.assertRegex((Path(out) / "SOURCES").read_text(), r"^Python 3\.\d+\.\d+\n[0-9a-f]{64}  modules\n$")
        self.assertGreater(len(splits["train"]), 5 * len(splits["test"]))
        seen = set()
        for texts in splits.values():
            for text in texts:
                self.assertTrue(is_function(text), text)
            names = {without_name(text) for text in texts}
            self.assertFalse(names & seen)
            seen |= names

    def test_a_module_is_in_one_split(self):
        splits = Counter(split_of(f"module{i}") for i in range(2000))
        self.assertEqual(set(splits), {"train", "valid", "test"})
        self.assertAlmostEqual(splits["valid"] / 2000, 0.08, delta=0.02)


class Measure(unittest.TestCase):
    def test_one_function_is_a_function(self):
        self.assertTrue(is_function("@a\nasync def f():\n    pass"))
        for text in ("def f(:\n    pass", "x = 1", "def f():\n    pass\ndef g():\n    pass", "", "def f():\nreturn", "\0"):
            self.assertFalse(is_function(text), text)

    def test_a_gap_is_a_line_of_its_function(self):
        draw = random.Random(1)
        text = "def f(x):\n    if x:\n        return [x]\n    return x"
        for _ in range(30):
            gap = Gap(text, draw)
            self.assertEqual(gap.before + gap.line + gap.after, text)
            self.assertTrue(gap.line.startswith(" ") and not gap.line.startswith("  "))
            self.assertNotIn("\n", gap.line)
            self.assertTrue(gap.is_found(gap.line.strip() + " \nmore"))
            self.assertFalse(gap.is_found(gap.line + "x"))
            self.assertEqual(gap.prompt("prefix first"),
                             f"<fim_prefix>{gap.before}<fim_suffix>{gap.after}<fim_middle>")
            self.assertEqual(gap.prompt("suffix first"),
                             f"<fim_prefix><fim_suffix>{gap.after}<fim_middle>{gap.before}")

    def test_the_form_is_that_of_functions(self):
        expression = re.compile(form())
        for text in ("@a(1)\nasync def f(x, y=[1]) -> int:\n    return {'a\\'': g(x[0])}", "def f():\n    (a, b) = ([], ')')"):
            self.assertTrue(expression.fullmatch(text), text)
            self.assertTrue(is_function(text), text)
        for text in ("x = 1", "def f():", "def f():\n   x", "def f():\n    g(", "def f():\n    x = 'a", "def f():\n    a)"):
            self.assertFalse(expression.fullmatch(text), text)

    def test_trigrams_are_a_distribution(self):
        draw = random.Random(2)
        documents = [[draw.randrange(1, 6) for _ in range(draw.randrange(1, 9))] for _ in range(20)]
        trigrams = Trigrams(documents, end=0)
        for before in [(0, 0), (1, 2), (5, 5), (9, 9), (9, 1)]:
            self.assertAlmostEqual(sum(trigrams.distribution(before).values()), 1.0)
        # by hand: "1 2" is followed by 3 twice and by 4 once
        trigrams = Trigrams([[1, 2, 3], [1, 2, 3], [1, 2, 4]], end=0)
        unigrams = {1: 3 / 12, 2: 3 / 12, 3: 2 / 12, 4: 1 / 12, 0: 3 / 12}
        bigram = (2 - 0.75) / 3 + 0.75 * 2 / 3 * unigrams[3]
        self.assertAlmostEqual(trigrams.distribution((1, 2))[3], (2 - 0.75) / 3 + 0.75 * 2 / 3 * bigram)
        self.assertEqual(trigrams.likeliest([1], lambda token: token == 4, 9), [2, 3])

    def test_samples_follow_the_distribution(self):
        trigrams = Trigrams([[1], [1], [1], [2]], end=0)
        draw = random.Random(3)
        tokens = Counter(next(iter(trigrams.sample(draw, 1.0, 1.0, 1)), 0) for _ in range(3000))
        for token, p in trigrams.distribution((0, 0)).items():
            self.assertAlmostEqual(tokens[token] / 3000, p, delta=0.03)
        narrow = {next(iter(trigrams.sample(draw, 1.0, 0.3, 1)), 0) for _ in range(100)}
        self.assertEqual(narrow, {1})


if __name__ == "__main__":
    unittest.main()
