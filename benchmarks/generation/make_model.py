#!/usr/bin/env python3
"""Writes a model of random weights as a directory of transformers, or such a directory as one of CTranslate2.

    make_model.py JOB.json RESULT.json

The job has `shape` and `directory`, or `directory`, `converted` and `quantization`. Every token of the vocabularies is one
that can be written: a text of single letters with blanks between them has one token for each letter. Writes the number of
parameters and that of the weights that are read for a token. Exit code 77 if this Python has no PyTorch or transformers.
"""

import io
import json
import random
import sys
from pathlib import Path

try:
    import torch
    import transformers
except ModuleNotFoundError:
    sys.exit(77)
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.measuring.program import run_job  # noqa: E402

LETTERS = "abcdefghijklmnopqrstuvwxyz"
END = "<|end|>"


def bpe_of_bytes(n):
    """n tokens: the bytes, a blank with each letter, other pairs of bytes, and an end token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    symbols = sorted(pre_tokenizers.ByteLevel.alphabet())
    blank = "Ġ"
    pairs = [(blank, letter) for letter in LETTERS] + [(a, b) for a in symbols if a != blank for b in symbols]
    pairs = pairs[:n - 1 - len(symbols)]
    vocabulary = {token: i for i, token in enumerate([*symbols, *map("".join, pairs), END])}
    tokenizer = Tokenizer(models.BPE(vocabulary, pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=END, eos_token=END, unk_token=END)


def marian_tokenizer(n, directory):
    """n tokens: the letters, words that no text has, and those that mark ends and padding."""
    import sentencepiece

    draw, written = random.Random(1), io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(draw.choices(LETTERS, k=12)) for _ in range(300)]), model_writer=written,
        minloglevel=3, num_threads=1, vocab_size=60, hard_vocab_limit=False,
    )  # fmt: skip
    for side in ("source", "target"):
        (directory / f"{side}.spm").write_bytes(written.getvalue())
    pieces = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
    tokens = ["</s>", "<unk>", *(pieces.IdToPiece(i) for i in range(3, len(pieces)))]
    tokens += [f"▁word{i}" for i in range(n - 1 - len(tokens))] + ["<pad>"]
    (directory / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}), encoding="utf-8")
    return transformers.MarianTokenizer.from_pretrained(directory, source_lang="en", target_lang="de")


def gpt2(shape, end):
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_layer=shape["layers"], n_head=shape["heads"], n_embd=shape["width"], n_inner=shape["inner"],
        vocab_size=shape["vocabulary"], n_positions=shape["context"], bos_token_id=end, eos_token_id=end))


def llama(shape, end):
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        num_hidden_layers=shape["layers"], num_attention_heads=shape["heads"], num_key_value_heads=shape["kv_heads"],
        hidden_size=shape["width"], intermediate_size=shape["inner"], vocab_size=shape["vocabulary"],
        max_position_embeddings=shape["context"], bos_token_id=end, eos_token_id=end, tie_word_embeddings=False))


def mixtral(shape, end):
    return transformers.MixtralForCausalLM(transformers.MixtralConfig(
        num_hidden_layers=shape["layers"], num_attention_heads=shape["heads"], num_key_value_heads=shape["kv_heads"],
        hidden_size=shape["width"], intermediate_size=shape["inner"], num_local_experts=shape["experts"],
        num_experts_per_tok=shape["active"], vocab_size=shape["vocabulary"], max_position_embeddings=shape["context"],
        bos_token_id=end, eos_token_id=end, tie_word_embeddings=False, sliding_window=None))


def marian(shape, padding):
    model = transformers.MarianMTModel(transformers.MarianConfig(
        encoder_layers=shape["layers"], decoder_layers=shape["layers"], encoder_attention_heads=shape["heads"],
        decoder_attention_heads=shape["heads"], d_model=shape["width"], encoder_ffn_dim=shape["inner"],
        decoder_ffn_dim=shape["inner"], vocab_size=shape["vocabulary"], max_position_embeddings=shape["context"],
        activation_function="relu", scale_embedding=True, eos_token_id=0, forced_eos_token_id=None,
        pad_token_id=padding, decoder_start_token_id=padding))
    model.generation_config.bad_words_ids = [[padding]]  # as in the published models
    return model


def read_for_a_token(model, shape):
    """How many weights a generated token multiplies: the matrices of layers and head. Other rows of tables are not read, and
    of experts those that work for it."""
    head = model.get_output_embeddings().weight
    skipped = {id(module.weight) for module in model.modules() if isinstance(module, torch.nn.Embedding)} - {id(head)}
    of_experts = {id(weight) for name, weight in model.named_parameters() if ".experts." in name}
    share = shape["active"] / shape["experts"] if of_experts else 1
    return round(sum(weight.numel() * (share if id(weight) in of_experts else 1)
                     for weight in model.parameters() if weight.dim() > 1 and id(weight) not in skipped))


def make(shape, directory):
    torch.manual_seed(1)
    transformers.logging.set_verbosity_error()
    directory.mkdir(parents=True)
    last = shape["vocabulary"] - 1
    model = {"gpt2": gpt2, "llama": llama, "mixtral": mixtral, "marian": marian}[shape["family"]](shape, last)
    is_marian = shape["family"] == "marian"
    tokenizer = marian_tokenizer(last + 1, directory) if is_marian else bpe_of_bytes(last + 1)
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return {"parameters": model.num_parameters(only_trainable=True), "read_for_a_token": read_for_a_token(model, shape)}


def main(job):
    if "converted" not in job:
        return make(job["shape"], Path(job["directory"]))
    from ctranslate2.converters import TransformersConverter

    TransformersConverter(job["directory"]).convert(job["converted"], quantization=job["quantization"])
    return {}


if __name__ == "__main__":
    run_job(main, __doc__)
