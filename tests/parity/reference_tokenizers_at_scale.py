"""Tokenizers of the Hub on much text: every assigned code point alone and between letters, sequences of emoji, marks,
right-to-left text, 1 MB without a blank, random bytes, WikiText-2 and Multi30k.

The corpora are read from $ZOO_DATA_MIRROR; without them made-up text takes their place. With ZOO_FULL_PARITY=1 all of them
are read, and 100,000 random byte strings; otherwise a part.
"""

import os
import pathlib
import random
import unicodedata

import torch
from reference import write_case
from reference_hub_tokenizers import (ALL, ALPHABET, CORPUS, EMOJI, LLAMA3, as_bytes, charsmap, flat, llama2_tokenizer,
                                      split_and_bytes, trained_bpe)
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

FULL = os.environ.get("ZOO_FULL_PARITY") == "1"
DATA = pathlib.Path(os.environ.get("ZOO_DATA_MIRROR", "/nowhere"))


def corpora():
    files = sorted(DATA.glob("wikitext-2/*.tokens")) + sorted(DATA.glob("multi30k/*.??"))
    text = [file.read_text(errors="replace") for file in files] or ["\n".join(CORPUS) * 4]
    parts = []
    for whole in text:
        whole = whole if FULL else whole[:60_000]
        parts += [whole[i:i + 20_000] for i in range(0, len(whole), 20_000)]
    return parts


def code_points():
    known = [c for kind in ALL for c in kind if unicodedata.category(c) not in ("Co", "Cn")] + ALL[-1]
    known = list(dict.fromkeys(known))
    texts = []
    for i in range(0, len(known), 64):
        part = known[i:i + 64]
        texts += ["\n".join(part), " ".join(f"a{c}b" for c in part), "".join(f"1{c}." for c in part)]
    return texts


def hard_texts():
    rng = random.Random(3)
    marks = [c for c in map(chr, range(0x300, 0x370))] + ["\u0591", "\u05c1", "\u064b", "\u0670", "\u0345", "\u0e49", "\u3099"]
    texts = ["".join(rng.choice("eoaקאبس") + "".join(rng.sample(marks, rng.randint(0, 4))) for _ in range(30))
             for _ in range(200)]
    texts += ["".join(rng.choice(EMOJI + ["\u200d", "\ufe0f", "🏽", "🇦", "♀", "👩", "🚒", " "]) for _ in range(20))
              for _ in range(200)]
    texts += ["שלום עולם, 123 — مرحبا بالعالم ١٢٣؟ \u202babc\u202c \u200f!\u061c"] * 2
    texts += ["".join(rng.choices("abcdefghij0123456789-_é東", k=1_000_000))]
    n = 100_000 if FULL else 3_000
    texts += [rng.randbytes(rng.randint(1, 40)).decode("utf-8", "replace") for _ in range(n // 2)]
    return texts + [rng.randbytes(rng.randint(1, 40)).decode("latin-1") for _ in range(n // 2)]


def tokenizers():
    gpt2 = trained_bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), vocab_size=2000, special=["<end>"])
    llama3 = trained_bpe(split_and_bytes(LLAMA3), vocab_size=2000, special=["<end>"], normalizer=normalizers.NFC())
    bert = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    bert.normalizer, bert.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    bert.train_from_iterator(CORPUS + ["".join(c) for c in zip(*[iter(sum(ALL[:3], [])[:600])] * 1)],
                             trainers.WordPieceTrainer(vocab_size=2500, special_tokens=["[UNK]"], show_progress=False))
    bert.decoder = decoders.WordPiece()
    unigram = Tokenizer(models.Unigram())
    unigram.normalizer, unigram.pre_tokenizer = normalizers.Precompiled(charsmap()), pre_tokenizers.Metaspace()
    unigram.train_from_iterator(CORPUS, trainers.UnigramTrainer(vocab_size=1500, unk_token="<unk>", show_progress=False,
                                                                special_tokens=["<unk>"]))
    unigram.decoder = decoders.Metaspace()
    return {"gpt2": gpt2, "llama3": llama3, "bert": bert, "unigram": unigram, "llama2": llama2_tokenizer()}


def at_scale(directory):
    texts = corpora() + code_points() + hard_texts()
    rng = random.Random(4)
    inputs = dict(zip(("texts", "text_lengths"), as_bytes(texts)))
    for name, tokenizer in tokenizers().items():
        folder = directory / name
        folder.mkdir()
        tokenizer.save(str(folder / "tokenizer.json"))
        encoded = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        lists = [[rng.randrange(tokenizer.get_vocab_size()) for _ in range(rng.randint(1, 12))] for _ in range(3000)]
        lists += [each.ids for each in encoded[:200]]
        outputs = {}
        outputs["ids"], outputs["id_lengths"] = flat([each.ids for each in encoded])
        outputs["decoded"], outputs["decoded_lengths"] = as_bytes(tokenizer.decode_batch(lists, skip_special_tokens=True))
        inputs["lists"], inputs["list_lengths"] = flat(lists)
        write_case(directory, name, inputs=inputs, outputs=outputs)


CASES = [at_scale]
