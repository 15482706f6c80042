"""Starts `zoo serve` for a test, and ends it."""

import contextlib
import os
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def serving(zoo, models, *options, seconds=120):
    """The address of a server of these directories, which answers. Its output is in the message if it ends before."""
    port, opener = free_port(), urllib.request.build_opener(urllib.request.ProxyHandler({}))
    address, env = f"http://127.0.0.1:{port}", {**os.environ, "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [str(word) for word in [Path(zoo).resolve(), "serve", *models, "--port", port, *options]],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=env,
        )
        try:
            deadline = time.monotonic() + seconds
            while True:
                with contextlib.suppress(OSError), opener.open(f"{address}/health", timeout=5):
                    break
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    raise RuntimeError(
                        f"zoo serve does not answer ({process.poll()}): {log.read().decode(errors='replace').strip()}"
                    )
                time.sleep(0.05)
            yield address
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise RuntimeError("zoo serve did not end within 30 s of SIGTERM") from None
