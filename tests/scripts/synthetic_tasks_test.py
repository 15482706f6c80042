#!/usr/bin/env python3
"""The tasks of MAD, state tracking, Mano, Depo and pixels: every answer in small corpora of scripts/data/make_*.py is
found here from the text alone, in another way. With ZOO_SYNTHETIC=DIR the tests read the full corpora."""

import gzip
import random
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
from synthetic_files import (FULL, ROOT, SPLITS, SUMS, DeterminismTest, SyntheticTest, corpora_with,  # noqa: E402
                             lines_of)

PARTS = {"mad": 10, "state-tracking": 10, "mano": 20, "depo": 20}


def setUpModule():
    global corpora
    corpora = corpora_with(PARTS)


def lines(file):
    assert (corpora / file).stat().st_size <= 8_000_000, file
    return lines_of(corpora / file)


def table(file):
    """(text, labels) of each row."""
    header, *rows = lines(file)
    assert header == "sentence\tlabel", file
    return [tuple(row.split("\t")) for row in rows]


class Recall(SyntheticTest):
    """Pairs of keys and values."""

    def parts(self, task):
        parts = [lines(f"mad/{task}-{split}.txt") for split in SPLITS]
        self.assert_different(*parts)
        self.assert_sizes(parts, [12_800, 640, 1_280])
        return parts

    def with_marks(self, pairs):
        """The pairs as a line has them, and the last one must have marks."""
        known, written = {}, ""
        for key, value in pairs:
            self.assertEqual(known.get(key, value), value)
            marked = "".join("=" + token for token in value)
            written += key + (marked if key in known else value)
            known[key] = value
        self.assertTrue(written.endswith(marked))
        return written

    def check_pairs(self, task, noise):
        """noise: the tokens of pairs that are none."""
        first_keys, first_values, n_noise, n_pairs = [], [], 0, 0
        for line in [line for part in self.parts(task) for line in part]:
            tokens = line.replace("=", "")
            self.assertEqual(len(tokens), 128)
            found = [tokens[i:i + 2] for i in range(0, 128, 2)]
            without_noise = [pair for pair in found if not set(pair) <= set(noise)]
            for pair in without_noise:
                self.assertRegex(pair, r"\A[a-h][A-H]\Z")
            self.assertEqual(self.with_marks(without_noise), "".join(token for token in line if token not in noise))
            first_keys.append(without_noise[0][0])
            first_values.append(without_noise[0][1])
            n_noise += len(found) - len(without_noise)
            n_pairs += len(found) - 1
        self.assert_even(first_keys, "abcdefgh")
        self.assert_even(first_values, "ABCDEFGH")
        return n_noise / n_pairs

    def test_keys_have_their_values_again(self):
        self.assertEqual(self.check_pairs("in-context-recall", ""), 0)

    def test_a_fifth_of_the_pairs_is_noise(self):
        share = self.check_pairs("noisy-recall", "0123456789uvwxyz")
        self.assertAlmostEqual(share, 0.2 * 62 / 63, delta=0.005)

    def test_fuzzy_keys_and_values_have_one_to_three_tokens(self):
        for split, part in zip(SPLITS, self.parts("fuzzy-recall")):
            sizes = []
            for line in part:
                tokens = line.replace("=", "")
                self.assertEqual(len(tokens), 129)
                pairs = re.findall("([a-g]{1,3})([A-H]{1,3})", tokens)
                self.assertEqual("".join(key + value for key, value in pairs), tokens.lstrip("."))
                self.assertTrue(all(len(set(word)) == len(word) for pair in pairs for word in pair), line)
                self.assertEqual(line.lstrip("."), self.with_marks(pairs))
                if split != "train":
                    self.assertEqual({len(key) for key, _ in pairs}, {3})
                sizes.append(tuple(map(len, pairs[0])))
            keys = (1, 2, 3) if split == "train" else (3,)
            self.assert_even(sizes, [(key, value) for key in keys for value in (1, 2, 3)])


class Tables(SyntheticTest):
    """Tasks of MAD whose answers are labels."""

    def parts(self, task, sizes):
        parts = [table(f"mad/{task}-{split}.tsv") for split in SPLITS]
        self.assert_different(*parts)
        self.assert_sizes(parts, sizes)
        return parts

    def test_selective_copying_repeats_the_letters(self):
        gaps, letters = [[] for _ in range(16)], Counter()
        for text, labels in [row for part in self.parts("selective-copying", [12_800, 640, 1_280]) for row in part]:
            read, _, asked = text.partition("|")
            self.assertEqual(asked, 16 * ".")
            self.assertEqual(labels, 240 * "-" + read.replace(".", ""))
            self.assertEqual(len(text), 256)
            self.assertRegex(read, r"\A(\.*[a-n]){16}\Z")
            for gap, length in zip(gaps, map(len, re.split("[a-n]", read))):
                gap.append(length)
            letters.update(labels[240:])
        self.assert_even(list(letters.elements()), "abcdefghijklmn")
        for gap in gaps:
            self.assertAlmostEqual(statistics.mean(gap), 223 / 16, delta=0.7)

    def test_compression_asks_for_all_letters(self):
        letters = Counter()
        for text, labels in [row for part in self.parts("compression", [12_800, 640, 1_280]) for row in part]:
            self.assertRegex(text, r"\A[a-o]{31}\|\Z")
            self.assertEqual(labels, text)
            letters.update(text[:31])
        self.assert_even(list(letters.elements()), "abcdefghijklmno")

    def test_memorization_has_one_value_for_each_key(self):
        value_of = {}
        for text, labels in [row for part in self.parts("memorization", [256, 640, 1_280]) for row in part]:
            self.assertEqual((len(text), text[1::2], labels[::2]), (32, 16 * ".", 16 * "-"))
            for key, value in zip(text[::2], labels[1::2]):
                self.assertTrue(0xAC00 <= ord(value) < 0xAC80)
                self.assertEqual(value_of.setdefault(key, value), value)
        self.assertEqual(set(value_of), {chr(0x4E00 + i) for i in range(127)})
        self.assertEqual(len(set(value_of.values())), 127)


class StateTracking(SyntheticTest):
    @staticmethod
    def permutation(letter):
        """By the digits of its number in the factorial base."""
        number, left, found = ord(letter) - 0x4E00, [0, 1, 2, 3, 4], []
        for size in (24, 6, 2, 1, 1):
            found.append(left.pop(number // size))
            number %= size
        return found

    def products(self, word):
        """For each beginning of a word over permutations, where it takes each of five things: the last acts first."""
        permutations = [self.permutation(letter) for letter in word]
        results = []
        for n in range(1, len(word) + 1):
            places = [0, 1, 2, 3, 4]
            for permutation in reversed(permutations[:n]):
                places = [permutation[place] for place in places]
            results.append(places)
        return results

    def check(self, group, longest, check_states, elements):
        """check_states(word, labels) looks at each row; a label is - where none is counted."""
        parts = {split: table(f"state-tracking/{group}-{split}.tsv") for split in SPLITS}
        self.assert_different(parts["valid"], parts["test"])
        self.assertFalse(set(parts["train"]) & set(parts["valid"] + parts["test"]))
        self.assert_sizes(list(parts.values()), [40_000, 1_000, 1_000])
        self.assert_even([len(word) for word, _ in parts["train"]], range(1, longest + 1))
        for split in ("valid", "test"):
            self.assert_even([len(word) for word, _ in parts[split]], range(longest // 2 + 1, longest + 1))
        for n in (2 * longest, 4 * longest, 8 * longest):
            parts[n] = table(f"state-tracking/{group}-test-{n}.tsv")
            self.assert_different(parts[n])
            self.assert_sizes([parts[n]], [500])
            self.assertEqual({(len(word), labels[:longest]) for word, labels in parts[n]}, {(n, longest * "-")})
        for split, rows in parts.items():
            for word, labels in rows:
                self.assertEqual(labels.count("-"), longest if isinstance(split, int) else 0)
                self.assertEqual(len(labels), len(word))
                check_states(word, labels)
        self.assert_even("".join(word for word, _ in parts["train"]), elements)

    def test_parity(self):
        def check_states(word, labels):
            for i, label in enumerate(labels):
                if label != "-":
                    self.assertEqual(int(label), word[:i + 1].count("1") % 2)

        self.check("parity", 40, check_states, "01")

    def check_permutations(self, group, is_element):
        elements = [chr(0x4E00 + i) for i in range(120) if is_element(self.permutation(chr(0x4E00 + i)))]

        def check_states(word, labels):
            for label, places in zip(labels, self.products(word)):
                if label != "-":
                    self.assertEqual(self.permutation(label), places)

        self.check(group, 16, check_states, elements)
        return len(elements)

    def test_permutations_of_five(self):
        self.assertEqual(self.check_permutations("s5", lambda p: True), 120)

    def test_swaps(self):
        self.assertEqual(self.check_permutations("s5-swaps", lambda p: sum(p[i] == i for i in range(5)) == 3), 10)

    def test_even_permutations(self):
        def is_even(p):
            """A circle of n things is n - 1 swaps."""
            n_swaps, left = 0, set(range(5))
            while left:
                begin = place = left.pop()
                while p[place] != begin:
                    place = p[place]
                    left.remove(place)
                    n_swaps += 1
            return n_swaps % 2 == 0

        self.assertEqual(self.check_permutations("a5", is_even), 60)

    def test_sums_modulo_60(self):
        def check_states(word, labels):
            total = 0
            for letter, label in zip(word, labels):
                total += ord(letter) - 0x4E00
                if label != "-":
                    self.assertEqual(ord(label), 0x4E00 + total % 60)

        self.check("z60", 16, check_states, [chr(0x4E00 + i) for i in range(60)])


class Mano(SyntheticTest):
    def value(self, expression):
        """By a stack, from the right, of (value, number of operations). Gives the operations on the left side, too."""
        stack, n_left = [], 0
        for token in reversed(expression):
            if token in "+-*":
                (a, n_left), (b, n_right) = stack.pop(), stack.pop()
                stack.append(({"+": a + b, "-": a - b, "*": a * b}[token], n_left + n_right + 1))
            else:
                self.assertRegex(token, r"\A[a-w]\Z")
                stack.append((ord(token) - ord("a"), 0))
        self.assertEqual(len(stack), 1)
        value, n = stack[0]
        return value % 23, n, n_left

    def test_values_are_right(self):
        for longest in (2, 3, 10):
            parts = {split: lines(f"mano/{split}-{longest}.txt") for split in SPLITS}
            self.assert_different(parts["valid"], parts["test"])
            self.assertFalse(set(parts["train"]) & set(parts["valid"] + parts["test"]))
            self.assert_sizes(list(parts.values()), [200_000, 1_000, 1_000])
            lengths, sides = {split: [] for split in SPLITS}, []
            for split, part in parts.items():
                for line in part:
                    count, expression, answer = re.fullmatch("([A-J])([-+*a-w]+)>=([a-w])", line).groups()
                    value, n, n_left = self.value(expression)
                    self.assertEqual((chr(ord("a") + value), chr(ord("A") + n - 1)), (answer, count))
                    lengths[split].append(n)
                    if n == longest:
                        sides.append(n_left)
            self.assert_even(lengths["train"], range(1, longest + 1))
            self.assertEqual(set(lengths["valid"] + lengths["test"]), {longest})
            self.assert_even(sides, range(longest))
            self.assert_even([token for line in parts["train"] for token in line if token in "+-*"], "+-*")


class Depo(SyntheticTest):
    # most names, most steps, letters that end a name, fewest and most tokens of a name, lines for training
    SETTINGS = {"": (12, 4, 50, 1, 1, 40_000), "-1": (225, 8, 50, 1, 2, 15_000), "-2": (75, 16, 3, 5, 7, 8_000)}
    LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWX"

    def test_answers_are_found_by_walking(self):
        for suffix, (most_names, most_steps, n_letters, fewest, most, n_train) in self.SETTINGS.items():
            parts = [lines(f"depo/{split}{suffix}.txt") for split in SPLITS]
            self.assert_different(*parts)
            self.assert_sizes(parts, [n_train, 500, 500])
            name = f"[\u0100-{chr(0x100 + n_letters - 1)}]{{{fewest - 1},{most - 1}}}[{self.LETTERS[:n_letters]}]"
            for split, part in zip(SPLITS, parts):
                found = [self.check(line, name) for line in part]
                sizes, steps = [n for n, _ in found], [k for _, asked in found for k in asked]
                if split == "train":
                    self.check_sizes(sizes, most_names)
                    self.assert_even(steps, range(1, most_steps + 1))
                else:
                    self.assertEqual(set(sizes), {most_names})
                    self.assert_even(steps, [k for k in (1, 2, 4, 8, 16) if k <= most_steps])

    def check(self, line, name):
        """Gives the number of names and the steps that are asked."""
        context, questions = re.fullmatch(f"((?:{name})+)((?:[①-⑯]{name}:(?:=.)+)+)", line).groups()
        names = re.findall(name, context)
        follower = dict(zip(names[::2], names[1::2]))
        n, walked = 1, follower[names[0]]
        while walked != names[0]:
            n, walked = n + 1, follower[walked]
        self.assertEqual((n, 2 * n), (len(follower), len(names)))  # one circle, each arrow once
        asked, steps = set(), []
        for step, begin, answer in re.findall(f"([①-⑯])({name}):((?:=.)+)", questions):
            place, k = begin, ord(step) - ord("①") + 1
            for _ in range(k):
                place = follower[place]
            self.assertEqual(answer.replace("=", ""), place)
            asked.add(begin)
            steps.append(k)
        self.assertEqual(len(asked), min(n, 10))
        self.assertEqual(len(steps), len(asked))
        return n, steps

    def check_sizes(self, sizes, most):
        weight = {n: 1 / (n + most ** 0.5) for n in range(3, most + 1)}
        mean = sum(n * w for n, w in weight.items()) / sum(weight.values())
        self.assertLessEqual(set(sizes), set(weight))
        spread = statistics.pstdev(sizes) / len(sizes) ** 0.5
        self.assertLess(abs(statistics.mean(sizes) - mean), 5 * spread)

    def test_arrows_are_in_disorder(self):
        """Whether an arrow begins where the one before it ends: once in a line, on average."""
        found = []
        for line in lines("depo/test.txt"):
            arrows = re.findall("..", re.match("[a-zA-X]+", line)[0])
            found.append(sum(a[1] == b[0] for a, b in zip(arrows, arrows[1:])))
        self.assertAlmostEqual(statistics.mean(found), 1, delta=0.3 if FULL else 1)


class Pixels(SyntheticTest):
    """From made-up pictures."""

    @staticmethod
    def pictures(draw, n):
        made = [(i % 10, bytes(draw.choice((draw.randrange(200), 255)) for _ in range(784))) for i in range(n)]
        draw.shuffle(made)
        return made

    def make(self, pictures, folder):
        for name, items in pictures.items():
            with gzip.open(folder / f"{name}-images-idx3-ubyte.gz", "wb") as file:
                file.write(struct.pack(">4I", 0x803, len(items), 28, 28) + b"".join(pixels for _, pixels in items))
            with gzip.open(folder / f"{name}-labels-idx1-ubyte.gz", "wb") as file:
                file.write(struct.pack(">2I", 0x801, len(items)) + bytes(label for label, _ in items))
        out = folder / "out"
        subprocess.run([sys.executable, "-B", ROOT / "scripts/data/make_pixels.py", folder, out, "500"], check=True)
        self.assertEqual(sorted("pixels/" + path.name for path in out.iterdir()),
                         sorted(file for file in SUMS if file.startswith("pixels/")))
        files = {split: lines_of(out / f"{split}.tsv") for split in SPLITS}
        self.assertEqual({rows.pop(0) for rows in files.values()}, {"label\tsentence"})
        return files

    def test_lines_are_the_pictures(self):
        draw, results = random.Random(1), []
        pictures = {"train": self.pictures(draw, 30), "t10k": self.pictures(draw, 10)}
        for _ in range(2):  # the order of the pictures does not matter
            with tempfile.TemporaryDirectory() as folder:
                results.append(self.make(pictures, Path(folder)))
            for items in pictures.values():
                draw.shuffle(items)
        self.assertEqual(*results)
        self.assertEqual([len(rows) for rows in results[0].values()], [20, 2, 4])
        self.assert_different(*results[0].values())
        written = {name: {f"{label}\t" + "".join(chr(ord("0") + pixel // 4) for pixel in pixels)
                          for label, pixels in items} for name, items in pictures.items()}
        for split, rows in results[0].items():
            self.assertLessEqual(set(rows), written["t10k" if split == "test" else "train"])


class Determinism(DeterminismTest, unittest.TestCase):
    names = tuple(PARTS)


if __name__ == "__main__":
    unittest.main()
