#!/usr/bin/env python3
"""Asks `zoo serve` for many texts alone and beside each kind of hostile requests, and compares the answers and the time.

    benchmarks/serving/disturb.py [--requests N] [--clients N] [--kinds WORD…] [--model NAME] [--json FILE]

Prints a row for each kind: how many answers are equal to those without hostile requests, the time of all of them, and the bound
that it must keep, 1.5 × the time alone + 5 s. Two processes of each kind repeat their request until the texts are there.
Exit code 2: bad input, 1: a kind changed an answer or kept the others waiting, 77: the Python has no PyTorch or transformers.
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.generation.model_files import make_model  # noqa: E402
from benchmarks.generation.shapes import SHAPES, TINY_LENGTHS, Lengths, tiny  # noqa: E402
from benchmarks.measuring.program import Failure, add_common_arguments, check_common_arguments, run_program  # noqa: E402
from benchmarks.serving.clients import load, mixed_requests  # noqa: E402
from benchmarks.serving.hostile import KINDS  # noqa: E402
from benchmarks.serving.servers import peak_bytes, zoo_server  # noqa: E402

MIXED = {"shortest": 8, "longest": 128, "least_new": 4, "most_new": 64}
TINY = {"shortest": 2, "longest": 12, "least_new": 2, "most_new": 6}


def parse_arguments():
    parser = argparse.ArgumentParser(prog="benchmarks/serving/disturb.py", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--model", default="gpt-small", help=f"{', '.join(SHAPES)} (default: %(default)s)")
    parser.add_argument("--requests", type=int, default=450, help="texts beside each kind (default: %(default)s)")
    parser.add_argument("--clients", type=int, default=16, help="clients that ask for them (default: %(default)s)")
    parser.add_argument("--kinds", nargs="+", metavar="WORD", default=[""], help="only kinds that have one of these words")
    add_common_arguments(parser, "PyTorch and transformers")
    parser.add_argument("--smoke", action="store_true", help="test the script: a tiny model and few requests")
    parser.set_defaults(rounds=1, steps=None, batches=[1])
    arguments = parser.parse_args()
    if arguments.model not in SHAPES:
        raise Failure(f"there is no model {arguments.model}; there are: {', '.join(SHAPES)}")
    arguments.kinds = [kind for kind in KINDS if any(word in kind for word in arguments.kinds)]
    if not arguments.kinds or min(arguments.requests, arguments.clients) < 1:
        raise Failure("--kinds names no kind, or --requests or --clients is below 1")
    arguments.requests = 9 if arguments.smoke else arguments.requests
    check_common_arguments(arguments)
    return arguments


def repeat(kind, address, name):
    """Until the process is ended. A server that refuses or closes is what hostile clients get."""
    while True:
        try:
            KINDS[kind](address, name)
        except OSError:
            time.sleep(0.01)


def beside(kind, address, name, requests, arguments, extra):
    processes = [multiprocessing.Process(target=repeat, args=(kind, address, name), daemon=True) for _ in range(2)]
    for process in processes:
        process.start()
    try:
        time.sleep(0.5)
        return load(address, requests, arguments.clients, extra)
    finally:
        for process in processes:
            process.kill()
            process.join()


def main():
    arguments = parse_arguments()
    shape = tiny(SHAPES[arguments.model]) if arguments.smoke else SHAPES[arguments.model]
    lengths = TINY_LENGTHS if arguments.smoke else Lengths()
    requests = mixed_requests(arguments.requests, **(TINY if arguments.smoke else MIXED))
    rows, is_good = [], True
    with tempfile.TemporaryDirectory(prefix="zoo-disturb-") as folder:
        env = {**os.environ, "OMP_NUM_THREADS": str(arguments.threads), "ZOO_CACHE": folder}
        model = make_model(arguments.model, shape, lengths, arguments, env, Path(folder) / "model")
        with zoo_server(model, model.run, arguments) as (process, address, extra, _):
            name = extra["model"](None)
            extra["temperature"] = lambda request: request.new % 2  # half of them are drawn
            extra["seed"] = lambda request: request.new
            load(address, requests, arguments.clients, extra)  # once, so that memory has been asked for
            figures, alone = load(address, requests, arguments.clients, extra)
            bound = 1.5 * figures["seconds"] + 5
            print(f"{len(requests)} texts without hostile requests: {figures['seconds']:.1f} s, bound {bound:.1f} s\n\n"
                  "| beside | equal texts | seconds | peak memory, MB | |\n|---|---|---|---|---|", flush=True)
            for kind in arguments.kinds:
                try:
                    figures, texts = beside(kind, address, name, requests, arguments, extra)
                    equal, seconds, problem = sum(a == b for a, b in zip(alone, texts)), figures["seconds"], ""
                except (RuntimeError, OSError) as error:
                    equal, seconds, problem = 0, float("nan"), str(error)
                is_kept = equal == len(requests) and seconds <= bound
                is_good = is_good and is_kept
                rows.append({"kind": kind, "equal": equal, "of": len(requests), "seconds": seconds, "bound": bound,
                             "peak_bytes": peak_bytes(process), "problem": problem})
                print(f"| {kind} | {equal} | {seconds:.1f} | {rows[-1]['peak_bytes'] / 1e6:.0f} | "
                      f"{problem or ('' if is_kept else 'FAILED')} |", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    run_program(main)
