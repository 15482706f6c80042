#!/usr/bin/env python3
"""Measures attention over a window against full attention, and against transformers' Longformer.

    benchmarks/attention/run.py [--length N] [--window N] [--heads N] [--head-dim N] [--rounds N] [--seconds S]

Every implementation has its own process, and they take turns. Prints a Markdown table: milliseconds of a forward and
backward pass over one sequence (median over the rounds, least–most), the ratio to the window of this project in the same
round, and the peak memory of the tensors. Needs scripts/setup.sh --tests. Exit code 2: bad input, 1: a process failed.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
KINDS = {
    "window": "attention over the window",
    "full": "full attention",
    "libtorch": "full attention of LibTorch",
    "window-layer": "self-attention layer with the window",
    "longformer": "transformers' Longformer self-attention",
}
BASE = {"full": "window", "libtorch": "window", "longformer": "window-layer"}


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="benchmarks/attention/run.py", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--length", type=int, default=8192, help="tokens (default: %(default)s)")
    parser.add_argument("--window", type=int, default=256, help="keys on each side (default: %(default)s)")
    parser.add_argument("--heads", type=int, default=4, help="default: %(default)s")
    parser.add_argument("--head-dim", type=int, default=64, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=2, help="for each process (default: %(default)s)")
    arguments = parser.parse_args()
    if min(arguments.length, arguments.window, arguments.heads, arguments.head_dim, arguments.rounds) < 1:
        parser.error("all numbers are at least 1")
    return arguments


def measure(kind, arguments):
    shape = [str(n) for n in (arguments.length, arguments.window, arguments.heads, arguments.head_dim)]
    if kind == "longformer":
        command = [ROOT / ".venv/bin/python", HERE / "longformer.py", *shape, str(arguments.seconds)]
    else:
        command = [ROOT / "build/release/attention_speed", kind, *shape, str(arguments.seconds)]
    environment = os.environ | {"OMP_NUM_THREADS": str(len(os.sched_getaffinity(0))), "TRANSFORMERS_VERBOSITY": "error"}
    outcome = subprocess.run(command, capture_output=True, text=True, env=environment)
    if outcome.returncode:
        print(f"run.py: {kind} failed: {outcome.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        sys.exit(1)
    return json.loads(outcome.stdout)


def spread(values, form):
    return f"{form.format(statistics.median(values))} ({form.format(min(values))}–{form.format(max(values))})"


def main():
    arguments = parse_arguments()
    subprocess.run(["cmake", "--build", ROOT / "build/release", "--target", "attention_speed"], check=True,
                   stdout=subprocess.DEVNULL)
    rounds = []
    for number in range(arguments.rounds):
        print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
        rounds.append({kind: measure(kind, arguments) for kind in KINDS})
    print(f"{arguments.length} tokens, {arguments.heads} heads of {arguments.head_dim}, "
          f"a window of {arguments.window} on each side\n")
    print("| | forward and backward, ms | time of this / time of ours | MB |\n|---|---:|---:|---:|")
    for kind, name in KINDS.items():
        milliseconds = spread([r[kind]["seconds"] * 1e3 for r in rounds], "{:.0f}")
        base = BASE.get(kind)
        ratio = spread([r[kind]["seconds"] / r[base]["seconds"] for r in rounds], "{:.2f}") if base else "–"
        size = rounds[0][kind].get("bytes")
        print(f"| {name} | {milliseconds} | {ratio} | {size / 1e6:.1f} |" if size else
              f"| {name} | {milliseconds} | {ratio} | – |")


if __name__ == "__main__":
    main()
