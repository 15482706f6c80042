#!/usr/bin/env python3
"""Runs the benchmark of vision transformers on a tiny model and checks its output.

    vision_benchmark.py ZOO

Exit code without a PyTorch: 77, or 1 if ZOO_REQUIRE_REFERENCES is set.
"""

import json
import os
import subprocess
import sys
import tempfile
from math import isclose
from pathlib import Path

SKIPPED = 77
PROGRAM = Path(__file__).resolve().parent.parent.parent / "benchmarks/vision/run.py"


def check(condition, what):
    if not condition:
        sys.exit(f"vision_benchmark.py: {what}")


def run(*arguments):
    return subprocess.run([sys.executable, PROGRAM, *arguments], capture_output=True, text=True, check=False)


def main(zoo):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.json"
        done = run("--smoke", "--zoo", zoo, "--threads", "1", "--steps", "6", "--json", str(file))
        if done.returncode == SKIPPED and "ZOO_REQUIRE_REFERENCES" not in os.environ:
            print(done.stderr, end="")
            sys.exit(SKIPPED)
        check(done.returncode == 0, f"the benchmark ended with {done.returncode}: {done.stderr}")
        result = json.loads(file.read_text(encoding="utf-8"))["result"]
    sides = {side["name"]: side for side in result["sides"]}
    check(list(sides) == ["zoo", "PyTorch"], f"it compares {list(sides)}")
    for side in sides.values():
        only = side["runs"][0]
        check(only["images_per_second"] > 0 and 1 << 20 < only["peak_bytes"] < 1 << 32, f"{side}")
        check(f"| {side['name']} | {only['images_per_second']:.1f} |" in done.stdout, f"no row of {side['name']}")
    for key, ratio in (("images_per_second", "speed_ratio"), ("peak_bytes", "memory_ratio")):
        expected = sides["zoo"]["runs"][0][key] / sides["PyTorch"]["runs"][0][key]
        check(isclose(sides["PyTorch"][ratio]["median"], expected), f"{ratio} is not {expected}")
    bad = run("--zoo", zoo, "--steps", "1")
    check(bad.returncode == 2 and "--steps is at least 2" in bad.stderr, f"--steps 1: {bad.stderr}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
