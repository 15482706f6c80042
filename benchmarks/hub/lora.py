"""LoRA on an imported model: the losses of zoo train beside those of a plain PyTorch loop.

    python benchmarks/hub/lora.py DIRECTORY TEXT [--steps 50]

DIRECTORY is a model in Hugging Face's form (smollm2.py makes one), TEXT a file of some hundred lines. Each step reads the
whole text: then both programs have the same data in any order, up to the offset of the windows, which this script draws as
the zoo does. The adapters begin with the zoo's values.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

LENGTH, RANK, ALPHA, RATE, SEED, OFFSET_PURPOSE = 64, 8, 16, 1e-3, 1, 3
MASK, INCREMENT = (1 << 64) - 1, 0x9E3779B97F4A7C15


def counter_random(*coordinates):
    """CounterRandom of base/random.h: the first 64-bit number."""

    def mix(x):
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
        return x ^ (x >> 31)

    state = 0
    for coordinate in coordinates:
        state = mix(state ^ mix((coordinate + INCREMENT) & MASK))
    return mix((state + INCREMENT) & MASK)


def train(zoo, directory, text, run, steps, rate, n_windows):
    config = {
        "name": "lora", "init_from": str(directory), "task": "language_modeling",
        "data": {"train": str(text), "valid": str(text), "sequence_length": LENGTH},
        "training": {
            "seed": SEED, "steps": steps, "batch_size": n_windows, "log_every": 1, "evaluate_every": steps,
            "evaluate_batches": 1, "optimizer": {"lr": rate, "weight_decay": 0.01, "betas": [0.9, 0.99]},
            "schedule": {"type": "constant"}, "precision": "fp32", "lora": {"rank": RANK, "alpha": ALPHA},
        },
    }  # fmt: skip
    path = run.with_suffix(".yaml")
    path.write_text(json.dumps(config))
    subprocess.run([zoo, "train", str(path), "--out", str(run), "--device", "cpu"], check=True, capture_output=True)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [row["train_loss"] for row in rows if "train_loss" in row], load_file(run / "adapter.safetensors")


class Adapted(torch.nn.Module):
    def __init__(self, linear, a, b):
        super().__init__()
        self.linear, self.a, self.b = linear, torch.nn.Parameter(a), torch.nn.Parameter(b)

    def forward(self, x):
        return self.linear(x) + ALPHA / RANK * ((x @ self.a.T) @ self.b.T)


def plain_loop(directory, ids, adapters, steps, clip):
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    trained = []
    for i, layer in enumerate(model.model.layers):
        for name in "qv":
            at = f"decoder.layers.{i}.self_attention.{name}.lora_"
            a, b = adapters[at + "a"], torch.zeros_like(adapters[at + "b"])
            adapted = Adapted(getattr(layer.self_attn, f"{name}_proj"), a, b)
            setattr(layer.self_attn, f"{name}_proj", adapted)
            trained += [adapted.a, adapted.b]
    optimizer = torch.optim.AdamW(trained, lr=RATE, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.01)
    losses = []
    for step in range(steps):
        most = min(LENGTH - 1, len(ids) - 1 - LENGTH)
        offset = counter_random(SEED, step, OFFSET_PURPOSE) % (most + 1)
        n = (len(ids) - 1 - offset) // LENGTH
        windows = torch.stack([ids[offset + i * LENGTH :][: LENGTH + 1] for i in range(n)])
        optimizer.zero_grad()
        logits = model(windows[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, clip)
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--zoo", default="build/release/zoo")
    arguments = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(arguments.directory)
    ids = torch.tensor(tokenizer(arguments.text.read_text(), add_special_tokens=False)["input_ids"])
    n_windows = len(ids) // LENGTH + 1
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder)
        source, text = arguments.directory.resolve(), arguments.text.resolve()
        _, adapters = train(arguments.zoo, source, text, runs / "first", 1, 1e-30, n_windows)
        ours, _ = train(arguments.zoo, source, text, runs / "run", arguments.steps, RATE, n_windows)
    theirs = plain_loop(arguments.directory, ids, adapters, arguments.steps, clip=1.0)
    worst = max(abs(a - b) for a, b in zip(ours, theirs))
    print(f"{len(ids)} tokens; losses of {len(ours)} steps: zoo {ours[0]:.4f} … {ours[-1]:.4f}, "
          f"PyTorch {theirs[0]:.4f} … {theirs[-1]:.4f}; they differ by at most {worst:.2g}")


main()
