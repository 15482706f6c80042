"""Rules of generation by transformers: each on random scores, in greedy and beam searches of whole models, and as
directories whose generation_config.json or config.json names them."""

import json
import shutil

import reference_models
import torch
from reference import contiguous
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    EncoderNoRepeatNGramLogitsProcessor,
    EncoderRepetitionPenaltyLogitsProcessor,
    EpsilonLogitsWarper,
    EtaLogitsWarper,
    ExponentialDecayLengthPenalty,
    ForcedBOSTokenLogitsProcessor,
    LlamaConfig,
    LlamaForCausalLM,
    LogitNormalization,
    MinLengthLogitsProcessor,
    MinNewTokensLengthLogitsProcessor,
    MinPLogitsWarper,
    NoBadWordsLogitsProcessor,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
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
    outputs["min_length"] = MinLengthLogitsProcessor(PROMPT + GENERATED + 1, [2, 6])(ids, scores)
    outputs["forced"] = ForcedBOSTokenLogitsProcessor(4)(ids[:, :1], scores)
    outputs["length decay"] = ExponentialDecayLengthPenalty((GENERATED - 3, 1.7), [2, 6], PROMPT)(ids, scores)
    for penalty in (0.5, 3.0):
        process = EncoderRepetitionPenaltyLogitsProcessor(penalty, ids[:, :PROMPT])
        outputs[f"encoder_repetition_penalty {penalty:g}"] = process(ids, scores)
    for n in (1, 2):
        process = EncoderNoRepeatNGramLogitsProcessor(n, ids[:, :PROMPT])
        outputs[f"encoder_no_repeat_ngram_size {n}"] = process(ids[:, PROMPT:], scores)
    biases = [[word, bias] for word, bias in zip(words, (1.5, -2.0, 4.0, 9.0))] + [[[ids[0, -1].item(), 3], 0.5]]
    outputs["sequence_bias"] = SequenceBiasLogitsProcessor(biases)(ids, scores)
    for cutoff in (0.05, 0.3):
        outputs[f"epsilon_cutoff {cutoff:g}"] = EpsilonLogitsWarper(cutoff)(ids, scores)
        outputs[f"eta_cutoff {cutoff:g}"] = EtaLogitsWarper(cutoff)(ids, scores)
    outputs["renormalised"] = LogitNormalization()(ids, scores)
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


def save_bytes_tokenizer(directory):
    letters = {letter: i for i, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=letters | {"<end>": 256}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<end>"])
    tokenizer.save(str(directory / "tokenizer.json"))
    named = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<end>", "bos_token": "<end>"}
    (directory / "tokenizer_config.json").write_text(json.dumps(named))


def write_settings(out, name, model, prompts, tokens, settings):
    """A directory for each of `settings`, (generation_config.json or None, changes of config.json), and what transformers
    writes for each prompt: the tokens up to the end, a row for each output, with -1 behind them."""
    model.eval().save_pretrained(out / "model")
    tensors, plain, useless = {}, [], []
    for i, (generation, config) in enumerate(settings):
        directory = out / f"{name}_{i}"
        shutil.copytree(out / "model", directory)
        save_bytes_tokenizer(directory)
        (directory / "generation_config.json").unlink(missing_ok=True)
        if generation is not None:
            (directory / "generation_config.json").write_text(json.dumps(generation))
        known = json.loads((directory / "config.json").read_text())
        (directory / "config.json").write_text(json.dumps(known | config))
        loaded = type(model).from_pretrained(directory).eval()
        ends = (generation or tokens | config).get("eos_token_id")
        found = []
        for p, prompt in enumerate(prompts):
            rows = loaded.generate(prompt[None], attention_mask=torch.ones_like(prompt[None]))
            rows = [row[1 if loaded.config.is_encoder_decoder else len(prompt) :].tolist() for row in rows]
            rows = [row[: row.index(ends) + 1] if ends in row else row for row in rows]
            longest = max(map(len, rows))
            tensors[f"input/{directory.name}/{p}"] = prompt.clone()
            tensors[f"output/{directory.name}/{p}"] = torch.tensor([row + [-1] * (longest - len(row)) for row in rows])
            found.append(rows)
        plain = plain or found
        useless += [i] if i > 0 and found == plain else []
    assert not useless, f"{name}: the settings {useless} change nothing: a weak reference"
    save_file(tensors, out / f"{name}.safetensors")


def answers(out):
    """By an encoder-decoder whose decoder begins with its end token, as that of BART."""
    torch.manual_seed(5)
    tokens = {"bos_token_id": 0, "decoder_start_token_id": 2, "eos_token_id": 2, "pad_token_id": 1}
    config = BartConfig(
        vocab_size=257, d_model=32, encoder_layers=1, decoder_layers=2, encoder_attention_heads=4, init_std=0.4,
        decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=64,
        forced_eos_token_id=None, **tokens,
    )  # fmt: skip
    model = BartForConditionalGeneration(config)
    prompts = [torch.randint(40, 200, (n,)) for n in (6, 11)]
    with torch.no_grad():
        model.final_logits_bias[0, 1] = -100.0  # padding is no output
        model.final_logits_bias[0, 2] = 4.0
    base = tokens | {"num_beams": 1, "max_new_tokens": 12}
    written = model.eval().generate(prompts[0][None], **base)[0, 1:].tolist()
    first, second, third = written[:3]
    shorter = {key: value for key, value in base.items() if key != "max_new_tokens"}
    beams = {"num_beams": 3, "num_return_sequences": 3}
    settings = [
        {}, {"min_length": 9}, {"min_new_tokens": 7, "min_length": 11}, {"forced_bos_token_id": 70},
        {"encoder_repetition_penalty": 8.0, "min_length": 6}, {"min_length": 13, "encoder_no_repeat_ngram_size": 1},
        {"repetition_penalty": 1.8}, {"no_repeat_ngram_size": 1}, {"exponential_decay_length_penalty": [1, 8.0]},
        {"exponential_decay_length_penalty": [2, 0.2], "min_length": 5},
        {"sequence_bias": [[[first, second], -30.0], [[second], 1.0], [[2, first], -0.5]]},
        {"bad_words_ids": [[first, second], [third], [2]]}, {"suppress_tokens": [first], "bad_words_ids": [[second]]},
        {"forced_bos_token_id": 70, "begin_suppress_tokens": [first, 2]}, {"begin_suppress_tokens": [first, 2]},
        {"forced_eos_token_id": 9, "min_length": 14}, beams, beams | {"forced_bos_token_id": 70, "length_penalty": 2.0},
        beams | {"forced_eos_token_id": 5, "max_new_tokens": 5}, beams | {"min_length": 8, "early_stopping": True},
        beams | {"repetition_penalty": 1.8, "early_stopping": "never"}, beams | {"bad_words_ids": [[first, second]]},
        beams | {"bad_words_ids": [[first], [second]], "renormalize_logits": True, "min_new_tokens": 5},
        beams | {"exponential_decay_length_penalty": [2, 0.5], "max_new_tokens": 6},
    ]  # fmt: skip
    settings = [(base | setting, {}) for setting in settings]
    settings += [(shorter | {"max_length": 5, "min_length": 5}, {}), (shorter | {"max_length": 4, "forced_eos_token_id": 9,
        "min_length": 4, "suppress_tokens": [2]}, {})]  # fmt: skip
    # No end, another start, and keys of config.json that count only where there is no other file.
    endless = {key: value for key, value in base.items() if key != "eos_token_id"}
    startless = {key: value for key, value in base.items() if key != "decoder_start_token_id"}
    old = {"forced_bos_token_id": 70, "num_beams": 3, "min_length": 9, "max_length": 12}
    settings += [(endless, {}), (startless, {}), (base | {"min_length": 4}, old), (None, old)]
    write_settings(out, "answers", model, prompts, tokens, settings)


def continuations(out):
    """By a decoder. What it forces first stands behind a prompt of one token only."""
    torch.manual_seed(2)
    tokens = {"bos_token_id": 256, "eos_token_id": 10, "pad_token_id": 256}
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=257, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.3, **tokens,
    ))  # fmt: skip
    prompts = [torch.tensor([70]), torch.randint(40, 200, (5,))]
    base = tokens | {"max_new_tokens": 10}
    first, second = model.eval().generate(prompts[1][None], **base)[0, 5:7].tolist()
    shorter = {key: value for key, value in base.items() if key != "max_new_tokens"}
    late = [[[prompts[1][-1].item(), first], -20.0], [[first], 3.0]]
    copied = [[[prompts[1][i].item()], 9.0] for i in range(3)]
    settings = [
        {}, {"forced_bos_token_id": 90}, {"forced_bos_token_id": 90, "begin_suppress_tokens": [first]},
        {"forced_eos_token_id": 10}, {"encoder_repetition_penalty": 5.0}, {"repetition_penalty": 1.5},
        {"encoder_no_repeat_ngram_size": 2, "sequence_bias": copied}, {"sequence_bias": copied}, {"sequence_bias": late},
        {"bad_words_ids": [[prompts[1][-1].item(), first], [second]]}, {"num_beams": 3, "num_return_sequences": 2},
        {"num_beams": 3, "num_beam_groups": 1, "forced_bos_token_id": 90, "forced_eos_token_id": 10},
        {"sequence_bias": [[[10], 6.0]], "min_length": 9}, {"sequence_bias": [[[10], 6.0]]},
        {"exponential_decay_length_penalty": [3, 4.0]},
    ]  # fmt: skip
    settings = [(base | setting, {}) for setting in settings]
    settings += [(shorter | {"max_length": 9, "forced_eos_token_id": 10}, {}), (shorter | {"max_length": 8}, {})]
    write_settings(out, "continuations", model, prompts, tokens, settings)


CASES = [processors, gpt2, bart, answers, continuations]
