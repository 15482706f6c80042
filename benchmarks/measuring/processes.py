"""Processes that are measured from outside."""

import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.measuring.program import NO_PEER, ROOT, Failure


def busy_seconds():
    """CPU seconds since the machine started that all processes have used or that the host has taken."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def run_measured(command, env, log):
    """Runs a process. Returns its peak resident bytes and the share of the CPUs that other processes used meanwhile."""
    begin, busy = time.monotonic(), busy_seconds()
    with open(log, "wb") as output:
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=output, env=env, cwd=ROOT)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode == NO_PEER:
        print(f"run.py: {command[0]} has no PyTorch; scripts/setup.sh --tests installs it, --python names another",
              file=sys.stderr)
        sys.exit(NO_PEER)
    if process.returncode:
        words = log.read_text(encoding="utf-8", errors="replace").strip() or "no output"
        raise RuntimeError(f"{command[0]} ended with {process.returncode}: {words.splitlines()[-1]}")
    others = busy_seconds() - busy - usage.ru_utime - usage.ru_stime
    capacity = (time.monotonic() - begin) * os.cpu_count()
    return {"peak_bytes": usage.ru_maxrss * 1024, "others_share": max(0.0, others / capacity)}


def output_of(command, env, **options):
    """What a command prints. If it fails, throws Failure with the last line of its errors."""
    done = subprocess.run([str(word) for word in command], env=env, cwd=ROOT, capture_output=True, check=False,
                          **options)
    if done.returncode:
        words = (done.stderr or b"").decode(errors="replace").strip() or "no output"
        raise Failure(f"{Path(command[0]).name} failed: {words.splitlines()[-1]}")
    return done.stdout.decode()
