#!/usr/bin/env python3
"""Accuracy of predicted secondary structure on CB513, with 95 % intervals over chains, beside simple baselines.

    benchmarks/proteins/structure.py RUN...     # runs of token_classification over dssp8 or dssp3

For each run: the share of residues whose state is right, of eight states (Q8) and of three (Q3: H, G, I are helix, E, B
strand, the rest coil; the states of a run over dssp8 are reduced after the prediction, which is worse than a run over
dssp3). The intervals are those of a bootstrap over chains, 2,000 draws. With several runs, also the differences to the first
one, on the same draws.

Baselines: the commonest state, and GOR I (Garnier, Osguthorpe & Robson 1978), the sum of what each of 17 neighbouring
residues says by itself, from the same training chains.

--data FILE, --train FILE: other tables; --zoo PROGRAM.
"""

import argparse
import csv
import json
import math
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
THREE_STATES = str.maketrans("HGIEBCST-", "HHHEECCC-")
NOT_COUNTED = "-"
DRAWS = 2000
WINDOW = 8  # residues on each side in GOR I


def rows_of(path):
    with open(path, newline="", encoding="ascii") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def predicted(program, run, path):
    """The predicted states of each chain of a table, as one text each."""
    command = [program, "predict", run, "--input", path, "--json"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr.strip())
    return ["".join(token["label"] for token in result["tokens"]) for result in json.loads(done.stdout)["results"]]


def gor(train, column, sequences):
    """States by GOR I: for each state the sum over neighbours of log P(residue at distance | state) / P(residue)."""
    counts, states, residues = Counter(), Counter(), Counter()
    for row in train:
        sequence, labels = row["sequence"], row[column]
        for i, state in enumerate(labels):
            if state == NOT_COUNTED:
                continue
            states[state] += 1
            for d in range(-WINDOW, WINDOW + 1):
                if 0 <= i + d < len(sequence):
                    counts[state, d, sequence[i + d]] += 1
                    residues[d, sequence[i + d]] += 1
    total = sum(states.values())
    score = {
        (state, d, residue): math.log((counts[state, d, residue] + 1) / (states[state] + 20) / (n + 20) * total)
        for state in states for (d, residue), n in residues.items()
    }  # fmt: skip
    prior = {state: math.log(n / total) for state, n in states.items()}
    for sequence in sequences:
        chosen = []
        for i in range(len(sequence)):
            near = [(d, sequence[i + d]) for d in range(-WINDOW, WINDOW + 1) if 0 <= i + d < len(sequence)]
            chosen.append(max(states, key=lambda s: prior[s] + sum(score.get((s, d, r), 0) for d, r in near)))
        yield "".join(chosen)


def commonest(train, column, sequences):
    states = Counter("".join(row[column] for row in train).replace(NOT_COUNTED, ""))
    return [states.most_common(1)[0][0] * len(sequence) for sequence in sequences]


def counts_of(labels, guesses):
    """(right, all) of each chain."""
    return [
        (
            sum(a == b for a, b in zip(true, guess) if a != NOT_COUNTED),
            sum(a != NOT_COUNTED for a in true[: len(guess)]),
        )
        for true, guess in zip(labels, guesses)
    ]  # fmt: skip


def share(counts):
    return 100 * sum(right for right, _ in counts) / sum(n for _, n in counts)


def interval(counts, others=None):
    """95 % of the share, or of its difference to that of others."""
    draw = random.Random(1)
    chains = range(len(counts))
    values = []
    for _ in range(DRAWS):
        picked = draw.choices(chains, k=len(counts))
        value = share([counts[i] for i in picked])
        values.append(value - share([others[i] for i in picked]) if others else value)
    values.sort()
    return values[round(0.025 * len(values))], values[round(0.975 * len(values)) - 1]


def report(name, what, counts, first=None):
    low, high = interval(counts)
    line = f"{name}\t{what}\t{share(counts):.2f} %\t{low:.2f} to {high:.2f}"
    if first:
        low, high = interval(counts, first)
        line += f"\t{share(counts) - share(first):+.2f} ({low:+.2f} to {high:+.2f})"
    print(line, flush=True)


def main():
    data = Path(os.environ.get("ZOO_DATA", ROOT / "datasets")) / "proteins"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN")
    parser.add_argument("--data", type=Path, default=data / "structure.test.tsv")
    parser.add_argument("--train", type=Path, default=data / "structure.train.tsv")
    parser.add_argument("--zoo", default=ROOT / "build/release/zoo")
    arguments = parser.parse_args()
    rows = rows_of(arguments.data)
    sequences = [row["sequence"] for row in rows]
    eight, three = ([row[column] for row in rows] for column in ("dssp8", "dssp3"))
    print("model\tstates\tright\t95 % interval\tdifference to the first run")
    first = {}
    for run in arguments.runs:
        guesses = predicted(arguments.zoo, run, arguments.data)
        by_states = {"Q3": counts_of(three, [guess.translate(THREE_STATES) for guess in guesses])}
        if set("".join(guesses)) - set("HEC"):
            by_states["Q8"] = counts_of(eight, guesses)
        for what, counts in by_states.items():
            report(Path(run).name, what, counts, first.get(what))
            first.setdefault(what, counts)
    train = rows_of(arguments.train)
    for name, baseline in (("commonest state", commonest), ("GOR I", gor)):
        for what, column, labels in (("Q3", "dssp3", three), ("Q8", "dssp8", eight)):
            report(name, what, counts_of(labels, baseline(train, column, sequences)))


if __name__ == "__main__":
    main()
