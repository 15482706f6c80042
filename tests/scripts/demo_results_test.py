#!/usr/bin/env python3
"""scripts/demo_results.py: its figures against definitions that are computed here in another way, and what it prints
with a program that stands in for zoo."""

import json
import math
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/demo_results.py"
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import demo_results  # noqa: E402


def some_text(n, vocab_size, seed):
    """Tokens that depend on the token before them."""
    draw = random.Random(seed)
    ids = [0]
    for _ in range(n - 1):
        ids.append((ids[-1] * 3 + draw.choice([0, 0, 0, 1, 2, 5])) % vocab_size)
    return ids


class KneserNey:
    """The formula of Chen & Goodman, by lists instead of counters: every n-gram is looked up in the whole text."""

    def __init__(self, ids, vocab_size):
        self.vocab_size = vocab_size
        trigrams = [tuple(ids[i:i + 3]) for i in range(len(ids) - 2)]
        bigrams = [gram[1:] for gram in set(trigrams)]
        unigrams = [gram[1:] for gram in set(bigrams)]
        self.occurrences = {3: trigrams, 2: bigrams, 1: unigrams}

    def discount(self, order, count):
        if count == 0:
            return 0
        grams = self.occurrences[order]
        n = [sum(grams.count(gram) == k for gram in set(grams)) for k in range(5)]
        y = n[1] / (n[1] + 2 * n[2]) if n[1] else 0.5
        k = min(count, 3)
        return min(max(k - (k + 1) * y * n[k + 1] / n[k] if n[k] else y, 0.05), k - 0.05)

    def probability(self, gram):
        if not gram:
            return 1 / self.vocab_size
        grams = [other for other in self.occurrences[len(gram)] if other[:-1] == gram[:-1]]
        if not grams:
            return self.probability(gram[1:])
        saved = sum(self.discount(len(gram), grams.count(other)) for other in set(grams))
        own = grams.count(gram) - self.discount(len(gram), grams.count(gram))
        return (own + saved * self.probability(gram[1:])) / len(grams)


class TrigramModel(unittest.TestCase):
    def setUp(self):
        self.text = some_text(150, vocab_size=12, seed=1)
        self.model = demo_results.Trigrams(self.text, 12)

    def test_probabilities_add_up_to_one(self):
        for history in [(), (3,), (0, 3), tuple(self.text[5:7]), (11, 11), (99, 4), (99, 99)]:
            self.assertAlmostEqual(sum(self.model.probability((*history, token)) for token in range(12)), 1, 12)

    def test_is_the_formula(self):
        other = KneserNey(self.text, 12)
        for gram in [(1,), (2, 6), *[tuple(self.text[i:i + 3]) for i in range(0, 40, 13)], (1, 2, 3), (11, 0, 7)]:
            self.assertAlmostEqual(self.model.probability(gram), other.probability(gram), 12, gram)

    def test_loss_is_that_of_all_tokens_but_the_first(self):
        held_out = some_text(50, vocab_size=12, seed=2)
        nats = -math.log(self.model.probability(tuple(held_out[:2])))
        nats -= sum(math.log(self.model.probability(tuple(held_out[i - 2:i + 1]))) for i in range(2, 50))
        self.assertAlmostEqual(self.model.loss(held_out), nats / 49, 12)

    def test_is_better_than_shorter_ngrams(self):
        held_out = some_text(500, vocab_size=12, seed=3)
        unigrams = -sum(math.log(self.model.probability((token,))) for token in held_out) / len(held_out)
        self.assertLess(self.model.loss(held_out), 0.8 * unigrams)


class HiddenWords(unittest.TestCase):
    LINE = [(5, "▁the"), (6, "▁lib"), (7, "rary"), (8, "▁for"), (9, "▁2"), (10, "▁files"), (11, ")")]

    def test_only_whole_words_are_hidden(self):
        self.assertEqual(demo_results.whole_words(self.LINE), [0, 3])

    def test_each_line_hides_another_word(self):
        hidden = demo_results.hide_words([self.LINE, self.LINE, [(7, "rary")], self.LINE], "<mask>")
        self.assertEqual([(i, prompt) for i, prompt, _ in hidden],
                         [(0, "<mask> library for 2 files)"), (1, "the library <mask> 2 files)"),
                          (3, "the library <mask> 2 files)")])
        self.assertEqual([token for _, _, token in hidden], [(5, "▁the"), (8, "▁for"), (8, "▁for")])


class MostFrequent(unittest.TestCase):
    def test_is_chosen_on_the_training_text_and_counted_in_the_test_text(self):
        train, test = [[(5, "▁a"), (6, "▁b")], [(5, "▁a")]], [[(6, "▁b"), (6, "▁b"), (5, "▁a"), (7, "▁c")]]
        self.assertEqual(demo_results.most_frequent(train, test), ("▁a", 0.25))


class Bleu(unittest.TestCase):
    def test_values_that_can_be_computed_by_hand(self):
        self.assertAlmostEqual(demo_results.bleu(["a b c d e"], ["a b c d e"]), 100)
        self.assertEqual(demo_results.bleu(["x y z"], ["a b c d e"]), 0)
        # precisions 4/5, 3/4, 2/3, 1/2
        self.assertAlmostEqual(demo_results.bleu(["a b c d x"], ["a b c d e"]), 100 * (0.8 * 0.75 * 2 / 3 * 0.5) ** 0.25)
        # shorter than the reference: exp(1 - 5/4)
        self.assertAlmostEqual(demo_results.bleu(["a b c d"], ["a b c d e"]), 100 * math.exp(1 - 5 / 4))
        # a word counts as often as the reference has it: 1/4 instead of 4/4, and no bigram
        self.assertEqual(demo_results.bleu(["a a a a"], ["a b c d"]), 0)


# Words are tokens of their own, numbered in the order of their first occurrence.
STAND_IN = '''#!/usr/bin/env python3
import json, sys
arguments, lines = sys.argv[1:], [] if "--prompt" in sys.argv else sys.stdin.read().splitlines()
words = open({words!r}, encoding="utf-8").read().split()
ids = lambda text: [10 + words.index(word) for word in text.split()]
command, run = arguments[0], arguments[1]
if command == "tokenizer":
    print(json.dumps({{"results": [{{"ids": ids(x), "tokens": ["\\u2581" + w for w in x.split()]}} for x in lines]}}))
elif command == "generate" and "--prompt" in arguments:
    print(json.dumps({{"results": [{{"outputs": [{{"text": f"written {{i}}"}} for i in range(10)]}}]}}))
elif command == "generate":
    outputs = [[{{"ids": ids("for"), "logprobs": [-0.5]}}] for line in lines]
    print(json.dumps({{"results": [{{"outputs": x}} for x in outputs]}}))
else:
    if "--translations" in arguments:
        open(arguments[arguments.index("--translations") + 1], "w").write("translated\\n" * 12)
    print(json.dumps({{"loss": 0.25, "accuracy": 0.75, "tokens": {tokens}, "bleu": 12.5}}))
'''


class Output(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.root = Path(self.directory.name)
        train, test = ["files for a tool", "files"] * 20, ["a tool for files", "files for a tool"] * 6
        for part, lines in (("train", train), ("test", test)):
            self.write(f"data/debian-packages/{part}.txt", lines)
        for corpus in ("dict-de-en", "messages-de-en"):
            self.write(f"data/{corpus}/test.de", [f"{corpus} Zeile {i}" for i in range(6)])
            self.write(f"data/{corpus}/test.en", [f"{corpus} line {i}" for i in range(6)])
        self.write("runs/gpt/tokenizer.json", [json.dumps({"special": {"eos": 3}})])
        self.write("words", ["files for a tool"])

    def tearDown(self):
        self.directory.cleanup()

    def write(self, name, lines):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")

    def show(self, tokens):
        zoo = self.root / "zoo"
        zoo.write_text(STAND_IN.format(words=str(self.root / "words"), tokens=tokens), encoding="utf-8")
        zoo.chmod(0o755)
        return subprocess.run([sys.executable, SCRIPT, zoo, self.root / "runs", self.root / "data", "7"],
                              capture_output=True, encoding="utf-8")

    def test_shows_ten_of_each_and_the_figures(self):
        done = self.show(tokens=12 * 5 - 1)
        self.assertEqual(done.returncode, 0, done.stderr)
        parts = done.stdout.split("\n\n")
        self.assertEqual([sum(line.startswith("  ") for line in part.splitlines()) for part in parts[:3]], [10, 10, 10])
        self.assertIn("  written 0\n", parts[0])
        self.assertRegex(parts[0], r"Loss on 59 tokens of other packages: 0\.250 nats")
        self.assertRegex(parts[0], r"The GPT's is -?[\d.]+ % (lower|higher)")
        self.assertIn("[for: for, 61 %]", parts[1])
        self.assertIn("finds 75.0 % of the tokens", parts[1])
        self.assertIn("'files', finds 25.0 %: the BERT finds 3.0 times as many.", parts[1])
        self.assertIn("dict-de-en Zeile 0 | translated | dict-de-en line 0", parts[2])
        self.assertIn("BLEU on 12 lines that it has not seen: 12.5. The German lines as they are: 0.0.", parts[2])
        self.assertIn("Ich liebe dich .  ->  written 0", parts[3])

    def test_refuses_to_compare_different_tokens(self):
        done = self.show(tokens=17)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "demo_results: the GPT was scored on 17 tokens, not on 59\n")


if __name__ == "__main__":
    unittest.main()
