#!/usr/bin/env python3
"""Perplexity per residue of a decoder on protein chains, beside n-grams of the same training chains.

    benchmarks/proteins/perplexity.py [RUN...]   # runs of language_modeling over residues

Each chain is predicted from its second residue on, as `zoo score` does it. The n-grams are interpolated: the probability of a residue
after two others is (count + K · P(residue after one)) / (count of the two + K), and so on down to the frequencies of
residues, with the K of 1, 3, 10, … 100,000 that is best on the training chains left out one in ten.

A letter that the training chains lack counts as X, an unknown residue: CB513 has two.

--data FILE: the table whose chains are scored; default CB513. --train FILE; --zoo PROGRAM.
"""

import argparse
import csv
import json
import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BEGIN = "^"
STRENGTHS = [10 ** (i / 2) for i in range(11)]  # K


def sequences_of(path):
    with open(path, newline="", encoding="ascii") as file:
        return [row["sequence"] for row in csv.DictReader(file, delimiter="\t")]


class NGrams:
    def __init__(self, chains, order):
        self.order = order
        self.counts, self.contexts = Counter(), Counter()
        self.letters = len(set("".join(chains)))
        for chain in chains:
            text = BEGIN * (order - 1) + chain
            for end in range(order, len(text) + 1):
                for n in range(order):
                    gram = text[end - 1 - n : end]
                    self.counts[gram] += 1
                    self.contexts[gram[:-1], n] += 1

    def probability(self, gram, strength):
        if not gram[:-1]:
            return (self.counts[gram] + 1) / (self.contexts["", 0] + self.letters)
        lower = self.probability(gram[1:], strength)
        return (self.counts[gram] + strength * lower) / (self.contexts[gram[:-1], len(gram) - 1] + strength)

    def perplexity(self, chains, strength):
        total = n = 0
        for chain in chains:
            text = BEGIN * (self.order - 1) + chain
            for end in range(self.order + 1, len(text) + 1):
                total -= math.log(self.probability(text[end - self.order : end], strength))
                n += 1
        return math.exp(total / n)


def of_ngrams(train, chains, order):
    kept = [chain for i, chain in enumerate(train) if i % 10]
    held_out = train[::10]
    part = NGrams(kept, order)
    strength = min(STRENGTHS, key=lambda k: part.perplexity(held_out, k)) if order > 1 else 1
    return NGrams(train, order).perplexity(chains, strength)


def of_run(program, run, chains):
    done = subprocess.run(
        [str(program), "score", run, "--json"], input="\n".join(chains) + "\n", capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(done.stderr.strip())
    results = json.loads(done.stdout)["results"]
    return math.exp(-sum(result["total"] for result in results) / sum(result["tokens"] for result in results))


def main():
    data = Path(os.environ.get("ZOO_DATA", ROOT / "datasets")) / "proteins"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN")
    parser.add_argument("--data", type=Path, default=data / "cb513.tsv")
    parser.add_argument("--train", type=Path, default=data / "structure.train.tsv")
    parser.add_argument("--zoo", default=ROOT / "build/release/zoo")
    arguments = parser.parse_args()
    train, chains = sequences_of(arguments.train), sequences_of(arguments.data)
    known = set("".join(train))
    chains = ["".join(letter if letter in known else "X" for letter in chain) for chain in chains]
    for name, order in (("unigram", 1), ("bigram", 2), ("trigram", 3)):
        print(f"{name}\t{of_ngrams(train, chains, order):.3f}", flush=True)
    for run in arguments.runs:
        print(f"{Path(run).name}\t{of_run(arguments.zoo, run, chains):.3f}", flush=True)


if __name__ == "__main__":
    main()
