"""The servers that are measured: this project's, and llama.cpp's in a process of its own."""

import contextlib
import json
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

from benchmarks.measuring.program import ROOT

HERE = Path(__file__).resolve().parent


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_ready(address, process, log, seconds=120):
    opener, deadline = urllib.request.build_opener(urllib.request.ProxyHandler({})), time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            words = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise RuntimeError(f"the server ended with {process.returncode}: {words[-1] if words else ''}")
        with contextlib.suppress(OSError), opener.open(f"{address}/health", timeout=5) as answer:
            if answer.status == 200:
                return
        time.sleep(0.05)
    raise RuntimeError(f"the server does not answer within {seconds} s")


def peak_bytes(process):
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


@contextlib.contextmanager
def zoo_server(model, file, arguments):
    """The process, its address, keys of a request, and its version."""
    address, log = f"http://127.0.0.1:{(port := free_port())}", model.work / "serve.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(word) for word in [arguments.zoo, "serve", file, "--port", port]],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=model.env,
            cwd=ROOT,
        )
    try:
        wait_until_ready(address, process, log)
        name = json.load(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{address}/v1/models"))["data"][0][
            "id"
        ]
        yield process, address, {"model": lambda _: name, "min_tokens": lambda request: request.new}, None
    finally:
        process.terminate()
        process.wait(30)


@contextlib.contextmanager
def llama_server(model, file, arguments, n_clients, tokens):
    log = model.work / "peer.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(word) for word in [arguments.python, HERE / "peer.py", file, arguments.threads, n_clients, tokens]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            env=model.env,
            text=True,
        )
    try:
        address, version = process.stdout.readline().strip(), process.stdout.readline().strip()
        if not address:
            raise RuntimeError(
                f"llama.cpp's server ended with {process.wait(10)}: {log.read_text(errors='replace').strip()[-300:]}"
            )
        wait_until_ready(address, process, log)
        yield process, address, {"ignore_eos": lambda _: True, "cache_prompt": lambda _: False}, version
    finally:
        process.stdin.close()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
