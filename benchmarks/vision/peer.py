#!/usr/bin/env python3
"""Trains transformers' ViTForImageClassification in a plain PyTorch loop as a job of run.py says.

    peer.py JOB.json RESULT.json

Writes the seconds of each step and the number of parameters. Exit code 77 if this Python has no PyTorch or transformers.
"""

import sys
import time
from pathlib import Path

try:
    import torch
    from transformers import ViTConfig, ViTForImageClassification
except ModuleNotFoundError:
    sys.exit(77)
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.measuring.program import run_job  # noqa: E402


def make_model(shape):
    config = ViTConfig(
        hidden_size=shape["width"], num_hidden_layers=shape["layers"], num_attention_heads=shape["heads"],
        intermediate_size=4 * shape["width"], image_size=shape["image"], patch_size=shape["patch"], num_channels=1,
        num_labels=shape["classes"], hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, layer_norm_eps=1e-6,
        attn_implementation="sdpa",
    )  # fmt: skip
    return ViTForImageClassification(config)


def main(job):
    torch.set_num_threads(job["threads"])
    torch.manual_seed(job["seed"])
    shape = job["shape"]
    model = make_model(shape).train()
    # As zoo's matrices, which decay, and its vectors, which do not.
    groups = [{"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": job["weight_decay"]},
              {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=job["lr"], fused=True)
    # Pixels are read as bytes and normalised for each batch, as zoo does.
    pixels = torch.randint(256, (job["n_images"], 1, shape["image"], shape["image"]), dtype=torch.uint8)
    labels = torch.arange(job["n_images"]) % shape["classes"]
    mean, deviation = pixels.float().mean((0, 2, 3), keepdim=True), pixels.float().std((0, 2, 3), keepdim=True)
    seconds, order = [], torch.empty(0, dtype=torch.long)
    for _ in range(job["steps"]):
        begin = time.perf_counter()
        if len(order) < job["batch"]:
            order = torch.randperm(job["n_images"])
        rows, order = order[:job["batch"]], order[job["batch"]:]
        images = (pixels[rows].float() - mean) / deviation
        loss = model(pixel_values=images, labels=labels[rows]).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), job["clip"])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
        seconds.append(time.perf_counter() - begin)
    return {"parameters": sum(p.numel() for p in model.parameters()), "seconds": seconds, "torch": torch.__version__}


if __name__ == "__main__":
    run_job(main, __doc__)
