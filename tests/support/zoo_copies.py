"""Commands of the program, each in a copy of a process that has loaded LibTorch already: to load it takes half a second."""

import atexit
import functools
import json
import os
import pathlib
import subprocess
import tempfile


@functools.cache
def _copies(program):
    server = pathlib.Path(program).resolve().parent / "tests" / "zoo_copies"
    # One thread: a copy has those of OpenMP as they were when this process began.
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([server], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    atexit.register(process.communicate)  # ends it, because nothing more comes
    return process


def run_zoo(program, *words, cwd=None, input=None, env=None):
    """`program WORDS`, like subprocess.run with the output as text."""
    words = [str(word) for word in words]
    copies = _copies(str(program))
    with tempfile.TemporaryDirectory() as folder:
        files = {name: pathlib.Path(folder) / name for name in ("input", "output", "errors")}
        for file in files.values():
            file.write_text("")
        files["input"].write_text(input or "")
        command = {"words": words, "directory": str(cwd or pathlib.Path.cwd()), "environment": dict(env or os.environ)}
        copies.stdin.write(json.dumps(command | {name: str(file) for name, file in files.items()}) + "\n")
        copies.stdin.flush()
        code = int(copies.stdout.readline())
        return subprocess.CompletedProcess([program, *words], code, files["output"].read_text(), files["errors"].read_text())
