#!/usr/bin/env python3
"""Runs the training benchmark on tiny models and checks its output.

    training_benchmark.py ZOO

Both sides must have trained the same model on the same tokens, and learned. Exit code without a PyTorch: 77, or 1 if
ZOO_REQUIRE_REFERENCES is set.
"""

import json
import os
import subprocess
import sys
import tempfile
from math import isclose
from pathlib import Path

SKIPPED = 77
PEAK = 0.5
PROGRAM = Path(__file__).resolve().parent.parent.parent / "benchmarks/training/run.py"


def check(condition, what):
    if not condition:
        sys.exit(f"training_benchmark.py: {what}")


def run(*arguments):
    return subprocess.run([sys.executable, PROGRAM, *arguments], capture_output=True, text=True, check=False)


def check_result(result, peer, table):
    name = result["workload"]
    sides = {side["name"]: side for side in result["sides"]}
    check(list(sides) == ["zoo", peer], f"{name} compares {list(sides)}")
    ours, theirs = sides["zoo"], sides[peer]
    check(ours["runs"][0]["tokens"] == theirs["runs"][0]["tokens"] > 0, f"{name}: the sides read different tokens")
    for side in sides.values():
        only = side["runs"][0]
        check(only["tokens_per_second"] > 0 and 1 << 20 < only["peak_bytes"] < 1 << 32, f"{name}: {only}")
        tera = result["flops_per_token"] * only["tokens_per_second"] * 1e-12
        row = f"| {side['name']} | {only['tokens_per_second']:.0f} | {tera:.3g} ({tera / PEAK:.0%}) |"
        check(row in table, f"{name}: {row} is not in the table")
    # Equal steps on the same model end in nearly equal losses. Another loss, split or schedule would not.
    losses = [side["valid_loss"]["median"] for side in (ours, theirs)]
    check(isclose(*losses, rel_tol=0.1), f"{name}: the sides end in losses of {losses}")
    for key, ratio in (("tokens_per_second", "speed_ratio"), ("peak_bytes", "memory_ratio")):
        expected = ours["runs"][0][key] / theirs["runs"][0][key]
        check(isclose(theirs[ratio]["median"], expected), f"{name}: {ratio} is {theirs[ratio]}, not {expected}")


def main(zoo):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.json"
        done = run("--smoke", "--zoo", zoo, "--threads", "1", "--peak", str(PEAK), "--json", str(file))
        if done.returncode == SKIPPED and "ZOO_REQUIRE_REFERENCES" not in os.environ:
            print(done.stderr, end="")
            sys.exit(SKIPPED)
        check(done.returncode == 0, f"the benchmark ended with {done.returncode}: {done.stderr}")
        results = json.loads(file.read_text(encoding="utf-8"))["results"]
    check([result["workload"] for result in results] == ["gpt-small", "gpt2", "seq2seq"], "workloads are missing")
    for result, peer in zip(results, ("pytorch", "pytorch", "nn.Transformer")):
        check_result(result, peer, done.stdout)
    wrong = run("--zoo", zoo, "gpt-tiny")
    check(wrong.returncode == 2 and wrong.stderr.count("\n") == 1 and "gpt-tiny" in wrong.stderr,
          f"an unknown workload gives: {wrong.stderr}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
