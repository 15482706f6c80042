#!/usr/bin/env python3
"""Runs the benchmark of vision transformers on a tiny model and checks its output.

    vision_benchmark.py ZOO

Exit code without a PyTorch: 77, or 1 if ZOO_REQUIRE_REFERENCES is set.
"""

import json
import sys
import tempfile
from math import isclose
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from benchmark import check, check_success, run, run_test  # noqa: E402

PROGRAM = "vision/run.py"


def main(zoo):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.json"
        done = run(PROGRAM, "--smoke", "--zoo", zoo, "--threads", "1", "--steps", "6", "--json", str(file))
        check_success(done)
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
    bad = run(PROGRAM, "--zoo", zoo, "--steps", "1")
    check(bad.returncode == 2 and "--steps is at least 2" in bad.stderr, f"--steps 1: {bad.stderr}")


if __name__ == "__main__":
    run_test(main, __doc__)
