#!/usr/bin/env python3
"""Runs the benchmark of several processes on a tiny model and checks its output.

    scaling_benchmark.py ZOO
"""

import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from benchmark import check, check_success, run, run_test  # noqa: E402

PROGRAM = "training/scaling.py"
CONFIG = """
name: tiny
task: language_modeling
data: {train: text.txt, sequence_length: 16, tokenizer: {type: byte}}
model: {architecture: decoder, d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32, max_positions: 16, dropout: 0}
training: {batch_size: 8}
"""


def main(zoo):
    with tempfile.TemporaryDirectory() as folder:
        config, text, file = (Path(folder) / name for name in ("tiny.yaml", "text.txt", "results.json"))
        text.write_text("All happy families are alike.\n" * 200, encoding="utf-8")
        config.write_text(CONFIG, encoding="utf-8")
        done = run(PROGRAM, config, "--zoo", zoo, "--set", f"data.train={text}", "--processes", "2", "--rounds", "1",
                   "--steps", "20", "--json", file)
        check_success(done)
        kinds = json.loads(file.read_text(encoding="utf-8"))
        wrong = run(PROGRAM, Path(folder) / "no.yaml", "--zoo", zoo, "--rounds", "1")
        check(wrong.returncode == 2 and wrong.stderr.count("\n") == 1 and "no.yaml" in wrong.stderr,
              f"a missing configuration gives: {wrong.stderr}")
        nothing = run(PROGRAM, config, "--zoo", Path(folder) / "no-zoo")
        check(nothing.returncode == 2 and nothing.stderr.count("\n") == 1 and "no-zoo" in nothing.stderr,
              f"a missing program gives: {nothing.stderr}")
    check([(kind["processes"], kind["sharded"]) for kind in kinds] == [(1, False), (2, False), (2, True)],
          f"the measured kinds are {kinds}")
    alone, whole, dealt_out = (kind["runs"][0] for kind in kinds)
    check(alone["bytes_per_step"] == 0, f"a single process communicates: {alone}")
    # Every gradient at least once; with a sharded state the weights, too.
    check(whole["bytes_per_step"] > 4 * 16 * 256 and dealt_out["bytes_per_step"] > 4 * 16 * 256, f"{kinds}")
    efficiency = whole["tokens_per_second"] / 2 / alone["tokens_per_second"]
    row = f"| 2 | whole | {whole['tokens_per_second']:.0f} | {efficiency:.2f} | {whole['bytes_per_step'] / 1e6:.2f} |"
    check(row in done.stdout, f"{row} is not in the table: {done.stdout}")


if __name__ == "__main__":
    run_test(main, __doc__)
