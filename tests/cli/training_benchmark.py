#!/usr/bin/env python3
"""Runs the training benchmark on tiny models and checks its output.

    training_benchmark.py ZOO

Both sides must have trained the same model on the same tokens, and learned. Exit code without a PyTorch: 77, or 1 if
ZOO_REQUIRE_REFERENCES is set.
"""

import json
import sys
import tempfile
from math import isclose
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from benchmark import check, check_success, run, run_test  # noqa: E402

PEAK = 0.5
PROGRAM = "training/run.py"


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
        done = run(PROGRAM, "--smoke", "--zoo", zoo, "--threads", "1", "--peak", str(PEAK), "--json", str(file))
        check_success(done)
        results = json.loads(file.read_text(encoding="utf-8"))["results"]
    check([result["workload"] for result in results] == ["gpt-small", "mixture", "gpt2", "seq2seq"],
          "workloads are missing")
    for result, peer in zip(results, ("pytorch", "transformers", "pytorch", "nn.Transformer")):
        check_result(result, peer, done.stdout)
    wrong = run(PROGRAM, "--zoo", zoo, "gpt-tiny")
    check(wrong.returncode == 2 and wrong.stderr.count("\n") == 1 and "gpt-tiny" in wrong.stderr,
          f"an unknown workload gives: {wrong.stderr}")


if __name__ == "__main__":
    run_test(main, __doc__)
