"""Files written with the package gguf: tensors in every format, with the numbers that the package reads from them; and
models of transformers as llama.cpp stores them, with their logits.
"""

import json

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Type
from safetensors.torch import save_file

BLOCKS = [Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0, Type.Q4_K, Type.Q5_K, Type.Q6_K, Type.MXFP4]
ROWS, COLUMNS = 5, 768  # three large blocks a row
# The numbers of 16 bits in a block of each format, which must not be infinite: their places.
HALVES = {
    Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0], Type.Q4_K: [0, 2],
    Type.Q5_K: [0, 2], Type.Q6_K: [208], Type.MXFP4: [],
}  # fmt: skip


def random_blocks(kind):
    """(ROWS, bytes of a row): every bit of a block at random, except for scales that are not finite."""
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = torch.randint(0, 256, (ROWS * COLUMNS // elements, size), dtype=torch.uint8).numpy()
    scales = torch.randn(len(blocks), len(HALVES[kind])).to(torch.float16).numpy().view(np.uint8)
    for i, place in enumerate(HALVES[kind]):
        blocks[:, place : place + 2] = scales[:, 2 * i : 2 * i + 2]
    if kind == Type.MXFP4:  # a power of two that float32 has
        blocks[:, 0] = blocks[:, 0] // 4 + 96
    return blocks.reshape(ROWS, -1)


def formats(out):
    writer = gguf.GGUFWriter(out / "formats.gguf", "llama")
    writer.add_string("test.text", "Où est “la mer” ?")
    writer.add_int32("test.negative", -5)
    writer.add_float32("test.half", 0.5)
    writer.add_bool("test.yes", True)
    writer.add_array("test.list", ["a", "b", ""])
    writer.add_array("test.numbers", [1, 2, 3])
    expected = {}
    for kind in BLOCKS:
        raw = random_blocks(kind)
        writer.add_tensor(kind.name, raw, raw_dtype=kind)
        expected[kind.name] = torch.from_numpy(gguf.quants.dequantize(raw, kind)).reshape(ROWS, COLUMNS)
    for name, tensor in {"F32": torch.randn(3, 4), "F16": torch.randn(2, 3, 4).half()}.items():
        writer.add_tensor(name, tensor.numpy())
        expected[name] = tensor.float()
    bfloat = torch.randn(3, 8).bfloat16()
    writer.add_tensor("BF16", bfloat.view(torch.int16).numpy().view(np.uint8), raw_dtype=Type.BF16)
    expected["BF16"] = bfloat.float()
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    save_file({f"output/{name}": tensor.contiguous() for name, tensor in expected.items()}, out / "formats.safetensors")


def tokenizer():
    """GPT-2's BPE of bytes, with a few merges, and with special tokens after it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    text = ["the ship came home at night and nobody heard the bell; who is there? she asked: 1984 12"] * 4
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  special_tokens=["<|end|>"])  # fmt: skip
    made.train_from_iterator(text, trainer)
    return made


def permuted(weight, n_heads):
    """The rows of queries or keys as llama.cpp rotates them (convert_hf_to_gguf.py)."""
    return (
        weight.reshape(n_heads, 2, weight.shape[0] // n_heads // 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)
    )


LLAMA = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}  # fmt: skip
GPT2 = {
    "transformer.wte": "token_embd", "transformer.wpe": "position_embd", "transformer.ln_f": "output_norm",
    "lm_head": "output", "ln_1": "attn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output",
    "ln_2": "ffn_norm", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
}  # fmt: skip


def stored_name(name, names):
    module, part = name.rsplit(".", 1)
    parts = module.split(".")
    layer = next((one for one in parts if one.isdigit()), None)
    if layer is None:
        return f"{names[module]}.{part}"
    return f"blk.{layer}.{names['.'.join(parts[parts.index(layer) + 1 :])]}.{part}"


def write(out, name, model, pre):
    config, kind = model.config, model.config.model_type
    writer = gguf.GGUFWriter(out / f"{name}.gguf", kind)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_head_count(config.num_attention_heads)
    writer.add_feed_forward_length(4 * config.n_embd if kind == "gpt2" else config.intermediate_size)
    if kind == "gpt2":
        writer.add_layer_norm_eps(config.layer_norm_epsilon)
    else:
        writer.add_head_count_kv(config.num_key_value_heads)
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
        writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
        if kind != "qwen2":
            writer.add_key_length(config.head_dim)
            writer.add_value_length(config.head_dim)
    made = tokenizer()
    vocabulary = sorted(made.get_vocab().items(), key=lambda item: item[1])
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list([token for token, _ in vocabulary])
    writer.add_token_types([3 if token == "<|end|>" else 1 for token, _ in vocabulary])
    writer.add_token_merges([" ".join(pair) for pair in json.loads(made.to_str())["model"]["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    writer.add_add_bos_token(kind == "llama")
    tied = config.tie_word_embeddings
    for key, tensor in model.state_dict().items():
        if key.endswith((".attn.bias", ".masked_bias")) or (key == "lm_head.weight" and tied):
            continue
        stored = stored_name(key, GPT2 if kind == "gpt2" else LLAMA)
        if kind == "gpt2" and tensor.dim() == 2 and "blk." in stored:
            tensor = tensor.t()
        if kind == "llama" and "attn_q" in stored:
            tensor = permuted(tensor, config.num_attention_heads)
        if kind == "llama" and "attn_k" in stored:
            tensor = permuted(tensor, config.num_key_value_heads)
        writer.add_tensor(stored, tensor.contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    ids = torch.randint(1, config.vocab_size, (2, 11))
    with torch.no_grad():
        logits = model(ids).logits
    text = "the ship came home 1984, who is there?<|end|>nobody"
    encoded = made.encode(text).ids
    save_file({"input/ids": ids, "output/logits": logits, "output/encoded": torch.tensor(encoded)},
              out / f"{name}.safetensors")  # fmt: skip


def models(out):
    from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, Qwen2Config, Qwen3Config

    shared = {"vocab_size": 300, "bos_token_id": 0, "eos_token_id": 0}
    like_llama = {
        "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 5000.0,
    }  # fmt: skip
    configs = {
        "gpt2": (GPT2Config(n_embd=24, n_layer=2, n_head=4, n_positions=64, **shared), "gpt-2"),
        "llama": (LlamaConfig(head_dim=8, tie_word_embeddings=False, **like_llama, **shared), "gpt-2"),
        "llama_tied": (LlamaConfig(head_dim=6, tie_word_embeddings=True, **like_llama, **shared), "gpt-2"),
        "qwen2": (Qwen2Config(tie_word_embeddings=True, **like_llama, **shared), "gpt-2"),
        "qwen3": (Qwen3Config(head_dim=8, tie_word_embeddings=True, **like_llama, **shared), "gpt-2"),
    }
    for name, (config, pre) in configs.items():
        torch.manual_seed(len(name))
        model = AutoModelForCausalLM.from_config(config).float().eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn_like(parameter) * 0.2)
        write(out, name, model, pre)


CASES = [formats, models]
