"""Cases of reference_interop.py: weights in fewer bits, and beside them the same weights as transformers unpacks them."""

import json
import shutil

import reference_interop as shared
import torch
from safetensors.torch import load_file, save_file


def write_both(out, name, model, packing, pack):
    """Writes `model` as NAME_plain and NAME. `pack` gives the tensors of NAME for one of the other, which it may change."""
    plain, packed = out / f"{name}_plain", out / name
    model.to(torch.bfloat16).save_pretrained(plain)
    shared.llama_tokenizer().save_pretrained(plain)
    shutil.copytree(plain, packed)
    tensors, stored = load_file(plain / "model.safetensors"), {}
    for key in sorted(tensors):
        tensors[key], parts = pack(key, tensors[key])
        stored |= parts
    save_file(tensors, plain / "model.safetensors", {"format": "pt"})
    save_file(stored, packed / "model.safetensors", {"format": "pt"})
    path = packed / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"quantization_config": packing}))


def mxfp4(out):
    """All values and many exponents, among them the smallest and the largest."""
    from transformers import GptOssConfig, GptOssForCausalLM
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    torch.manual_seed(1)
    config = GptOssConfig(
        vocab_size=300, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=6, num_local_experts=3, num_experts_per_tok=2, sliding_window=4,
        bos_token_id=0, eos_token_id=1, pad_token_id=None,
    )  # fmt: skip

    def pack(key, tensor):
        if not key.endswith(("gate_up_proj", "down_proj")):
            return tensor, {key: tensor}
        n_experts, columns, rows = tensor.shape
        blocks = torch.randint(0, 256, (n_experts, rows, columns // 32, 16), dtype=torch.uint8)
        scales = torch.randint(0, 255, blocks.shape[:-1], dtype=torch.uint8)
        scales[0, 0, 0], scales[0, 1, 0] = 0, 254
        plain = convert_moe_packed_tensors(blocks, scales, dtype=torch.bfloat16)
        return plain, {f"{key}_blocks": blocks, f"{key}_scales": scales}

    model = shared.random_weights(GptOssForCausalLM(config))
    write_both(out, "gpt_oss_packed", model, {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}, pack)


def fp8(out):
    """Blocks of 4 rows and 8 columns, of which the last ones of a matrix may be smaller."""
    from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

    torch.manual_seed(2)
    config = DeepseekV3Config(
        vocab_size=300, hidden_size=24, intermediate_size=13, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, q_lora_rank=8, kv_lora_rank=6, qk_nope_head_dim=6, qk_rope_head_dim=2, v_head_dim=5,
        n_routed_experts=4, num_experts_per_tok=2, n_group=2, topk_group=1, moe_intermediate_size=8,
        first_k_dense_replace=1, bos_token_id=0, eos_token_id=1, pad_token_id=None,
    )  # fmt: skip
    rows, columns = 4, 8

    def pack(key, tensor):
        if not key.endswith("_proj.weight") and "kv_a_proj" not in key:
            return tensor, {key: tensor}
        numbers = (tensor.float() * 100).to(torch.float8_e4m3fn)
        scales = torch.rand(-(-tensor.shape[0] // rows), -(-tensor.shape[1] // columns)) * 0.02
        return unpacked(numbers, scales), {key: numbers, f"{key}_scale_inv": scales}

    def unpacked(numbers, scales):
        spread = scales.repeat_interleave(rows, 0)[: numbers.shape[0]].repeat_interleave(columns, 1)[:, : numbers.shape[1]]
        plain = (numbers.float() * spread).to(torch.bfloat16)
        if numbers.shape[0] % rows == 0 and numbers.shape[1] % columns == 0:  # transformers refuses the others
            expect_same(plain, numbers, scales)
        return plain

    model = shared.random_weights(DeepseekV3ForCausalLM(config))
    packing = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [rows, columns]}
    write_both(out, "deepseek_v3_packed", model, packing, pack)


def expect_same(plain, numbers, scales):
    """Raises an error if transformers 5 unpacks the numbers in another way. Version 4 has only kernels for GPUs."""
    try:
        from transformers.integrations.finegrained_fp8 import Fp8Dequantize
    except ImportError:
        return
    theirs = Fp8Dequantize(None)._dequantize_one(numbers, scales, output_dtype=torch.bfloat16)
    if not torch.equal(plain, theirs):
        raise ValueError("transformers unpacks FP8 in another way")


CASES = [mxfp4, fp8]
