#!/usr/bin/env python3
"""Measures whether steps become slower as a training goes on.

  benchmarks/training/late_steps.py [RECIPE…] [--optimizer NAME]… [--ages 100 5000 20000] [--rounds 3]
                                     [--keep DIR]

Trains each recipe with each optimiser up to the largest age, keeps a copy of the run at each age, and then goes on from
the copies in turns, some steps from each. Prints the milliseconds of a step: the median over the steps, as the median over
the rounds (least–most), and the ratio to the first age within a round.

--keep DIR keeps the copies in DIR/RECIPE-OPTIMIZER. A later call with the same DIR measures them again, and trains only to
ages that are not there. A training that was interrupted goes on from its last thousand steps. The recipe must not have
changed.

--processor-time measures what the steps take of the processor, with all threads, in place of what a clock says: the
difference between a process with the measured steps and one without. Other programs on the machine change it less.

--denormals does not train far. It takes the copy of the first age, sets half of every state of the optimiser to 1e-39, as
the states of units that have died become after thousands of steps, and compares it with the copy as it was.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.measuring.program import ROOT, Failure, run_program  # noqa: E402

RECIPES = ("configs/gpt/shakespeare-char-cpu.yaml", "configs/vision/fashion-mnist-vit.yaml",
           "configs/vision/canvases-detr.yaml")
OPTIMIZERS = ("adamw", "adam", "sgd", "adafactor", "lion", "muon")
FIRST_STEPS = 10  # of a process, which are not measured: memory and caches are new
TINY = 1e-39  # below the smallest normal float, 1.2e-38


def train(zoo, recipe, optimizer, run, steps, threads):
    never = 10 ** 9
    settings = {"training.steps": steps, "training.optimizer.type": optimizer, "training.log_every": 1,
                "training.evaluate_every": never, "training.evaluate_batches": 1, "training.checkpoint_every": 1000,
                "training.threads": threads, "training.optimizer.lr": "1e-4"}
    command = [str(zoo), "train", str(recipe), "--resume", "--out", str(run)]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)}: {done.stderr.strip().splitlines()[-1]}")


def step_times(run, after):
    """The milliseconds of the steps after step `after`, without the first ones."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    rows = [row for row in rows if "train_loss" in row]
    tokens = {row["step"]: row["tokens"] for row in rows}
    times = [1000 * (row["tokens"] - tokens[row["step"] - 1]) / row["tokens_per_second"] for row in rows
             if row["step"] > after + FIRST_STEPS and row["step"] - 1 in tokens]
    return times


def make_tiny(run):
    """Sets every second number of the optimiser's states to TINY."""
    import numpy
    from safetensors.numpy import load_file, save_file

    path = (run / "checkpoints/last").resolve() / "optimizer.safetensors"
    states = load_file(path)
    for name, state in states.items():
        if state.dtype == numpy.float32 and state.size > 1:
            state.reshape(-1)[::2] = TINY
            states[name] = state
    save_file(states, path)


def measured(arguments, recipe, optimizer, kept, age, work):
    """The milliseconds of a step after `age` steps."""
    run = work / "measured"

    def go_on(steps):
        """The seconds of the processor that these steps and their process take."""
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(kept, run, symlinks=True)
        before = os.times()
        train(arguments.zoo, recipe, optimizer, run, age + steps, arguments.threads)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    whole = go_on(FIRST_STEPS + arguments.steps)
    if arguments.processor_time:
        least = 0.01  # the resolution
        return 1000 * max(whole - go_on(FIRST_STEPS), least) / arguments.steps
    return statistics.median(step_times(run, age))


def trained_to(arguments, recipe, optimizer, age, folder):
    """The run at this age in `folder`. If it is not there yet, it goes on from the oldest of the younger ones."""
    kept, run = folder / f"step-{age}", folder / f"to-step-{age}"
    if kept.exists():
        return kept
    ages = [int(path.name.removeprefix("step-")) for path in folder.glob("step-*")]
    younger = [other for other in ages if other < age]
    if younger and not run.exists():  # an interrupted training goes on
        made = folder / "copy"
        shutil.rmtree(made, ignore_errors=True)
        shutil.copytree(folder / f"step-{max(younger)}", made, symlinks=True)
        made.rename(run)
    train(arguments.zoo, recipe, optimizer, run, age, arguments.threads)
    run.rename(kept)
    return kept


def compare(arguments, recipe, optimizer, work, folder):
    ages = arguments.ages[:1] if arguments.denormals else arguments.ages
    kept = {f"step {age:,}": (trained_to(arguments, recipe, optimizer, age, folder), age) for age in ages}
    if arguments.denormals:
        shutil.copytree(folder / f"step-{ages[0]}", work / "tiny", symlinks=True)
        make_tiny(work / "tiny")
        kept["states of 1e-39"] = (work / "tiny", ages[0])
    rounds = [{name: measured(arguments, recipe, optimizer, *copy, work) for name, copy in kept.items()}
              for _ in range(arguments.rounds)]
    first = next(iter(kept))
    for name in kept:
        times, ratios = [r[name] for r in rounds], [r[name] / r[first] for r in rounds]
        print(f"| {Path(recipe).stem} | {optimizer} | {name} | {statistics.median(times):.1f} "
              f"({min(times):.1f}–{max(times):.1f}) | {statistics.median(ratios):.3f} "
              f"({min(ratios):.3f}–{max(ratios):.3f}) |", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="benchmarks/training/late_steps.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", nargs="*", metavar="RECIPE", help=f"default: {', '.join(RECIPES)}")
    parser.add_argument("--optimizer", action="append", choices=OPTIMIZERS, metavar="NAME",
                        help=f"one of {', '.join(OPTIMIZERS)}; may be repeated; default: all")
    parser.add_argument("--ages", type=int, nargs="+", default=[100, 5000, 20000], help="steps (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="a folder for the trained copies, which may have some")
    parser.add_argument("--processor-time", action="store_true", help="measure the processor's time for the steps, not the clock's")
    parser.add_argument("--denormals", action="store_true", help="made-up late states in place of long trainings")
    parser.add_argument("--steps", type=int, default=40, help="measured steps of each copy (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="(default: %(default)s)")
    parser.add_argument("--zoo", type=Path, default=ROOT / "build/release/zoo", help="the zoo program")
    arguments = parser.parse_args()
    if min(arguments.rounds, arguments.threads, arguments.steps, *arguments.ages) < 1:
        raise Failure("--rounds, --threads, --steps and --ages are at least 1")
    if not os.access(arguments.zoo, os.X_OK):
        raise Failure(f"there is no program {arguments.zoo}; scripts/build.sh makes it, --zoo names another")
    arguments.zoo, arguments.ages = arguments.zoo.resolve(), sorted(arguments.ages)
    print("| recipe | optimiser | | ms a step | ratio |\n|---|---|---|---|---|", flush=True)
    for recipe in arguments.recipes or RECIPES:
        for optimizer in arguments.optimizer or OPTIMIZERS:
            with tempfile.TemporaryDirectory() as work:
                folder = Path(work)
                if arguments.keep:
                    folder = arguments.keep.resolve() / f"{Path(recipe).stem}-{optimizer}"
                    folder.mkdir(parents=True, exist_ok=True)
                compare(arguments, Path(recipe).resolve(), optimizer, Path(work), folder)


if __name__ == "__main__":
    run_program(main)
