#!/usr/bin/env python3
"""Trains one peer as a job of run.py says, and writes the time, tokens and loss of each step.

    peer.py JOB.json RESULT.json

Exit code 77 if this Python has no PyTorch.
"""

import contextlib
import sys
import time
from pathlib import Path

try:
    import torch
except ModuleNotFoundError:
    sys.exit(77)
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.measuring.program import run_job  # noqa: E402
from benchmarks.training.peer_models import Gpt, Mixture, NanoGpt, Translator  # noqa: E402


class Windows:
    """Batches of `batch` windows of one stream of ids, from random places, as nanoGPT draws them."""

    def __init__(self, job):
        self.context, self.batch = job["shape"]["context"], job["batch"]
        self.train, self.valid = (self._open(job["data"][split]) for split in ("train", "valid"))

    @staticmethod
    def _open(file):
        return torch.from_file(file["path"], size=file["ids"], dtype=torch.int16)

    def _rows(self, stream, begins):
        ids, targets = (torch.stack([stream[i + by:i + by + self.context] for i in begins]).long() for by in (0, 1))
        return (ids, targets), ids.numel(), targets.numel()

    def next(self):
        return self._rows(self.train, torch.randint(len(self.train) - self.context, (self.batch,)).tolist())

    def validation(self, n_batches):
        begins = range(0, len(self.valid) - self.context, self.context)
        for i in range(n_batches):
            rows = begins[i * self.batch:(i + 1) * self.batch]
            if rows:
                yield self._rows(self.valid, list(rows))


class Pairs:
    """Batches of `batch` pairs in a new order each epoch, all padded to the same length."""

    def __init__(self, job):
        self.batch, self.length, self.special = job["batch"], job["shape"]["length"], job["data"]["special"]
        self.train, self.valid = (self._open(job["data"][split]) for split in ("train", "valid"))
        self.order = []

    def _open(self, file):  # (pairs, 2, length): sources and targets, each with its end mark
        ids = torch.from_file(file["path"], size=file["ids"], dtype=torch.int16)
        return ids.view(-1, 2, self.length)

    def _rows(self, pairs):
        source, target = pairs.long().unbind(1)
        decoder = target.roll(1, 1)
        decoder[:, 0] = self.special["bos"]
        decoder[target == self.special["pad"]] = self.special["pad"]
        n_targets = int((target != self.special["pad"]).sum())
        return (source, decoder, target), n_targets + int((source != self.special["pad"]).sum()), n_targets

    def next(self):
        if len(self.order) < self.batch:
            self.order = torch.randperm(len(self.train)).tolist()
        rows, self.order = self.order[:self.batch], self.order[self.batch:]
        return self._rows(self.train[rows])

    def validation(self, n_batches):
        for i in range(min(n_batches, -(-len(self.valid) // self.batch))):
            yield self._rows(self.valid[i * self.batch:(i + 1) * self.batch])


def make_model(job):
    with contextlib.redirect_stdout(sys.stderr):
        if job["peer"] == "nanogpt":
            return NanoGpt(job["model_file"], **job["shape"])
        if job["peer"] == "pytorch":
            return Gpt(**job["shape"])
        if job["peer"] == "transformers":
            return Mixture(**job["shape"])
        return Translator(**job["shape"], pad=job["data"]["special"]["pad"])


def make_optimizer(model, options, device):
    matrices = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    others = [parameter for parameter in model.parameters() if parameter.dim() < 2]
    groups = [{"params": matrices, "weight_decay": options["weight_decay"]}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=options["lr"], betas=tuple(options["betas"]), eps=options["eps"],
                             fused=True if device.type == "cuda" else None)


def rows_on(device, rows):
    if device.type == "cpu":
        return rows
    return [row.pin_memory().to(device, non_blocking=True) for row in rows]


def main(job):
    torch.set_num_threads(job["threads"])
    torch.manual_seed(job["seed"])
    batches = (Pairs if job["peer"] == "nn.Transformer" else Windows)(job)
    device = torch.device(job["device"])
    model = make_model(job).to(device).train()
    optimizer = make_optimizer(model, job["optimizer"], device)
    precision = torch.autocast(device.type, torch.bfloat16, enabled=job["precision"] == "bf16")
    run = torch.compile(model) if job["compile"] else model

    steps = []
    for step in range(1, job["steps"] + 1):
        begin = time.perf_counter()
        rows, tokens, _ = batches.next()
        for group in optimizer.param_groups:
            group["lr"] = job["optimizer"]["lr"] * min(1.0, step / (job["warmup_steps"] + 1))
        with precision:
            loss = run(*rows_on(device, rows))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), job["optimizer"]["clip"])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss = loss.item()
        steps.append({"tokens": tokens, "seconds": time.perf_counter() - begin, "loss": loss})

    model.eval()
    nats = n_targets = 0
    with torch.inference_mode():
        for rows, _, n in batches.validation(job["valid_batches"]):
            nats += model(*rows_on(device, rows)).item() * n
            n_targets += n
    return {"parameters": sum(parameter.numel() for parameter in model.parameters()), "steps": steps,
            "valid_loss": nats / n_targets, "torch": torch.__version__,
            "peak_device_bytes": torch.cuda.max_memory_allocated() if device.type == "cuda" else None}


if __name__ == "__main__":
    run_job(main, __doc__)
