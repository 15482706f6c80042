"""Rules of generation by transformers: each on random scores, and in greedy and beam searches of whole models."""

import reference_models
import torch
from reference import contiguous
from safetensors.torch import save_file
from transformers import (
    MinNewTokensLengthLogitsProcessor,
    MinPLogitsWarper,
    NoBadWordsLogitsProcessor,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    TypicalLogitsWarper,
)  # fmt: skip

PROMPT, GENERATED = 5, 7
SEARCHES = {
    "penalty": {"repetition_penalty": 1.7},
    "reward": {"repetition_penalty": 0.8},
    "ngram": {"no_repeat_ngram_size": 2},
    "both": {"repetition_penalty": 1.3, "no_repeat_ngram_size": 3},
}


def occurrence(ids, scores, presence, frequency):
    """https://platform.openai.com/docs: logit - count·frequency - (count > 0)·presence, over the output."""
    counts = torch.stack([row.bincount(minlength=scores.shape[1]) for row in ids])
    return scores - counts * frequency - (counts > 0) * presence


def processors(out):
    """Rows of one length, as transformers wants them. Few tokens, so that many are said more than once."""
    ids, scores = torch.randint(0, 9, (6, PROMPT + GENERATED)), 3 * torch.randn(6, 9)
    outputs = {}
    for penalty in (0.5, 1.2, 3.0):
        process = RepetitionPenaltyLogitsProcessor(penalty)
        outputs[f"repetition_penalty {penalty:g}, all"] = process(ids, scores)
        outputs[f"repetition_penalty {penalty:g}, output"] = process(ids[:, PROMPT:], scores)
    for n in (1, 2, 3):
        process = NoRepeatNGramLogitsProcessor(n)
        outputs[f"no_repeat_ngram_size {n}, all"] = process(ids, scores)
        outputs[f"no_repeat_ngram_size {n}, output"] = process(ids[:, PROMPT:], scores)
    for presence, frequency in ((0.5, 0), (0, 0.3), (1.5, -0.2)):
        name = f"presence {presence:g}, frequency {frequency:g}"
        outputs[name] = occurrence(ids[:, PROMPT:], scores, presence, frequency)
    for p in (0.02, 0.1, 0.5, 1.0):
        outputs[f"min_p {p:g}"] = MinPLogitsWarper(p)(ids, scores)
    for p in (0.3, 0.9):
        outputs[f"top_p {p:g}"] = TopPLogitsWarper(p)(ids, scores)
    outputs["top_k 3"] = TopKLogitsWarper(3)(ids, scores)
    for mass in (0.2, 0.6, 0.9):
        outputs[f"typical_p {mass:g}"] = TypicalLogitsWarper(mass)(ids, scores)
    words = [[3], [ids[0, -1].item(), 4], [*ids[1, -2:].tolist(), 5], [7] * 7]
    outputs["bad_words"] = NoBadWordsLogitsProcessor(words)(ids, scores)
    least = MinNewTokensLengthLogitsProcessor(PROMPT, GENERATED + 1, [2, 6])
    outputs["min_new_tokens"] = least(ids, scores)
    outputs["temperature 0.7"] = TemperatureLogitsWarper(0.7)(ids, scores)
    tensors = {f"output/{name}": contiguous(value) for name, value in outputs.items()}
    save_file(tensors | {"input/ids": ids, "input/scores": scores}, out / "processors.safetensors")


def write_searches(out, name, model, parameters):
    """Prompts of unequal length, each alone. The start token is never written, as in the zoo."""
    model.eval()
    model.generation_config.update(eos_token_id=None, pad_token_id=-1, suppress_tokens=[reference_models.START])
    prompts = [reference_models.tokens(length) for length in (5, 2, 8)]
    tensors = {f"param/{key}": contiguous(arrange(*references)) for key, (arrange, *references) in parameters.items()}
    plain = {}
    for i, prompt in enumerate(prompts):
        tensors[f"input/prompt_{i}"] = prompt
        for beams in (1, 3):
            for rules, options in ({"none": {}} | SEARCHES).items():
                ids = model.generate(
                    input_ids=prompt[None], num_beams=beams, do_sample=False, max_new_tokens=14, **options
                )[0]
                new = ids[1 if model.config.is_encoder_decoder else len(prompt) :]
                if rules == "none":
                    plain[i, beams] = new
                else:
                    tensors[f"output/prompt {i}, {beams} beams, {rules}"] = contiguous(new)
    changed = sum(
        not torch.equal(plain[i, beams], tensors[f"output/prompt {i}, {beams} beams, {rules}"])
        for i, beams in plain
        for rules in SEARCHES
    )
    assert changed > len(plain) * len(SEARCHES) / 2, f"{name}: {changed} rules change a text: a weak reference"
    save_file(tensors, out / f"{name}.safetensors")


def gpt2(out):
    write_searches(out, "gpt2_rules", *reference_models.random_gpt2())


def bart(out):
    write_searches(out, "bart_rules", *reference_models.random_bart())


CASES = [processors, gpt2, bart]
