#!/usr/bin/env python3
"""Shows what the three models of scripts/demo.sh have learnt: ten examples of each, none of them selected, and a figure
next to the figure of a simple method.

Usage: demo_results.py ZOO RUNS DATA SEED

ZOO is the program, RUNS the folder with the runs gpt, bert and translation, DATA the folder with their corpora. Every
figure is of test data that no training has seen. Only the standard library is needed.
"""

import json
import math
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

N_EXAMPLES = 10
WORD_BEGIN = "\u2581"  # SentencePiece's mark of the beginning of a word


class Zoo:
    """The program's subcommands."""

    def __init__(self, program):
        self.program = program

    def json(self, *arguments, lines=()):
        """The document that a subcommand writes with --json when it reads `lines`."""
        done = subprocess.run([self.program, *map(str, arguments), "--json"], input="".join(f"{x}\n" for x in lines),
                              capture_output=True, encoding="utf-8")
        if done.returncode != 0:
            sys.stderr.write(done.stderr)
            sys.exit(done.returncode)
        return json.loads(done.stdout)

    def encode(self, run, lines):
        """The tokens of each line as (id, label)."""
        return [list(zip(result["ids"], result["tokens"]))
                for result in self.json("tokenizer", "encode", run, lines=lines)["results"]]


def read_lines(*paths):
    return [line for path in paths for line in Path(path).read_text(encoding="utf-8").splitlines()]


def every_nth(rows, n):
    """`n` rows at equal distances."""
    return [rows[i * len(rows) // n] for i in range(n)]


class Trigrams:
    """A trigram model with interpolated modified Kneser-Ney smoothing (Chen & Goodman 1998, section 4.1.6). Its discounts
    are estimated from the counts of counts."""

    def __init__(self, ids, vocab_size):
        self.vocab_size = vocab_size
        counts = Counter(zip(ids, ids[1:], ids[2:]))
        self.orders = {}
        for n in (3, 2, 1):
            self.orders[n] = (counts, self._contexts(counts), self._discounts(counts))
            # A shorter n-gram counts once for each different token before it, not each time it occurs.
            counts = Counter(gram[1:] for gram in counts)

    @staticmethod
    def _contexts(counts):
        """For the tokens before the last one: [sum of counts, n-grams with count 1, 2, 3 or more]."""
        contexts = defaultdict(lambda: [0, 0, 0, 0])
        for gram, count in counts.items():
            context = contexts[gram[:-1]]
            context[0] += count
            context[min(count, 3)] += 1
        return dict(contexts)

    @staticmethod
    def _discounts(counts):
        n = Counter(counts.values())
        y = n[1] / (n[1] + 2 * n[2]) if n[1] else 0.5
        estimates = [k - (k + 1) * y * n[k + 1] / n[k] if n[k] else y for k in (1, 2, 3)]
        # A small text may lack n-grams with some count. Without a discount, unseen tokens would get nothing.
        return [0.0] + [min(max(d, 0.05), k - 0.05) for k, d in zip((1, 2, 3), estimates)]

    def probability(self, gram):
        """Of the last token of `gram` after its others."""
        if not gram:
            return 1 / self.vocab_size
        lower = self.probability(gram[1:])
        counts, contexts, discounts = self.orders[len(gram)]
        context = contexts.get(gram[:-1])
        if context is None:
            return lower
        count = counts.get(gram, 0)
        taken = sum(d * n for d, n in zip(discounts[1:], context[1:]))
        return (count - discounts[min(count, 3)] + taken * lower) / context[0]

    def loss(self, ids):
        """Nats per token of all but the first one, each after the two before it."""
        return -sum(math.log(self.probability(tuple(ids[max(i - 2, 0):i + 1]))) for i in range(1, len(ids))) / (
            len(ids) - 1)


def stream(documents, eos):
    """The tokens of all documents, each with its end, as language models read them."""
    return [token for document in documents for token in [id for id, _ in document] + [eos]]


def whole_words(tokens):
    """The positions in `tokens` that are words of letters, not pieces of words."""
    begins = [label.startswith(WORD_BEGIN) for _, label in tokens] + [True]
    return [i for i, (_, label) in enumerate(tokens)
            if begins[i] and begins[i + 1] and label[1:].isalpha()]


def hide_words(documents, mask):
    """(number of the document, the prompt with <mask>, the hidden token) for each document that has a whole word. The
    document with number i hides its word number i, counted round and round."""
    hidden = []
    for i, tokens in enumerate(documents):
        words = whole_words(tokens)
        if words:
            at = words[i % len(words)]
            text = "".join(f" {mask}" if k == at else label for k, (_, label) in enumerate(tokens))
            hidden.append((i, text.replace(WORD_BEGIN, " ").strip(), tokens[at]))
    return hidden


def bleu(outputs, references):
    """Corpus BLEU in per cent over words between blanks: this text has its punctuation separated."""
    matches, totals, lengths = [0] * 4, [0] * 4, [0, 0]
    for output, reference in zip(outputs, references):
        words, right = output.split(), reference.split()
        lengths = [lengths[0] + len(words), lengths[1] + len(right)]
        for n in range(1, 5):
            grams = [Counter(tuple(side[i:i + n]) for i in range(len(side) - n + 1)) for side in (words, right)]
            matches[n - 1] += sum((grams[0] & grams[1]).values())
            totals[n - 1] += sum(grams[0].values())
    if 0 in matches:
        return 0.0
    brevity = min(0.0, 1 - lengths[1] / lengths[0])
    return 100 * math.exp(brevity + sum(math.log(m / t) for m, t in zip(matches, totals)) / 4)


def show_gpt(zoo, run, data, seed):
    print(f"\nThe GPT: the first ten descriptions of packages that it writes with seed {seed}")
    for output in zoo.json("generate", run, "--prompt", "", "--num-samples", N_EXAMPLES, "--seed", seed)["results"][0][
            "outputs"]:
        print(f"  {' '.join(output['text'].split())}")
    tokenizer = json.loads((run / "tokenizer.json").read_text(encoding="utf-8"))
    train, test = (stream(zoo.encode(run, read_lines(data / f"{part}.txt")), tokenizer["special"]["eos"])
                   for part in ("train", "test"))
    scores = zoo.json("evaluate", run, "--split", "test")
    if scores["tokens"] != len(test) - 1:
        sys.exit(f"demo_results: the GPT was scored on {scores['tokens']} tokens, not on {len(test) - 1}")
    loss, baseline = scores["loss"], Trigrams(train, max(train + test) + 1).loss(test)
    print(f"Loss on {scores['tokens']} tokens of other packages: {loss:.3f} nats. Trigrams of the same tokens, with "
          f"interpolated Kneser-Ney smoothing: {baseline:.3f}.\nThe GPT's is {100 * abs(1 - loss / baseline):.1f} % {'lower' if loss < baseline else 'higher'}.")


def show_bert(zoo, run, data):
    print("\nThe BERT: ten descriptions of packages, each with a hidden word [right: guess, probability]")
    train, test = (zoo.encode(run, read_lines(data / f"{part}.txt")) for part in ("train", "test"))
    hidden = hide_words(test, "<mask>")
    results = zoo.json("generate", run, "--num-samples", 1, lines=[prompt for _, prompt, _ in hidden])["results"]
    guesses = [result["outputs"][0] for result in results]
    label_of = {id: label for tokens in train + test for id, label in tokens}
    for (_, prompt, (_, word)), guess in every_nth(list(zip(hidden, guesses)), N_EXAMPLES):
        shown = label_of.get(guess["ids"][0], "?").removeprefix(WORD_BEGIN)
        probability = math.exp(guess["logprobs"][0])
        print(f"  {prompt.replace('<mask>', f'[{word[1:]}: {shown}, {100 * probability:.0f} %]')}")
    scores = zoo.json("evaluate", run, "--split", "test")
    label, share = most_frequent(train, test)
    print(f"It finds {100 * scores['accuracy']:.1f} % of the tokens that are hidden in descriptions of other packages. "
          f"Always guessing the\nmost frequent one, '{label.removeprefix(WORD_BEGIN)}', finds {100 * share:.1f} %"
          + (f": the BERT finds {scores['accuracy'] / share:.1f} times as many." if share else "."))


def most_frequent(train, test):
    """The label of the most frequent token of `train`, and its share of the tokens of `test`. Any of these tokens may be
    hidden, so this is the share of the hidden ones that it is expected to find."""
    counts = Counter(token for tokens in train for token in tokens)
    token, _ = max(counts.items(), key=lambda item: (item[1], item[0]))
    counts = Counter(token for tokens in test for token in tokens)
    return token[1], counts[token] / sum(counts.values())


def show_translation(zoo, run, sources, references, outputs, sentence):
    print("\nThe translator: ten lines [German | its English | the right English]")
    scores = zoo.json("evaluate", run, "--split", "test", "--translations", outputs)
    german, right, english = read_lines(*sources), read_lines(*references), read_lines(outputs)
    if not len(german) == len(right) == len(english):
        sys.exit(f"demo_results: {len(english)} translations of {len(german)} lines")
    for row in every_nth(list(zip(german, english, right)), N_EXAMPLES):
        print(f"  {' | '.join(row)}")
    print(f"BLEU on {len(german)} lines that it has not seen: {scores['bleu']:.1f}. The German lines as they are: "
          f"{bleu(german, right):.1f}.")
    answer = zoo.json("generate", run, "--prompt", sentence)["results"][0]["outputs"][0]["text"]
    print(f"\n{sentence}  ->  {answer}")


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    zoo, runs, data, seed = Zoo(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
    show_gpt(zoo, runs / "gpt", data / "debian-packages", seed)
    show_bert(zoo, runs / "bert", data / "debian-packages")
    tests = [data / corpus / "test" for corpus in ("dict-de-en", "messages-de-en")]
    show_translation(zoo, runs / "translation", [f"{test}.de" for test in tests], [f"{test}.en" for test in tests],
                     runs / "translations.txt", "Ich liebe dich .")


if __name__ == "__main__":
    main()
