"""Tokenizers of the Hub by tokenizers and transformers: small ones, trained here on this repository's documentation.

The texts are random characters of every category, new and unassigned ones among them, and pieces that are hard to cut. A
case is a directory NAME, as transformers saves it, beside NAME.safetensors. Lists of texts are bytes and
lengths.
"""

import functools
import io
import json
import pathlib
import random
import unicodedata

import sentencepiece
import torch
from reference import write_case
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (AutoTokenizer, BertTokenizerFast, CLIPTokenizerFast, EsmTokenizer, GPT2TokenizerFast, LlamaTokenizerFast,
                          PreTrainedTokenizerFast, RobertaTokenizerFast, Wav2Vec2CTCTokenizer)
from transformers.convert_slow_tokenizer import bytes_to_unicode

REPOSITORY = pathlib.Path(__file__).parents[2]
ALPHABET = pre_tokenizers.ByteLevel.alphabet()
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")

EMOJI = ["👩‍👩‍👧‍👦", "👍🏽", "❤️", "🇩🇪", "1️⃣", "😀"]
BLANKS = [" "] * 6 + ["  ", "   ", "\t", "\n", "\n\n", "\r\n", " \n ", "\u00a0", "\u2003", "\u3000", "\u2028", "\u0085",
                      "\u200b", "\u180e", "\x0b", "\x1f"]
PIECES = ["don't", "I'LL", "we've", "It'S", "ſ", "İstanbul", "Straße", "naïve", "cafe\u0301", "ﬁn", "①②", "½", "x²", "Ⅷ", "ѬѮ",
          "3.14", "1234567", "٣٤٥", "東京", "日本語。", "한국어", "각", "नमस्ते", "ไทย", "שלום", "مرحبا", "e\u0323\u0301",
          "a" * 300, "foo_bar", "C++", "http://a.b/c?d=1", "...", "?!", "—", "“q”", "\ufffd", "\x00", "\x01", "\x7f",
          "\ue000", "\U00020000", "\u0130", "ǅ", "Σίσυφος", "\u212a", "\ud7a3", "▁", "Ġ", "<0x41>", "##ing", "##"] + EMOJI


def characters():
    """Every code point by its category; those that are newer than Python's Unicode are among the unassigned ones."""
    by_category = {}
    for c in range(0x110000):
        category = unicodedata.category(chr(c))
        if category != "Cs":
            by_category.setdefault(category, []).append(chr(c))
    newer = [chr(c) for first, last in NEWER for c in range(first, last)]
    return list(by_category.values()) + [newer]


# Parts of Unicode 15 and 16: letters, marks, digits, symbols.
NEWER = [(0x0897, 0x0898), (0x0CF3, 0x0CF4), (0x1C89, 0x1C8B), (0xA7CB, 0xA7CE), (0x105C0, 0x105F4), (0x10D40, 0x10D66),
         (0x10EFC, 0x10F00), (0x11241, 0x11242), (0x11F00, 0x11F5B), (0x16D40, 0x16D7A), (0x1E030, 0x1E06E),
         (0x1E4EC, 0x1E4FA), (0x1FAE8, 0x1FAEA), (0x31350, 0x31380)]

ALL = characters()


def corpus():
    files = sorted((REPOSITORY / "docs").glob("*.md"))[:12] + [REPOSITORY / "README.md"]
    lines = [line for file in files for line in file.read_text().splitlines() if line.strip()]
    return lines + ["Die Straße in München ist schön.", "東京は日本の首都です。", "Привет, мир!"] * 20


CORPUS = corpus()
WORDS = sorted({word for line in CORPUS for word in line.split()})


def random_texts(rng, n, more=()):
    texts = ["", " ", "  ", "\n", " a", "a ", "\t\t", "\x00"] + [" ".join(BLANKS)] + list(PIECES) + list(more)
    while len(texts) < n:
        text = ""
        for _ in range(rng.randint(1, 12)):
            kind = rng.random()
            if kind < 0.45:
                text += rng.choice(WORDS)
            elif kind < 0.65:
                text += rng.choice(PIECES)
            elif kind < 0.75 and more:
                text += rng.choice(more)
            else:
                text += "".join(rng.choice(rng.choice(ALL)) for _ in range(rng.randint(1, 4)))
            if rng.random() < 0.7:
                text += rng.choice(BLANKS)
        texts.append(text)
    return texts


def as_bytes(texts):
    data = [text.encode() for text in texts]
    return (torch.frombuffer(bytearray(b"".join(data) + b"\0"), dtype=torch.uint8),
            torch.tensor([len(text) for text in data]))


def flat(lists):
    return torch.tensor([i for ids in lists for i in ids] + [0]), torch.tensor([len(ids) for ids in lists])


def is_bpe(tokenizer):
    return tokenizer.is_fast and isinstance(tokenizer.backend_tokenizer.model, models.BPE)


def write(directory, name, *, n=1200, more=(), keep=None, reference=None, frames=True, known=None,
          places_of=None, without=""):
    """Writes the case of the tokenizer in directory/name. `keep`: only these of its files. `known`: an older Unicode,
    whose characters alone are in the texts. `places_of` says where the tokens of a text stand, if the tokenizer does not. `without`: characters that
    no text has."""
    folder = directory / name
    for file in folder.iterdir():
        if keep and file.name not in keep:
            file.unlink()
    tokenizer = reference or AutoTokenizer.from_pretrained(folder)
    rng = random.Random(name)
    texts = [text.translate(dict.fromkeys(map(ord, without))) for text in random_texts(rng, n, list(more))]
    if known:
        texts = ["".join(c for c in text if known.category(c) not in ("Cn", "Co") and
                         unicodedata.category(c) == known.category(c)) for text in texts]
    ids = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
    lists = ids[:n // 2] + [[rng.randrange(len(tokenizer)) for _ in range(rng.randint(0, 9))] for _ in range(n // 2)]
    inputs, outputs = {}, {}
    inputs["texts"], inputs["text_lengths"] = as_bytes(texts)
    inputs["lists"], inputs["list_lengths"] = flat(lists)
    outputs["ids"], outputs["id_lengths"] = flat(ids)
    if tokenizer.is_fast and not places_of:
        def places_of(text):
            return tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    if places_of:
        places = [places_of(text) for text in texts]
        outputs["places"], outputs["place_lengths"] = flat([[i for place in each for i in place] for each in places])
    # transformers 5 takes no blanks from the texts of a BPE.
    options = {"clean_up_tokenization_spaces": False} if is_bpe(tokenizer) else {}
    decoded = [tokenizer.decode(each, skip_special_tokens=True, **options) for each in lists]
    outputs["decoded"], outputs["decoded_lengths"] = as_bytes(decoded)
    roles = ["pad", "unk", "bos", "eos", "mask", "cls", "sep"]
    special = [getattr(tokenizer, f"{role}_token_id") for role in roles]
    outputs["special"] = torch.tensor([-1 if each is None else each for each in special])
    if frames:
        a, b = "to be", "or not"
        outputs["a"], outputs["b"] = (torch.tensor(tokenizer.encode(t, add_special_tokens=False)) for t in (a, b))
        outputs["framed"] = torch.tensor(tokenizer(a)["input_ids"])
        pair = tokenizer(a, b, return_token_type_ids=True)
        outputs["pair"], outputs["segments"] = torch.tensor(pair["input_ids"]), torch.tensor(pair["token_type_ids"])
    write_case(directory, name, inputs=inputs, outputs=outputs)


def trained_bpe(pre_tokenizer, vocab_size=700, special=(), normalizer=None, alphabet=ALPHABET, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer:
        tokenizer.normalizer = normalizer
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=list(special), show_progress=False,
                                  initial_alphabet=alphabet)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def gpt2(directory):
    tokenizer = trained_bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), special=["<|endoftext|>"])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    more = ["<|endoftext|>", " <|endoftext|> ", "<|endoftext"]
    for name, keep in [("gpt2", None), ("gpt2-files", ("vocab.json", "merges.txt", "tokenizer_config.json"))]:
        GPT2TokenizerFast(tokenizer_object=tokenizer).save_pretrained(directory / name)
        write(directory, name, more=more, keep=keep)


def roberta(directory):
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = trained_bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), special=special)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    keep = ("vocab.json", "merges.txt", "tokenizer_config.json", "special_tokens_map.json")
    for name, blank, files in [("roberta", False, None), ("roberta-blank", True, None), ("roberta-files", False, keep)]:
        RobertaTokenizerFast(tokenizer_object=tokenizer, add_prefix_space=blank).save_pretrained(directory / name)
        write(directory, name, more=["<mask>", " <mask> ", "<s>", "</s>x", "<unk>"], keep=files)


def split_and_bytes(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def llama3(directory):
    special = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"]
    tokenizer = trained_bpe(split_and_bytes(LLAMA3), ignore_merges=True, special=special)
    template = processors.TemplateProcessing(single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", 0)],
                                             pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1")
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=special[0], eos_token=special[2],
                                   clean_up_tokenization_spaces=True)
    fast.save_pretrained(directory / "llama3")
    write(directory, "llama3", more=special)


def other_byte_level(directory):
    cases = {
        "o200k": (split_and_bytes(O200K), None),
        "qwen2": (split_and_bytes(LLAMA3.replace("{1,3}", "")), normalizers.NFC()),
        "smollm": (pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                            pre_tokenizers.ByteLevel(add_prefix_space=False)]), None),
        "deepseek": (pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated"),
            pre_tokenizers.Split(Regex("[一-龥぀-ゟ゠-ヿ]+"), "isolated"),
            pre_tokenizers.Split(Regex(r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?"
                                       r"[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]), None),
    }
    for name, (pre_tokenizer, normalizer) in cases.items():
        tokenizer = trained_bpe(pre_tokenizer, normalizer=normalizer, special=["<end>"])
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>").save_pretrained(directory / name)
        write(directory, name, more=["<end>"])


def llama2_tokenizer(cut=None):
    """BPE of SentencePiece as converted: blanks are ▁, unknown characters are bytes."""
    trained = trained_bpe(pre_tokenizers.Metaspace(), vocab_size=500, alphabet=[])
    state = json.loads(trained.to_str())["model"]
    vocab = {token: i for i, token in enumerate(["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)])}
    for token in sorted(state["vocab"], key=state["vocab"].get):
        vocab.setdefault(token, len(vocab))
    merges = [tuple(merge) for merge in state["merges"]]
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    decoder = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    if cut == "first":
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    elif cut == "gemma":
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
        tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    else:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    if cut != "gemma":
        decoder.append(decoders.Strip(" ", 1, 0))
    tokenizer.decoder = decoders.Sequence(decoder)
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    return tokenizer


def llama2(directory):
    for name, cut in [("llama2", None), ("llama2-first", "first"), ("gemma", "gemma")]:
        LlamaTokenizerFast(tokenizer_object=llama2_tokenizer(cut),
                           add_eos_token=name == "gemma").save_pretrained(directory / name)
        write(directory, name, more=["<s>", "</s>", " </s> "])


def bert(directory):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    old = ("vocab.txt", "tokenizer_config.json", "special_tokens_map.json")
    for name, options, keep in [("bert", {}, None), ("bert-cased", {"do_lower_case": False}, None),
                                ("bert-accents", {"strip_accents": False, "tokenize_chinese_chars": False}, None),
                                ("bert-files", {}, old), ("bert-cased-files", {"do_lower_case": False}, old)]:
        lower = options.get("do_lower_case", True)
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower, strip_accents=options.get("strip_accents"))
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=900, special_tokens=special,
                                                                        show_progress=False))
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
        tokenizer.decoder = decoders.WordPiece()
        BertTokenizerFast(tokenizer_object=tokenizer, clean_up_tokenization_spaces=not lower,
                          **options).save_pretrained(directory / name)
        write(directory, name, more=["[MASK]", "[SEP]", "[mask]", "[UNK]", "un" * 60], keep=keep)


def classes_of_models(directory):
    """Directories whose tokenizer_config.json, if there is one, names no class: config.json tells it."""
    merges = ("vocab.json", "merges.txt")
    cases = {
        "bert-model": ("bert", {"model_type": "bert"}, ("tokenizer.json", "vocab.txt"),
                       {"do_lower_case": True, "model_max_length": 512}),
        "bert-model-cased": ("bert", {"model_type": "bert"}, ("tokenizer.json",),
                             {"do_lower_case": False, "tokenize_chinese_chars": False}),
        "distilbert-model": ("bert-cased", {"model_type": "distilbert"}, ("tokenizer.json",), None),
        "roberta-model": ("roberta", {"model_type": "roberta"}, ("tokenizer.json",), {"model_max_length": 512}),
        "roberta-model-files": ("roberta", {"model_type": "roberta"}, merges, None),
        "longformer-model-files": ("roberta", {"model_type": "longformer"}, merges, {"add_prefix_space": True}),
        "bart-model-files": ("roberta", {"model_type": "bart"}, merges, None),
        "named-model-files": ("roberta", {"model_type": "gpt2", "tokenizer_class": "RobertaTokenizer"}, merges, None),
        "qwen2-model-files": ("qwen2", {"model_type": "qwen2"}, merges, {"tokenizer_class": None}),
    }
    for name, (source, model, files, settings) in cases.items():
        (directory / name).mkdir()
        if not (directory / source / files[0]).exists():
            tokenizer = Tokenizer.from_file(str(directory / source / "tokenizer.json"))
            tokenizer.model.save(str(directory / name))
        for file in files:
            if (directory / source / file).exists():
                (directory / name / file).write_bytes((directory / source / file).read_bytes())
        (directory / name / "config.json").write_text(json.dumps(model))
        if settings is not None:
            (directory / name / "tokenizer_config.json").write_text(json.dumps(settings))
        more = ["[MASK]", "[CLS]x"] if "bert-" in name and "ro" not in name else ["<mask>", "</s>x", "<|endoftext|>"]
        write(directory, name, n=600, more=more)


def added_tokens(directory):
    """Tokens that take blanks, tokens of blanks, and what tokenizer_config.json adds or hides."""
    def token(content, **options):
        return AddedToken(content, **{"normalized": False, **options})

    tokens = [token("<|user|>", rstrip=True, special=True), token("\n"), token("\n\n"), token("    "), token(" yes"),
              token("<m>", lstrip=True, special=True), token("ab", single_word=True, rstrip=True), token("\t ", rstrip=True)]
    more = [each.content for each in tokens] + ["<img>", "<end>"]
    texts = ["".join(random.Random(i).choices(more + [" ", "\n", "a", "x", "yes"], k=12)) for i in range(300)]
    cases = {"added": {}, "added-split": {"split_special_tokens": True},
             "added-named": {"extra_special_tokens": {"image_token": "<img>", "a_token": "<end>"}},
             "added-listed": {"additional_special_tokens": ["<end>", "<img>"]}}
    for name, options in cases.items():
        tokenizer = trained_bpe(pre_tokenizers.ByteLevel(add_prefix_space=False))
        for each in tokens:
            (tokenizer.add_special_tokens if each.special else tokenizer.add_tokens)([each])
        (directory / name).mkdir()
        tokenizer.save(str(directory / name / "tokenizer.json"))
        (directory / name / "tokenizer_config.json").write_text(
            json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **options}))
        write(directory, name, n=900, more=more + texts, frames=False)


def pipelines(directory):
    """Random parts together."""
    rng = random.Random(5)
    behaviors = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
    for i in range(24):
        normalizer = normalizers.Sequence(rng.sample([
            normalizers.NFC(), normalizers.NFD(), normalizers.NFKC(), normalizers.NFKD(), normalizers.Lowercase(),
            normalizers.StripAccents(), normalizers.Strip(), normalizers.Replace("e", "x"),
            normalizers.Replace(Regex(r"\s+"), " "), normalizers.Prepend("_"), normalizers.Precompiled(charsmap()),
            normalizers.Nmt(), normalizers.BertNormalizer(lowercase=rng.random() < 0.5, strip_accents=rng.random() < 0.5)], rng.randint(0, 3)))
        cut = rng.sample([
            pre_tokenizers.Whitespace(), pre_tokenizers.WhitespaceSplit(), pre_tokenizers.BertPreTokenizer(),
            pre_tokenizers.Digits(), pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.Punctuation(rng.choice(behaviors)), pre_tokenizers.CharDelimiterSplit("a"),
            pre_tokenizers.Split("o", rng.choice(behaviors)),
            pre_tokenizers.Split(Regex(r"\w+|[^\w\s]+"), rng.choice(behaviors), invert=rng.random() < 0.5),
            pre_tokenizers.Split(Regex("[aeiou]*"), rng.choice(behaviors)),
            pre_tokenizers.Metaspace(prepend_scheme=rng.choice(["always", "first", "never"]),
                                     split=rng.random() < 0.5)], rng.randint(1, 3))
        options = {"unk_token": "<unk>", "fuse_unk": rng.random() < 0.5} if rng.random() < 0.7 else {}
        tokenizer = trained_bpe(pre_tokenizers.Sequence(cut), normalizer=normalizer, vocab_size=500, alphabet=[],
                                special=["<unk>"], **options)
        tokenizer.decoder = rng.choice([decoders.Metaspace(), decoders.Fuse(), decoders.WordPiece("x", cleanup=True)])
        more = []
        # tokenizers panics where a token of blanks follows one that takes the blanks after it, and for a token
        # of which the normalizer leaves nothing.
        keys = ("single_word", "lstrip", "rstrip", "normalized") if i % 2 else ("single_word", "normalized")
        for content in ["<a>", "<ab>", "Ünit", "the", "İ", "é"] + ([] if i % 2 else ["  ", "\n\n"]):
            flags = {key: rng.random() < 0.3 for key in keys}
            if rng.random() < 0.6 and normalizer.normalize_str(content):
                special = rng.random() < 0.3
                (tokenizer.add_special_tokens if special else tokenizer.add_tokens)([AddedToken(content, **flags)])
                more.append(content)
        more += [" ".join(more), "".join(more), "x" + "x".join(more) + "x"]
        name = f"pipeline-{i}"
        PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(directory / name)
        write(directory, name, n=400, more=more)


def tiktoken(directory):
    """Files of tiktoken. The reference joins the neighbours whose bytes have the smallest rank, as its own code does."""
    import base64

    import regex
    trained = trained_bpe(split_and_bytes(LLAMA3), vocab_size=900)
    vocab = json.loads(trained.to_str())["model"]["vocab"]
    byte_of = {c: b for b, c in bytes_to_unicode().items()}
    ranks = {bytes(byte_of[c] for c in token): rank for token, rank in vocab.items()}
    names = {rank: token for token, rank in ranks.items()} | {len(ranks): b""}
    gpt2_pattern = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

    class Reference:
        is_fast = False

        def __init__(self, pattern):
            self.pattern = regex.compile(pattern)

        def __len__(self):
            return len(ranks) + 1

        def __getattr__(self, name):  # no special tokens
            return None

        def piece(self, data):
            if data in ranks:
                return [ranks[data]]
            parts = [bytes([b]) for b in data]
            while True:
                pairs = [(ranks.get(a + b, 1 << 30), i) for i, (a, b) in enumerate(zip(parts, parts[1:]))]
                best = min(pairs, default=(1 << 30, 0))
                if best[0] == 1 << 30:
                    return [ranks[part] for part in parts]
                parts[best[1]:best[1] + 2] = [parts[best[1]] + parts[best[1] + 1]]

        def encode(self, text, add_special_tokens):
            return [i for match in self.pattern.finditer(text) for i in self.piece(match.group().encode())]

        def decode(self, ids, skip_special_tokens):
            return b"".join(names[i] for i in ids).decode("utf-8", "replace")

    for case, name, pattern in [("tiktoken", "tokenizer.model", LLAMA3), ("tiktoken-gpt2", "gpt2.tiktoken", gpt2_pattern)]:
        (directory / case).mkdir()
        lines = [base64.b64encode(token).decode() + f" {rank}\n" for token, rank in ranks.items()]
        # Whisper's vocabulary ends with a token of no bytes.
        (directory / case / name).write_text("".join(lines) + f"= {len(ranks)}\n")
        write(directory, case, n=600, reference=Reference(pattern), frames=False, known=unicodedata.ucd_3_2_0)


def clip(directory):
    """A suffix ends words (CLIP), a prefix continues them, and a character without a token is unknown."""
    lower = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    cut = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|"
                                   r"[^\s\p{L}\p{N}]+"), "removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])
    for name, options in [("clip", {"end_of_word_suffix": "</w>"}), ("prefixed", {"continuing_subword_prefix": "##"}),
                          ("prefixed-suffixed", {"continuing_subword_prefix": "@@", "end_of_word_suffix": "</w>"})]:
        tokenizer = Tokenizer(models.BPE(unk_token="<end>", fuse_unk=name == "prefixed", **options))
        tokenizer.normalizer, tokenizer.pre_tokenizer = lower, cut
        tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(
            vocab_size=700, special_tokens=["<start>", "<end>"], show_progress=False,
            initial_alphabet=ALPHABET if name == "clip" else [], **options))
        tokenizer.post_processor = processors.RobertaProcessing(("<end>", 1), ("<start>", 0), False, False)
        tokenizer.decoder = decoders.BPEDecoder(suffix=options.get("end_of_word_suffix", "</w>"))
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<end>").save_pretrained(directory / name)
        write(directory, name, more=["<start>", "<end>"], n=800)


def clip_files(directory):
    """vocab.json and merges.txt, as the first directories of CLIP have them."""
    folder = directory / "clip-files"
    folder.mkdir()
    made = json.loads((directory / "clip" / "tokenizer.json").read_text())["model"]
    vocab = {token: id for token, id in made["vocab"].items() if id > 1}
    names = {token: i for i, token in enumerate([*vocab, "<|startoftext|>", "<|endoftext|>"])}
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in made["merges"]]
    (folder / "vocab.json").write_text(json.dumps(names))
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "CLIPTokenizer"}))
    write(directory, "clip-files", more=["<|startoftext|>", "a<|endoftext|>b", "It's 1984"], n=800,
          reference=CLIPTokenizerFast.from_pretrained(folder))


def field(message, number):
    """The bytes of a field of a message in protobuf's form."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        size = {0: 0, 1: 8, 5: 4}.get(key & 7)
        if size is None:
            size = varint()
        elif key & 7 == 0:
            varint()
        if key >> 3 == number:
            return message[at:at + size]
        at += size
    raise KeyError(number)


@functools.cache
def charsmap():
    """The rules of SentencePiece's nmt_nfkc, from a model that it trained."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=written, minloglevel=3,
                                             num_threads=1, vocab_size=600)
    return field(field(written.getvalue(), 3), 2)


def unigram(directory):
    """T5's and XLM-R's: Precompiled, Metaspace, Unigram; and scores that make one text's ways equally good."""
    rules = charsmap()
    trained = Tokenizer(models.Unigram())
    trained.normalizer = normalizers.Precompiled(rules)
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    trained.train_from_iterator(CORPUS, trainers.UnigramTrainer(vocab_size=600, unk_token="<unk>", show_progress=False,
                                                                special_tokens=["<pad>", "</s>", "<unk>"]))
    pieces = [tuple(piece) for piece in json.loads(trained.to_str())["model"]["vocab"]]
    bytes_ = [(f"<0x{i:02X}>", -30.0) for i in range(256)]
    # Two unknown characters cost less than this token of both if the penalty of unknown ones is 1, and more if it is 10.
    lowest = min(score for _, score in pieces)
    whole = [(piece, float(round(score - lowest)) + 10) for piece, score in pieces] + [("ѬѮ", 10.0), ("  ", 12.0)]
    collapse = normalizers.Sequence([normalizers.Precompiled(rules), normalizers.Replace(Regex(" {2,}"), " ")])
    for name, vocab, byte_fallback, normalizer, scheme in [
            ("unigram", pieces, False, normalizers.Precompiled(rules), "always"),
            ("unigram-bytes", pieces + bytes_, True, collapse, "first"),
            ("unigram-ties", whole, False, normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()]), "never")]:
        tokenizer = Tokenizer(models.Unigram(vocab, unk_id=2, byte_fallback=byte_fallback))
        tokenizer.normalizer = normalizer
        cut = [pre_tokenizers.Metaspace(prepend_scheme=scheme, split=name != "unigram-ties")]
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit()] * (name == "unigram") + cut)
        tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
        tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>",
                                                                 special_tokens=[("</s>", 1)])
        tokenizer.add_special_tokens(["<pad>", "</s>", "<unk>"])
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>", unk_token="<unk>",
                                pad_token="<pad>").save_pretrained(directory / name)
        write(directory, name, more=["</s>", " <pad> "])


def word_level(directory):
    for name, cut in [("words", pre_tokenizers.Whitespace()), ("letters", pre_tokenizers.FixedLength(2))]:
        tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.ByteLevel() if name == "letters" else None
        tokenizer.pre_tokenizer = cut
        tokenizer.train_from_iterator(CORPUS, trainers.WordLevelTrainer(vocab_size=500, special_tokens=["[UNK]", "<pad>"],
                                                                        show_progress=False))
        tokenizer.decoder = decoders.CTC() if name == "letters" else None
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]").save_pretrained(directory / name)
        write(directory, name, more=["[UNK]", "the the|a"], n=500)


def esm(directory):
    """Residues, which stand without blanks between them."""
    folder = directory / "esm"
    folder.mkdir()
    tokens = "<cls> <pad> <eos> <unk> L A G V S E R T I D P K Q N F Y M H W C X B U Z O . - <null_1> <mask>".split()
    (folder / "vocab.txt").write_text("\n".join(tokens))
    tokenizer = EsmTokenizer(folder / "vocab.txt")
    tokenizer.sep_token = tokenizer.eos_token  # here the end token is also the one behind each text
    tokenizer.save_pretrained(folder)
    write(directory, "esm", more=["MKTAYIAKQR", "MK TA", "<mask>", "<null_1>", "-.X", "mkt"], frames=False)


def characters_of_speech(directory):
    """Wav2Vec2CTCTokenizer: vocabularies as published ones are, and with other names and a token of several characters."""
    letters = list("ETAONIHSRDLUMWCFGYPBVK'XJQZ")
    cases = {
        "speech": (["<pad>", "<s>", "</s>", "<unk>", "|", *letters], {}),
        "speech-own": ([*"abcdefghijklmnopqrstuvwxyzäé東", "_", "<sil>", "[UNK]", "[PAD]"],
                       {"unk_token": "[UNK]", "pad_token": "[PAD]", "word_delimiter_token": "_"}),
    }
    for name, (tokens, options) in cases.items():
        folder = directory / name
        folder.mkdir()
        (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
        tokenizer = Wav2Vec2CTCTokenizer(folder / "vocab.json", **options)
        tokenizer.save_pretrained(folder)
        tokenizer = Wav2Vec2CTCTokenizer.from_pretrained(folder)
        tokenizer.decode = functools.partial(tokenizer.decode, group_tokens=False)
        # Beside a special token Python takes these for blanks, which Unicode does not.
        write(directory, name, reference=tokenizer, frames=False, without="\x1c\x1d\x1e\x1f",
              more=["TO BE", "to be  or", " A ", "<sil>", "a <sil> b", "<pad>", "<s> A</s>", "[PAD]x", "|A|", "_a_"])


CASES = [esm, tiktoken, clip, clip_files, unigram, word_level, gpt2, roberta, llama3, other_byte_level, llama2, bert, pipelines,
         added_tokens, classes_of_models, characters_of_speech]
