#!/usr/bin/env python3
"""Measures how much faster several processes train than one, on one machine.

    benchmarks/training/scaling.py CONFIG [--processes 1 2 4] [--rounds N] [--steps N] [--set KEY=VALUE] [--json FILE]

Every process has one thread, so N processes have N times the threads of one. The numbers of processes take turns. Prints
a Markdown table, with and without sharding of the optimiser's state: tokens per second after the first fifth of the steps,
efficiency = speed / (processes x speed of one), and the megabytes that a process gives to all_reduce in a step. Cells are
medians over the rounds (least–most). Exit code 2: bad input, 1: a training failed.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="benchmarks/training/scaling.py", description=__doc__.partition("\n\n")[0])
    parser.add_argument("config", metavar="CONFIG")
    parser.add_argument("--processes", type=int, nargs="+", metavar="N",
                        help="numbers of processes (default: 1, 2, 4, … up to the number of cores)")
    parser.add_argument("--rounds", type=int, default=3,
                        help="trainings for each row of the table (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=100, help="steps per training (default: %(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                        help="a key that replaces the value in CONFIG; may be repeated")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures of every run to this file")
    parser.add_argument("--zoo", type=Path, default=ROOT / "build/release/zoo",
                        help="the zoo program (default: build/release/zoo)")
    arguments = parser.parse_args()
    if arguments.processes is None:
        arguments.processes = [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= len(os.sched_getaffinity(0))]
    if min([arguments.rounds, *arguments.processes]) < 1 or arguments.steps < 10:
        parser.error("--rounds and --processes are at least 1, --steps is at least 10")
    if not os.access(arguments.zoo, os.X_OK):
        print(f"scaling.py: there is no program {arguments.zoo}; scripts/build.sh makes it, --zoo names another",
              file=sys.stderr)
        sys.exit(2)
    arguments.zoo = arguments.zoo.resolve()
    arguments.processes = sorted({1, *arguments.processes})
    return arguments


def train(arguments, processes, sharded):
    """Tokens per second and bytes per step of one training."""
    skipped = arguments.steps // 5
    with tempfile.TemporaryDirectory() as directory:
        run = Path(directory) / "run"
        settings = [*arguments.overrides, f"training.steps={arguments.steps}", f"training.log_every={skipped}",
                    f"training.evaluate_every={arguments.steps}", "training.evaluate_batches=1", "training.threads=1",
                    f"training.checkpoint_every={arguments.steps}",
                    f"training.parallel.shard_optimizer={str(sharded).lower()}"]
        command = [arguments.zoo, "train", arguments.config, "--out", run, "--nproc", str(processes), "--device", "cpu"]
        for setting in settings:
            command += ["--set", setting]
        result = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if result.returncode != 0:
            sys.stderr.write(result.stderr)
            sys.exit(result.returncode)
        rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    rows = [row for row in rows if "train_loss" in row and row["step"] > skipped]
    return {"tokens_per_second": statistics.median(row["tokens_per_second"] for row in rows),
            "bytes_per_step": rows[-1].get("communication_bytes_per_step", 0)}


def cell(values, digits=0):
    middle, least, most = statistics.median(values), min(values), max(values)
    text = f"{middle:.{digits}f}"
    return text if f"{least:.{digits}f}" == f"{most:.{digits}f}" else f"{text} ({least:.{digits}f}–{most:.{digits}f})"


def main():
    arguments = parse_arguments()
    kinds = [(n, sharded) for n in arguments.processes for sharded in (False, True) if n > 1 or not sharded]
    measured = {kind: [] for kind in kinds}
    for number in range(arguments.rounds):
        for kind in kinds:
            measured[kind].append(train(arguments, *kind))
            print(f"round {number + 1}, {kind[0]} processes{', sharded' if kind[1] else ''}: "
                  f"{measured[kind][-1]['tokens_per_second']:.0f} tokens/s", file=sys.stderr)
    print("| processes | optimiser's state | tokens/s | efficiency | MB communicated per process and step |")
    print("|---|---|---|---|---|")
    for processes, sharded in kinds:
        runs, alone = measured[processes, sharded], measured[1, False]
        speeds = [run["tokens_per_second"] for run in runs]
        efficiency = [run["tokens_per_second"] / processes / one["tokens_per_second"] for run, one in zip(runs, alone)]
        megabytes = [run["bytes_per_step"] / 1e6 for run in runs]
        print(f"| {processes} | {'sharded' if sharded else 'whole'} | {cell(speeds)} | {cell(efficiency, 2)} | "
              f"{cell(megabytes, 2)} |")
    if arguments.json:
        document = [{"processes": processes, "sharded": sharded, "runs": runs}
                    for (processes, sharded), runs in measured.items()]
        arguments.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
