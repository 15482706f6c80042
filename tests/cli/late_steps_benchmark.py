#!/usr/bin/env python3
"""Runs the benchmark of late steps on a tiny model and checks its output and what it keeps.

    late_steps_benchmark.py ZOO
"""

import re
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from benchmark import check, check_success, run, run_test  # noqa: E402

PROGRAM = "training/late_steps.py"
CONFIG = """
name: tiny
task: language_modeling
data: {{train: {text}, sequence_length: 16, tokenizer: {{type: byte}}}}
model: {{architecture: decoder, d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32, max_positions: 16, dropout: 0}}
training: {{batch_size: 8}}
"""


def written(folder):
    """When each file of the kept runs was written."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def check_table(done, ages):
    check_success(done)
    rows = re.findall(r"^\| tiny \| adamw \| step (\S+) \| \d+\.\d \(.*\) \| \d+\.\d+ \(.*\) \|$", done.stdout, re.M)
    check(rows == ages, f"the table is {done.stdout}")


def main(zoo):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config, text, kept = folder / "tiny.yaml", folder / "text.txt", folder / "kept"
        text.write_text("All happy families are alike.\n" * 200, encoding="utf-8")
        config.write_text(CONFIG.format(text=text), encoding="utf-8")
        common = [config, "--optimizer", "adamw", "--zoo", zoo, "--threads", "1", "--rounds", "1", "--steps", "2"]
        check_table(run(PROGRAM, *common, "--ages", "5", "15"), ["5", "15"])

        keeping = [*common, "--keep", kept, "--ages"]
        check_table(run(PROGRAM, *keeping, "5", "15"), ["5", "15"])
        runs = kept / "tiny-adamw"
        check(sorted(path.name for path in runs.iterdir()) == ["step-15", "step-5"], f"{list(runs.iterdir())} are kept")
        before = written(runs)
        check_table(run(PROGRAM, *keeping, "5", "15"), ["5", "15"])
        check(written(runs) == before, "a second call trains again what is kept")

        check_table(run(PROGRAM, *keeping, "5", "15", "--processor-time"), ["5", "15"])
        check(written(runs) == before, "measuring changes what is kept")

        # An age between two that are there goes on from the younger one, and an interrupted training from where it was.
        shutil.copytree(runs / "step-5", runs / "to-step-10", symlinks=True)
        check_table(run(PROGRAM, *keeping, "10", "15"), ["10", "15"])
        last = (runs / "step-10/checkpoints/last").resolve()
        check("10" in last.name, f"the run at step 10 has the checkpoint {last}")
        check(not (runs / "to-step-10").exists(), "the finished training is still there as an unfinished one")


if __name__ == "__main__":
    run_test(main, __doc__)
