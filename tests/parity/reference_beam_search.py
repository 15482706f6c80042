"""Beam searches by transformers: over tables of next-token scores, and over whole models with their caches."""

import math

import reference_models
import torch
from reference import contiguous
from safetensors.torch import save_file
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

EARLY_STOPPING = {"true": True, "false": False, "never": "never"}


def search(name, model, prompt, *, beams, **options):
    """The case `name`: the new tokens of all beams, best first, padded with -1 after the end, and their scores."""
    result = model.generate(
        input_ids=prompt[None], num_beams=beams, num_return_sequences=beams, do_sample=False, pad_token_id=-1,
        return_dict_in_generate=True, output_scores=True, **options,
    )  # fmt: skip
    begin = 1 if model.config.is_encoder_decoder else len(prompt)
    ids, scores = result.sequences[:, begin:], result.sequences_scores
    return {f"output/{name}/ids": contiguous(ids), f"output/{name}/scores": contiguous(scores)}


class Bigrams(PreTrainedModel, GenerationMixin):
    """The next token depends only on the last one."""

    config_class = PretrainedConfig

    def __init__(self, logits):
        super().__init__(PretrainedConfig(vocab_size=len(logits), use_cache=False, num_hidden_layers=0))
        self.table = torch.nn.Parameter(logits)

    def forward(self, input_ids, **_):
        return CausalLMOutput(logits=self.table[input_ids])


def write_tables(out, name, logits, starts, max_new_tokens):
    """Writes one file for one table. The last row's token ends a text."""
    model = Bigrams(logits)
    tensors = {"input/logits": logits}
    for beams in (2, 3, 4):
        for penalty in (0.0, 1.0, 2.0, -1.0):
            for stopping, early_stopping in EARLY_STOPPING.items():
                for start in starts:
                    tensors |= search(
                        f"{beams} beams, penalty {penalty:g}, early stopping {stopping}, from {start}", model,
                        torch.tensor([start]), beams=beams, length_penalty=penalty, early_stopping=early_stopping,
                        max_new_tokens=max_new_tokens, eos_token_id=len(logits) - 1,
                    )  # fmt: skip
    save_file(tensors, out / f"{name}.safetensors")


def waves(out):
    logits = [[3 * math.sin(1.7 * i + 0.9 * j * j + 0.37 * i * j) for j in range(6)] for i in range(6)]
    write_tables(out, "waves", torch.tensor(logits), starts=(0, 2), max_new_tokens=7)


def late(out):
    """The best text is long and begins with unlikely tokens, so a search that ends early misses it."""
    rest = [0.3, 0.25, 0.2, 0.1, 0.08, 0.07]
    rows = [
        [0.01, 0.28, 0.2, 0.006, 0.004, 0.5],
        [0.03, 0.025, 0.02, 0.015, 0.01, 0.9],
        [0.006, 0.005, 0.97, 0.004, 0.003, 0.012],
    ]
    write_tables(out, "late", torch.tensor(rows + [rest] * 3).log(), starts=(0,), max_new_tokens=8)


# Short texts, because two texts with the same steps in another order have the same score and may come in either order.
def noise(out):
    write_tables(out, "noise", 2 * torch.randn(9, 9), starts=(0, 3, 7), max_new_tokens=6)


def write_model(out, name, model, parameters):
    """Prompts of unequal length, each searched alone. The end token is the second most frequent greedy token."""
    model.eval()
    model.generation_config.update(eos_token_id=None, pad_token_id=-1)
    prompts = [reference_models.tokens(length) for length in (5, 1, 8, 2)]
    greedy = [model.generate(input_ids=prompt[None], do_sample=False, max_new_tokens=9)[0, -9:] for prompt in prompts]
    eos = torch.cat(greedy).bincount().argsort()[-2].item()
    tensors = {f"param/{key}": contiguous(arrange(*references)) for key, (arrange, *references) in parameters.items()}
    tensors["input/eos"] = torch.tensor(eos)
    lengths = set()
    for i, prompt in enumerate(prompts):
        tensors[f"input/prompt_{i}"] = prompt
        for penalty in (0.0, 1.0):
            case = f"prompt {i}, penalty {penalty:g}"
            tensors |= search(
                case, model, prompt, beams=4, length_penalty=penalty, early_stopping=True, max_new_tokens=9,
                eos_token_id=eos,
            )  # fmt: skip
            lengths |= {length.item() for length in (tensors[f"output/{case}/ids"] >= 0).sum(1)}
    assert len(lengths) > 3, f"{name}: the beams have only the lengths {lengths}: a weak reference"
    save_file(tensors, out / f"{name}.safetensors")


def gpt2(out):
    write_model(out, "gpt2_beams", *reference_models.random_gpt2())


def bart(out):
    write_model(out, "bart_beams", *reference_models.random_bart())


CASES = [waves, late, noise, gpt2, bart]
