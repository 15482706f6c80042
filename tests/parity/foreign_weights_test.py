#!/usr/bin/env python3
"""Weights in other files than safetensors, against PyTorch and transformers, which write them here:

  * pytorch_model.bin in both forms of torch.save(), also in several files, and a lone NAME.pt give the log-probabilities
    of the same weights as safetensors;
  * a checkpoint as nanoGPT writes it gives the loss of its model, which is written out below, within 1e-5;
  * pickles with other names, and files that are something else, get one line and are not run.

ZOO_PROGRAM: the program. ZOO_PYTHON: as in references_python.py.
"""

import argparse
import collections
import json
import os
import pathlib
import shutil
import sys
import tempfile

from references_python import begin
from zoo_copies import run_zoo

TEXTS = ["The cat sat on the mat.", "It was 1984, or was it?", "a"]
CORPUS = TEXTS + ["Wherever you go, there you are.", "A dog ran after the cat, and the cat ran up a tree."]


def zoo(*arguments):
    return run_zoo(os.environ["ZOO_PROGRAM"], *arguments)


def refused(path, *parts, command=("score", "--text", "a")):
    result = zoo(command[0], path, *command[1:])
    assert result.returncode == 2, (path, result)
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1 and all(part in lines[0] for part in parts), (parts, result.stderr)


def scores(path, *options):
    result = zoo("score", path, "--json", *options, *(o for text in TEXTS for o in ("--text", text)))
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)["results"]


def compare(path, logits_of, tolerance, *options):
    """Log-probabilities of the program with those of `logits_of`(ids)."""
    import torch

    for scored in scores(path, *options):
        # The first token follows the end of another text, <|endoftext|>.
        ids, ours = torch.tensor([[0, *scored["ids"]]]), torch.tensor(scored["logprobs"], dtype=torch.float64)
        with torch.no_grad():
            theirs = logits_of(ids).double().log_softmax(-1)[0]
        expected = theirs[:-1].gather(1, ids[0, 1:, None])[:, 0]
        error = (ours - expected).abs().max().item()
        assert error < tolerance, (path, error)


def tokenizer():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    own = Tokenizer(models.BPE())
    own.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    own.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    own.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=280, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet, show_progress=False))  # fmt: skip
    return PreTrainedTokenizerFast(tokenizer_object=own, eos_token="<|endoftext|>", bos_token="<|endoftext|>")


def randomize(model):
    import torch

    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.2 + (1.0 if parameter.dim() == 1 else 0.0))
    return model.eval()


def make_model(kind, size):
    import transformers

    common = dict(vocab_size=size, bos_token_id=0, eos_token_id=0)
    if kind == "gpt2":
        config = transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=64, **common)
        return randomize(transformers.GPT2LMHeadModel(config))
    config = transformers.LlamaConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=64, **common)  # fmt: skip
    return randomize(transformers.LlamaForCausalLM(config))


def check_bin_files(work):
    import torch

    words = tokenizer()
    model = make_model("llama", len(words))
    with torch.no_grad():
        model.model.norm.weight.fill_(1.5)
    origin = work / "safetensors"
    model.save_pretrained(origin)
    words.save_pretrained(origin)
    state = model.state_dict()

    def logits(ids):
        return model(ids).logits

    def copy(name):
        shutil.copytree(origin, work / name)
        (work / name / "model.safetensors").unlink()
        return work / name

    compare(origin, logits, 1e-5)
    for name, options in {
        "archive": {}, "older": {"_use_new_zipfile_serialization": False},
        "older-4": {"_use_new_zipfile_serialization": False, "pickle_protocol": 4}, "archive-5": {"pickle_protocol": 5},
    }.items():  # fmt: skip
        directory = copy(name)
        torch.save(state, directory / "pytorch_model.bin", **options)
        compare(directory, logits, 1e-5)
    # Views of one storage, a parameter, names of torch.compile and DataParallel, values beside the weights, numbers with
    # the other sign, and a number for many.
    directory = copy("lone")
    odd = collections.OrderedDict()
    for key, tensor in state.items():
        wide = torch.zeros(tensor.shape[0] + 3, *tensor.shape[1:])
        wide[2:-1] = tensor
        own = wide[2:-1] if tensor.dim() == 1 else tensor.t().contiguous().t()
        odd["module._orig_mod." + key] = torch.nn.Parameter(own) if tensor.dim() == 1 else own
    odd["module._orig_mod.lm_head.weight"] = torch._neg_view(-state["lm_head.weight"])
    odd["module._orig_mod.model.norm.weight"] = torch.tensor([1.5]).expand(32)
    assert odd["module._orig_mod.lm_head.weight"].is_neg()
    torch.save({"state_dict": odd, "args": argparse.Namespace(lr=0.1), "step": 3}, directory / "final.PT")
    compare(directory / "final.PT", logits, 1e-5)
    # In two files.
    directory = copy("shards")
    names = list(state)
    halves = {"pytorch_model-00001-of-00002.bin": names[:7], "pytorch_model-00002-of-00002.bin": names[7:]}
    for file, own in halves.items():
        torch.save({name: state[name] for name in own}, directory / file)
    places = {name: file for file, own in halves.items() for name in own}
    (directory / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": places}))
    compare(directory, logits, 1e-5)
    # Safetensors win.
    directory = work / "both"
    shutil.copytree(origin, directory)
    torch.save({}, directory / "pytorch_model.bin")
    compare(directory, logits, 1e-5)


def nanogpt(config):
    """A model of nanoGPT's shape: model.py of karpathy/nanoGPT, without dropout."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(config["n_embd"]))
            self.bias = nn.Parameter(torch.zeros(config["n_embd"])) if config["bias"] else None

        def forward(self, x):
            return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)

    def linear(n_in, n_out):
        return nn.Linear(n_in, n_out, bias=config["bias"])

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.c_attn = linear(config["n_embd"], 3 * config["n_embd"])
            self.c_proj = linear(config["n_embd"], config["n_embd"])

        def forward(self, x):
            B, T, D = x.shape
            q, k, v = (
                part.view(B, T, config["n_head"], -1).transpose(1, 2) for part in self.c_attn(x).split(D, dim=2)
            )
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.c_proj(y.transpose(1, 2).reshape(B, T, D))

    class MLP(nn.Module):
        def __init__(self):
            super().__init__()
            self.c_fc = linear(config["n_embd"], 4 * config["n_embd"])
            self.c_proj = linear(4 * config["n_embd"], config["n_embd"])

        def forward(self, x):
            return self.c_proj(F.gelu(self.c_fc(x)))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.attn, self.ln_2, self.mlp = Norm(), Attention(), Norm(), MLP()

        def forward(self, x):
            x = x + self.attn(self.ln_1(x))
            return x + self.mlp(self.ln_2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.transformer = nn.ModuleDict(dict(
                wte=nn.Embedding(config["vocab_size"], config["n_embd"]),
                wpe=nn.Embedding(config["block_size"], config["n_embd"]),
                h=nn.ModuleList([Block() for _ in range(config["n_layer"])]), ln_f=Norm()))  # fmt: skip
            self.lm_head = nn.Linear(config["n_embd"], config["vocab_size"], bias=False)
            self.transformer.wte.weight = self.lm_head.weight

        def forward(self, ids):
            x = self.transformer.wte(ids) + self.transformer.wpe(torch.arange(ids.shape[1]))
            for block in self.transformer.h:
                x = block(x)
            return self.lm_head(self.transformer.ln_f(x))

    return GPT()


def check_nanogpt(work):
    import torch
    from torch.nn import functional as F

    words = tokenizer()
    for bias in (False, True):
        args = dict(n_layer=2, n_head=4, n_embd=32, block_size=32, bias=bias, vocab_size=len(words) + 5, dropout=0.0)
        torch.manual_seed(2)
        model = nanogpt(args)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        ids = torch.tensor([words(" ".join(CORPUS))["input_ids"][:33]])
        for _ in range(2):
            loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        directory = work / f"nanogpt-{bias}"
        words.save_pretrained(directory)
        torch.save({
            "model": {"_orig_mod." + key: value for key, value in model.state_dict().items()},
            "optimizer": optimizer.state_dict(), "model_args": args, "iter_num": 2, "best_val_loss": loss.detach(),
            "config": {"out_dir": "out", "learning_rate": 1e-2, "compile": True},
        }, directory / "ckpt.pt")  # fmt: skip
        compare(directory / "ckpt.pt", model, 1e-5)
        result = zoo("inspect", directory / "ckpt.pt")
        assert result.returncode == 0, result.stderr
        result = zoo("generate", directory / "ckpt.pt", "--prompt", "The", "--max-new-tokens", "3")
        assert result.returncode == 0, result.stderr
    # The loss of whole windows.
    text = work / "text.txt"
    text.write_text(" ".join(CORPUS))
    result = zoo("evaluate", directory / "ckpt.pt", "--data", text, "--json")
    assert result.returncode == 0, result.stderr
    ours = json.loads(result.stdout)
    ids = torch.tensor([*words(text.read_text())["input_ids"], 0])  # the end of the text counts
    parts = [ids[i : i + 33] for i in range(0, len(ids) - 1, 32)]
    with torch.no_grad():
        losses = [F.cross_entropy(model(part[None, :-1])[0], part[1:], reduction="sum") for part in parts]
    expected = (sum(losses) / (len(ids) - 1)).item()
    loss = ours["metrics"]["loss"] if "metrics" in ours else ours["loss"]
    assert abs(loss - expected) < 1e-5, (ours, expected)


def check_refusals(work):
    import torch

    class Evil:
        def __init__(self, path):
            self.path = path

        def __reduce__(self):
            return (os.system, (f"touch {self.path}",))

    weight = torch.ones(2, 2)
    for form in (True, False):
        path, sign = work / f"evil-{form}.pt", work / f"sign-{form}"
        torch.save({"w": weight, "e": Evil(sign)}, path, _use_new_zipfile_serialization=form)
        refused(path, f"{os.system.__module__}.system' of Python, which is not run")
        assert not sign.exists()
    torch.save(torch.nn.Linear(2, 2), work / "module.pt")
    refused(work / "module.pt", "torch.nn.modules.linear.Linear", "model.state_dict()")
    torch.save({"w": weight}, work / "alone.pt")
    refused(work / "alone.pt", "weights alone", "config.json")
    torch.save({"a": 1, "model": {"b": 2}}, work / "none.pt")
    refused(work / "none.pt", "it holds no dict of tensors", "it has: a, model")
    torch.save({"model": {"w": weight}, "state_dict": {"w": weight}}, work / "two.pt")
    refused(work / "two.pt", "it holds weights under 'model' and under 'state_dict'")
    content = (work / "alone.pt").read_bytes()
    (work / "cut.pt").write_bytes(content[: len(content) // 2])
    refused(work / "cut.pt", "was it cut?")
    contents = {
        "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "a pointer of Git LFS"),
        "page": (b"\n<!DOCTYPE html><html>", "a page of HTML"), "empty": (b"", "the file is empty"),
    }  # fmt: skip
    words, model = tokenizer(), make_model("llama", 281)
    for name, (bytes_, line) in contents.items():
        for file in ("x.pt", "x.gguf", "x.safetensors"):
            (work / f"{name}-{file}").write_bytes(bytes_)
            refused(work / f"{name}-{file}", line)
        for file in ("config.json", "tokenizer.json", "model.safetensors"):
            directory = work / f"{name}-{file}-directory"
            model.save_pretrained(directory)
            words.save_pretrained(directory)
            (directory / file).write_bytes(bytes_)
            refused(directory, file, line)
        (directory / "model.safetensors").rename(directory / "pytorch_model.bin")
        refused(directory, "pytorch_model.bin", line)
    (work / "llmc.bin").write_bytes((20240326).to_bytes(4, "little") + bytes(1020))
    refused(work / "llmc.bin", "raw weights of llm.c")
    for name, file, line in [
        ("diffusers", "model_index.json", "diffusers"), ("onnx", "model.onnx", "ONNX"),
        ("tensorflow", "tf_model.h5", "TensorFlow"), ("flax", "flax_model.msgpack", "Flax"),
        ("gguf", "a.gguf", "name the file a.gguf"),
    ]:  # fmt: skip
        for has_config in (False, True):
            directory = work / f"{name}-{has_config}"
            directory.mkdir()
            (directory / file).write_text("{}")
            if has_config:
                words.save_pretrained(directory)
                model.config.save_pretrained(directory)
            refused(directory, line)
    (work / "cache" / "snapshots" / "1").mkdir(parents=True)
    model.config.save_pretrained(work / "cache" / "snapshots" / "1")
    refused(work / "cache", "snapshots/1")


def main():
    begin()
    checks = {"bin": check_bin_files, "nanogpt": check_nanogpt, "refusals": check_refusals}
    for name in sys.argv[1:] or checks:
        with tempfile.TemporaryDirectory() as work:
            checks[name](pathlib.Path(work))
        print(f"{name}: as it should be")


if __name__ == "__main__":
    main()
