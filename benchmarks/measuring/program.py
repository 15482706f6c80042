"""A benchmark as a program: its exit codes, the options that all have, and a peer's program."""

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NO_PEER = 77  # the exit code of a peer whose Python lacks a module


class Failure(Exception):
    """Bad input, in one line."""


def run_program(main):
    """Calls main(). The exit code is 2 after a Failure and 1 after another error; both are printed in one line."""
    try:
        main()
    except (Failure, RuntimeError, OSError) as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, Failure) else 1)
    except KeyboardInterrupt:
        sys.exit(130)


def run_job(main, usage):
    """The program of a peer, `peer.py JOB.json RESULT.json`: writes what main() returns for the job."""
    if len(sys.argv) != 3:
        sys.exit(usage)
    with open(sys.argv[1], encoding="utf-8") as file:
        result = main(json.load(file))
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(result, file)


def add_common_arguments(parser, python):
    """The options that all benchmarks against a peer have; `python` says what the peer's Python needs."""
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)),
                        help="threads of each side (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures of every run to this file")
    parser.add_argument("--zoo", type=Path, default=ROOT / "build/release/zoo",
                        help="the zoo program (default: build/release/zoo)")
    parser.add_argument("--python", default=os.environ.get("ZOO_PYTHON", str(ROOT / ".venv/bin/python3")),
                        help=f"a Python with {python} (default: $ZOO_PYTHON or .venv/bin/python3)")


def check_common_arguments(arguments):
    """Also checks --rounds and --steps, and makes the paths absolute: the processes run in the project's folder."""
    if min(arguments.rounds, arguments.threads) < 1:
        raise Failure("--rounds and --threads are at least 1")
    if arguments.steps is not None and arguments.steps < 2:
        raise Failure("--steps is at least 2, because the first step is not timed")
    if not os.access(arguments.zoo, os.X_OK):
        raise Failure(f"there is no program {arguments.zoo}; scripts/build.sh makes it, --zoo names another")
    arguments.zoo = arguments.zoo.resolve()
    if os.sep in arguments.python:
        arguments.python = os.path.abspath(arguments.python)  # not resolved: the link tells Python its environment
