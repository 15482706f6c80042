#!/usr/bin/env python3
"""What the outputs of a classifier mean, against transformers: one class, several labels, a score, a number; single texts
and pairs. And the losses and metrics of several labels and of numbers, against their definitions.

  classifier_heads_test.py PROGRAM

ZOO_PYTHON: a Python with transformers; default that of .venv.
"""

import json
import math
import pathlib
import random
import sys
import tempfile
import urllib.request

from references_python import begin
from zoo_copies import run_zoo

WORDS = "ada met bob in london ##s . the ship sails home and so on to sea".split()
POSITIONS = 24  # of every model: longer pairs are cut
TEXTS = ["ada met bob", "the ship sails home and so on", "sea", " ".join(WORDS[:5] * 6)]
PAIRS = [("ada met bob in london", "bob sails home"), ("the ship", "the ship sails home and so on"),
         (" ".join(WORDS[:5] * 4), " ".join(WORDS[6:9] * 2)), (" ".join(WORDS[:5] * 3), " ".join(WORDS[6:12] * 3))]
SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
         "max_position_embeddings": POSITIONS, "initializer_range": 0.5}
IDENTITY, SIGMOID = "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Sigmoid"


def template(tokenizer, single, pair, names):
    from tokenizers import processors

    special = [(name, tokenizer.token_to_id(name)) for name in names]
    tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=special)
    return tokenizer


def word_pieces(pair="[CLS] $A [SEP] $B:1 [SEP]:1"):
    """BERT's tokenizer."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {word: i for i, word in enumerate(names + WORDS)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(names)
    tokens = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    return template(tokenizer, "[CLS] $A [SEP]", pair, ["[CLS]", "[SEP]"]), tokens


def byte_level(single, pair):
    """A tokenizer of bytes with the frame of Llama or BART."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    vocabulary = {word: i for i, word in enumerate(names + alphabet)}
    merges = [("t", "h"), ("th", "e"), ("s", "h"), ("Ġ", "s"), ("a", "d"), ("b", "o")]
    for a, b in merges:
        vocabulary[a + b] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(names)
    tokens = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    return template(tokenizer, single, pair, ["<s>", "</s>"]), tokens


def cases():
    """Name → class, configuration, tokenizer, further keys of config.json, function of the logits, head."""
    import transformers as t

    bert, roberta = word_pieces(), byte_level("<s> $A </s>", "<s> $A </s> </s> $B </s>")
    llama = byte_level("<s> $A", "<s> $A <s>:0 $B:0")
    ended, names = byte_level("<s> $A </s>", "<s> $A </s> $B:1 </s>:1")
    ended = ended, names | {"pad_token": "</s>"}
    of_bert = lambda **options: (bert[0], bert[1] | options)  # noqa: E731
    bert_config = {"vocab_size": 5 + len(WORDS), **SMALL}
    roberta_config = SMALL | {"vocab_size": 267, "type_vocab_size": 1, "max_position_embeddings": POSITIONS + 2}
    distil = {"vocab_size": 5 + len(WORDS), "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32,
              "max_position_embeddings": POSITIONS, "initializer_range": 0.5}
    gpt2 = {"vocab_size": 267, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64, "initializer_range": 0.5,
            "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}
    llama_config = SMALL | {"vocab_size": 267, "max_position_embeddings": 64, "bos_token_id": 0, "eos_token_id": 2,
                            "pad_token_id": 1}
    bart = {"vocab_size": 267, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
            "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 64,
            "init_std": 0.5, "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1, "decoder_start_token_id": 2,
            "forced_eos_token_id": 2, "num_beams": 1}
    multi, one = {"problem_type": "multi_label_classification", "num_labels": 3}, {"num_labels": 1}
    regression = {"problem_type": "regression", "num_labels": 1}
    softmax, sigmoid, number = ("single_label", "softmax"), ("multi_label", "sigmoid"), ("regression", "none")
    B, R, D = t.BertForSequenceClassification, t.RobertaForSequenceClassification, t.DistilBertForSequenceClassification
    return {
        "bert_classes": (B, t.BertConfig(**bert_config, num_labels=3), bert, {}, softmax),
        "bert_labels": (B, t.BertConfig(**bert_config, **multi), bert, {}, sigmoid),
        "bert_score": (B, t.BertConfig(**bert_config, **one), bert, {}, sigmoid),
        "bert_number": (B, t.BertConfig(**bert_config, **regression), bert, {}, number),
        "bert_identity": (B, t.BertConfig(**bert_config, **one), bert,
                          {"sentence_transformers": {"activation_fn": IDENTITY, "version": "4.0.1"}}, number),
        "bert_old_identity": (B, t.BertConfig(**bert_config, **one), bert,
                              {"sbert_ce_default_activation_function": IDENTITY}, number),
        "bert_both": (B, t.BertConfig(**bert_config, **regression), bert,
                      {"sentence_transformers": {"activation_fn": SIGMOID, "version": "4.0.1"}}, number),
        "bert_numbers": (B, t.BertConfig(**bert_config, num_labels=3, problem_type="regression"), bert, {}, number),
        "bert_raw_classes": (B, t.BertConfig(**bert_config, num_labels=3), bert,
                             {"sentence_transformers": {"activation_fn": IDENTITY, "version": "4.0.1"}}, softmax),
        "roberta_labels": (R, t.RobertaConfig(**roberta_config, **multi), roberta, {}, sigmoid),
        "distilbert_score": (D, t.DistilBertConfig(**distil, **one), bert, {}, sigmoid),
        "gpt2_score": (t.GPT2ForSequenceClassification, t.GPT2Config(**gpt2, **one), llama, {}, number),
        "llama_score": (t.LlamaForSequenceClassification, t.LlamaConfig(**llama_config, **one), llama, {}, number),
        "llama_sigmoid": (t.LlamaForSequenceClassification, t.LlamaConfig(**llama_config, **one), llama,
                          {"sentence_transformers": {"activation_fn": SIGMOID, "version": "4.0.1"}}, sigmoid),
        "llama_labels": (t.LlamaForSequenceClassification, t.LlamaConfig(**llama_config, **multi), llama, {}, sigmoid),
        # The token of <eos> is also that of <pad>, or config.json has no <pad>.
        "llama_pad_is_eos": (t.LlamaForSequenceClassification, t.LlamaConfig(**llama_config | {"pad_token_id": 2}, **one),
                             ended, {}, number),
        "llama_no_pad": (t.LlamaForSequenceClassification, t.LlamaConfig(**llama_config | {"pad_token_id": None}, **one),
                         ended, {}, number),
        "bert_no_segments": (B, t.BertConfig(**bert_config, num_labels=3),
                             of_bert(model_input_names=["input_ids", "attention_mask"]), {}, softmax),
        "bert_left": (B, t.BertConfig(**bert_config, num_labels=3), of_bert(truncation_side="left"), {}, softmax),
        "bert_short": (B, t.BertConfig(**bert_config, num_labels=3), of_bert(model_max_length=9), {}, softmax),
        "bart_score": (t.BartForSequenceClassification, t.BartConfig(**bart, **one), roberta, {}, sigmoid),
    }  # fmt: skip


class Directory:
    """A model with random weights and its tokenizer, as transformers writes them."""

    def __init__(self, path, model_class, config, tokenizer, keys, seed):
        import torch

        torch.manual_seed(seed)
        self.path, (self.tokenizer, names) = path, tokenizer
        self.names = names
        self.model = model_class(config).eval()
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                if not name.endswith("norm.weight"):
                    parameter.add_(0.2 * torch.randn_like(parameter))
        self.model.save_pretrained(path)
        self.tokenizer.save(str(path / "tokenizer.json"))
        (path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", **names}))
        config = json.loads((path / "config.json").read_text())
        (path / "config.json").write_text(json.dumps(config | keys))
        self.longest = config.get("n_positions", config.get("max_position_embeddings", 64))
        if config["model_type"] == "roberta":
            self.longest -= 2
        self.longest = min(self.longest, names.get("model_max_length", self.longest))

    def logits(self, first, second=None, model=None):
        import torch

        self.tokenizer.enable_truncation(self.longest, strategy="longest_first",
                                         direction=self.names.get("truncation_side", "right"))
        encoded = self.tokenizer.encode(first, second) if second is not None else self.tokenizer.encode(first)
        inputs = {"input_ids": torch.tensor([encoded.ids]), "attention_mask": torch.ones(1, len(encoded.ids)).long()}
        if self.model.config.model_type == "bert" and "token_type_ids" in self.names.get("model_input_names", ["token_type_ids"]):
            inputs["token_type_ids"] = torch.tensor([encoded.type_ids])
        with torch.no_grad():
            return (model or self.model)(**inputs).logits[0].double()


def activated(logits, activation):
    if activation == "softmax":
        return logits.softmax(-1).tolist()
    return (logits.sigmoid() if activation == "sigmoid" else logits).tolist()


def close(a, b, tolerance=2e-5):
    return abs(a - b) <= tolerance * max(1, abs(b))


def check_answer(result, expected, problem, names, where):
    """One entry of zoo predict --json against the outputs that are right."""
    if len(expected) == 1:
        assert set(result) == {"input", "score"} and close(result["score"], expected[0]), (where, result, expected)
        return
    key = "score" if problem == "regression" else "probability"
    found = {entry["label"]: entry[key] for entry in result["labels"]}
    assert list(found) and all(close(found[name], value) for name, value in zip(names, expected)), (where, found, expected)


# ---- The definitions of scikit-learn and scipy, written out -----------------------------------------------------------


def average_precision(scores, right):
    """Σ (R_n - R_(n-1)) P_n over the thresholds, each of which is one of the scores."""
    total, last_recall = 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        chosen = [r for s, r in zip(scores, right) if s >= threshold]
        recall = sum(chosen) / sum(right) if sum(right) else 0.0
        total += (recall - last_recall) * sum(chosen) / len(chosen)
        last_recall = recall
    return total


def f1(predicted, right):
    both, mentions = sum(p and r for p, r in zip(predicted, right)), sum(predicted) + sum(right)
    return 2 * both / mentions if mentions else 0.0


def pearson(a, b):
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    product = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b))
    spread = math.sqrt(sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b))
    return product / spread if spread else 0.0


def ranks(values):
    return [sum(v < x for v in values) + (sum(v == x for v in values) + 1) / 2 for x in values]


def label_metrics(logits, right):
    """Of rows of logits and rows of 0 and 1."""
    columns, targets = list(zip(*logits)), list(zip(*right))
    predicted = [[x > 0 for x in column] for column in columns]
    flat = lambda lists: [x for row in lists for x in row]  # noqa: E731
    bce = [math.log1p(math.exp(-abs(x))) + max(x, 0) - x * y for x, y in zip(flat(columns), flat(targets))]
    return {
        "loss": sum(bce) / len(bce),
        "f1_micro": f1(flat(predicted), flat(targets)),
        "f1_macro": sum(f1(p, t) for p, t in zip(predicted, targets)) / len(targets),
        "map": sum(average_precision(c, t) for c, t in zip(columns, targets)) / len(targets),
        "accuracy": sum(all((x > 0) == bool(y) for x, y in zip(*row)) for row in zip(logits, right)) / len(right),
    }


def number_metrics(numbers, right):
    return {
        "loss": sum((a - b) ** 2 for a, b in zip(numbers, right)) / len(right),
        "pearson": pearson(numbers, right), "spearman": pearson(ranks(numbers), ranks(right)),
    }  # fmt: skip


def check_metrics(found, expected, where, tolerance=1e-4):
    for name, value in expected.items():
        assert close(found[name], value, tolerance), (where, name, found[name], value)


def check_with_sklearn(logits, right, expected):
    """Where scikit-learn is installed, what is written out here is what it computes."""
    try:
        from sklearn.metrics import average_precision_score, f1_score
    except ImportError:
        return
    predicted = [[int(x > 0) for x in row] for row in logits]
    assert close(average_precision_score(right, logits), expected["map"], 1e-9)
    assert close(f1_score(right, predicted, average="micro"), expected["f1_micro"], 1e-9)
    assert close(f1_score(right, predicted, average="macro", zero_division=0), expected["f1_macro"], 1e-9)


# ---- Tests -------------------------------------------------------------------------------------------------------------


def test_directories(zoo, made):
    """Every kind of head: answers for texts, pairs and lines, what inspect says, and the way back."""
    for seed, (name, (model_class, config, tokenizer, keys, head)) in enumerate(cases().items()):
        directory = Directory(made / name, model_class, config, tokenizer, keys, seed)
        (problem, activation), names = head, list(directory.model.config.id2label.values())
        # Blanks are a part of a text, at its end, too.
        shown = TEXTS + [text + blanks for text in TEXTS for blanks in (" ", "  ", "\n", "\t", "\r")]
        if directory.tokenizer.encode(" ", add_special_tokens=False).ids:
            shown += [" ", "\n"]
        texts = [word for text in shown for word in ("--text", text)]
        answers = zoo.json("predict", name, *texts)
        for text, result in zip(shown, answers["results"], strict=True):
            check_answer(result, activated(directory.logits(text), activation), problem, names, (name, text))
        pairs = [word for a, b in PAIRS for word in ("--text", a, "--pair", b)]
        (made / "lines.txt").write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS) + "ada\n")
        (made / "blanks.txt").write_text("sea \n ada  \n")
        (made / "blanks.jsonl").write_text('{"text": "sea "}\n{"text": " ada  "}\n')
        files = [word for file in ("lines.txt", "blanks.txt", "blanks.jsonl") for word in ("--input", file)]
        of_files = zoo.json("predict", name, *files)["results"]
        with_lines = of_files[: len(PAIRS) + 1]
        for text, result in zip(("sea ", " ada  ") * 2, of_files[len(PAIRS) + 1 :], strict=True):
            check_answer(result, activated(directory.logits(text), activation), problem, names, (name, "file", text))
        right = [activated(directory.logits(a, b), activation) for a, b in PAIRS]
        for i, result in enumerate(zoo.json("predict", name, *pairs)["results"]):
            check_answer(result, right[i], problem, names, (name, PAIRS[i]))
            check_answer(with_lines[i], right[i], problem, names, (name, "line", PAIRS[i]))
        check_answer(with_lines[-1], activated(directory.logits("ada"), activation), problem, names, (name, "ada"))
        inspected = zoo.json("inspect", name)
        assert inspected["head"] == {"problem": problem, "activation": activation, "outputs": len(names)}, name
        zoo("export", name, f"{name}-back")
        old, new = (json.loads((made / d / "config.json").read_text()) for d in (name, f"{name}-back"))
        for key in ("problem_type", *keys):
            assert old.get(key) == new.get(key), (name, key)
        zoo("import", name, f"{name}-run")
        assert zoo.json("predict", f"{name}-run", *texts) == answers, name
    said = zoo("inspect", "bert_labels")
    assert "any of 3 labels: the sigmoid of each output (task.problem multi_label)" in said, said
    said = zoo("inspect", "gpt2_score")
    assert "a score: the output itself (task.problem regression)" in said, said
    assert zoo("predict", "bert_score", "--text", "ada").strip().replace(".", "").isdigit()


def test_losses_of_directories(zoo, made):
    """zoo evaluate against the losses of transformers."""
    import torch

    right = [{0, 2}, set(), {1}, {2}]
    (made / "labels.jsonl").write_text("".join(
        json.dumps({"text": text, "label": [f"LABEL_{i}" for i in sorted(labels)]}) + "\n"
        for text, labels in zip(TEXTS, right)))  # fmt: skip
    (made / "numbers.tsv").write_text("text\tlabel\n" + "".join(f"{t}\t{n}\n" for t, n in zip(TEXTS, (0.5, -2, 3e-1, 1))))
    for name, file in (("bert_labels", "labels.jsonl"), ("llama_labels", "labels.jsonl"), ("bert_number", "numbers.tsv")):
        model_class, config, tokenizer, keys, _ = cases()[name]
        directory = Directory(made / f"{name}-loss", model_class, config, tokenizer, keys, 3)
        found = zoo.json("evaluate", f"{name}-loss", "--data", file)
        logits = torch.stack([directory.logits(text) for text in TEXTS])
        if file == "numbers.tsv":
            targets = torch.tensor([0.5, -2, 0.3, 1]).double()
            loss = torch.nn.functional.mse_loss(logits[:, 0], targets)
            expected = number_metrics(logits[:, 0].tolist(), targets.tolist())
        else:
            targets = torch.tensor([[float(i in labels) for i in range(3)] for labels in right]).double()
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, targets)
            expected = label_metrics(logits.tolist(), targets.int().tolist())
            check_with_sklearn(logits.tolist(), targets.int().tolist(), expected)
        assert close(expected["loss"], loss.item(), 1e-9)
        check_metrics(found, expected, name)
        # The loss that transformers computes itself.
        each = []
        for text, target in zip(TEXTS, targets):
            ids = torch.tensor([directory.tokenizer.encode(text).ids])
            with torch.no_grad():
                each.append(directory.model(input_ids=ids, labels=target.float().unsqueeze(0)).loss.item())
        assert close(found["loss"], sum(each) / len(each)), (name, found["loss"], each)


def test_refusals(zoo, made):
    model_class, config, tokenizer, _, _ = cases()["bert_score"]
    for key, value, message in (
        ("problem_type", "ranking", "problem_type is \"ranking\": expected single_label_classification"),
        ("sbert_ce_default_activation_function", "torch.nn.modules.activation.Tanh", "only Sigmoid and Identity"),
        ("sentence_transformers", {"activation_fn": "my.module.Sigmoid"}, "only Sigmoid and Identity"),
        ("sentence_transformers", {"activation": SIGMOID}, "activation"),
    ):
        directory = Directory(made / "refused", model_class, config, tokenizer, {key: value}, 0)
        assert message in zoo("predict", "refused", "--text", "ada", status=2), message
        assert directory
    for pair, segments, message in (
        ("[CLS] $A [SEP] $B:1", True, "other tokens at its ends"),
        ("[CLS] [CLS] $A [SEP] $B:1 [SEP]:1", True, "other tokens at its ends"),
        ("[CLS] $A [SEP]:1 $B:1 [SEP]:1", True, "other type ids"),
        ("[CLS] $A [SEP]:1 $B:1 [SEP]:1", False, None),
    ):
        names = {"model_input_names": ["input_ids"] + ["token_type_ids"] * segments}
        directory = Directory(made / "framed", model_class, config, (word_pieces(pair)[0], names), {}, 0)
        check_answer(zoo.json("predict", "framed", "--text", "ada met")["results"][0],
                     activated(directory.logits("ada met"), "sigmoid"), "multi_label", [], pair)
        said = zoo("predict", "framed", "--text", "ada", "--pair", "bob", status=2 if message else 0)
        assert not message or f"the template 'pair' has {message}" in said, said
    (made / "tabs.txt").write_text("a\tb\tc\n")
    assert "one tab" in zoo("predict", "bert_score", "--input", "tabs.txt", status=2)


def test_cross_encoders(zoo, made):
    """What CrossEncoder.save() of sentence-transformers 5.4 and later writes, also if modules.json is not there."""
    model_class, config, tokenizer, _, _ = cases()["bert_score"]
    directory = Directory(made / "cross", model_class, config, tokenizer, {}, 4)
    raw = directory.logits("ada met", "bob")
    write = lambda name, value: (directory.path / name).write_text(json.dumps(value))  # noqa: E731
    write("sentence_bert_config.json", {
        "transformer_task": "sequence-classification", "module_output_name": "scores",
        "modality_config": {"text": {"method": "forward", "method_output_name": "logits"}}})  # fmt: skip
    for activation, right in ((IDENTITY, raw), (SIGMOID, raw.sigmoid())):
        write("config_sentence_transformers.json", {
            "model_type": "CrossEncoder", "__version__": {"sentence_transformers": "6.0.0"}, "prompts": {},
            "default_prompt_name": None, "activation_fn": activation})  # fmt: skip
        for modules in (True, False):
            if modules:
                write("modules.json", [{"idx": 0, "name": "0", "path": "",
                                        "type": "sentence_transformers.base.modules.transformer.Transformer"}])
            else:
                (directory.path / "modules.json").unlink()
            result = zoo.json("predict", "cross", "--text", "ada met", "--pair", "bob")["results"][0]
            assert close(result["score"], right.item()), (activation, modules, result, right)


def test_tokenizer_without_class(zoo, made):
    """The files of bert-base-uncased: only config.json says whose the tokenizer is."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

    tokenizer, _ = word_pieces()
    config = BertConfig(vocab_size=5 + len(WORDS), **SMALL)
    model = Directory(made / "plain", BertForMaskedLM, config, (tokenizer, {}), {}, 5).model
    (made / "plain/tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, "model_max_length": 512}))
    theirs = AutoTokenizer.from_pretrained(made / "plain")
    ids = theirs("Ada met [MASK]", return_tensors="pt")
    with torch.no_grad():
        right = model(**ids).logits[0, 3].softmax(-1)
    zoo("import", "plain", "plain-run")
    for name in ("plain", "plain-run"):
        for output in zoo.json("generate", name, "--prompt", "Ada met <mask>")["results"][0]["outputs"]:
            assert close(math.exp(output["logprobs"][0]), right[output["ids"][0]].item(), 1e-4), (name, output)
    (made / "words.txt").write_text("ada met bob in london\n" * 60)
    (made / "kinds.tsv").write_text("label\ttext\n" + "a\tada met bob\nb\tthe ship sails\n" * 12)
    quick = "training: {steps: 1, batch_size: 4, threads: 1}\n"
    (made / "masks.yaml").write_text("task: masked_language_modeling\ninit_from: plain\n" + quick +
                                     "data: {train: [words.txt], valid_fraction: 0.2, sequence_length: 16}\n")
    (made / "kinds.yaml").write_text("task: text_classification\ninit_from: plain\n" + quick +
                                     "data: {train: kinds.tsv, valid_fraction: 0.2}\n")
    for name in ("masks.yaml", "kinds.yaml"):
        zoo("train", name, "--device", "cpu")


def test_sentence_vectors_of_another_class(zoo, made):
    """Files such as those of all-mpnet-base-v2: config.json names the class of the training before, the file has the body."""
    import torch
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=5 + len(WORDS), **SMALL)
    directory = Directory(made / "body", BertModel, config, word_pieces(), {"architectures": ["BertForMaskedLM"]}, 6)
    assert "another class" in zoo("embed", "body", "--text", "ada met bob", status=2)
    (made / "body/1_Pooling").mkdir()
    (made / "body/1_Pooling/config.json").write_text(json.dumps({"word_embedding_dimension": 16, "pooling_mode": "mean"}))
    (made / "body/modules.json").write_text(json.dumps([
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling")])]))  # fmt: skip
    ids = torch.tensor([directory.tokenizer.encode("ada met bob").ids])
    with torch.no_grad():
        right = directory.model(input_ids=ids).last_hidden_state[0].mean(0).tolist()
    found = zoo.json("embed", "body", "--text", "ada met bob")["embeddings"][0]
    assert len(found) == len(right) and all(close(a, b) for a, b in zip(found, right, strict=True)), (found, right)


def test_server(zoo, made):
    """POST /predict has what zoo predict says."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "serving"))
    from server import serving

    names = ["bert_score", "bert_labels", "bert_numbers"]
    with serving(zoo.program, [made / name for name in names]) as address:

        def post(**body):
            request = urllib.request.Request(
                address + "/predict", json.dumps(body).encode(), {"Content-Type": "application/json"})  # fmt: skip
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
                return json.load(answer)["predictions"]

        words = [word for a, b in PAIRS for word in ("--text", a, "--pair", b)]
        for name in names:
            assert post(model=name, pairs=PAIRS) == without_cut(zoo.json("predict", name, *words)["results"], PAIRS), name
            short = TEXTS[:3]  # nothing is cut
            assert post(model=name, texts=short) == zoo.json(
                "predict", name, *[word for text in short for word in ("--text", text)])["results"]  # fmt: skip


def without_cut(results, pairs):
    """The server also says which inputs were cut."""
    longest = POSITIONS - 3
    return [r | ({"cut": True} if len(f"{a} {b}".split()) > longest else {}) for r, (a, b) in zip(results, pairs)]


def films(n):
    """Texts whose words tell their labels, and a number."""
    draw = random.Random(1)
    words = {"funny": "comedy", "sad": "drama", "space": "scifi"}
    rows = []
    for _ in range(n):
        chosen = [word for word in words if draw.random() < 0.5]
        text = " ".join(draw.sample(chosen + ["a", "film", "of", "the", "year"], len(chosen) + 5))
        rows.append((text, [words[word] for word in chosen], 1.5 * len(chosen) - 2.25))
    return rows


def test_training_on_texts(zoo, made):
    """From a table to figures in one command; evaluate and predict agree with the definitions."""
    rows = films(240)
    (made / "films.tsv").write_text("text\tlabels\n" + "".join(f"{t}\t{'|'.join(ls)}\n" for t, ls, _ in rows))
    (made / "lists.jsonl").write_text("".join(json.dumps({"text": t, "labels": ls}) + "\n" for t, ls, _ in rows))
    (made / "stars.tsv").write_text("text\tscore\n" + "".join(f"{t}\t{n}\n" for t, _, n in rows))
    quick = ("--set", "training.steps=160", "--set", "training.evaluate_every=80", "--set", "training.checkpoint_every=160",
             "--set", "training.threads=1", "--device", "cpu")  # fmt: skip
    names = ["comedy", "drama", "scifi"]
    for file in ("films.tsv", "lists.jsonl"):
        run = file.split(".")[0]
        zoo("train", file, "--out", run, *quick)
        found = zoo.json("evaluate", run, "--data", file)
        probabilities = zoo.json("predict", run, "--input", file)["results"]
        values = [{e["label"]: e["probability"] for e in result["labels"]} for result in probabilities]
        logits = [[math.log(v[name] / (1 - v[name])) for name in names] for v in values]
        right = [[int(name in labels) for name in names] for _, labels, _ in rows]
        expected = label_metrics(logits, right)
        check_with_sklearn(logits, right, expected)
        check_metrics(found, expected, file)
        assert found["map"] > 0.95, found
        assert "task.problem multi_label" in zoo("inspect", run)
    zoo("train", "stars.tsv", "--out", "stars", *quick)
    found = zoo.json("evaluate", "stars", "--data", "stars.tsv")
    numbers = [result["score"] for result in zoo.json("predict", "stars", "--input", "stars.tsv")["results"]]
    check_metrics(found, number_metrics(numbers, [number for _, _, number in rows]), "stars", 1e-3)
    assert found["spearman"] > 0.8, found
    zoo("predict", "films", "--input", "films.tsv", "--out", "films.html")
    page = (made / "films.html").read_text()
    assert rows[0][0] in page and '"truth":["' in page
    zoo("predict", "stars", "--input", "stars.tsv", "--out", "stars.html")
    assert '"score":' in (made / "stars.html").read_text()
    assert "single texts" in zoo("predict", "stars", "--text", "a", "--pair", "b", status=2)
    assert "not a number" in zoo("evaluate", "stars", "--data", "score.tsv", status=2)


def test_training_on_words(zoo, made):
    """Several labels for each word."""
    draw = random.Random(2)
    kinds = {"ada": ["name", "short"], "bob": ["name", "short"], "london": ["name", "place"], "in": ["short"], "sails": []}
    texts = [draw.choices(list(kinds), k=5) for _ in range(200)]
    (made / "words.tsv").write_text("text\tlabels\n" + "".join(
        " ".join(words) + "\t" + " ".join("|".join(kinds[w]) or "O" for w in words) + "\n" for words in texts))  # fmt: skip
    (made / "words.jsonl").write_text("".join(
        json.dumps({"text": " ".join(words), "labels": [kinds[w] for w in words]}) + "\n" for words in texts))  # fmt: skip
    (made / "score.tsv").write_text("text\tscore\na\tbad\nb\t1\n")
    chosen = zoo("config", "words.jsonl")
    assert "token_classification" in chosen and "multi_label" in chosen, chosen
    zoo("train", "words.tsv", "--out", "words", "--device", "cpu", "--set", "training.steps=120", "--set",
        "training.evaluate_every=60", "--set", "training.checkpoint_every=120", "--set", "training.threads=1")  # fmt: skip
    for file in ("words.tsv", "words.jsonl"):
        # The separator of the run is |; lists need none.
        found = zoo.json("evaluate", "words", "--data", file)
        assert found["map"] > 0.95 and found["f1_micro"] > 0.9, found
    tokens = zoo.json("predict", "words", "--text", "ada sails")["results"][0]["tokens"]
    assert [t["token"] for t in tokens] == ["ada", "sails"]
    said = [{e["label"] for e in t["labels"] if e["probability"] > 0.5} for t in tokens]
    assert said == [{"name", "short"}, set()], tokens
    zoo("predict", "words", "--input", "words.tsv", "--out", "page.html")
    assert "name, short" in (made / "page.html").read_text()


def test_pictures(zoo, made):
    """Several labels, and a number, from a list of pictures; and a foreign ViT with several labels."""
    import torch
    from PIL import Image
    from transformers import ViTConfig, ViTForImageClassification

    draw = random.Random(3)
    (made / "shown").mkdir()
    lines, numbers = ["image\tlabels"], ["image\tscore"]
    for i in range(48):
        red, blue = draw.random() < 0.5, draw.random() < 0.5
        Image.new("RGB", (16, 16), (220 * red + 10, 20, 220 * blue + 10)).save(made / f"shown/{i}.png")
        lines.append(f"shown/{i}.png\t" + ";".join(["red"] * red + ["blue"] * blue))
        numbers.append(f"shown/{i}.png\t{red + 0.5 * blue}")
    (made / "colours.tsv").write_text("\n".join(lines) + "\n")
    (made / "amounts.tsv").write_text("\n".join(numbers) + "\n")
    quick = ("--device", "cpu", "--set", "training.steps=40", "--set", "training.evaluate_every=20", "--set",
             "training.checkpoint_every=40", "--set", "training.threads=1", "--set", "training.batch_size=8")  # fmt: skip
    zoo("train", "colours.tsv", "--out", "colours", *quick)
    found = zoo.json("evaluate", "colours", "--data", "colours.tsv")
    assert found["map"] > 0.9, found
    labels = zoo.json("predict", "colours", "--image", "shown/0.png")["results"][0]["labels"]
    assert {entry["label"] for entry in labels} == {"red", "blue"}
    zoo("train", "amounts.tsv", "--out", "amounts", *quick)
    assert zoo.json("evaluate", "amounts", "--data", "amounts.tsv")["pearson"] > 0.5
    assert "score" in zoo.json("predict", "amounts", "--image", "shown/0.png")["results"][0]
    torch.manual_seed(0)
    config = ViTConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, image_size=16,
                       patch_size=8, initializer_range=0.5, num_labels=3, problem_type="multi_label_classification")  # fmt: skip
    model = ViTForImageClassification(config).eval()
    model.save_pretrained(made / "vit")
    (made / "vit/preprocessor_config.json").write_text(json.dumps(
        {"do_normalize": True, "do_rescale": True, "do_resize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
         "rescale_factor": 1 / 255, "resample": 2, "size": {"height": 16, "width": 16}}))  # fmt: skip
    pixels = torch.tensor(list(Image.open(made / "shown/0.png").getdata())).float().view(16, 16, 3).permute(2, 0, 1)
    with torch.no_grad():
        right = model((pixels / 255 - 0.5).div(0.5).unsqueeze(0)).logits[0].sigmoid().tolist()
    result = zoo.json("predict", "vit", "--image", "shown/0.png")["results"][0]
    check_answer(result, right, "multi_label", [f"LABEL_{i}" for i in range(3)], "vit")


def main():
    begin()
    import transformers

    transformers.logging.set_verbosity_error()
    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as made:
        made = pathlib.Path(made)

        def zoo(*words, status=0):
            done = run_zoo(program, *words, cwd=made)
            assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
            return done.stdout if status == 0 else done.stderr

        zoo.program = program
        zoo.json = lambda *words: json.loads(zoo(*words, "--json"))
        test_directories(zoo, made)
        test_server(zoo, made)
        test_refusals(zoo, made)
        test_cross_encoders(zoo, made)
        test_tokenizer_without_class(zoo, made)
        test_sentence_vectors_of_another_class(zoo, made)
        test_losses_of_directories(zoo, made)
        test_training_on_words(zoo, made)
        test_training_on_texts(zoo, made)
        test_pictures(zoo, made)
    print("ok")


if __name__ == "__main__":
    main()
