#!/usr/bin/env python3
"""Compares two builds of zoo on the workloads of run.py: training, reading prompts and decoding, with their peak memory.

  benchmarks/training/versions.py BEFORE AFTER [--rounds 5] [--workload NAME]...

BEFORE and AFTER are programs. They run in turns, so both have their share of the machine's good and bad minutes. A ratio
is AFTER divided by BEFORE within a round; the median and the range over the rounds are printed.
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.measuring.processes import output_of  # noqa: E402
from benchmarks.measuring.program import Failure  # noqa: E402
from benchmarks.training.workloads import WORKLOADS, prepare  # noqa: E402

FIGURES = {"training tokens/s": ("train", "tokens_per_second"), "training memory": ("train", "peak_memory_bytes"),
           "prompt tokens/s": ("prompt", "tokens_per_second"), "decoded tokens/s": ("decode", "tokens_per_second"),
           "first token": ("decode", "first_token_ms")}


def measured(program, job, seconds):
    done = output_of([program, "bench", job.config, "--json", "--seconds", seconds, *job.zoo_options()], job.env)
    document = json.loads(done)
    return {name: document[group][key] for name, (group, key) in FIGURES.items() if group in document}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--workload", action="append", choices=[n for n, w in WORKLOADS.items() if not w.for_gpu])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4, help="for each figure")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    arguments.zoo = arguments.before.resolve()
    programs = {"before": arguments.before.resolve(), "after": arguments.after.resolve()}
    for name in ("smoke", "peers", "nanogpt", "steps"):
        setattr(arguments, name, None)
    arguments.device, arguments.precision, arguments.overrides = "cpu", "fp32", []
    for name in arguments.workload or [n for n, w in WORKLOADS.items() if not w.for_gpu]:
        with tempfile.TemporaryDirectory() as work:
            job = prepare(name, arguments, Path(work))
            print(f"{name}: {job.what}", flush=True)
            rounds = []
            for i in range(arguments.rounds):
                order = ("before", "after") if i % 2 == 0 else ("after", "before")
                rounds.append({which: measured(programs[which], job, arguments.seconds) for which in order})
            for figure in rounds[0]["before"]:
                ratios = [r["after"][figure] / r["before"][figure] for r in rounds]
                typical = {which: statistics.median(r[which][figure] for r in rounds) for which in programs}
                print(f"  {figure:<18} {typical['before']:>14,.1f} -> {typical['after']:>14,.1f}   "
                      f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})", flush=True)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"versions.py: {failure}")
