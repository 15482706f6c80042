#!/usr/bin/env python3
"""Measures what a model of Python functions has learnt: does what it writes parse, and does it find a line that is masked
out of a function?

Usage: functions.py ZOO RUN DATA [--functions 200] [--lines 300] [--seed 1] [--json]

ZOO is the program, RUN a run of configs/code/python.yaml, DATA the folder python-stdlib. A trigram model over the same
tokens is the baseline: absolute discounting (0.75), interpolated with bigrams and unigrams, sampled with the same
temperature and top_p as the run.

    parses       share of functions, written from nothing, that ast.parse() takes as one function; with `--regex` beside it,
                 the same where every output has the form of form()
    copies       share of those that are training functions
    exact line   share of the masked-out lines of test functions that greedy search gives exactly: from what stands before
                 the line, and (if the vocabulary has <fim_middle>) from both sides, in both orders of data.suffix_first

Shares have Wilson's intervals of 95 %. The lines are drawn by --seed, one of each function; the first line is not masked.
"""

import argparse
import ast
import json
import random
import statistics
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.shares import share_text, wilson  # noqa: E402

DISCOUNT = 0.75
PROMPTS_AT_ONCE = 100


def form():
    """A regular expression of the form of functions: a head and indented lines, with closed strings and brackets, up to three
    deep. That an indented line follows `if x:` is more than such an expression can say."""
    string = r"""('([^'\\\n]|\\[^\n])*'|"([^"\\\n]|\\[^\n])*")"""
    piece = rf"""([^()\[\]{{}}'"\n\\#]|{string})"""
    line = f"{piece}*"
    for _ in range(3):
        group = rf"(\({line}\)|\[{line}\]|\{{{line}\}})"
        line = rf"({piece}|{group})*"
    return (rf"(@{line}\n)*(async )?def [a-zA-Z_][a-zA-Z_0-9]*\([^()\n]*\)( -> [^\n:]+)?:"
            rf"(\n( {{4}})+([a-zA-Z_@]|{string}|{group}){line})+")


def zoo(program, *arguments, lines=()):
    """The document that a subcommand prints with --json."""
    done = subprocess.run([program, *map(str, arguments), "--json"], input="".join(f"{x}\n" for x in lines),
                          capture_output=True, encoding="utf-8")
    if done.returncode:
        sys.stderr.write(done.stderr)
        sys.exit(done.returncode)
    return json.loads(done.stdout)


def texts_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line)["text"] for line in file]


class Vocabulary:
    """The run's tokens of texts. A text with line breaks is given as an argument, because input is read in lines."""

    def __init__(self, program, run):
        self.program, self.run = program, run
        self.text_of = {}  # of a token

    def encode(self, text):
        result = zoo(self.program, "tokenizer", "encode", self.run, "--text", text)["results"][0]
        self.text_of.update(zip(result["ids"], result["tokens"]))
        return result["ids"]

    def encode_all(self, texts):
        """The tokens of many texts in one call: joined by <eos>, which is a token of its own."""
        documents, end = [], self.encode("<eos>")[0]
        for begin in range(0, len(texts), 200):
            document = []
            for token in self.encode("<eos>".join(texts[begin:begin + 200])) + [end]:
                if token == end:
                    documents.append(document)
                    document = []
                else:
                    document.append(token)
        return documents, end

    def decode(self, ids):
        return "".join(self.text_of[token] for token in ids).replace("↵", "\n").replace("▁", " ").replace("⇥", "\t")


class Trigrams:
    """Interpolated trigrams with absolute discounting (Ney et al. 1994)."""

    def __init__(self, documents, end):
        self.end = end
        self.counts = [defaultdict(Counter) for _ in range(3)]
        for document in documents:
            padded = [end, end, *document, end]
            for i in range(2, len(padded)):
                for order in range(3):
                    self.counts[order][tuple(padded[i - order:i])][padded[i]] += 1

    def distribution(self, before):
        result = Counter()
        left = 1.0
        for order in (2, 1, 0):
            following = self.counts[order].get(tuple(before[len(before) - order:]))
            if not following:
                continue
            total, discount = sum(following.values()), DISCOUNT if order else 0
            for token, count in following.items():
                result[token] += left * (count - discount) / total
            left *= discount * len(following) / total
        return result

    def sample(self, draw, temperature, top_p, most):
        before, out = [self.end, self.end], []
        while len(out) < most:
            weighted = sorted(((p ** (1 / temperature), token) for token, p in self.distribution(before).items()),
                              reverse=True)
            left, kept = top_p * sum(p for p, _ in weighted), []
            for p, token in weighted:
                kept.append((p, token))
                left -= p
                if left <= 0:
                    break
            token = draw.choices([token for _, token in kept], [p for p, _ in kept])[0]
            if token == self.end:
                break
            out.append(token)
            before = [before[1], token]
        return out

    def likeliest(self, before, is_last, most):
        before, out = [self.end, self.end, *before][-2:], []
        while len(out) < most:
            distribution = self.distribution(before)
            token = max(distribution, key=lambda token: (distribution[token], -token))
            if token == self.end or is_last(token):
                break
            out.append(token)
            before = [before[1], token]
        return out


def is_function(text):
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return len(body) == 1 and isinstance(body[0], (ast.FunctionDef, ast.AsyncFunctionDef))


class Gap:
    """A function without one of its lines. The line begins with its last blank of indentation, because this blank and the
    word after it are one token."""

    def __init__(self, text, draw):
        lines = text.split("\n")
        number = draw.randrange(1, len(lines))
        line = lines[number]
        indentation = max(len(line) - len(line.lstrip()) - 1, 0)
        self.before = "\n".join(lines[:number]) + "\n" + line[:indentation]
        self.line = line[indentation:]
        self.after = "".join("\n" + following for following in lines[number + 1:])

    def prompt(self, order):
        """What asks a model for the line, with what stands before it first, or what stands after it."""
        if order == "suffix first":
            return f"<fim_prefix><fim_suffix>{self.after}<fim_middle>{self.before}"
        return f"<fim_prefix>{self.before}<fim_suffix>{self.after}<fim_middle>"

    def is_found(self, text):
        return text.split("\n")[0].strip() == self.line.strip()


def fill(program, run, prompts):
    """What greedy search gives for each prompt, one line."""
    texts = []
    for begin in range(0, len(prompts), PROMPTS_AT_ONCE):
        arguments = [part for prompt in prompts[begin:begin + PROMPTS_AT_ONCE] for part in ("--prompt", prompt)]
        results = zoo(program, "generate", run, *arguments, "--temperature", 0, "--num-samples", 1, "--stop", "\n",
                      "--max-new-tokens", 80)["results"]
        texts += [result["outputs"][0]["text"] for result in results]
    return texts


def generation_of(program, run):
    """temperature, top_p and max_new_tokens of the run."""
    text = (Path(run) / "config.yaml").read_text(encoding="utf-8").split("\ngeneration:")[1]
    values = {}
    for line in text.splitlines()[1:]:
        if not line.startswith(" "):
            break
        key, _, value = line.strip().partition(": ")
        values[key] = value
    return float(values["temperature"]), float(values["top_p"]), int(values["max_new_tokens"])


def functions_of(options, *more):
    """What the run writes from nothing, with `more` arguments of zoo generate."""
    results = zoo(options.zoo, "generate", options.run, "--num-samples", options.functions, "--seed", options.seed, *more)
    return [output["text"] for output in results["results"][0]["outputs"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("zoo")
    parser.add_argument("run")
    parser.add_argument("data", type=Path)
    parser.add_argument("--functions", type=int, default=200)
    parser.add_argument("--lines", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one JSON document, with all texts")
    options = parser.parse_args()
    training = texts_of(options.data / "train.jsonl")
    vocabulary = Vocabulary(options.zoo, options.run)
    documents, end = vocabulary.encode_all(training)
    trigrams = Trigrams(documents, end)
    temperature, top_p, most = generation_of(options.zoo, options.run)
    draw = random.Random(options.seed)

    written = functions_of(options)
    formed = functions_of(options, "--regex", form())
    by_trigrams = [vocabulary.decode(trigrams.sample(draw, temperature, top_p, most)) for _ in range(options.functions)]
    known = set(training)
    result = {}
    for name, texts in (("model", written), ("model with --regex", formed), ("trigrams", by_trigrams)):
        right = [text for text in texts if is_function(text)]
        result[name] = {"texts": texts, "parses": len(right), "copies": sum(text in known for text in right),
                        "lines": statistics.median(text.count("\n") + 1 for text in right) if right else 0}

    tests = [text for text in texts_of(options.data / "test.jsonl") if text.count("\n") >= 3]
    gaps = [Gap(text, draw) for text in draw.sample(tests, min(options.lines, len(tests)))]
    ways = {"the side before": [f"<eos>{gap.before}" for gap in gaps]}
    if len(vocabulary.encode("<fim_middle>")) == 1:
        for order in ("prefix first", "suffix first"):
            ways[f"both sides, {order}"] = [f"<eos>{gap.prompt(order)}" for gap in gaps]
    found = {way: [gap.is_found(text) for gap, text in zip(gaps, fill(options.zoo, options.run, prompts))]
             for way, prompts in ways.items()}

    def breaks(token):
        return "\n" in vocabulary.decode([token])
    found["trigrams"] = [gap.is_found(vocabulary.decode(trigrams.likeliest(vocabulary.encode(gap.before), breaks, 80)))
                         for gap in gaps]
    if options.json:
        lines = {way: {"count": sum(hits), "of": len(hits), "interval": wilson(sum(hits), len(hits))}
                 for way, hits in found.items()}
        print(json.dumps({"functions": result, "exact_line": lines}, indent=1))
        return
    for name, values in result.items():
        print(f"{name:18} parses      {share_text(values['parses'], options.functions)}; median of {values['lines']:.0f} "
              f"lines; copies: {values['copies']}")
    for way, hits in found.items():
        print(f"exact line, {'from ' * (way != 'trigrams')}{way}: {share_text(sum(hits), len(hits))}")


if __name__ == "__main__":
    main()
