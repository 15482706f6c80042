#!/usr/bin/env python3
"""Trains the same models on the same data in this project (zoo) and in its peers, in turns, and compares them.

    benchmarks/training/run.py [WORKLOAD…] [--rounds N] [--compile] [--nanogpt DIR] [--json FILE]
    benchmarks/training/run.py --device cuda --precision bf16 --compile --peak 990    # GPT-2 124M on a GPU

Prints a Markdown table for each workload: tokens per second, the same speed in floating-point operations, peak memory
(resident memory of the process; on a GPU, memory of tensors on it), validation loss after the last step, and the ratios
of zoo's speed and memory to a peer's. Cells are medians over the rounds (least–most). A ratio compares runs of the same
round, so that a machine that gets slower does not favour one side. Exit code 2: bad input, 1: a training failed, 77: the
Python of the peers has no PyTorch.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.measuring.figures import machine, spread, with_spread  # noqa: E402
from benchmarks.measuring.processes import run_measured  # noqa: E402
from benchmarks.measuring.program import Failure, add_common_arguments, check_common_arguments, run_program  # noqa: E402
from benchmarks.training.workloads import WORKLOADS, prepare  # noqa: E402

HERE = Path(__file__).resolve().parent


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="benchmarks/training/run.py", description=__doc__.partition("\n\n")[0])
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD",
                        help=f"{', '.join(WORKLOADS)}; default: all that suit the device")
    parser.add_argument("--rounds", type=int, default=3, help="trainings of each side (default: %(default)s)")
    parser.add_argument("--steps", type=int,
                        help="steps per training; the first fifth is not timed (default: depends on the workload)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu",
                        help="device of both sides (default: %(default)s)")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32",
                        help="format of both sides' matrix products (default: %(default)s)")
    parser.add_argument("--peak", type=float, metavar="TFLOPS",
                        help="the device's peak: the table then shows the speed also as a percentage of it")
    parser.add_argument("--compile", action="store_true", help="also run each peer under torch.compile")
    parser.add_argument("--nanogpt", type=Path, metavar="DIR",
                        help="a checkout or git directory of nanoGPT, whose model becomes a peer")
    parser.add_argument("--peers", nargs="+", metavar="PEER", help="run only these peers: nanogpt, pytorch, nn.Transformer, transformers")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
                        help="a key of zoo's configuration that replaces the benchmark's value; may be repeated")
    add_common_arguments(parser, "PyTorch, for the peers, and transformers for mixtures")
    parser.add_argument("--smoke", action="store_true", help="test the benchmark: one round of tiny models on made-up data")
    arguments = parser.parse_args()
    for name in arguments.workloads:
        if name not in WORKLOADS:
            raise Failure(f"there is no workload {name}; there are: {', '.join(WORKLOADS)}")
    # --smoke needs one workload of each kind.
    arguments.workloads = arguments.workloads or (
        ["gpt-small", "mixture", "gpt2", "seq2seq"] if arguments.smoke else
        [name for name, workload in WORKLOADS.items() if workload.for_gpu == (arguments.device != "cpu")])
    for name in arguments.peers or []:
        if not any(name in workload.peers for workload in WORKLOADS.values()):
            raise Failure(f"there is no peer {name}; there are: nanogpt, pytorch, nn.Transformer, transformers")
    check_common_arguments(arguments)
    return arguments


# ---- One training, in a process of its own ---------------------------------------------------------------------------


def figures(steps, warmup, valid_loss, process):
    timed = steps[warmup:]
    seconds = sum(step["seconds"] for step in timed)
    return {"tokens_per_second": sum(step["tokens"] for step in timed) / seconds,
            "step_ms": 1000 * seconds / len(timed), "tokens": sum(step["tokens"] for step in steps),
            "valid_loss": valid_loss, **process}


def train_zoo(arguments, work, job):
    run_dir = work / "run"
    command = [arguments.zoo, "train", job.config, "--overwrite", "--out", run_dir, "--device", job.device,
               *job.zoo_options()]
    process = run_measured(command, job.env, work / "log")
    rows = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    steps, tokens = [], 0
    for row in rows:
        if "train_loss" in row:
            read, tokens = row["tokens"] - tokens, row["tokens"]
            steps.append({"tokens": read, "seconds": read / row["tokens_per_second"]})
    valid_loss = next(row["valid_loss"] for row in reversed(rows) if "valid_loss" in row)
    last = next(row for row in reversed(rows) if "peak_memory_bytes" in row)
    process["flops_per_token"] = last["flops"] / last["tokens"]
    if job.device != "cpu":
        process["peak_bytes"] = last["peak_memory_bytes"]
    return figures(steps, job.untimed, valid_loss, process)


def train_peer(arguments, work, job, peer, compiled):
    request, answer = work / "job.json", work / "answer.json"
    request.write_text(json.dumps(job.for_peer(peer, compiled)), encoding="utf-8")
    process = run_measured([arguments.python, HERE / "peer.py", request, answer], job.env, work / "log")
    result = json.loads(answer.read_text(encoding="utf-8"))
    if result["parameters"] != job.parameters:
        raise RuntimeError(f"{peer} has {result['parameters']} parameters and zoo has {job.parameters}: the models "
                           "differ")
    if job.device != "cpu":
        process["peak_bytes"] = result["peak_device_bytes"]
    return {**figures(result["steps"], job.untimed, result["valid_loss"], process), "torch": result["torch"]}


# ---- The comparison --------------------------------------------------------------------------------------------------


def compare(arguments, work, job):
    sides = {"zoo": lambda: train_zoo(arguments, work, job)}
    for peer in job.peers:
        sides[peer] = lambda peer=peer: train_peer(arguments, work, job, peer, False)
        if arguments.compile:
            sides[f"{peer}, compiled"] = lambda peer=peer: train_peer(arguments, work, job, peer, True)
    runs = {side: [] for side in sides}
    for number in range(1, arguments.rounds + 1):
        for side, train in sides.items():
            runs[side].append(train())
            print(f"{job.name}, round {number} of {arguments.rounds}: {side}: "
                  f"{runs[side][-1]['tokens_per_second']:.0f} tokens/s", file=sys.stderr)
    result = {"workload": job.name, "what": job.what, "steps": job.steps, "untimed_steps": job.untimed,
              "parameters": job.parameters, "flops_per_token": runs["zoo"][0]["flops_per_token"],
              "zoo_options": job.zoo_options(), "sides": []}
    for side, rounds in runs.items():
        summary = {"name": side, "runs": rounds}
        for key in ("tokens_per_second", "step_ms", "peak_bytes", "valid_loss"):
            summary[key] = spread([run[key] for run in rounds])
        if side != "zoo":
            for key, name in (("tokens_per_second", "speed_ratio"), ("peak_bytes", "memory_ratio")):
                summary[name] = spread([ours[key] / theirs[key] for ours, theirs in zip(runs["zoo"], rounds)])
        result["sides"].append(summary)
    return result


def rate(result, side, peak):
    """A side's speed in TFLOP/s, by zoo's count of operations: the models are equal."""
    tera = result["flops_per_token"] * side["tokens_per_second"]["median"] * 1e-12
    return f"{tera:.3g}" + (f" ({tera / peak:.0%})" if peak else "")


def as_markdown(result, arguments):
    lines = [f"**{result['workload']}**: {result['what']}; {result['parameters']:,} parameters, {arguments.rounds} × "
             f"{result['steps']} steps", "",
             f"| | tokens/s | TFLOP/s | peak memory, MB | loss after {result['steps']} steps | zoo's speed / peer's | "
             "zoo's memory / peer's |", "|---|---|---|---|---|---|---|"]
    for side in result["sides"]:
        ratios = [with_spread(side[key], "{:.2f}") if key in side else "" for key in ("speed_ratio", "memory_ratio")]
        cells = [side["name"], with_spread(side["tokens_per_second"], "{:.0f}"), rate(result, side, arguments.peak),
                 with_spread(side["peak_bytes"], "{:.0f}", 1e-6), with_spread(side["valid_loss"], "{:.3f}"),
                 *ratios]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    arguments = parse_arguments()
    rounds = arguments.rounds = 1 if arguments.smoke else arguments.rounds
    document = {"machine": machine(arguments), "rounds": rounds, "results": []}
    with tempfile.TemporaryDirectory(prefix="zoo-benchmark-") as folder:
        for name in arguments.workloads:
            work = Path(folder) / name
            work.mkdir()
            job = prepare(name, arguments, work)
            # A run that is not measured writes zoo's tokens to its cache. The peers have theirs in files already.
            train_zoo(arguments, work, job.with_steps(2))
            document["results"].append(compare(arguments, work, job))
            print(as_markdown(document["results"][-1], arguments), end="\n\n", flush=True)
    all_runs = [run for result in document["results"] for side in result["sides"] for run in side["runs"]]
    document["torch"] = next((run["torch"] for run in all_runs if "torch" in run), None)
    document["most_others_share"] = max(run["others_share"] for run in all_runs)
    print(f"{document['machine']['cpu']}, {arguments.threads} threads, {arguments.device}, {arguments.precision}, "
          f"PyTorch {document['torch']}; other processes used at most {document['most_others_share']:.0%} of the "
          "machine during a training.")
    if arguments.json:
        arguments.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run_program(main)
