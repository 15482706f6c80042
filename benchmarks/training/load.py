#!/usr/bin/env python3
"""Measures what is left of the speed while other programs keep processors busy.

  benchmarks/training/load.py [--rounds 3] [--workload NAME] [--busy 0 1 2] [--before PROGRAM]

Each round measures with each number of busy programs in turn: zoo's training and decoding (`zoo bench`) and the training
of a plain PyTorch loop with the same model and batches. Prints medians over the rounds, and the share of the speed of
the same round on the quiet machine, with its range. --before names an older zoo, which is measured as well.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.measuring.program import ROOT, Failure, run_program  # noqa: E402
from benchmarks.training.run import train_peer  # noqa: E402
from benchmarks.training.versions import measured  # noqa: E402
from benchmarks.training.workloads import WORKLOADS, prepare  # noqa: E402


@contextlib.contextmanager
def busy_programs(count):
    programs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def speeds(arguments, work, job):
    result = {}
    programs = {"zoo": arguments.zoo} | ({"zoo before": arguments.before} if arguments.before else {})
    for name, program in programs.items():
        figures = measured(program, job, arguments.seconds)
        result[f"{name}, training"] = figures["training tokens/s"]
        if "decoded tokens/s" in figures:
            result[f"{name}, decoding"] = figures["decoded tokens/s"]
    result[f"{job.peers[-1]}, training"] = train_peer(arguments, work, job, job.peers[-1], False)["tokens_per_second"]
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", choices=[n for n, w in WORKLOADS.items() if not w.for_gpu], default="gpt-small")
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 1, 2], help="numbers of busy programs; 0 is first")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4, help="for each figure of zoo")
    parser.add_argument("--steps", type=int, default=200, help="of the PyTorch loop")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--zoo", type=Path, default=ROOT / "build/release/zoo")
    parser.add_argument("--before", type=Path)
    parser.add_argument("--python", default=os.environ.get("ZOO_PYTHON", str(ROOT / ".venv/bin/python3")))
    arguments = parser.parse_args()
    if arguments.busy[0] != 0:
        raise Failure("--busy begins with 0: shares are of the quiet machine's speed")
    arguments.zoo = arguments.zoo.resolve()
    arguments.device, arguments.precision, arguments.overrides = "cpu", "fp32", []
    arguments.smoke, arguments.nanogpt, arguments.peers = None, None, ["pytorch"]
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        job = prepare(arguments.workload, arguments, work)
        rounds = []
        for number in range(arguments.rounds):
            rounds.append({})
            for busy in arguments.busy:
                with busy_programs(busy):
                    rounds[-1][busy] = speeds(arguments, work, job)
                print(f"round {number + 1} of {arguments.rounds}, {busy} busy: {rounds[-1][busy]}", file=sys.stderr)
    print(f"{arguments.workload}: {job.what}; tokens/s, share of the quiet machine's speed\n")
    print("| busy programs | " + " | ".join(rounds[0][0]) + " |")
    print("|---" * (len(rounds[0][0]) + 1) + "|")
    for busy in arguments.busy:
        cells = []
        for what in rounds[0][0]:
            typical = statistics.median(r[busy][what] for r in rounds)
            shares = [r[busy][what] / r[0][what] for r in rounds]
            share = f": {statistics.median(shares):.0%} ({min(shares):.0%}–{max(shares):.0%})" if busy else ""
            cells.append(f"{typical:.0f}{share}")
        print(f"| {busy} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    run_program(main)
