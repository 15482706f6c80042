"""Runs a program of benchmarks/ and checks what it prints."""

import os
import subprocess
import sys
from pathlib import Path

SKIPPED = 77
BENCHMARKS = Path(__file__).resolve().parent.parent.parent / "benchmarks"


def check(condition, what):
    """Ends the test with the message `what` unless the condition holds."""
    if not condition:
        sys.exit(f"{Path(sys.argv[0]).name}: {what}")


def run(program, *arguments):
    """Runs BENCHMARKS/program."""
    return subprocess.run([sys.executable, BENCHMARKS / program, *arguments], capture_output=True, text=True, check=False)


def check_success(done):
    """Ends the test if the benchmark failed, as skipped if its Python has no PyTorch and none is required."""
    if done.returncode == SKIPPED and "ZOO_REQUIRE_REFERENCES" not in os.environ:
        print(done.stderr, end="")
        sys.exit(SKIPPED)
    check(done.returncode == 0, f"the benchmark ended with {done.returncode}: {done.stderr}")


def run_test(main, usage):
    """Calls main(ZOO) with the argument of the test program."""
    if len(sys.argv) != 2:
        sys.exit(usage)
    main(sys.argv[1])
