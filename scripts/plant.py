#!/usr/bin/env python3
"""Plants the mistakes of tests/planted/mistakes.py in a checkout, and says which of them no test notices.

  scripts/plant.py plant [NUMBER…]   changes the sources: each mistake waits for ZOO_MISTAKE=NUMBER; git checkout takes them out
  scripts/plant.py check             says which mistakes the sources have no place for any more
  scripts/plant.py run [NUMBER…]     runs the tests with each mistake, after scripts/build.sh has built what was planted
      --stage own|above|references   with the tests of the mistake's folder; of those above it, too; of the references
      --jobs N                       so many mistakes at once
      --build DIR                    (default build/release)

The tests run once without a mistake, and must pass. With a mistake, a program that takes much longer than without one has
noticed it. The report has a line for each mistake: its number, whether the tests noticed it, which of them did, and where it is.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "planted"))
from mistakes import MISTAKES  # noqa: E402

# The programs of tests that must notice a mistake in a folder: its own one comes first.
PROGRAMS = {
    "serving": ["serving"],
    "checkpoints": ["checkpoints", "training", "comparison"],
    "tasks": ["tasks", "checkpoints", "training", "comparison"],
    "models": ["models", "generation", "tasks", "training", "analysis", "serving"],
    "generation": ["generation", "serving"],
    "comparison": ["comparison"],
    "statistics": ["comparison"],
    "analysis": ["analysis"],
    "costs": ["analysis"],
    "apps": [],
    "interop": ["interop", "checkpoints"],
    "io": ["io", "interop", "checkpoints"],
    "data": ["data", "tasks", "training"],
    "text": ["data", "tasks", "training"],
    "tokenizers": ["data", "tasks"],
    "kernels": ["layers", "models", "generation", "tasks", "training"],
    "layers": ["layers", "models", "generation", "tasks", "training"],
}


def planted_text(number, mistake):
    right, wrong = mistake.right, mistake.wrong
    if right.endswith((";", "}")):
        return f"{{ if (zoo::planted({number})) {{ {wrong} }} else {{ {right} }} }}"
    return f"(zoo::planted({number}) ? ({wrong}) : ({right}))"


def check():
    """Exits with an error if a mistake cannot be planted, or if nobody knows which tests must notice it."""
    outdated = [n for n, m in enumerate(MISTAKES) if (ROOT / m.file).read_text().count(m.right) != 1]
    for number in outdated:
        print(f"plant: {MISTAKES[number].file} has not exactly one '{MISTAKES[number].right}': correct mistake {number}")
    unknown = sorted({m.file.split("/")[0] for m in MISTAKES} - PROGRAMS.keys())
    for folder in unknown:
        print(f"plant: PROGRAMS does not say which tests must notice a mistake in {folder}/")
    if outdated or unknown:
        sys.exit(1)


def plant(numbers):
    changed = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    if changed:
        sys.exit("plant: the checkout has changes; commit them, or plant in a clean clone")
    check()
    for number in numbers:
        mistake = MISTAKES[number]
        path = ROOT / mistake.file
        text = path.read_text()
        text = text.replace(mistake.right, planted_text(number, mistake))
        header = '#include "tests/planted/planted.h"\n'
        path.write_text(text if text.startswith(header) else header + text)
    print(f"{len(numbers)} mistakes are planted: build with scripts/build.sh, then scripts/plant.py run")


def commands_of(mistake, stage, build):
    folder = mistake.file.split("/")[0]
    programs = PROGRAMS[folder]
    if stage == "own":
        programs = programs[:1]
    for name in programs:
        yield name, [str(build / "tests" / f"{name}_tests"), "--gtest_brief=1", "--gtest_fail_fast", "--gtest_filter=-*OnAGpu*"]
    labels = {"own": [] if programs else ["cli"], "above": ["cli"], "references": ["cli", "parity"]}[stage]
    for label in labels:
        yield label, ["ctest", "--test-dir", str(build), "-L", f"^{label}$", "-LE", "^long$", "--stop-on-failure", "-j", "1"]


def ended(command, environment, limit):
    """The status of a program and what it wrote; None and nothing: it was stopped at the limit, in seconds."""
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", start_new_session=True) as program:
        try:
            output, _ = program.communicate(timeout=limit)
            return program.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            return None, ""


def first_failure(command, environment, limit):
    """What failed; None: nothing did."""
    status, output = ended(command, environment, limit)
    if status == 0:
        return None
    if status is None:
        return f"did not end within {limit:.0f} s"
    failed = re.search(r"^\[  FAILED  \] .*|^ *\d+/\d+ Test .*\*\*\*.*", output, re.MULTILINE)
    return failed.group().strip() if failed else f"ended with {status}"


def environment_of(folder, number=None):
    environment = dict(os.environ, OMP_NUM_THREADS="1", TMPDIR=folder)
    environment.pop("ZOO_MISTAKE", None)
    return environment if number is None else dict(environment, ZOO_MISTAKE=str(number))


def limits_without_mistakes(numbers, stage, build, jobs):
    """The most seconds that each program may take: its tests wait for what a mistake keeps from happening, a minute each."""
    limits = {}
    for number in numbers:
        for name, command in commands_of(MISTAKES[number], stage, build):
            if name in limits:
                continue
            begin = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                if failed := first_failure(command, environment_of(folder), None):
                    sys.exit(f"plant: without a mistake, {name}: {failed}")
            limits[name] = 60 + 3 * jobs * (time.monotonic() - begin)
    return limits


def noticed_by(number, stage, build, limits):
    """What notices the mistake; None: nothing does."""
    with tempfile.TemporaryDirectory() as folder:
        for name, command in commands_of(MISTAKES[number], stage, build):
            if failed := first_failure(command, environment_of(folder, number), limits[name]):
                return f"{name}: {failed}"
    return None


def shortened(line):
    most = 200
    return line if len(line) <= most else line[: most - 1] + "…"


def run(numbers, stage, jobs, build):
    limits = limits_without_mistakes(numbers, stage, build, jobs)
    escaped = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for number, by in zip(numbers, pool.map(lambda n: noticed_by(n, stage, build, limits), numbers)):
            mistake = MISTAKES[number]
            print(shortened(f"{number:3}  {by or 'NOT NOTICED'}  {mistake.file}: {mistake.wrong}"), flush=True)
            if not by:
                escaped.append(number)
    print(f"{len(numbers) - len(escaped)} of {len(numbers)} were noticed; escaped: {escaped}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["check", "plant", "run"])
    parser.add_argument("numbers", nargs="*", type=int)
    parser.add_argument("--stage", choices=["own", "above", "references"], default="above")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    options = parser.parse_args()
    numbers = options.numbers or list(range(len(MISTAKES)))
    if options.action == "check":
        check()
    elif options.action == "plant":
        plant(numbers)
    else:
        run(numbers, options.stage, options.jobs, options.build)


if __name__ == "__main__":
    main()
