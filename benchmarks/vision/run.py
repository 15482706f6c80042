#!/usr/bin/env python3
"""Trains the same vision transformer on images of 32 × 32 in this project (zoo) and in plain PyTorch, in turns.

    benchmarks/vision/run.py [--rounds N] [--steps N] [--json FILE]

The model is ViT-Ti (192 wide, 12 layers, 3 heads) with patches of 4, batches of 64, float32; the peer is transformers'
ViTForImageClassification with fused AdamW. Both read the same number of random grey images. Prints images per second and peak
memory of the process, medians over the rounds (least–most), and the ratios of zoo to the peer within a round. Exit code 2:
bad input, 1: a training failed, 77: the Python of the peer has no PyTorch or transformers.
"""

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.measuring.figures import machine, spread, with_spread  # noqa: E402
from benchmarks.measuring.processes import run_measured  # noqa: E402
from benchmarks.measuring.program import ROOT, add_common_arguments, check_common_arguments, run_program  # noqa: E402

HERE = Path(__file__).resolve().parent
SHAPE = {"width": 192, "layers": 12, "heads": 3, "image": 32, "patch": 4, "classes": 10}
TINY = {"width": 16, "layers": 1, "heads": 2, "image": 8, "patch": 4, "classes": 10}
BATCH, LR, WEIGHT_DECAY, CLIP = 64, 1e-3, 0.05, 1.0


def parse_arguments():
    parser = argparse.ArgumentParser(prog="benchmarks/vision/run.py", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="trainings of each side (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=30,
                        help="steps per training; the first fifth is not timed (default: %(default)s)")
    add_common_arguments(parser, "PyTorch and transformers")
    parser.add_argument("--smoke", action="store_true", help="test the benchmark: one round of a tiny model")
    arguments = parser.parse_args()
    check_common_arguments(arguments)
    return arguments


def write_images(folder, shape, n_images):
    """Random grey images and labels as IDX files."""
    header = struct.pack(">BBBBIII", 0, 0, 8, 3, n_images, shape["image"], shape["image"])
    (folder / "train-images-idx3-ubyte").write_bytes(header + os.urandom(n_images * shape["image"] ** 2))
    labels = bytes(i % shape["classes"] for i in range(n_images))
    (folder / "train-labels-idx1-ubyte").write_bytes(struct.pack(">BBBBI", 0, 0, 8, 1, n_images) + labels)
    return folder / "train-images-idx3-ubyte"


def configuration(shape, images, steps, arguments):
    return {
        "name": "vision-benchmark", "task": "image_classification",
        "data": {"train": str(images), "valid_fraction": 0.05, "images": {"size": shape["image"], "channels": 1}},
        "model": {"architecture": {"type": "vit", "patch_size": shape["patch"]}, "d_model": shape["width"],
                  "n_layers": shape["layers"], "n_heads": shape["heads"], "d_ff": 4 * shape["width"], "dropout": 0.0,
                  "norm_eps": 1e-6},
        "training": {"steps": steps, "batch_size": BATCH, "log_every": 1, "evaluate_every": steps,
                     "checkpoint_every": steps, "evaluate_batches": 1, "clip_grad_norm": CLIP, "threads": arguments.threads,
                     "optimizer": {"type": "adamw", "lr": LR, "weight_decay": WEIGHT_DECAY}},
    }  # fmt: skip


def figures(seconds, process):
    timed = seconds[max(1, len(seconds) // 5):]
    return {"images_per_second": BATCH * len(timed) / sum(timed), **process}


def train_zoo(arguments, work, config, env):
    (work / "config.yaml").write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    process = run_measured([arguments.zoo, "train", work / "config.yaml", "--overwrite", "--out", work / "run"], env,
                           work / "log")
    rows = [json.loads(line) for line in (work / "run/metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return figures([BATCH / row["tokens_per_second"] for row in rows if "train_loss" in row], process)


def train_peer(arguments, work, job, env, parameters):
    (work / "job.json").write_text(json.dumps(job), encoding="utf-8")
    process = run_measured([arguments.python, HERE / "peer.py", work / "job.json", work / "answer.json"], env,
                           work / "log")
    answer = json.loads((work / "answer.json").read_text(encoding="utf-8"))
    if answer["parameters"] != parameters:
        raise RuntimeError(f"the peer has {answer['parameters']} parameters and zoo has {parameters}: the models differ")
    return {**figures(answer["seconds"], process), "torch": answer["torch"]}


def parameters_of(arguments, work, env):
    done = subprocess.run([arguments.zoo, "inspect", work / "run", "--json"], capture_output=True, text=True, env=env,
                          cwd=ROOT, check=False)
    if done.returncode:
        raise RuntimeError(f"zoo inspect ended with {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)["parameters"]


def compare(arguments, work, shape, n_images, rounds):
    env = {**os.environ, "OMP_NUM_THREADS": str(arguments.threads)}
    config = configuration(shape, write_images(work, shape, n_images), arguments.steps, arguments)
    job = {"shape": shape, "batch": BATCH, "steps": arguments.steps, "lr": LR, "weight_decay": WEIGHT_DECAY, "clip": CLIP,
           "threads": arguments.threads, "seed": 1, "n_images": n_images}
    train_zoo(arguments, work, config, env)  # not measured: the files are read for the first time
    parameters = parameters_of(arguments, work, env)
    sides = {"zoo": lambda: train_zoo(arguments, work, config, env),
             "PyTorch": lambda: train_peer(arguments, work, job, env, parameters)}
    runs = {side: [] for side in sides}
    for number in range(1, rounds + 1):
        for side, train in sides.items():
            runs[side].append(train())
            print(f"round {number} of {rounds}: {side}: {runs[side][-1]['images_per_second']:.1f} images/s",
                  file=sys.stderr)
    result = {"parameters": parameters, "steps": arguments.steps, "sides": []}
    for side, measured in runs.items():
        summary = {"name": side, "runs": measured}
        for key in ("images_per_second", "peak_bytes"):
            summary[key] = spread([run[key] for run in measured])
        if side != "zoo":
            for key, name in (("images_per_second", "speed_ratio"), ("peak_bytes", "memory_ratio")):
                summary[name] = spread([ours[key] / theirs[key] for ours, theirs in zip(runs["zoo"], measured)])
        result["sides"].append(summary)
    return result


def as_markdown(result, rounds):
    lines = [f"**ViT**: {result['parameters']:,} parameters, batches of {BATCH}, {rounds} × {result['steps']} steps", "",
             "| | images/s | peak memory, MB | zoo's speed / peer's | zoo's memory / peer's |", "|---|---|---|---|---|"]
    for side in result["sides"]:
        ratios = [with_spread(side[key], "{:.2f}") if key in side else "" for key in ("speed_ratio", "memory_ratio")]
        cells = [side["name"], with_spread(side["images_per_second"], "{:.1f}"),
                 with_spread(side["peak_bytes"], "{:.0f}", 1e-6), *ratios]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    arguments = parse_arguments()
    rounds = 1 if arguments.smoke else arguments.rounds
    with tempfile.TemporaryDirectory(prefix="zoo-benchmark-") as folder:
        result = compare(arguments, Path(folder), TINY if arguments.smoke else SHAPE, 640, rounds)
    print(as_markdown(result, rounds), end="\n\n")
    all_runs = [run for side in result["sides"] for run in side["runs"]]
    document = {"machine": machine(arguments), "rounds": rounds, "result": result,
                "torch": next(run["torch"] for run in all_runs if "torch" in run),
                "most_others_share": max(run["others_share"] for run in all_runs)}
    print(f"{document['machine']['cpu']}, {arguments.threads} threads, fp32, PyTorch {document['torch']}; other processes "
          f"used at most {document['most_others_share']:.0%} of the machine during a training.")
    if arguments.json:
        arguments.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run_program(main)
