#!/usr/bin/env python3
"""GGUF files of BERT, NomicBERT, ModernBERT and T5 that `zoo export` writes, of models of random weights that transformers makes:

  * the package gguf reads every key and every tensor that it should, and nothing else;
  * read here again, they give the same vectors, tokens and log-probabilities;
  * llama.cpp (the package xllamacpp) finds the same tokens in texts; the vectors of encoders and the log-probabilities of T5
    differ by at most 2e-3. The Python interface of xllamacpp cannot run T5: its library is called for that.

  gguf_encoders_test.py [NAME...]

ZOO_PROGRAM and ZOO_PYTHON: as in gguf_export_test.py.
"""

import ctypes
import json
import pathlib
import shutil
import sys
import tempfile

from gguf_export_test import N_NEW, PROMPTS, TOLERANCE, LlamaCpp, encoded, generate, same_keys, same_tensors, start, zoo

TEXTS = [*PROMPTS, "  two  blanks ", "it's 12345!", "Où est la mer ? 山高水長", "a\nb\r\n\n c\t", "CAPITALS", "nobodyheard zq"]
WORDS = "the ship came home at night and nobody heard the bell; who is there? she asked: it's 1984, 12 12"


def randomize(model, spread):
    import torch

    torch.manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.randn_like(parameter) * (spread if parameter.dim() > 1 else 0.3))
            if "norm" in name.lower() and name.endswith("weight"):
                parameter.add_(1)
    return model.float().eval()


def word_pieces(*, lowercase):
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator([WORDS, "ou est la mer é CAPS"], trainers.WordPieceTrainer(
        vocab_size=150, special_tokens=specials))  # fmt: skip
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]",
    )  # fmt: skip


def in_order(tokenizer):
    return [token for token, _ in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])]


BERT = {
    "embeddings.word_embeddings": "token_embd", "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types", "embeddings.LayerNorm": "token_embd_norm",
    "attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up", "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm",
}  # fmt: skip


class Bert:
    """`kind`: the class of transformers."""

    def __init__(self, kind, *, lowercase=True):
        self.kind, self.lowercase = kind, lowercase

    def save(self, directory):
        import transformers

        self.tokenizer = word_pieces(lowercase=self.lowercase)
        self.config = transformers.BertConfig(
            vocab_size=len(self.tokenizer) + 3, hidden_size=64, intermediate_size=96, num_hidden_layers=3,
            num_attention_heads=4, max_position_embeddings=64, type_vocab_size=2, pad_token_id=0,
        )  # fmt: skip
        self.model = randomize(getattr(transformers, self.kind)(self.config), 0.15)
        self.model.save_pretrained(directory)
        self.tokenizer.save_pretrained(directory)

    def keys(self, name, file_type):
        config, tokens = self.config, in_order(self.tokenizer)
        stored = [*tokens[:5], *(token[2:] if token.startswith("##") else "▁" + token for token in tokens[5:])]
        n = len(tokens)
        return {
            "general.architecture": "bert", "general.name": name, "general.file_type": file_type,
            "bert.vocab_size": config.vocab_size, "bert.embedding_length": 64, "bert.feed_forward_length": 96,
            "bert.block_count": 3, "bert.attention.head_count": 4, "bert.context_length": 64,
            "bert.attention.layer_norm_epsilon": config.layer_norm_eps, "bert.attention.causal": False,
            "bert.pooling_type": 1, "tokenizer.ggml.token_type_count": 2,
            "tokenizer.ggml.model": "bert", "tokenizer.ggml.pre": "default",
            "tokenizer.ggml.normalizer.lowercase": self.lowercase,
            "tokenizer.ggml.normalizer.strip_accents": self.lowercase,
            "tokenizer.ggml.tokens": [*stored, *(f"[PAD{n + i}]" for i in range(3))],
            "tokenizer.ggml.token_type": [3] * 5 + [1] * (n - 5) + [5] * 3,
            "tokenizer.ggml.padding_token_id": 0, "tokenizer.ggml.unknown_token_id": 1, "tokenizer.ggml.bos_token_id": 2,
            "tokenizer.ggml.cls_token_id": 2, "tokenizer.ggml.seperator_token_id": 3, "tokenizer.ggml.mask_token_id": 4,
            "tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_sep_token": True,
        }  # fmt: skip

    def tensors(self):
        expected = {}
        for key, tensor in getattr(self.model, "bert", self.model).state_dict().items():
            if key.startswith("pooler"):
                continue
            module, part = key.rsplit(".", 1)
            if module.startswith("encoder.layer."):
                layer, module = module.removeprefix("encoder.layer.").split(".", 1)
                expected[f"blk.{layer}.{BERT[module]}.{part}"] = tensor.numpy()
            else:
                expected[f"{BERT[module]}.{part}"] = tensor.numpy()
        return expected

    def body(self):
        return getattr(self.model, "bert", self.model)

    def check(self, name, directory, path):
        import torch

        server = LlamaCpp(path, embedding=True)
        body = self.body()
        for place in (directory, path):
            for text, found in encoded(place, TEXTS):
                ids = self.tokenizer(text).input_ids
                assert server.tokens(text) == ids, (name, text, server.tokens(text), ids)
                assert found == ids[1:-1], (name, place, text, found, ids)
        lines = [text for text in TEXTS if "\n" not in text]
        vectors = json.loads(zoo("embed", path, "--json", typed="".join(f"{line}\n" for line in lines)))["embeddings"]
        largest = 0
        for text, ours in zip(lines, torch.tensor(vectors), strict=True):
            with torch.no_grad():
                expected = body(**self.tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0)
            theirs = torch.tensor(server.ask("/embedding", {"content": text, "embd_normalize": -1})[0]["embedding"][0])
            assert (ours - expected).abs().max() < 1e-4, (name, text)
            largest = max(largest, (ours - theirs).abs().max().item())
        print(f"{name}: vectors differ from llama.cpp's by at most {largest:.1e}")
        assert largest <= TOLERANCE, name


def by_table(architecture, tensors, n_layers, skipped=()):
    """Tensors of transformers by the names that the package gguf has for them."""
    import gguf

    arch = next(arch for arch, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(arch, n_layers)
    expected = {}
    for key, tensor in tensors.items():
        module, part = key.rsplit(".", 1)
        if not module.startswith(tuple(skipped)):
            assert names.get_name(module), (architecture, key)
            expected[f"{names.get_name(module)}.{part}"] = tensor.numpy()
    return expected


class NomicBert(Bert):
    def save(self, directory):
        import transformers

        self.tokenizer = word_pieces(lowercase=True)
        self.config = transformers.NomicBertConfig(
            vocab_size=len(self.tokenizer) + 3, hidden_size=72, intermediate_size=100, num_hidden_layers=3,
            num_attention_heads=6, max_position_embeddings=64, type_vocab_size=2, pad_token_id=0,
            rope_parameters={"rope_type": "default", "rope_theta": 500.0},
        )  # fmt: skip
        self.model = randomize(getattr(transformers, self.kind)(self.config), 0.15)
        self.model.save_pretrained(directory)
        self.tokenizer.save_pretrained(directory)

    def keys(self, name, file_type):
        of_bert = super().keys(name, file_type)
        shared = {key: value for key, value in of_bert.items() if not key.startswith("bert.")}
        return shared | {"general.architecture": "nomic-bert"} | {f"nomic-bert.{key}": value for key, value in {
            "vocab_size": self.config.vocab_size, "embedding_length": 72, "feed_forward_length": 100, "block_count": 3,
            "attention.head_count": 6, "context_length": 64, "attention.layer_norm_epsilon": self.config.layer_norm_eps,
            "attention.head_count_kv": 6, "attention.key_length": 12, "attention.value_length": 12,
            "rope.dimension_count": 12, "rope.freq_base": 500.0, "attention.causal": False, "pooling_type": 1}.items()}  # fmt: skip

    def tensors(self):
        from safetensors.torch import load_file

        stored = load_file(self.directory / "model.safetensors")
        stored = {key.removeprefix("nomic_bert."): tensor for key, tensor in stored.items()}
        return by_table("nomic-bert", stored, 3, ("cls", "pooler"))

    def body(self):
        return getattr(self.model, "nomic_bert", self.model)


class ModernBert(Bert):
    def save(self, directory):
        import transformers
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

        made = Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        made.train_from_iterator([WORDS] * 4, trainers.BpeTrainer(
            vocab_size=300, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))  # fmt: skip
        made.post_processor = processors.TemplateProcessing(
            "[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]", [("[CLS]", 2), ("[SEP]", 3)])  # fmt: skip
        self.tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
            mask_token="[MASK]", clean_up_tokenization_spaces=False,
        )  # fmt: skip
        self.config = transformers.ModernBertConfig(
            vocab_size=len(self.tokenizer) + 3, hidden_size=72, intermediate_size=100, num_hidden_layers=5,
            num_attention_heads=6, max_position_embeddings=64, local_attention=6, global_attn_every_n_layers=3,
            pad_token_id=0, cls_token_id=2, sep_token_id=3, bos_token_id=2, eos_token_id=3,
            rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 500.0},
                             "sliding_attention": {"rope_type": "default", "rope_theta": 50.0}},
        )  # fmt: skip
        self.model = randomize(getattr(transformers, self.kind)(self.config), 0.15)
        self.model.save_pretrained(directory)
        self.tokenizer.save_pretrained(directory)

    def keys(self, name, file_type):
        document = json.loads(self.tokenizer.backend_tokenizer.to_str())
        tokens = in_order(self.tokenizer)
        n = len(tokens)
        return {
            "general.architecture": "modern-bert", "general.name": name, "general.file_type": file_type,
            "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.add_space_prefix": False,
            "tokenizer.ggml.tokens": [*tokens, *(f"[PAD{n + i}]" for i in range(3))],
            "tokenizer.ggml.token_type": [3] * 5 + [1] * (n - 5) + [5] * 3,
            "tokenizer.ggml.merges": [" ".join(merge) for merge in document["model"]["merges"]],
            "tokenizer.ggml.padding_token_id": 0, "tokenizer.ggml.unknown_token_id": 1, "tokenizer.ggml.bos_token_id": 2,
            "tokenizer.ggml.eos_token_id": 3, "tokenizer.ggml.cls_token_id": 2, "tokenizer.ggml.seperator_token_id": 3,
            "tokenizer.ggml.mask_token_id": 4, "tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_eos_token": True,
        } | {f"modern-bert.{key}": value for key, value in {
            "vocab_size": self.config.vocab_size, "embedding_length": 72, "feed_forward_length": 100, "block_count": 5,
            "attention.head_count": 6, "context_length": 64, "attention.layer_norm_epsilon": self.config.norm_eps,
            "attention.head_count_kv": 6, "attention.key_length": 12, "attention.value_length": 12,
            "attention.sliding_window": 6, "rope.dimension_count": 12, "rope.freq_base": 500.0, "rope.freq_base_swa": 50.0,
            "attention.causal": False, "pooling_type": 1}.items()}  # fmt: skip

    def tensors(self):
        from safetensors.torch import load_file

        stored = load_file(self.directory / "model.safetensors")
        stored = {key.removeprefix("model."): tensor for key, tensor in stored.items()}
        return by_table("modern-bert", stored, 5, ("head", "decoder"))

    def body(self):
        return getattr(self.model, "model", self.model)


T5_LAYERS = {
    "SelfAttention.q": "attn_q", "SelfAttention.k": "attn_k", "SelfAttention.v": "attn_v", "SelfAttention.o": "attn_o",
    "SelfAttention.relative_attention_bias": "attn_rel_b", "EncDecAttention.q": "cross_attn_q",
    "EncDecAttention.k": "cross_attn_k", "EncDecAttention.v": "cross_attn_v", "EncDecAttention.o": "cross_attn_o",
    "DenseReluDense.wi": "ffn_up", "DenseReluDense.wi_0": "ffn_gate", "DenseReluDense.wi_1": "ffn_up",
    "DenseReluDense.wo": "ffn_down",
}  # fmt: skip
T5_NORMS = {"enc": ["attn_norm", "ffn_norm"], "dec": ["attn_norm", "cross_attn_norm", "ffn_norm"]}


def charsmap(pieces):
    from reference_hub_tokenizers import field

    normalizer_spec, precompiled_charsmap = 3, 2
    return field(field(pieces.serialized_model_proto(), normalizer_spec), precompiled_charsmap)


def unigram(pieces):
    """The tokenizer.json that transformers makes of T5's SentencePiece model."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = [(pieces.id_to_piece(id), pieces.get_score(id)) for id in range(len(pieces))]
    extra = [f"<extra_id_{2 - i}>" for i in range(3)]
    tokenizer = Tokenizer(models.Unigram(vocabulary + [(token, 0.0) for token in extra], unk_id=2, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.Precompiled(charsmap(pieces)), normalizers.Strip(left=False, right=True),
        normalizers.Replace(Regex(" {2,}"), "▁"),
    ])  # fmt: skip
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in ["<pad>", "</s>", "<unk>", *extra]])
    tokenizer.post_processor = processors.TemplateProcessing("$A </s>", "$A </s> $B </s>", [("</s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>", unk_token="<unk>", pad_token="<pad>",
                                   additional_special_tokens=extra, clean_up_tokenization_spaces=False)  # fmt: skip


class T5:
    """`spiece`: the tokenizer is a model of SentencePiece."""

    def __init__(self, *, gated, tied, spiece=False):
        self.gated, self.tied, self.spiece = gated, tied, spiece

    def save(self, directory):
        import sentencepiece
        import torch
        import transformers

        prefix = str(directory.parent / "unigram")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([WORDS, "Où est la mer"] * 40), model_prefix=prefix, model_type="unigram", vocab_size=50,
            pad_id=0, eos_id=1, unk_id=2, bos_id=-1, character_coverage=1.0, minloglevel=2,
        )  # fmt: skip
        self.pieces = sentencepiece.SentencePieceProcessor(model_file=f"{prefix}.model")
        if self.spiece:
            directory.mkdir()
            shutil.copy(f"{prefix}.model", directory / "spiece.model")
            self.tokenizer = transformers.T5Tokenizer.from_pretrained(directory, extra_ids=3)
        else:
            self.tokenizer = unigram(self.pieces)
        self.config = transformers.T5Config(
            vocab_size=len(self.tokenizer) + 2, d_model=48, d_kv=16, num_heads=4, d_ff=80, num_layers=3,
            num_decoder_layers=2, feed_forward_proj="gated-gelu" if self.gated else "relu", tie_word_embeddings=self.tied,
            decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
        )  # fmt: skip
        model = transformers.T5ForConditionalGeneration(self.config)
        if not self.tied:  # transformers 5 ties them until a file has both matrices
            model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))
        self.model = randomize(model, 0.1)
        with torch.no_grad():  # as in gguf_export_test.py
            silent = [*range(3), *range(len(self.pieces), self.config.vocab_size)]
            self.model.lm_head.weight.mul_(4 if self.tied else 1)
            for rows in (self.model.shared.weight, self.model.lm_head.weight):
                rows[silent] = 0
        self.model.save_pretrained(directory)
        self.tokenizer.save_pretrained(directory)
        if self.spiece:
            (directory / "tokenizer.json").unlink()

    def keys(self, name, file_type):
        config, tokens = self.config, in_order(self.tokenizer)
        n, n_pieces = len(tokens), len(self.pieces)
        return {
            "general.architecture": "t5", "general.name": name, "general.file_type": file_type,
            "t5.vocab_size": config.vocab_size, "t5.embedding_length": 48, "t5.feed_forward_length": 80,
            "t5.block_count": 3, "t5.decoder_block_count": 2, "t5.attention.head_count": 4, "t5.attention.key_length": 16,
            "t5.attention.value_length": 16, "t5.context_length": 512, "t5.attention.relative_buckets_count": 32,
            "t5.attention.layer_norm_epsilon": config.layer_norm_epsilon,
            "t5.attention.layer_norm_rms_epsilon": config.layer_norm_epsilon, "t5.decoder_start_token_id": 0,
            "tokenizer.ggml.model": "t5", "tokenizer.ggml.pre": "default", "tokenizer.ggml.add_space_prefix": True,
            "tokenizer.ggml.remove_extra_whitespaces": True, "tokenizer.ggml.precompiled_charsmap": list(charsmap(self.pieces)),
            "tokenizer.ggml.tokens": [*tokens, *(f"[PAD{n + i}]" for i in range(2))],
            "tokenizer.ggml.scores": [*(self.pieces.get_score(id) for id in range(n_pieces)),
                                      *([0.0] * 3), *([-10000.0] * 2)],
            "tokenizer.ggml.token_type": [3, 3, 2, *([1] * (n_pieces - 3)), *([3] * 3), *([5] * 2)],
            "tokenizer.ggml.padding_token_id": 0, "tokenizer.ggml.eos_token_id": 1, "tokenizer.ggml.unknown_token_id": 2,
            "tokenizer.ggml.add_bos_token": False, "tokenizer.ggml.add_eos_token": True,
        }  # fmt: skip

    def tensors(self):
        expected = {}
        for key, tensor in self.model.state_dict().items():
            parts = key.split(".")
            side, module = parts[0][:3], ".".join(parts[1:-1])
            if key == "shared.weight":
                expected["token_embd.weight"] = tensor.numpy()
            elif key == "lm_head.weight":
                expected["output.weight"] = (tensor * 48**-0.5 if self.tied else tensor).numpy()
            elif module == "final_layer_norm":
                expected[f"{side}.output_norm.weight"] = tensor.numpy()
            elif parts[1] == "block":
                layer, place, module = parts[2], int(parts[4]), ".".join(parts[5:-1])
                name = T5_NORMS[side][place] if module == "layer_norm" else T5_LAYERS[module]
                expected[f"{side}.blk.{layer}.{name}.weight"] = tensor.numpy()
        return expected

    def check(self, name, directory, path):
        library = LlamaLibrary(path)
        expected = generate(directory, PROMPTS)
        assert all(len(tokens) == N_NEW for _, tokens in expected), "an end token came too early"
        again = generate(path, PROMPTS)
        for text, found in encoded(path, [*TEXTS, "a <extra_id_1> b", "x</s> y"]):
            ids = self.tokenizer(text).input_ids
            assert library.tokens(text) == ids, (name, text, library.tokens(text), ids)
            assert found == ids[:-1], (name, text, found, ids)
        largest = largest_again = 0
        for (ids, tokens), (same_ids, same_tokens), text in zip(expected, again, PROMPTS, strict=True):
            assert ids == same_ids, (name, ids, same_ids)
            theirs = library.log_probabilities(self.tokenizer(text).input_ids, [token for token, _ in tokens])
            for (token, logprob), (same_token, same_logprob), logprobs in zip(tokens, same_tokens, theirs, strict=True):
                # Tokens may be equally likely up to what llama.cpp's table of GELU differs by.
                assert token == same_token and logprobs.max() - logprobs[token] <= TOLERANCE, (name, text, token)
                largest = max(largest, abs(logprob - logprobs[token]))
                largest_again = max(largest_again, abs(logprob - same_logprob))
        print(f"{name}: log-probabilities differ from llama.cpp's by at most {largest:.1e}, "
              f"read again by {largest_again:.1e}")  # fmt: skip
        assert largest <= TOLERANCE and largest_again <= 1e-4, name


class Opaque(ctypes.Structure):
    """Options of llama.cpp, which are passed on as they are; larger than they are."""

    _fields_ = [("bytes", ctypes.c_uint64 * 128)]  # noqa: RUF012


class Batch(ctypes.Structure):
    _fields_ = [("n_tokens", ctypes.c_int32), ("pointers", ctypes.c_void_p * 6)]  # noqa: RUF012


class LlamaLibrary:
    """A model in the library of llama.cpp that the package xllamacpp is."""

    def __init__(self, path):
        import xllamacpp.xllamacpp as module

        self.library = ctypes.CDLL(module.__file__)
        for name in ("llama_model_load_from_file", "llama_init_from_model", "llama_model_get_vocab", "llama_get_memory"):
            getattr(self.library, name).restype = ctypes.c_void_p
        for name in ("llama_model_default_params", "llama_context_default_params"):
            getattr(self.library, name).restype = Opaque
        self.library.llama_batch_get_one.restype = Batch
        self.library.llama_get_logits_ith.restype = ctypes.POINTER(ctypes.c_float)
        self.quiet = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)
        self.library.llama_log_set(self.quiet, None)
        self.library.llama_backend_init()
        self.model = ctypes.c_void_p(
            self.library.llama_model_load_from_file(str(path).encode(), self.library.llama_model_default_params())
        )
        assert self.model, path
        self.vocab = ctypes.c_void_p(self.library.llama_model_get_vocab(self.model))
        self.n_vocab = self.library.llama_vocab_n_tokens(self.vocab)

    def tokens(self, text):
        found, text = (ctypes.c_int32 * 512)(), text.encode()
        n = self.library.llama_tokenize(self.vocab, text, len(text), found, 512, ctypes.c_bool(True), ctypes.c_bool(True))
        return found[:n]

    def options(self):
        """The default ones, but with keys and values in float32: their types stand beside each other."""
        options = self.library.llama_context_default_params()
        numbers = ctypes.cast(ctypes.byref(options), ctypes.POINTER(ctypes.c_int32))
        float32, float16 = 0, 1
        places = [i for i in range(20, 60) if numbers[i] == numbers[i + 1] == float16]
        assert len(places) == 1, "the options of llama.cpp have another form"
        numbers[places[0]] = numbers[places[0] + 1] = float32
        return options

    def log_probabilities(self, source, target):
        """Of all tokens, at the place of each token of `target`."""
        import numpy as np

        context = ctypes.c_void_p(self.library.llama_init_from_model(self.model, self.options()))
        assert context
        ids = (ctypes.c_int32 * len(source))(*source)
        assert self.library.llama_encode(context, self.library.llama_batch_get_one(ids, len(source))) == 0
        found, token = [], self.library.llama_model_decoder_start_token(self.model)
        for following in target:
            one = (ctypes.c_int32 * 1)(token)
            assert self.library.llama_decode(context, self.library.llama_batch_get_one(one, 1)) == 0
            logits = np.array(self.library.llama_get_logits_ith(context, -1)[: self.n_vocab], dtype=np.float64)
            found.append(logits - logits.max() - np.log(np.exp(logits - logits.max()).sum()))
            token = following
        self.library.llama_free(context)
        return found


def models():
    return {
        "bert": Bert("BertModel"),
        "bert-masked": Bert("BertForMaskedLM"),
        "bert-cased": Bert("BertModel", lowercase=False),
        "nomic-bert": NomicBert("NomicBertModel"),
        "nomic-bert-masked": NomicBert("NomicBertForMaskedLM"),
        "modern-bert": ModernBert("ModernBertModel"),
        "modern-bert-masked": ModernBert("ModernBertForMaskedLM"),
        "t5": T5(gated=True, tied=False),
        "t5-tied": T5(gated=False, tied=True),
        "t5-spiece": T5(gated=False, tied=False, spiece=True),
    }


def check_layers(model, made):
    """llama.cpp runs no decoder that has more layers than the encoder."""
    import copy

    import transformers

    config = copy.deepcopy(model.config)
    config.num_layers, config.num_decoder_layers = 1, 2
    transformers.T5ForConditionalGeneration(config).save_pretrained(made / "refused")
    model.tokenizer.save_pretrained(made / "refused")
    message = zoo("export", made / "refused", made / "refused.gguf", code=2)
    assert "more layers (2)" in message and message.count("\n") == 1, message
    assert not (made / "refused.gguf").exists()


def main():
    start(__file__, ["gguf", "sentencepiece", "transformers", "xllamacpp"])
    from gguf import GGMLQuantizationType as Type

    names = sys.argv[1:]
    with tempfile.TemporaryDirectory() as made:
        made = pathlib.Path(made)
        for name, model in models().items():
            if names and name not in names:
                continue
            directory, path = made / name, made / f"{name}.gguf"
            model.directory = directory
            model.save(directory)
            zoo("export", directory, path, "--weights", "fp32")
            same_keys(path, model.keys(name, 0))
            same_tensors(path, model.tensors(), Type.F32)
            model.check(name, directory, path)
            smaller = made / f"{name}-q8_0.gguf"
            zoo("export", directory, smaller, "--weights", "q8_0")
            zoo("embed", smaller, "--text", "the ship")
            if name == "t5":
                check_layers(model, made)
            zoo("export", path, made / f"{name}-again.gguf")
            same_keys(made / f"{name}-again.gguf", model.keys(f"{name}.gguf", 0))


main()
