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


def word_pieces(directory):
    # Each word goes on from a shorter one that is more frequent, and no two pairs occur equally often: tokenizers breaks
    # ties differently in each of its runs.
    chains = [("th", "the", "then"), ("in", "ins", "inst"), ("qu", "qua", "quar"), ("vo", "vow", "vowe"), ("by", "bye", "byea")]
    counts = {word: 97 - 6 * i - 29 * j + i * j for i, chain in enumerate(chains) for j, word in enumerate(chain)}
    texts = [" ".join(word for word, n in counts.items() if n > line) for line in range(max(counts.values()))]
    tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(texts, trainers.WordPieceTrainer(
        vocab_size=52, min_frequency=2, special_tokens=SPECIAL, show_progress=False))
    vocabulary = json.loads(tokenizer.to_str())["model"]["vocab"]
    inputs, outputs = {}, {}
    inputs["texts"], inputs["text_lengths"] = as_bytes(texts)
    outputs["tokens"], outputs["token_lengths"] = as_bytes(sorted(vocabulary, key=vocabulary.get))
    write_case(directory, "wordpiece", inputs=inputs, outputs=outputs)


CASES = [byte_level, word_pieces]
