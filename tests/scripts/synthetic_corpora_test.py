#!/usr/bin/env python3
"""The synthetic corpora of scripts/data/make_*.py: every line of small ones against a definition that is computed here
in another way. With ZOO_SYNTHETIC=DIR the tests read the full corpora that scripts/get_data.sh has put into DIR."""

import hashlib
import itertools
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/data"), str(ROOT / "tests/scripts")]
sys.dont_write_bytecode = True
from synthetic import Draw, distinct  # noqa: E402
from synthetic_files import (SPLITS, SUMS, DeterminismTest, SyntheticTest, corpora_with, lines_of,  # noqa: E402
                             make)

NAMES = ("listops", "associative-recall", "copy", "addition")
LETTERS = set("abcdefghijklmnopqrstuvwxyz")


def setUpModule():
    global corpora
    corpora = corpora_with({name: 20 if name == "listops" else 4 for name in NAMES})


def lines(file):
    return lines_of(corpora / file)


def pairs(prefix):
    """(source, target) of each line of PREFIX.source and PREFIX.target."""
    sources, targets = lines(prefix + ".source"), lines(prefix + ".target")
    assert len(sources) == len(targets), prefix
    return list(zip(sources, targets))


class RandomNumbers(SyntheticTest):
    def test_results_are_distinct(self):
        draw, seen = Draw("a"), {3, 5}
        self.assertEqual(sorted(distinct(lambda: draw.below(10), 8, seen)), [0, 1, 2, 4, 6, 7, 8, 9])
        self.assertEqual(seen, set(range(10)))

    def test_orders_are_equally_likely(self):
        draw = Draw("b")
        drawn = ["".join(draw.some_of("abcd", 2)) for _ in range(6000)]
        self.assert_even(drawn, map("".join, itertools.permutations("abcd", 2)))
        drawn = ["".join(draw.shuffled("abc")) for _ in range(6000)]
        self.assert_even(drawn, map("".join, itertools.permutations("abc")))

    def test_names_have_numbers_of_their_own(self):
        self.assertEqual(Draw("a").random(), Draw("a").random())
        self.assertNotEqual(Draw("a").random(), Draw("b").random())


class ListOps(SyntheticTest):
    OPERATIONS = {"[MIN": min, "[MAX": max, "[MED": lambda a: int(statistics.median(a)), "[SM": lambda a: sum(a) % 10}

    def value(self, tokens):
        """By a stack. Checks what the grammar allows."""
        stack, depth = [], 0
        for token in tokens:
            if token == "]":
                arguments = []
                while isinstance(stack[-1], int):
                    arguments.append(stack.pop())
                self.assertTrue(2 <= len(arguments) <= 10)
                stack.append(self.OPERATIONS[stack.pop()](arguments))
                depth -= 1
            elif token in self.OPERATIONS:
                stack.append(token)
                depth += 1
                self.assertLess(depth, 10)  # its arguments are one level deeper
            else:
                self.assertRegex(token, r"\A[0-9]\Z")
                stack.append(int(token))
        self.assertEqual(len(stack), 1)
        return stack[0]

    def check(self, prefix, fewest, most, sizes):
        parts, labels, operations = [], Counter(), Counter()
        for split in SPLITS:
            header, *rows = lines(f"listops/{prefix}{split}.tsv")
            self.assertEqual(header, "label\tsentence")
            parts.append([])
            for row in rows:
                label, sentence = row.split("\t")
                tokens = sentence.split(" ")
                self.assertTrue(fewest <= len(tokens) <= most, row)
                self.assertEqual(label, str(self.value(tokens)), row)
                labels[label] += 1
                operations.update(token for token in tokens if token in self.OPERATIONS)
                parts[-1].append(sentence)
        self.assert_different(*parts)
        self.assert_sizes(parts, sizes)
        self.assertEqual(len(labels), 10)
        for label, count in labels.items():
            self.assertTrue(0.05 < count / sum(labels.values()) < 0.25, label)
        for operation, count in operations.items():
            self.assertAlmostEqual(count / sum(operations.values()), 0.25, delta=0.02, msg=operation)
        return labels

    def test_short_expressions_have_their_values(self):
        self.check("", 16, 128, [30_000, 2_000, 2_000])

    def test_expressions_of_the_long_range_arena_have_their_values(self):
        labels = self.check("lra-", 501, 1999, [20_000, 2_000, 2_000])
        # A minimum or maximum of many arguments is 0 or 9.
        self.assertEqual({label for label, _ in labels.most_common(2)}, {"0", "9"})

    def test_shapes_are_those_of_the_published_generator(self):
        """Shares of the lengths, against trees that are drawn here level by level, without values."""
        draw = random.Random(1)

        def length():
            n, nodes = 0, 1
            for depth in range(1, 11):
                operations = sum(draw.random() < 0.25 for _ in range(nodes)) if depth < 10 else 0
                n += nodes + operations  # a digit is one token, an operator and its ] are two
                nodes = sum(draw.randint(2, 10) for _ in range(operations))
                if n > 1999:
                    break
            return n

        drawn = [length() for _ in range(20_000)]
        for prefix, fewest, middle, most in (("", 16, 40, 128), ("lra-", 501, 1000, 1999)):
            def share(lengths):
                lengths = [n for n in lengths if fewest <= n <= most]
                return sum(n < middle for n in lengths) / len(lengths)

            rows = lines(f"listops/{prefix}train.tsv")[1:]
            self.assertAlmostEqual(share([len(row.split()) - 1 for row in rows]), share(drawn), delta=0.06)


class AssociativeRecall(SyntheticTest):
    SETTINGS = ((64, 4), (128, 8), (256, 16), (256, 32), (256, 64), (512, 64), (512, 128))

    def test_answers_are_the_values_of_the_keys(self):
        for n, d in self.SETTINGS:
            parts = []
            for split in SPLITS if n < 512 else SPLITS[1:]:
                file = f"associative-recall/{split}-{n}-{d}.txt"
                parts.append(lines(file))
                self.assertLessEqual((corpora / file).stat().st_size, 8_000_000)
                for line in parts[-1]:
                    self.check(line, n, d)
            self.assert_different(*parts)
            self.assert_sizes(parts, ([] if n == 512 else [9_600 if d == 64 else 10_000]) + [500, 500])

    def check(self, line, n, d):
        self.assertEqual(len(line.replace("=", "")), n)
        context, rest = line[:2 * d], line[2 * d:]
        bound = dict(zip(context[::2], context[1::2]))
        self.assertEqual(len(bound), d)  # the keys differ
        self.assertEqual(len(set(bound.values())), d)
        self.assertTrue(all(0x4E00 <= ord(key) < 0x4F00 and 0xAC00 <= ord(value) < 0xAD00
                            for key, value in bound.items()))
        asked = re.findall(r"(.)=(.)", rest)
        self.assertEqual(dict(asked), bound)
        self.assertEqual(len(asked), d)  # each key once
        self.assertEqual(set(re.sub(r".=.", "", rest)) - {"."}, set())
        # Questions begin at even distances from the pairs, as in Zoology.
        self.assertTrue(all(match.start() % 2 == 0 for match in re.finditer("[^.]", rest.replace("=", ""))
                            if ord(match.group()) < 0xAC00))

    def test_questions_come_soon_by_the_power_law(self):
        """The average place of a question, against draws with floating-point weights, repeats thrown away."""
        draw = random.Random(1)
        for n, d in self.SETTINGS[:4]:
            space = (n - 2 * d) // 2
            weights = [i ** (0.1 - 1) for i in range(1, space + 1)]
            expected = []
            for _ in range(300):
                chosen = {}
                while len(chosen) < d:
                    chosen.update(dict.fromkeys(draw.choices(range(space), weights)))
                expected += chosen
            found = [match.start() // 2 for line in lines(f"associative-recall/train-{n}-{d}.txt")
                     for match in re.finditer("[^.].", line[2 * d:].replace("=", ""))]
            self.assertAlmostEqual(statistics.mean(found) / space, statistics.mean(expected) / space, delta=0.03)
            self.assertLess(statistics.mean(found) / space, 0.45)

    def test_all_keys_and_values_occur_about_equally_often(self):
        text = "".join(line[:32] for line in lines("associative-recall/train-256-16.txt"))
        self.assert_even(text[::2], [chr(0x4E00 + i) for i in range(256)])
        self.assert_even(text[1::2], [chr(0xAC00 + i) for i in range(256)])


class Copy(SyntheticTest):
    def check(self, name, fewest, most):
        rows = pairs("copy/" + name)
        for source, target in rows:
            self.assertEqual(source, target)
            self.assertLessEqual(set(source), LETTERS)
        self.assert_even([len(source) for source, _ in rows], range(fewest, most + 1))
        self.assert_even("".join(source for source, _ in rows), LETTERS)
        return [source for source, _ in rows]

    def test_targets_are_the_sources(self):
        parts = [self.check(split, 4, 20) for split in SPLITS]
        long = self.check("test-long", 21, 40)
        self.assert_different(*parts, long)
        self.assert_sizes([*parts, long], [20_000, 1_000, 1_000, 1_000])

    def test_induction_asks_for_the_letter_after_the_star(self):
        parts = [lines(f"copy/induction-{split}.txt") for split in SPLITS]
        for part in parts:
            for line in part:
                before, star, after = line.partition("*")
                self.assertRegex(line, r"\A[a-z]*\*[a-z]+\*=[a-z]\Z")
                self.assertEqual(line[-1], line[line.index("*") + 1])
        self.assert_different(*parts)
        self.assert_sizes(parts, [20_000, 1_000, 1_000])
        self.assert_even([len(line) - 1 for line in parts[0]], range(64, 129))
        self.assert_even([line[-1] for line in parts[0]], LETTERS)
        # The first star is everywhere: its place is half of the line on average.
        places = [line.index("*") / (len(line) - 5) for line in parts[0]]
        self.assertAlmostEqual(statistics.mean(places), 0.5, delta=0.04)

    def test_repeats_are_a_part_of_what_was_read(self):
        parts = [lines(f"copy/repeats-{split}.txt") for split in SPLITS]
        begins = []
        for line in [line for part in parts for line in part]:
            self.assertRegex(line, r"\A[a-zA-Z]+(=[a-zA-Z]){4,23}\Z")
            read, first, answers = *re.match("(.*)(.)=", line.partition("=")[0] + "=").groups(), line.split("=")[1:]
            part = first + "".join(answer[0] for answer in answers)
            self.assertIn(part, read)
            self.assertTrue(12 <= len(read) <= 40)
            begins.append(2 * read.index(part) - (len(read) - len(part) - 1))
        self.assert_different(*parts)
        self.assert_sizes(parts, [20_000, 1_000, 1_000])
        self.assertAlmostEqual(statistics.mean(begins), 0, delta=0.5)  # in the middle of all places


class Addition(SyntheticTest):
    @staticmethod
    def digits(source):
        return tuple(map(len, source.split("+")))

    def sums(self, name, fewest, most):
        """The sums of a split, each with the smaller summand first."""
        found = []
        for source, target in pairs("addition/" + name):
            self.assertRegex(source, r"\A(0|[1-9][0-9]*)\+(0|[1-9][0-9]*)\Z")
            a, b = source.split("+")
            self.assertEqual(target, str(int(a) + int(b)))
            self.assertTrue(all(fewest <= n <= most for n in self.digits(source)), source)
            found.append(tuple(sorted((int(a), int(b)))))
        return found

    def test_targets_are_the_sums(self):
        parts = [self.sums(split, 1, 5) for split in SPLITS]
        long = self.sums("test-long", 6, 10)
        self.assert_different(*parts, long)
        self.assert_sizes(parts[1:] + [long], [927, 927, 1000])

    def test_numbers_of_digits_are_balanced(self):
        for name, digits in (("train", range(1, 6)), ("test-long", range(6, 11))):
            found = [self.digits(source) for source, _ in pairs("addition/" + name)]
            everything = set(itertools.product(digits, repeat=2))
            self.assertEqual(set(found), everything)
            self.assert_even([pair for pair in found if sum(pair) > 3], {pair for pair in everything if sum(pair) > 3})

    def test_lines_are_in_a_random_order(self):
        found = [self.digits(source) for source, _ in pairs("addition/train")]
        neighbours = sum(a == b for a, b in zip(found, found[1:])) / len(found)
        self.assertLess(neighbours, 0.1)


class Determinism(DeterminismTest, unittest.TestCase):
    names = NAMES


class GetData(unittest.TestCase):
    """scripts/get_data.sh makes a corpus, checks it, and prefers the mirror."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.corpus = self.folder / "data/addition"

    def run_script(self, *arguments, script=ROOT / "scripts/get_data.sh", **environment):
        result = subprocess.run(
            [script, *arguments], capture_output=True, text=True, check=False,
            env={**os.environ, "ZOO_DATA": str(self.folder / "data"), "ZOO_DATA_MIRROR": "",
                 "PYTHONDONTWRITEBYTECODE": "1", **environment})
        return result.returncode, result.stdout + result.stderr

    def without_python(self):
        """A PATH on which python3 fails."""
        program = self.folder / "bin/python3"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\necho no Python >&2\nexit 3\n")
        program.chmod(0o755)
        return f"{program.parent}:{os.environ['PATH']}"

    def assert_right(self):
        for file, expected in SUMS.items():
            if file.startswith("addition/"):
                content = (self.folder / "data" / file).read_bytes()
                self.assertEqual(hashlib.sha256(content).hexdigest(), expected, file)

    def test_a_corpus_is_made_once_and_again_if_it_is_damaged(self):
        code, output = self.run_script("addition")
        self.assertEqual(code, 0, output)
        self.assertIn("from scripts/data/make_addition.py", output)
        self.assert_right()
        self.assertEqual(os.listdir(self.folder / "data"), ["addition"])
        path = self.without_python()
        code, output = self.run_script("addition", PATH=path)
        self.assertEqual(code, 0, output)
        self.assertIn("already", output)
        (self.corpus / "test.target").write_text("1\n")
        code, output = self.run_script("addition", PATH=path)
        self.assertEqual((code, output), (2, "get_data.sh: addition: no Python\n"))
        code, output = self.run_script("addition")
        self.assertEqual(code, 0, output)
        self.assert_right()
        code, output = self.run_script("--list")
        for name in NAMES:
            self.assertIn(("* " if name == "addition" else "  ") + name, output)

    def test_the_mirror_comes_first_and_is_checked(self):
        make("addition", self.folder / "mirror/addition", 1, hash_seed="1")
        mirror = {"ZOO_DATA_MIRROR": str(self.folder / "mirror"), "PATH": self.without_python()}
        code, output = self.run_script("addition", **mirror)
        self.assertEqual(code, 0, output)
        self.assert_right()
        shutil.rmtree(self.corpus)
        (self.folder / "mirror/addition/test.target").write_text("1\n")
        code, output = self.run_script("addition", **mirror)
        self.assertEqual((code, output.count("\n")), (2, 1), output)
        self.assertIn("test.target has sha256", output)
        self.assertFalse(self.corpus.exists())

    def test_a_file_with_another_checksum_is_refused(self):
        shutil.copytree(ROOT / "scripts", self.folder / "scripts")
        sums = self.folder / "scripts/data/SHA256SUMS"
        sums.write_text(re.sub(r"\w{64}(?=  addition/valid.source)", "0" * 64, sums.read_text()))
        code, output = self.run_script("addition", script=self.folder / "scripts/get_data.sh")
        self.assertEqual((code, output.count("\n")), (2, 1), output)
        self.assertIn("valid.source has sha256", output)
        self.assertEqual(os.listdir(self.folder / "data"), [])


if __name__ == "__main__":
    unittest.main()
