"""Fifty steps of LoRA in a plain loop of PyTorch: GPT-2 of transformers, whose queries and values get adapters (Hu et
al. 2021). And the lengths to which tokenizers cuts the texts of a pair.

The case `lora` holds `param/NAME` with the weights and the first adapters, under their names in C++, `input/` with the
batches, and `output/` with the losses, the gradients' norms and the trained adapters.
"""

import torch
import torch.nn.functional as F
from reference import contiguous, normal_
from reference_models import D, LAYERS, gpt2_parameters, make_gpt2, tokens
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

STEPS, B, T = 50, 3, 10
RANK, ALPHA = 4, 12.0


def lora(out):
    model = normal_(make_gpt2(), std=0.1)
    model.requires_grad_(False)
    tensors = {f"param/{key}": contiguous(f(*p)) for key, (f, *p) in gpt2_parameters(model).items()}
    adapters = {}

    def adapt(layer, module):
        """Adds to the queries and values, the first and the last third of c_attn's output."""
        own = {}
        for name, first in (("q", 0), ("v", 2 * D)):
            a = (torch.randn(RANK, D) * 0.2).requires_grad_()
            b = torch.zeros(D, RANK).requires_grad_()
            own[first] = (a, b)
            at = f"decoder.layers.{layer}.self_attention.{name}"
            adapters[f"{at}.lora_a"], adapters[f"{at}.lora_b"] = a, b

        def add(_, inputs, output):
            thirds = list(output.split(D, dim=-1))
            for first, (a, b) in own.items():
                thirds[first // D] = thirds[first // D] + inputs[0] @ a.t() @ b.t() * (ALPHA / RANK)
            return torch.cat(thirds, dim=-1)

        module.register_forward_hook(add)

    for i in range(LAYERS):
        adapt(i, model.transformer.h[i].attn.c_attn)
    tensors |= {f"param/{key}": contiguous(value) for key, value in adapters.items()}
    optimizer = torch.optim.AdamW(adapters.values(), lr=1e-2, betas=(0.9, 0.98), eps=1e-8, weight_decay=0.1)
    losses, norms = [], []
    for step in range(STEPS):
        ids = tokens(B, T + 1)
        tensors[f"input/ids_{step}"] = ids[:, :-1].contiguous()
        tensors[f"input/targets_{step}"] = ids[:, 1:].flatten()
        loss = F.cross_entropy(model(input_ids=ids[:, :-1]).logits.flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(adapters.values(), 1.0).item())
        optimizer.step()
        losses.append(loss.item())
    tensors["output/losses"], tensors["output/gradient_norms"] = torch.tensor(losses), torch.tensor(norms)
    tensors |= {f"output/{key}": contiguous(value) for key, value in adapters.items()}
    save_file(tensors, out / "lora.safetensors")


def cut_pairs(out):
    """Rows of: length of the first text, of the second, room for both, and the two lengths that are kept."""
    tokenizer = Tokenizer(WordLevel({"a": 0, "b": 1}, unk_token="a"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    rows = []
    for first in range(1, 9):
        for second in range(1, 9):
            for room in range(2, 17):
                tokenizer.enable_truncation(room, strategy="longest_first")
                types = tokenizer.encode(" ".join("a" * first), " ".join("b" * second)).type_ids
                rows.append([first, second, room, types.count(0), types.count(1)])
    save_file({"output/rows": torch.tensor(rows)}, out / "cut_pairs.safetensors")


CASES = [lora, cut_pairs]
