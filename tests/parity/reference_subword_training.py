"""Vocabularies that tokenizers' BpeTrainer learns, for the trainers of tokenizers/subwords/."""

import json

from reference import write_case
from reference_hub_tokenizers import CORPUS, PIECES, as_bytes, flat
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

SPECIAL = ["<pad>", "<unk>", "<bos>", "<eos>", "<mask>", "<cls>", "<sep>"]


def byte_level(directory):
    texts = ["\n".join(CORPUS[i:i + 7]) for i in range(0, len(CORPUS), 7)] + PIECES + ["aaaaaaaaaa" * 3, "abababab" * 4]
    for name, size, lower, special in [("bpe", 1500, False, SPECIAL), ("bpe-lower", 400, True, []),
                                       ("bpe-all", 100_000, False, SPECIAL)]:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.normalizer = normalizers.Lowercase() if lower else None
        tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
            vocab_size=size, min_frequency=2, special_tokens=special, show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
        model = json.loads(tokenizer.to_str())["model"]
        tokenizer.encode_special_tokens = True  # texts that look like a special token are texts
        tokens = sorted(model["vocab"], key=model["vocab"].get)
        inputs, outputs = {}, {}
        inputs["texts"], inputs["text_lengths"] = as_bytes(texts)
        outputs["tokens"], outputs["token_lengths"] = as_bytes(tokens)
        outputs["merges"], outputs["merge_lengths"] = as_bytes([" ".join(merge) for merge in model["merges"]])
        outputs["ids"], outputs["id_lengths"] = flat([tokenizer.encode(text, add_special_tokens=False).ids for text in texts])
        write_case(directory, name, inputs=inputs, outputs=outputs)


CASES = [byte_level]
