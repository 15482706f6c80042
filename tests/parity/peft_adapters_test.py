#!/usr/bin/env python3
"""Adapters of PEFT, against PEFT on transformers. Every difference is one from PEFT in double precision, in units of the
largest output (at least 1), and at most 1e-6:

  * imported: what PEFT writes opens on its base, which --base or adapter_config.json names;
  * exported: what `zoo export --adapter` writes of a run of each kind opens in PEFT, and `zoo import` of it has the weights
    of `zoo merge`;
  * commands: all that take a model take an adapter with --base.

ZOO_PROGRAM: the program. ZOO_PYTHON: as in references_python.py.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from references_python import begin
from zoo_copies import run_zoo

TOLERANCE = 1e-6
TEXTS = ["The cat sat on it.", "a dog", "You don't know?"]
LABELS = ["bad", "good", "so-so"]


def zoo(*arguments, code=0, **more):
    result = run_zoo(os.environ["ZOO_PROGRAM"], *arguments, **more)
    assert result.returncode == code, (arguments, result)
    return result.stdout if code == 0 else result.stderr


def answer(*arguments):
    return json.loads(zoo(*arguments, "--json"))["results"]


def refused(*arguments, says):
    lines = zoo(*arguments, code=2).strip().splitlines()
    assert len(lines) == 1 and says in lines[0], (says, lines)


def compare(ours, theirs, what, tolerance=TOLERANCE):
    import torch

    ours, theirs = torch.as_tensor(ours).double(), torch.as_tensor(theirs).double()
    error = ((ours - theirs).abs().max() / max(1.0, theirs.abs().max().item())).item()
    assert error < tolerance, (what, error)


def of_texts(path, *options):
    return answer(*options[:1], path, *options[1:], *(o for text in TEXTS for o in ("--text", text)))


def compare_scores(path, model, *options, first=(0,)):
    """Log-probabilities of texts. `first`: what stands before a text."""
    import torch

    for scored in of_texts(path, "score", *options):
        ids = torch.tensor([[*first, *scored["ids"]]])
        with torch.no_grad():
            expected = model(input_ids=ids).logits.log_softmax(-1)[0, :-1].gather(1, ids[0, 1:, None])[:, 0]
        compare(scored["logprobs"], expected[len(first) - 1 :], path)


def compare_classes(path, model, tokenizer, *options):
    import torch

    for text, predicted in zip(TEXTS, of_texts(path, "predict", *options), strict=True):
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([tokenizer(text).input_ids])).logits[0]
        expected = sorted(logits.softmax(-1).tolist(), reverse=True)
        compare([entry["probability"] for entry in predicted["labels"]], expected[: len(predicted["labels"])], path)


def randomized(model, scale=0.2):
    import torch

    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point():
                shift = 1.0 if parameter.dim() == 1 else 0.0
                parameter.copy_(torch.randn_like(parameter) * scale + shift)
    return model.eval()


def in_double(base, adapter, model_class, **options):
    from peft import PeftModel

    return PeftModel.from_pretrained(model_class.from_pretrained(base, **options), adapter).double().eval()


def tokenizers():
    import reference_interop as references

    gpt2 = references.byte_level_bpe(280, ["<|endoftext|>"])
    gpt2 = references.fast(gpt2, bos_token="<|endoftext|>", eos_token="<|endoftext|>")
    return {"gpt2": gpt2, "bert": references.word_pieces(), "roberta": references.roberta_tokenizer(),
            "t5": references.t5_tokenizer()}  # fmt: skip


def make_base(directory, name, tokenizer=None, **more):
    """A small model of the class `name` in `directory`."""
    import transformers

    model_class = getattr(transformers, name)
    small = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=4, intermediate_size=40,
                 max_position_embeddings=64)  # fmt: skip
    if "CausalLM" in name:
        small |= dict(num_key_value_heads=2, bos_token_id=0, eos_token_id=0)
    if name.startswith(("Qwen3", "Gemma3")):
        small |= dict(head_dim=6)
    if "GPT2" in name:
        small = dict(n_embd=24, n_layer=2, n_head=4, n_positions=64, bos_token_id=0, eos_token_id=0)
    if "T5" in name:
        small = dict(d_model=24, d_kv=6, num_heads=4, d_ff=40, num_layers=2, decoder_start_token_id=0)
    if "Bart" in name:
        small = dict(d_model=24, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                     encoder_ffn_dim=40, decoder_ffn_dim=40, max_position_embeddings=64)  # fmt: skip
    if "DistilBert" in name:
        small = dict(dim=24, n_layers=2, n_heads=4, hidden_dim=40, max_position_embeddings=64)
    if "ViT" in name:
        small = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=4, intermediate_size=40, image_size=16,
                     patch_size=4)  # fmt: skip
    if "Classification" in name:
        small |= dict(num_labels=len(LABELS))
    if tokenizer is not None:
        small |= dict(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id)
    model = randomized(model_class(model_class.config_class(**small | more)))
    model.save_pretrained(directory)
    if tokenizer is not None:
        tokenizer.save_pretrained(directory)
    return model


def make_adapter(base, directory, model_class, options=None, **settings):
    """What PEFT writes of an adapter with random numbers."""
    import torch
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(model_class.from_pretrained(base, **options or {}), LoraConfig(**settings))
    torch.manual_seed(3)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * (0.02 if "magnitude" in key else 0.1))
    model.save_pretrained(directory)


def check_imported(work):
    import transformers

    words = tokenizers()
    causal = transformers.AutoModelForCausalLM
    layers = ["c_attn", "c_proj", "c_fc"]
    cases = {
        "plain": ("Llama", dict(target_modules=["q_proj", "v_proj", "down_proj"], r=3, lora_alpha=7)),
        "patterns": ("Llama", dict(target_modules="all-linear", r=4, lora_alpha=8, use_rslora=True,
                                   rank_pattern={"q_proj": 2, "layers.1.mlp.up_proj": 5},
                                   alpha_pattern={"v_proj": 3}, bias="none")),
        "dora": ("Llama", dict(target_modules=["k_proj", "gate_proj"], r=2, use_dora=True)),
        "whole": ("Llama", dict(target_modules=["q_proj", "embed_tokens"], modules_to_save=["lm_head"], r=2)),
        "layers": ("Llama", dict(target_modules=["o_proj"], layers_to_transform=[1], r=2)),
        "dora-embeddings": ("Llama", dict(target_modules=["embed_tokens", "q_proj"], r=2, use_dora=True)),
        "expression": ("Llama", dict(target_modules=r".*layers\.(0|1)\.(self_attn|mlp)\.(q_proj|up_proj)", r=2)),
        "fused": ("GPT2", dict(target_modules=layers, r=3, bias="all", fan_in_fan_out=True)),
        # Output and embeddings of the base are one matrix, and PEFT changes only one of them.
        "tied": ("GPT2", dict(target_modules=["c_attn", "wte"], r=3, fan_in_fan_out=True)),
        "tied-whole": ("GPT2", dict(target_modules=layers, r=3, modules_to_save=["wte"], fan_in_fan_out=True)),
        "tied-output": ("GPT2", dict(target_modules=["c_attn", "lm_head"], r=3, fan_in_fan_out=True)),
    }  # fmt: skip
    for name, (kind, settings) in cases.items():
        base, directory, moved, run = (work / f"{name}{part}" for part in ("-base", "", "-moved", "-run"))
        make_base(base, kind + ("LMHeadModel" if kind == "GPT2" else "ForCausalLM"), words["gpt2"])
        make_adapter(base, directory, causal, task_type="CAUSAL_LM", **settings)
        model = in_double(base, directory, causal)
        compare_scores(directory, model)
        base.rename(moved)
        refused("score", directory, "--text", "a", says="name one with --base DIR")
        compare_scores(directory, model, "--base", moved)
        zoo("import", directory, run, "--base", moved)
        compare_scores(run, model)
        refused("score", moved, "--text", "a", "--base", moved, says="is no adapter of PEFT")
        refused("score", run, "--text", "a", "--base", moved, says="is no adapter of PEFT")
    check_chosen(work, words["gpt2"])
    check_config(directory, moved)
    check_tasks(work, words)


def check_chosen(work, tokenizer):
    """Adapters of modules that adapter_config.json does not name are left out."""
    import transformers

    causal, base = transformers.AutoModelForCausalLM, work / "chosen-base"
    make_base(base, "LlamaForCausalLM", tokenizer)
    targets = ["q_proj", "v_proj", "up_proj"]
    for number, changes in enumerate([
        {"layers_to_transform": [0]}, {"layers_to_transform": 1, "layers_pattern": "layers"}, {"exclude_modules": ["v_proj"]},
        {"exclude_modules": ".*layers\\.1.*"}, {"target_modules": ["up_proj"]}, {"target_modules": ".*\\.0\\..*_proj"},
        {"target_modules": ["self_attn.v_proj"], "layers_to_transform": [1], "layers_pattern": ["model.layers"]},
        {"enable_lora": None, "merge_weights": False},
    ]):  # fmt: skip
        directory = work / f"chosen-{number}"
        make_adapter(base, directory, causal, task_type="CAUSAL_LM", target_modules=targets, r=2)
        path = directory / "adapter_config.json"
        settings = json.loads(path.read_text())
        if "enable_lora" not in changes:  # of the first versions, which later ones do not read
            path.write_text(json.dumps(settings | changes))
        model = in_double(base, directory, causal)
        path.write_text(json.dumps(settings | changes))
        compare_scores(directory, model)
    for changes in ({"target_modules": ["k_proj"]}, {"layers_to_transform": [7]}, {"exclude_modules": ".*"}):
        path.write_text(json.dumps(settings | changes))
        refused("score", directory, "--text", "a", says="it has no adapter of a module that target_modules")
    path.write_text(json.dumps(settings | {"target_modules": "(q_proj"}))
    refused("score", directory, "--text", "a", says="target_modules")


def check_config(directory, base):
    path = directory / "adapter_config.json"
    settings = json.loads(path.read_text())
    score = ("score", directory, "--text", "a", "--base", base)
    for key, value in {
        "peft_type": "IA3", "layer_replication": [[0, 1]], "target_parameters": ["a"], "lora_bias": True,
        "init_lora_weights": "pissa", "trainable_token_indices": [1], "rank_pattern": {"h\\.[0-9]": 2}, "not_a_key": 1,
        "task_type": "QUESTION_ANS",
    }.items():  # fmt: skip
        path.write_text(json.dumps(settings | {key: value}))
        refused(*score, says="adapter_config.json: " + key)
    path.write_text(json.dumps(settings | {"task_type": "SEQ_CLS"}))
    refused(*score, says="neither it nor its base has a classifier")
    path.write_text(json.dumps(settings | {"task_type": None, "auto_mapping": {"base_model_class": "GPT2Other"}}))
    refused(*score, says="base_model_class is GPT2Other")
    path.write_text(json.dumps(settings | {"r": 2}))
    refused(*score, says="does not have the rank 2")


def check_tasks(work, words):
    """Adapters for another task than that of their base."""
    import torch
    import transformers

    classes = transformers.AutoModelForSequenceClassification
    for name, kind, words_of, targets in [
        ("bert", "BertForMaskedLM", "bert", ["query", "value"]),
        ("roberta", "RobertaModel", "roberta", ["query", "dense"]),
        ("llama", "LlamaForCausalLM", "gpt2", ["q_proj"]),
    ]:
        base, directory = work / f"{name}-base", work / name
        make_base(base, kind, words[words_of])
        saved = ["pooler"] if name == "bert" else None  # its base has none
        options = dict(num_labels=5) | ({"pad_token_id": 0} if name == "llama" else {})
        make_adapter(base, directory, classes, options, task_type="SEQ_CLS", target_modules=targets, modules_to_save=saved)
        model = in_double(base, directory, classes, **options)
        compare_classes(directory, model, words[words_of])
    # The adapter belongs to a body, so its names lack their first part. The file of the base has that part.
    base, directory = work / "features-base", work / "features"
    make_base(base, "BertForMaskedLM", words["bert"])
    make_adapter(base, directory, transformers.AutoModel, task_type="FEATURE_EXTRACTION", target_modules=["key"])
    model = in_double(base, directory, transformers.AutoModel)
    ours = json.loads(zoo("embed", directory, "--text", TEXTS[0], "--json"))["embeddings"][0]
    with torch.no_grad():
        hidden = model(**words["bert"](TEXTS[0], return_tensors="pt")).last_hidden_state[0]
    compare(ours, hidden.mean(0), directory)
    # Pictures: a convolution, and modules that transformers 5 renames when it opens a file.
    base, directory, run, whole = (work / f"vit{part}" for part in ("-base", "", "-run", "-whole"))
    make_base(base, "ViTForImageClassification")
    targets = ["q_proj", "query", "fc2", "projection"]
    pictures = transformers.AutoModelForImageClassification
    make_adapter(base, directory, pictures, dict(num_labels=3), target_modules=targets, modules_to_save=["classifier"])
    zoo("import", directory, run, "--base", base)
    zoo("export", run, whole)
    model, other = in_double(base, directory, pictures), pictures.from_pretrained(whole).double().eval()
    with torch.no_grad():
        inputs = ("image_classification", None)
        compare(outputs_of(other, *inputs), outputs_of(model, *inputs), directory)
    # The embeddings of T5 stand in three modules.
    base, directory = work / "t5-base", work / "t5"
    make_base(base, "T5ForConditionalGeneration", words["t5"])
    make_adapter(base, directory, transformers.AutoModelForSeq2SeqLM, task_type="SEQ_2_SEQ_LM", target_modules=["q", "shared"])
    refused("score", directory, "--text", "a\tb", says="stands in several modules")


def write_data(work):
    import numpy
    from PIL import Image

    (work / "text.txt").write_text("\n".join(TEXTS * 20))
    rows = [f"{text}\t{label}" for text in TEXTS for label in LABELS] * 3
    (work / "texts.tsv").write_text("\n".join(["sentence\tlabel", *rows]))
    (work / "words.tsv").write_text("\n".join(["sentence\tlabel", *["The cat sat\tO B-X I-X", "a dog\tO O"] * 6]))
    (work / "pairs.tsv").write_text("\n".join(["de\ten", *[f"{text}\t{text}" for text in TEXTS * 4]]))
    draw = numpy.random.default_rng(0)
    for label in LABELS:
        (work / "pictures" / label).mkdir(parents=True)
        for i in range(4):
            pixels = draw.integers(0, 256, (16, 16, 3), dtype=numpy.uint8)
            Image.fromarray(pixels).save(work / "pictures" / label / f"{i}.png")


TASKS = {
    "language_modeling": "{train: text.txt, sequence_length: 16, valid_fraction: 0.2}",
    "masked_language_modeling": "{train: text.txt, sequence_length: 16, valid_fraction: 0.2}",
    "text_classification": "{train: texts.tsv, sequence_length: 16, valid_fraction: 0.3}",
    "token_classification": "{train: words.tsv, sequence_length: 16, valid_fraction: 0.3}",
    "text_to_text": "{train: pairs.tsv, sequence_length: 16, valid_fraction: 0.3}",
    "image_classification": "{train: pictures, valid_fraction: 0.3}",
}


def trained_run(work, name, task, lora):
    """A run with adapters whose numbers are random."""
    import torch
    from safetensors import safe_open
    from safetensors.torch import save_file

    (work / f"{name}.yaml").write_text(
        f"name: {name}\ntask: {task}\ninit_from: {name}-base\ndata: {TASKS[task]}\n"
        f"training: {{steps: 1, batch_size: 2, evaluate_every: 1, threads: 1, lora: {lora}}}\n"
    )
    run = work / f"{name}-run"
    zoo("train", work / f"{name}.yaml", "--device", "cpu", "--out", run, cwd=work)
    path = run / "adapter.safetensors"
    with safe_open(path, "pt") as file:
        metadata, tensors = file.metadata(), {key: file.get_tensor(key) for key in file.keys()}
    torch.manual_seed(4)
    save_file({key: value + torch.randn_like(value) * 0.1 for key, value in tensors.items()}, path, metadata)
    return run


def outputs_of(model, task, words):
    """The model's outputs for some inputs."""
    import torch

    if task == "image_classification":
        torch.manual_seed(5)
        return model(pixel_values=torch.randn(2, 3, 16, 16).double()).logits
    ids = torch.tensor([words(TEXTS[0]).input_ids])
    inputs = {"input_ids": ids}
    if task == "text_to_text":
        inputs["decoder_input_ids"] = torch.cat([torch.tensor([[model.config.decoder_start_token_id]]), ids[:, :-1]], 1)
    return model(**inputs).logits


def check_exported(work):
    import torch
    import transformers
    from safetensors.torch import load_file

    words = tokenizers()
    write_data(work)
    every = 'targets: ["*"]'
    cases = [  # name, class of the base, its tokenizer, task, class, lora
        ("gpt2", "GPT2LMHeadModel", "gpt2", "language_modeling", "CausalLM", '{rank: 3, alpha: 5, targets: ["*.q", "*.v", "*.up"]}'),
        ("gpt2-tied", "GPT2LMHeadModel", "gpt2", "language_modeling", "CausalLM", '{rank: 2, trained: ["token_embedding.*"]}'),
        ("llama", "LlamaForCausalLM", "gpt2", "language_modeling", "CausalLM", f"{{rank: 2, dropout: 0.25, {every}}}"),
        ("qwen3", "Qwen3ForCausalLM", "gpt2", "language_modeling", "CausalLM", '{trained: ["*.final_norm.*"]}'),
        ("gemma3", "Gemma3ForCausalLM", "gpt2", "language_modeling", "CausalLM", "{rank: 2}"),
        ("reward", "LlamaForCausalLM", "gpt2", "text_classification", "SequenceClassification", "{rank: 2}"),
        ("bert", "BertForMaskedLM", "bert", "text_classification", "SequenceClassification", f"{{rank: 2, {every}}}"),
        ("masked", "BertForMaskedLM", "bert", "masked_language_modeling", "MaskedLM", '{rank: 2, trained: ["head.*"]}'),
        ("roberta", "RobertaForMaskedLM", "roberta", "token_classification", "TokenClassification", '{targets: ["*.out", "*.down"]}'),
        ("roberta-texts", "RobertaModel", "roberta", "text_classification", "SequenceClassification", "{rank: 2}"),
        ("distilbert", "DistilBertForSequenceClassification", "bert", "text_classification", "SequenceClassification", "{rank: 2}"),
        ("t5", "T5ForConditionalGeneration", "t5", "text_to_text", "Seq2SeqLM", '{rank: 2, targets: ["*.q", "*.up"]}'),
        ("bart", "BartForConditionalGeneration", "roberta", "text_to_text", "Seq2SeqLM", "{rank: 2}"),
        ("vit", "ViTForImageClassification", None, "image_classification", "ImageClassification",
         '{rank: 2, targets: ["*.q", "embedder.projection"]}'),
    ]  # fmt: skip
    for name, kind, words_of, task, head, lora in cases:
        if name == "vit" and transformers.__version__.startswith("4."):
            continue  # its modules have other names
        base, merged = work / f"{name}-base", work / f"{name}-merged"
        tokenizer = words.get(words_of)
        make_base(base, kind, tokenizer)
        run = trained_run(work, name, task, lora)
        adapter, imported, whole = (work / f"{name}-{part}" for part in ("adapter", "imported", "whole"))
        zoo("export", run, adapter, "--adapter")
        zoo("export", run, whole)
        model_class = getattr(transformers, "AutoModelFor" + head)
        options = {}
        if head.endswith("Classification"):
            labels = json.loads((run / "labels.json").read_text())
            options = {"num_labels": len(labels)} | ({"pad_token_id": 0} if name == "reward" else {})
        model = in_double(base, adapter, model_class, **options)
        other = model_class.from_pretrained(whole).double().eval()
        with torch.no_grad():
            expected = outputs_of(other, task, tokenizer)
            # Merged weights are rounded to fp32: 6e-8 of each, which layers and the processor that trained add up.
            compare(outputs_of(model, task, tokenizer), expected, name, tolerance=1e-5)
            plain = model_class.from_pretrained(base, **options).double().eval()
            difference = (outputs_of(plain, task, tokenizer) - expected).abs().max()
        assert difference > 1e-3, (name, difference)  # the adapter does something
        if task == "language_modeling":
            compare_scores(run, model)
        elif task == "text_classification":
            compare_classes(run, model, tokenizer)
            compare_classes(adapter, model, tokenizer, "--base", base)
        # Both ways, the weights are the same to the last bit.
        zoo("import", adapter, imported, "--base", base)
        zoo("merge", run, merged)
        ours, theirs = (load_file(path / "model.safetensors") for path in (merged, imported))
        theirs.pop("head.output.weight", None) if "head.output.weight" not in ours else None
        assert ours.keys() == theirs.keys(), (name, ours.keys() ^ theirs.keys())
        for key, value in ours.items():
            assert torch.equal(value, theirs[key]) or torch.allclose(value, theirs[key], rtol=2e-7, atol=1e-9), (name, key)
        config = json.loads((adapter / "adapter_config.json").read_text())
        assert config["base_model_name_or_path"].endswith(f"{name}-base"), config
    check_forms(work)


def check_forms(work):
    from safetensors.torch import load_file

    config = json.loads((work / "gpt2-adapter" / "adapter_config.json").read_text())
    # Queries and values are in one matrix there, with rank 3 each.
    assert (config["r"], config["lora_alpha"]) in {(6, 10), (3, 5)} and config["fan_in_fan_out"] is True, config
    assert sorted(config["target_modules"]) == ["attn.c_attn", "mlp.c_fc"], config
    config = json.loads((work / "llama-adapter" / "adapter_config.json").read_text())
    assert config["lora_dropout"] == 0.25 and "self_attn.q_proj" in config["target_modules"], config
    config = json.loads((work / "masked-adapter" / "adapter_config.json").read_text())
    assert config["auto_mapping"]["base_model_class"] == "BertForMaskedLM" and config["modules_to_save"], config
    half = work / "half"
    zoo("export", work / "llama-run", half, "--adapter", "--weights", "bf16")
    assert all("bfloat16" in str(value.dtype) for value in load_file(half / "adapter_model.safetensors").values())
    for arguments, says in [
        ((work / "llama-base", work / "x"), "is no run"), ((work / "llama-merged", work / "x"), "without training.lora"),
        ((work / "llama-run", half), "exists already"), ((work / "llama-run", work / "x.gguf"), "without .gguf"),
        ((work / "llama-run", work / "x", "--weights", "q8_0"), "only a GGUF file"),
        ((work / "llama-run", work / "x", "--base", half), "no adapter of PEFT"),
    ]:  # fmt: skip
        refused("export", *arguments, "--adapter", says=says)


def check_commands(work):
    import transformers

    words = tokenizers()["gpt2"]
    words.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    base, adapter, picture = work / "named", work / "adapter", work / "page.html"
    make_base(work / "base", "LlamaForCausalLM", words)
    make_adapter(work / "base", adapter, transformers.AutoModelForCausalLM, task_type="CAUSAL_LM", target_modules=["q_proj"])
    (work / "base").rename(base)
    (work / "one.json").write_text(json.dumps([{"role": "user", "content": "a dog"}]))
    (work / "lines.txt").write_text("a dog\n")
    for command in [
        ("generate", adapter, "--prompt", "a", "--max-new-tokens", 2), ("generate", adapter, "--chat", "--prompt", "a"),
        ("attention", adapter, "--text", "a dog", "--out", picture), ("inspect", adapter),
        ("bench", adapter, "--seconds", 0.01), ("bench", adapter, "--input", work / "lines.txt", "--seconds", 0.01),
        ("export", adapter, work / "exported"), ("export", adapter, work / "exported.gguf"), ("merge", adapter, work / "merged"),
        ("tokenizer", "encode", adapter, "--text", "a dog"), ("tokenizer", "decode", adapter, "--ids", "5,6"),
        ("tokenizer", "chat", adapter, "--messages", work / "one.json"), ("evaluate", adapter, "--data", work / "lines.txt"),
    ]:  # fmt: skip
        refused(*command, says="name one with --base DIR")
        zoo(*command, "--base", base)
        if command[0] not in ("merge", "export", "tokenizer", "generate"):
            refused(command[0], base, *command[2:], "--base", base, says="is no adapter of PEFT")
    model = in_double(base, adapter, transformers.AutoModelForCausalLM)
    compare_scores(work / "merged", model)
    compare_scores(work / "exported", model)
    refused("serve", base, "--base", base, "--port", 0, says="none of the models is an adapter")
    refused("serve", adapter, "--port", 0, says="name one with --base DIR")
    check_served(adapter, base, model)


def check_served(adapter, base, model):
    import urllib.request

    import torch

    server = subprocess.Popen(
        [os.environ["ZOO_PROGRAM"], "serve", adapter, base, "--base", base, "--port", "0", "--quiet"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        address = server.stdout.readline().split()[-1]
        body = {"model": "adapter", "prompt": "a dog", "max_tokens": 1, "temperature": 0, "logprobs": 1}
        request = urllib.request.Request(
            address + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as reply:
            logprob = json.load(reply)["choices"][0]["logprobs"]["token_logprobs"][0]
    finally:
        server.terminate()
        server.wait()
    ids = json.loads(zoo("tokenizer", "encode", base, "--text", "a dog", "--json"))["results"][0]["ids"]
    with torch.no_grad():
        theirs = [model(input_ids=torch.tensor([prompt])).logits[0, -1].log_softmax(-1).max() for prompt in (ids, [0, *ids])]
    assert min(abs(logprob - value.item()) for value in theirs) < 1e-5, (logprob, theirs)


def main():
    begin()
    checks = {"imported": check_imported, "exported": check_exported, "commands": check_commands}
    for name in sys.argv[1:] or checks:
        with tempfile.TemporaryDirectory() as work:
            checks[name](pathlib.Path(work))
        print(f"{name}: as it should be")


if __name__ == "__main__":
    main()
