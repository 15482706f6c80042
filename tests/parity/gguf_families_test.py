#!/usr/bin/env python3
"""GGUF files of further families, mixtures of experts among them, that `zoo export` writes from models of random weights
that transformers makes. For each one:

  * the package gguf reads every key that it should, and the tensors, by the names that its own tables give them;
  * read here again, they give the same log-probabilities, and are written again with the same tensors;
  * llama.cpp (the package xllamacpp) generates the same 64 tokens for five prompts, with log-probabilities within 2e-3.

  gguf_families_test.py [GROUP|NAME...]     groups: mixtures (also "mxfp4", "older", "refused") and decoders; default: both

ZOO_PROGRAM and ZOO_PYTHON: as in gguf_export_test.py.
"""

import json
import math
import pathlib
import sys
import tempfile

from gguf_export_test import (
    N_NEW, PROMPTS, TOLERANCE, LlamaCpp, Model, compare_with_llama_cpp, generate, same_tensors, start, zoo,
)  # fmt: skip


class Family(Model):
    """`architecture`: in llama.cpp. `described`: its keys, without the name of the architecture before them."""

    def __init__(self, split, config, architecture, described, *, permuted=False, spread=0.2):
        super().__init__(split, config)
        self.name, self.described, self.permuted, self.spread = architecture, described, permuted, spread

    @property
    def architecture(self):
        return self.name

    def width(self):
        return self.spread

    def check_keys(self, path):
        import numpy as np
        from gguf import GGUFReader

        prefix = f"{self.name}."
        found = {key.removeprefix(prefix): field.contents() for key, field in GGUFReader(path).fields.items()
                 if key.startswith(prefix)}  # fmt: skip
        expected = {key: float(np.float32(value)) if isinstance(value, float) else value
                    for key, value in (self.common() | self.described).items()}  # fmt: skip
        assert found == expected, (path, {key: (found.get(key), expected.get(key)) for key in found.keys() | expected.keys()
                                          if found.get(key) != expected.get(key)})  # fmt: skip

    def common(self):
        c = self.config
        return {"vocab_size": c.vocab_size, "embedding_length": c.hidden_size, "block_count": c.num_hidden_layers,
                "attention.head_count": c.num_attention_heads}  # fmt: skip

    def tensors(self):
        """By their names in the file, as float32: what transformers has saved, by the tables of the package gguf."""
        import gguf
        import torch
        from reference_gguf import permuted
        from safetensors.torch import load_file

        c = self.config
        arch = next(arch for arch, name in gguf.MODEL_ARCH_NAMES.items() if name == self.name)
        names = gguf.get_tensor_name_map(arch, c.num_hidden_layers)
        heads, kv = c.num_attention_heads, getattr(c, "num_key_value_heads", None) or getattr(c, "num_kv_heads", None)
        kv = 1 if getattr(c, "multi_query", False) and not c.new_decoder_architecture else kv or heads  # Falcon
        head = getattr(c, "head_dim", None) or c.hidden_size // heads
        expected, experts = {}, {}

        def put(module, part, tensor):
            name = names.get_name(module) or names.get_name(module.removeprefix("transformer."))
            assert name, (self.name, module)
            expected[f"{name}.{part}"] = tensor.float().contiguous().numpy()

        for key, tensor in load_file(self.directory / "model.safetensors").items():
            if key in ("lm_head.weight", "embed_out.weight") and c.tie_word_embeddings:
                continue
            module, part = key.rsplit(".", 1)
            layer = next((int(one) for one in key.split(".") if one.isdigit()), None)
            if ".experts." in key and part == "weight":
                block, expert = module.split(".experts.")
                number, matrix = expert.split(".")
                at = f"layers.{layer}.feed_forward.experts" if "block_sparse" in key else block + ".experts"
                experts.setdefault(f"{at}.{matrix}", {})[int(number)] = tensor
            elif ".mlp.experts.gate_up_proj" in key:  # gpt-oss: the columns take turns
                bias = key.endswith("_bias")
                for first, matrix in enumerate(("gate_proj", "up_proj")):
                    half = tensor[..., first::2]
                    put(f"model.layers.{layer}.mlp.experts.{matrix}", "bias" if bias else "weight",
                        half if bias else half.transpose(1, 2))  # fmt: skip
            elif ".mlp.experts.down_proj" in key:
                bias = key.endswith("_bias")
                put(f"model.layers.{layer}.mlp.experts.down_proj", "bias" if bias else "weight",
                    tensor if bias else tensor.transpose(1, 2))  # fmt: skip
            elif key.endswith((".sinks", ".e_score_correction_bias")):
                put(key.removesuffix("_bias"), "bias" if key.endswith("_bias") else "weight", tensor)
            elif module.endswith("kv_b_proj"):  # DeepSeek: of each head, keys and values
                rows = tensor.view(heads, c.qk_nope_head_dim + c.v_head_dim, -1)
                put(module.replace("kv_b", "k_b"), part, rows[:, : c.qk_nope_head_dim].transpose(1, 2))
                put(module.replace("kv_b", "v_b"), part, rows[:, c.qk_nope_head_dim :])
            elif module.endswith("query_key_value"):  # of each head of keys: queries, keys, values
                rows = tensor.view(kv, heads // kv + 2, head, -1)
                parts = [rows[:, :-2], rows[:, -2], rows[:, -1]]
                put(module, part, torch.cat([one.reshape(-1, *tensor.shape[1:]) for one in parts]))
            elif self.permuted and module.endswith(("q_proj", "k_proj")):
                put(module, part, permuted(tensor, heads if module.endswith("q_proj") else kv))
            elif module.endswith("shared_expert_gate"):
                put(module, part, tensor[0])
            else:
                put(module, part, tensor)
        scaling = getattr(c, "rope_parameters", None) or {}
        for length in ("short", "long"):  # those of short texts, which are all that is read here
            if "short_factor" in scaling:
                expected[f"rope_factors_{length}.weight"] = torch.tensor(scaling["short_factor"]).numpy()
        for module, matrices in experts.items():
            put(module, "weight", torch.stack([matrices[i] for i in range(len(matrices))]))
        required = {"qwen2moe", "olmoe", "gpt-oss", "gptneox", "phi2", "olmo2"}  # llama.cpp wants the output
        if c.tie_word_embeddings and self.name in required:
            expected["output.weight"] = expected["token_embd.weight"]
        return expected


def sizes(**more):
    """Odd ones."""
    return {
        "hidden_size": 72, "intermediate_size": 100, "num_hidden_layers": 3, "num_attention_heads": 6,
        "num_key_value_heads": 2, "max_position_embeddings": 192, "vocab_size": 303, "bos_token_id": 0, "eos_token_id": 1,
        "pad_token_id": None,
    } | more  # fmt: skip


def rotary(width, *, kv=2, theta=5000.0, turned=None):
    return {"attention.head_count_kv": kv, "attention.key_length": width, "attention.value_length": width,
            "rope.dimension_count": turned or width, "rope.freq_base": theta}  # fmt: skip


def rms(eps=1e-5, *, ff=100):
    return {"feed_forward_length": ff, "context_length": 192, "attention.layer_norm_rms_epsilon": eps}


def mixtures():
    import transformers as t

    theta = {"rope_theta": 5000.0, "rms_norm_eps": 1e-5}
    latent = {
        "q_lora_rank": 20, "kv_lora_rank": 28, "qk_nope_head_dim": 14, "qk_rope_head_dim": 10, "v_head_dim": 18,
        "moe_intermediate_size": 44, "n_routed_experts": 6, "num_experts_per_tok": 3, "n_shared_experts": 2,
        "first_k_dense_replace": 1, "routed_scaling_factor": 1.5,
    }  # fmt: skip
    latent_keys = rms() | {
        "attention.head_count_kv": 1, "attention.key_length": 38, "attention.value_length": 28,
        "attention.key_length_mla": 24, "attention.value_length_mla": 18, "attention.q_lora_rank": 20,
        "attention.kv_lora_rank": 28, "rope.dimension_count": 10, "rope.freq_base": 5000.0, "expert_count": 6,
        "expert_used_count": 3, "expert_shared_count": 2, "expert_feed_forward_length": 44, "expert_weights_scale": 1.5,
        "leading_dense_block_count": 1,
    }  # fmt: skip
    yarn = {"rope_type": "yarn", "type": "yarn", "factor": 4.0, "original_max_position_embeddings": 48, "mscale": 0.707,
            "mscale_all_dim": 0.707, "beta_fast": 32, "beta_slow": 1}  # fmt: skip
    yarn_keys = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 48,
                 "rope.scaling.yarn_log_multiplier": 0.0707}  # fmt: skip
    experts = {"expert_count": 5, "expert_used_count": 2}
    return {
        "mixtral": Family(
            "llama", t.MixtralConfig(num_local_experts=5, num_experts_per_tok=2, head_dim=16, tie_word_embeddings=False,
                                     sliding_window=None, **theta,
                                     **sizes(vocab_size=335, bos_token_id=1, eos_token_id=2)),
            "llama", rms() | rotary(16) | experts, permuted=True),
        "qwen2moe": Family(
            "qwen2", t.Qwen2MoeConfig(num_experts=5, num_experts_per_tok=2, moe_intermediate_size=44,
                                      shared_expert_intermediate_size=52, tie_word_embeddings=False, **theta, **sizes()),
            "qwen2moe", rms() | rotary(12) | experts | {"expert_feed_forward_length": 44,
                                                        "expert_shared_feed_forward_length": 52}),
        "qwen2moe-tied": Family(
            "qwen2", t.Qwen2MoeConfig(num_experts=5, num_experts_per_tok=2, moe_intermediate_size=44, qkv_bias=False,
                                      shared_expert_intermediate_size=52, tie_word_embeddings=True, **theta, **sizes()),
            "qwen2moe", rms() | rotary(12) | experts | {"expert_feed_forward_length": 44,
                                                        "expert_shared_feed_forward_length": 52}),
        "qwen3moe": Family(
            "qwen2", t.Qwen3MoeConfig(num_experts=5, num_experts_per_tok=2, moe_intermediate_size=44, head_dim=20,
                                      norm_topk_prob=True, tie_word_embeddings=True, **theta, **sizes()),
            "qwen3moe", rms() | rotary(20) | experts | {"expert_feed_forward_length": 44}),
        "olmoe": Family(
            "gpt-2", t.OlmoeConfig(num_experts=5, num_experts_per_tok=2, tie_word_embeddings=False, **theta,
                                   **sizes(num_key_value_heads=6)),
            "olmoe", rms() | rotary(12, kv=6) | experts),
        "gpt-oss": Family(
            "gpt-4o", t.GptOssConfig(num_local_experts=5, num_experts_per_tok=2, head_dim=16, sliding_window=7,
                                     rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 5000.0},
                                     **sizes(num_hidden_layers=4)),
            "gpt-oss", rms() | rotary(16) | experts | {"expert_feed_forward_length": 100, "attention.sliding_window": 7}),
        "deepseek2": Family(
            "deepseek-v3", t.DeepseekV2Config(topk_method="greedy", norm_topk_prob=False, rope_scaling=yarn, **latent, **theta,
                                              **sizes(num_key_value_heads=6)),
            "deepseek2", latent_keys | yarn_keys | {"expert_gating_func": 1, "expert_weights_norm": False}),
        "deepseek2-lite": Family(
            "deepseek-v3", t.DeepseekV2Config(topk_method="greedy", norm_topk_prob=False, **latent | {"q_lora_rank": None},
                                              **theta, **sizes(num_key_value_heads=6, num_hidden_layers=27)),
            "deepseek2", {key: value for key, value in latent_keys.items() if "q_lora" not in key}
            | {"expert_gating_func": 1, "expert_weights_norm": False}, spread=0.06),
        "deepseek3": Family(
            "deepseek-v3", t.DeepseekV3Config(n_group=3, topk_group=2, norm_topk_prob=True,
                                              rope_scaling=yarn | {"mscale": 1.0, "mscale_all_dim": 1.0},
                                              **latent, **theta, **sizes(num_key_value_heads=6)),
            "deepseek2", latent_keys | yarn_keys | {
                "expert_gating_func": 2, "expert_weights_norm": True, "expert_group_count": 3, "expert_group_used_count": 2,
                "rope.scaling.yarn_log_multiplier": 0.1}),
    }  # fmt: skip


def layer_norm(eps=1e-5, *, ff=100, context=192):
    return {"feed_forward_length": ff, "context_length": context, "attention.layer_norm_epsilon": eps}


def decoders():
    import transformers as t

    theta = {"rope_theta": 5000.0}
    norm, half = {"rms_norm_eps": 1e-5}, {"partial_rotary_factor": 0.5}
    ids = {"vocab_size": 303, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": None}
    neox = sizes(layer_norm_eps=1e-5, hidden_act="gelu", tie_word_embeddings=False, rope_parameters={
        "rope_type": "default", "rope_theta": 5000.0, "partial_rotary_factor": 0.5})  # fmt: skip
    del neox["num_key_value_heads"]
    falcon = {"hidden_size": 72, "num_hidden_layers": 3, "num_attention_heads": 6, "max_position_embeddings": 192,
              "bias": False, "alibi": False, "parallel_attn": True, **theta, **ids}  # fmt: skip
    longrope = {
        "rope_type": "longrope", "rope_theta": 5000.0, "short_factor": [1.0, 1.1, 1.25, 1.5, 2.0, 3.0],
        "long_factor": [2.0, 2.0, 3.0, 4.0, 5.0, 6.0], "original_max_position_embeddings": 320,
    }  # fmt: skip
    # What these models have not learned to need: llama.cpp takes GELU from a table of float16, by the formula with tanh.
    gelu = {"spread": 0.1}
    return {
        "gptneox": Family("gpt-2", t.GPTNeoXConfig(use_parallel_residual=True, **neox), "gptneox",
                          layer_norm() | rotary(12, kv=6, turned=6) | {"use_parallel_residual": True}, **gelu),
        "gptneox-sequential": Family("gpt-2", t.GPTNeoXConfig(use_parallel_residual=False, **neox), "gptneox",
                                     layer_norm() | rotary(12, kv=6, turned=6) | {"use_parallel_residual": False}, **gelu),
        "bloom": Family("gpt-2", t.BloomConfig(hidden_size=72, n_layer=3, n_head=6, **ids), "bloom",
                        layer_norm(ff=288, context=2048), **gelu),
        "mpt": Family("gpt-2", t.MptConfig(d_model=72, n_layers=3, n_heads=6, max_seq_len=192, **ids), "mpt",
                      layer_norm(ff=288) | {"attention.max_alibi_bias": 8.0}, spread=0.08),
        "mpt-clipped": Family(
            "gpt-2", t.MptConfig(d_model=72, n_layers=3, n_heads=6, max_seq_len=192, attn_config={"clip_qkv": 0.75}, **ids),
            "mpt", layer_norm(ff=288) | {"attention.max_alibi_bias": 8.0, "attention.clamp_kqv": 0.75}, spread=0.12),
        "falcon": Family("falcon", t.FalconConfig(multi_query=True, new_decoder_architecture=False, **falcon), "falcon",
                         layer_norm(ff=288) | rotary(12, kv=1), **gelu),
        "falcon-two-norms": Family(
            "falcon", t.FalconConfig(new_decoder_architecture=True, num_kv_heads=2, tie_word_embeddings=False, **falcon),
            "falcon", layer_norm(ff=288) | rotary(12), **gelu),
        "falcon-groups": Family(
            "falcon", t.FalconConfig(new_decoder_architecture=True, num_kv_heads=3, num_ln_in_parallel_attn=1, **falcon),
            "falcon", layer_norm(ff=288) | rotary(12, kv=3), **gelu),
        "phi2": Family("gpt-2", t.PhiConfig(layer_norm_eps=1e-5, **half, **theta, **sizes()), "phi2",
                       layer_norm() | rotary(12, turned=6), **gelu),
        # In a file that is called phi3, llama.cpp wants tokens of Phi-3.
        "phi-4-like": Family("llama", t.Phi3Config(sliding_window=None, **norm, **theta,
                                             **sizes(vocab_size=335, bos_token_id=1, eos_token_id=2)), "phi3",
                       rms() | rotary(12)),
        "phi-4-like-long": Family(
            "llama", t.Phi3Config(sliding_window=None, rope_parameters=longrope, original_max_position_embeddings=320, **norm,
                                  **sizes(vocab_size=335, bos_token_id=1, eos_token_id=2, max_position_embeddings=1280)),
            "phi3", rms() | rotary(12) | {
                "context_length": 320, "rope.scaling.type": "longrope", "rope.scaling.original_context_length": 320,
                "rope.scaling.attn_factor": math.sqrt(1 + math.log(1280 / 320) / math.log(320))}),
        "starcoder2": Family("smollm", t.Starcoder2Config(norm_epsilon=1e-5, sliding_window=None, use_bias=True, **theta,
                                                          **sizes()), "starcoder2", layer_norm() | rotary(12), **gelu),
        "olmo": Family("gpt-2", t.OlmoConfig(clip_qkv=None, **theta, **sizes()), "olmo", layer_norm() | rotary(12),
                       permuted=True),
        "olmo-clipped": Family("gpt-2", t.OlmoConfig(clip_qkv=0.75, tie_word_embeddings=True, **theta, **sizes()), "olmo",
                               layer_norm() | rotary(12) | {"attention.clamp_kqv": 0.75}, permuted=True),
        "olmo2": Family("dbrx", t.Olmo2Config(tie_word_embeddings=True, **norm, **theta, **sizes()), "olmo2",
                        rms() | rotary(12)),
        "smollm3": Family("llama-bpe", t.SmolLM3Config(tie_word_embeddings=True, **norm, **theta, **sizes(num_hidden_layers=5)),
                          "smollm3", rms() | rotary(12), permuted=True),
        "granite": Family(
            "smollm", t.GraniteConfig(embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.2,
                                      logits_scaling=1.7, **norm, **theta, **sizes()),
            "granite", rms() | rotary(12) | {"embedding_scale": 3.0, "residual_scale": 0.4, "attention.scale": 0.2,
                                             "logit_scale": 1.7}, permuted=True),
        "glm": Family("dbrx", t.GlmConfig(head_dim=12, attention_bias=True, **half, **norm, **theta, **sizes()), "chatglm",
                      rms() | rotary(12, turned=6)),
        "glm4": Family("dbrx", t.Glm4Config(head_dim=20, attention_bias=False, **half, **norm, **theta, **sizes()), "glm4",
                       rms() | rotary(20, turned=10)),
        "command-r": Family("smollm", t.CohereConfig(logit_scale=0.5, layer_norm_eps=1e-5, **theta, **sizes()), "command-r",
                            layer_norm() | rotary(12) | {"logit_scale": 0.5}),
        "cohere2": Family("smollm", t.Cohere2Config(logit_scale=0.5, layer_norm_eps=1e-5, sliding_window=7, head_dim=12,
                                                    **theta, **sizes(num_hidden_layers=5)), "cohere2",
                          layer_norm() | rotary(12) | {"logit_scale": 0.5, "attention.sliding_window": 7}),
    }  # fmt: skip


def check_family(name, family, made):
    from gguf import GGMLQuantizationType as Type

    directory, path, again = made / name, made / f"{name}.gguf", made / f"{name}-again.gguf"
    family.directory = directory
    family.save(directory)
    zoo("export", directory, path, "--weights", "fp32")
    family.check_keys(path)
    same_tensors(path, family.tensors(), Type.F32)
    expected = generate(directory, PROMPTS)
    assert all(len(tokens) == N_NEW for _, tokens in expected), "an end token came too early"
    assert generate(path, PROMPTS) == expected, f"{name}: read here again it gives other log-probabilities"
    zoo("export", path, again)
    family.check_keys(again)
    same_tensors(again, family.tensors(), Type.F32)
    largest = compare_with_llama_cpp(path, expected)
    print(f"{name}: log-probabilities differ from llama.cpp's by at most {largest:.1e}", flush=True)
    assert largest <= TOLERANCE, name


def rewritten(path, copy, tensors, keys=()):
    """A copy of a file with other tensors, (data, type) by name, and other keys."""
    import gguf

    reader = gguf.GGUFReader(path)
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(copy, architecture)
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture" or key in keys:
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(key, field.contents(), kind, inner)
    for key, (value, kind) in dict(keys).items():
        if value is not None:
            writer.add_key_value(key, value, kind)
    stored = {tensor.name: (tensor.data, tensor.tensor_type) for tensor in reader.tensors} | tensors
    for name, one in stored.items():
        if one is not None:
            writer.add_tensor(name, one[0], raw_dtype=one[1])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def check_mxfp4(made):
    """Experts in the format of gpt-oss give what the numbers give that they stand for."""
    import transformers as t
    from gguf import GGMLQuantizationType as Type
    from gguf import GGUFReader, quants

    config = t.GptOssConfig(num_local_experts=5, num_experts_per_tok=2, head_dim=16, sliding_window=7, rms_norm_eps=1e-5,
                            rope_parameters={"rope_type": "default", "rope_theta": 5000.0},
                            **sizes(hidden_size=64, intermediate_size=96))  # fmt: skip
    family = Family("gpt-4o", config, "gpt-oss", {})
    directory, path = made / "mxfp4", made / "mxfp4.gguf"
    family.directory = directory
    family.save(directory)
    zoo("export", directory, path, "--weights", "fp32")
    packed, plain = {}, {}
    for tensor in GGUFReader(path).tensors:
        if tensor.name.endswith("_exps.weight"):
            blocks = quants.quantize(tensor.data, Type.MXFP4)
            packed[tensor.name] = (blocks, Type.MXFP4)
            plain[tensor.name] = (quants.dequantize(blocks, Type.MXFP4), Type.F32)
    assert len(packed) == 9
    rewritten(path, made / "packed.gguf", packed)
    rewritten(path, made / "plain.gguf", plain)
    ours = generate(made / "packed.gguf", PROMPTS)
    assert ours == generate(made / "plain.gguf", PROMPTS)
    assert ours != generate(path, PROMPTS)
    largest = compare_with_llama_cpp(made / "plain.gguf", ours)
    print(f"mxfp4: log-probabilities differ from llama.cpp's with these numbers by at most {largest:.1e}")
    assert largest <= TOLERANCE


def check_older(made):
    """Files of DeepSeek from before llama.cpp stored its keys and values compressed."""
    import numpy as np
    from gguf import GGMLQuantizationType as Type
    from gguf import GGUFReader, GGUFValueType

    family = mixtures()["deepseek2"]
    directory, path, older = made / "older", made / "newer.gguf", made / "older.gguf"
    family.directory = directory
    family.save(directory)
    zoo("export", directory, path, "--weights", "fp32")
    stored = {tensor.name: tensor.data for tensor in GGUFReader(path).tensors}
    tensors = {}
    for layer in range(3):
        keys, values = stored[f"blk.{layer}.attn_k_b.weight"], stored[f"blk.{layer}.attn_v_b.weight"]
        rows = np.concatenate([keys.transpose(0, 2, 1), values], 1)
        tensors[f"blk.{layer}.attn_kv_b.weight"] = (np.ascontiguousarray(rows.reshape(-1, rows.shape[-1])), Type.F32)
        tensors |= {f"blk.{layer}.attn_{letter}_b.weight": None for letter in "kv"}
    whole = GGUFValueType.UINT32
    rewritten(path, older, tensors, {
        "deepseek2.attention.head_count_kv": (6, whole), "deepseek2.attention.key_length": (24, whole),
        "deepseek2.attention.value_length": (18, whole), "deepseek2.attention.key_length_mla": (None, whole),
        "deepseek2.attention.value_length_mla": (None, whole),
    })  # fmt: skip
    assert generate(older, PROMPTS) == generate(path, PROMPTS)
    print("older: log-probabilities do not differ from those of a newer file")


def check_refusals(made):
    """What llama.cpp cannot express, and files that say what no family computes, by a word of the message."""
    import transformers as t
    from gguf import GGUFValueType
    from gguf_export_test import tokenizer

    small = sizes(hidden_size=24, intermediate_size=20, num_hidden_layers=1)

    def refused(config, word):
        directory, path = made / "refused", made / "refused.gguf"
        t.AutoModelForCausalLM.from_config(config).save_pretrained(directory)
        tokenizer("gpt-2").save_pretrained(directory)
        message = zoo("export", directory, path, code=2)
        assert word in message and message.count("\n") == 1, (word, message)
        assert not path.exists(), word

    experts = {"num_experts": 4, "num_experts_per_tok": 2}
    refused(t.OlmoeConfig(**experts, **small), "as many heads of keys")
    refused(t.Qwen3MoeConfig(**experts, moe_intermediate_size=8, norm_topk_prob=False, **small), "model.experts.normalize")
    refused(t.Qwen2MoeConfig(**experts, moe_intermediate_size=8, shared_expert_intermediate_size=8, norm_topk_prob=True,
                             **small), "model.experts.normalize")  # fmt: skip
    refused(t.Qwen2MoeConfig(**experts, moe_intermediate_size=8, shared_expert_intermediate_size=8, decoder_sparse_step=2,
                             **small | {"num_hidden_layers": 2}), "has no tensor")  # fmt: skip
    refused(t.MixtralConfig(num_local_experts=4, sliding_window=8, **small), "attention")
    latent = {"q_lora_rank": 8, "kv_lora_rank": 8, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8,
              "moe_intermediate_size": 8, "n_routed_experts": 4, "num_experts_per_tok": 2, "first_k_dense_replace": 0}  # fmt: skip
    mha = small | {"num_key_value_heads": 6}
    refused(t.DeepseekV2Config(topk_method="group_limited_greedy", n_group=2, topk_group=1, n_shared_experts=1,
                               norm_topk_prob=False, **latent, **mha), "groups")  # fmt: skip
    refused(t.DeepseekV2Config(topk_method="greedy", n_shared_experts=1, norm_topk_prob=False,
                               **latent | {"q_lora_rank": None}, **mha), "26 or 27 layers")  # fmt: skip
    refused(t.DeepseekV3Config(n_group=1, topk_group=1, n_shared_experts=1, rope_interleave=False, **latent, **mha), "layout")
    refused(t.OPTConfig(hidden_size=24, word_embed_proj_dim=24, ffn_dim=20, num_hidden_layers=1, num_attention_heads=2,
                        vocab_size=303, max_position_embeddings=64, bos_token_id=0, eos_token_id=1), "GGUF is written for")  # fmt: skip
    # Files of others.
    family = mixtures()["mixtral"]
    directory, path = made / "read", made / "read.gguf"
    family.directory = directory
    family.save(directory)
    zoo("export", directory, path)

    def unreadable(change, word, tensors=()):
        copy = made / "unreadable.gguf"
        rewritten(path, copy, dict(tensors), change)
        message = zoo("inspect", copy, code=2)
        assert word in message and message.count("\n") == 1, (word, message)

    whole, number = GGUFValueType.UINT32, GGUFValueType.FLOAT32
    unreadable({"llama.expert_count": (7, whole)}, "experts")
    unreadable({"llama.expert_count": (0, whole)}, "only as 0")
    unreadable({"llama.logit_scale": (2.0, number)}, "llama.logit_scale")
    unreadable({"llama.attention.clamp_kqv": (8.0, number)}, "clamp_kqv")
    for name in ("gptj", "opt", "starcoder"):  # which no file of llama.cpp has, or no family here
        copy = made / f"{name}.gguf"
        import gguf

        writer = gguf.GGUFWriter(copy, name)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()
        message = zoo("inspect", copy, code=2)
        assert f"'{name}' is not supported" in message and message.count("\n") == 1, message


def main():
    start(__file__, ["gguf", "transformers", "xllamacpp"])
    names = sys.argv[1:] or ["mixtures", "decoders"]
    checks = {"mxfp4": check_mxfp4, "older": check_older, "refused": check_refusals}
    with tempfile.TemporaryDirectory() as made:
        made = pathlib.Path(made)
        for group in (mixtures, decoders):
            for name, family in group().items():
                if name in names or group.__name__ in names:
                    check_family(name, family, made)
        for name, check in checks.items():
            if name in names or "mixtures" in names:
                check(made)


if __name__ == "__main__":
    main()
