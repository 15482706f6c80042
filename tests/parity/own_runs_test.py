#!/usr/bin/env python3
"""What `zoo train FILE` chooses for each kind of data, exported without a key, gives transformers the same ids and outputs,
and llama.cpp the same tokens and log-probabilities of texts.

  own_runs_test.py PROGRAM [KIND...]

The models are those that the program chooses, but narrower and trained for a few steps. ZOO_PYTHON: a Python with
transformers and xllamacpp; default that of .venv.
"""

import json
import pathlib
import random
import sys
import tempfile

from references_python import begin
from zoo_copies import run_zoo

WORDS = "the ship came home at night and who is there she asked où mer 山 fine awful 1, 22.".split()
TEXTS = ["she asked who is there", "the ship\ncame  home\n\nat 山 ß", "où mer", "<unk> is text"]
PAIRS = [("the ship came home", "who is there"), ("mer", "she asked")]
CLOSE, CLOSE_IN_LLAMA_CPP = 1e-4, 2e-3
# The class of transformers for each kind of data, as docs/hub.md says.
CLASSES = {
    "short.txt": "LlamaForCausalLM", "texts.txt": "LlamaForCausalLM", "rows.jsonl": "LlamaForCausalLM",
    "classes.tsv": "EsmForSequenceClassification", "labels.tsv": "EsmForSequenceClassification",
    "numbers.tsv": "EsmForSequenceClassification", "words.tsv": "EsmForTokenClassification",
    "pairs.tsv": "EsmForSequenceClassification", "pictures": "IJepaForImageClassification",
    "pictures.jsonl": "IJepaForImageClassification", "amounts.jsonl": "IJepaForImageClassification",
}  # fmt: skip


def write_data(made, draw):
    def sentence(n=None):
        return " ".join(draw.choice(WORDS) for _ in range(n or draw.randint(3, 10)))

    def table(name, header, row, n=120):
        (made / name).write_text(header + "\n" + "".join(row() + "\n" for _ in range(n)))

    def words_and_tags():
        n = draw.randint(2, 8)
        return sentence(n) + "\t" + " ".join(draw.choice(["A", "B", "A|B"]) for _ in range(n))

    (made / "short.txt").write_text("".join(WORDS[draw.randrange(10)] + " " for _ in range(2000)))
    (made / "texts.txt").write_text("".join(sentence() + "\n" for _ in range(900)))
    (made / "rows.jsonl").write_text("".join(json.dumps({"text": sentence(12)}) + "\n" for _ in range(600)))
    table("classes.tsv", "text\tlabel", lambda: f"{sentence()}\t{draw.choice(['good', 'bad', 'fine'])}")
    table("labels.tsv", "text\tlabels", lambda: f"{sentence()}\t{draw.choice(['sea', 'land', 'sea|land'])}")
    table("numbers.tsv", "text\tscore", lambda: f"{sentence()}\t{1000 + draw.random():.3f}")
    table("words.tsv", "text\ttags", words_and_tags)
    table("pairs.tsv", "sentence1\tsentence2\tlabel", lambda: f"{sentence()}\t{sentence()}\t{draw.choice(['yes', 'no'])}")
    from PIL import Image

    files = []
    for i in range(40):
        colour = ["red", "blue"][i % 2]
        file = made / "pictures" / colour / f"{i}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        picture = Image.new("RGB", (40, 34 + i % 5))
        picture.putdata([tuple(draw.randrange(256) for _ in range(3)) for _ in range(picture.width * picture.height)])
        picture.save(file)
        files.append((f"pictures/{colour}/{i}.png", [colour] + ["odd"] * (i % 3 == 0), i / 7 + 0.01))
    with (made / "pictures.jsonl").open("w") as several, (made / "amounts.jsonl").open("w") as amounts:
        for file, labels, amount in files:
            several.write(json.dumps({"image": file, "labels": labels}) + "\n")
            amounts.write(json.dumps({"image": file, "score": amount}) + "\n")


# Tasks that have no choice by a file: the keys that give them a published form, or the reason why there is none.
SMALL = "d_model: 32, n_layers: 1, n_heads: 2"
PICTURES = f"task: image_classification\ndata: {{train: pictures, images: {{size: 32}}}}\nmodel: {{{SMALL}, "
OTHERS = {
    "masked": (
        "task: masked_language_modeling\ndata: {train: texts.txt, documents: line, sequence_length: 32}\n"
        f"model: {{architecture: encoder, {SMALL}, norm_placement: post, position: learned, embedding_norm: true, "
        "n_segments: 2, output_bias: true}\n",
        "BertForMaskedLM",
    ),
    "parallel": (
        "task: text_to_text\ndata: {train: texts, source: a, target: b, sequence_length: 32}\n"
        f"model: {{architecture: encoder_decoder, {SMALL}, norm_placement: post, position: learned, position_offset: 2, "
        "embedding_norm: true, output_bias: true}\n",
        "BartForConditionalGeneration",
    ),
    "resnet": (
        "task: image_classification\ndata: {train: pictures, images: {size: 32}}\n"
        "model: {architecture: {type: resnet, depth: 18, width: 8}}\n",
        "zoo: no family of transformers computes what this model does: the nearest family, vit, has no models of the "
        "architecture resnet\n",
    ),
    "deit": (
        f"{PICTURES}architecture: {{type: vit, patch_size: 8, pooling: class_and_distillation, distillation_token: true}}}}\n",
        "DeiTForImageClassificationWithTeacher",
    ),
    "dinov2": (
        f"{PICTURES}architecture: {{type: vit, patch_size: 8, pooling: class_and_mean}}, layer_scale: 0.1}}\n",
        "Dinov2ForImageClassification",
    ),
    "encoder": (
        "task: masked_language_modeling\ndata: {train: texts.txt, documents: line, sequence_length: 32}\n"
        f"model: {{architecture: encoder, {SMALL}}}\n",
        "zoo: no family of transformers computes what this model does: the nearest family, ",
    ),
}


def check_scores_of_picture(zoo, made, name, model):
    import torch
    from PIL import Image
    from transformers import AutoImageProcessor

    file = "pictures/red/0.png"
    processor = AutoImageProcessor.from_pretrained(made / "hub" / name)
    with torch.no_grad():
        logits = model(processor(Image.open(made / file), return_tensors="pt")["pixel_values"]).logits[0]
    for directory in (f"runs/{name}", f"hub/{name}"):
        answer = zoo("predict", directory, "--image", file, "--json", "--device", "cpu")
        assert answer.returncode == 0, answer.stderr
        check_answer(model, logits, json.loads(answer.stdout)["results"][0], (name, directory))


def check_others(program, made, name):
    import transformers

    text, wanted = OTHERS[name]
    for side in "ab":
        (made / f"texts.{side}").write_text("".join(f"{word} {side}\n" for word in WORDS * 8))
    (made / f"{name}.yaml").write_text(text + "training: {steps: 2, batch_size: 8, threads: 1}\n")

    def zoo(*words):
        return run_zoo(program, *words, cwd=made)

    done = zoo("train", f"{name}.yaml", "--out", f"runs/{name}", "--device", "cpu")
    assert done.returncode == 0, (name, done.stderr)
    done = zoo("export", f"runs/{name}", f"hub/{name}")
    if wanted.startswith("zoo: "):
        assert done.returncode == 2 and done.stderr.startswith(wanted) and done.stderr.count("\n") == 1, done.stderr
        assert not (made / "hub" / name).exists()
        return
    assert done.returncode == 0, (name, done.stderr)
    model, report = getattr(transformers, wanted).from_pretrained(made / "hub" / name, output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"], report
    if text.startswith(PICTURES):
        check_scores_of_picture(zoo, made, name, model.eval())
        return
    tokenizer = transformers.AutoTokenizer.from_pretrained(made / "hub" / name)
    if name == "parallel":  # by beams, as both say
        written = zoo("generate", f"runs/{name}", "--prompt", "ship a", "--max-new-tokens", "8", "--json", "--device", "cpu")
        ours = json.loads(written.stdout)["results"][0]["outputs"][0]["ids"]
        theirs = model.eval().generate(**tokenizer("ship a", return_tensors="pt"), max_new_tokens=8)[0].tolist()
        assert model.generation_config.num_beams > 1 and theirs[1:] == ours, (theirs, ours)


class Kind:
    """A run of a kind of data, and its export."""

    def __init__(self, program, made, name):
        self.program, self.made, self.name = program, made, name
        self.run, self.hub = f"runs/{name}", f"hub/{name}"
        chosen = {"training.steps": 4, "training.evaluate_every": 2, "training.threads": 1, "training.checkpoint_every": 4,
                  "training.schedule.warmup_steps": 1, "training.batch_size": 8, "model.d_model": 32, "model.n_layers": 2,
                  "model.n_heads": 2}  # fmt: skip
        words = [word for key, value in chosen.items() for word in ("--set", f"{key}={value}")]
        self.zoo("train", name, "--out", self.run, "--device", "cpu", *words)
        self.zoo("export", self.run, self.hub)

    def zoo(self, *words):
        done = run_zoo(self.program, *words, cwd=self.made)
        assert done.returncode == 0, (self.name, words, done.stderr)
        return done.stdout

    def answers(self, *words):
        return json.loads(self.zoo(*words, "--json", "--device", "cpu"))["results"]

    def model(self, auto_class):
        model, report = auto_class.from_pretrained(self.made / self.hub, output_loading_info=True)
        assert type(model).__name__ == CLASSES[self.name], type(model)
        # ESM's map of contacts is no part of these outputs.
        missing = [key for key in report["missing_keys"] if "contact_head" not in key]
        assert not missing and not report["unexpected_keys"], report
        return model.eval()


def close(ours, theirs, what, most=CLOSE):
    assert len(ours) == len(theirs), what
    different = max((abs(a - b) for a, b in zip(ours, theirs)), default=0)
    assert different <= most * max(1, max(map(abs, theirs), default=0)), (what, ours, theirs)


def check_texts(kind):
    """The ids of texts; the tokens that are likeliest, and their log-probabilities; the options of generation; GGUF."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(kind.made / kind.hub)
    model = kind.model(AutoModelForCausalLM)
    assert model.generation_config.do_sample and model.generation_config.top_k == 50
    assert model.generation_config.temperature == 0.8 and model.generation_config.max_new_tokens == 200
    prompts = [word for text in TEXTS for word in ("--prompt", text)]
    found = kind.answers("generate", kind.run, *prompts, "--temperature", "0", "--max-new-tokens", "12")
    for text, one in zip(TEXTS, found, strict=True):
        ids, output = one["prompt_ids"], one["outputs"][0]
        assert tokenizer(text)["input_ids"] == ids, (kind.name, text)
        assert tokenizer.decode(ids) == text, (kind.name, text)
        written = model.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=12, output_logits=True,
                                 return_dict_in_generate=True)  # fmt: skip
        theirs = written.sequences[0, len(ids):].tolist()
        assert theirs == output["ids"], (kind.name, text, theirs, output["ids"])
        scores = [row[0].log_softmax(-1)[id].item() for row, id in zip(written.logits, theirs)]
        close(output["logprobs"], scores, (kind.name, text))
    check_gguf(kind, found)


def check_gguf(kind, found):
    from gguf_export_test import LlamaCpp

    kind.zoo("export", kind.run, f"hub/{kind.name}.gguf")
    theirs = LlamaCpp(kind.made / f"hub/{kind.name}.gguf")
    for text, one in zip(TEXTS, found, strict=True):
        if "<unk>" not in text:  # which llama.cpp is asked to read as the token
            assert theirs.tokens(text) == one["prompt_ids"], (kind.name, text, theirs.tokens(text), one["prompt_ids"])
        output = one["outputs"][0]
        written = theirs.generate(one["prompt_ids"], len(output["ids"]))
        assert [id for id, _, _ in written] == output["ids"], (kind.name, text, written, output)
        close(output["logprobs"], [score for _, score, _ in written], (kind.name, text), CLOSE_IN_LLAMA_CPP)
    again = kind.answers("generate", f"hub/{kind.name}.gguf", "--prompt", TEXTS[1], "--temperature", "0", "--max-new-tokens", "12")
    assert again[0]["outputs"][0]["ids"] == found[1]["outputs"][0]["ids"], (kind.name, again)


def check_answer(model, logits, answer, what):
    """The answer of `zoo predict` is what the model's problem_type says of its logits."""
    names = [model.config.id2label[i] for i in range(len(logits))]
    if model.config.problem_type == "regression":
        return close([answer["score"]], logits.tolist(), what)
    multi = model.config.problem_type == "multi_label_classification"
    right = dict(zip(names, (logits.sigmoid() if multi else logits.softmax(-1)).tolist()))
    ours = {entry["label"]: entry["probability"] for entry in answer["labels"]}
    assert ours.keys() == right.keys(), (what, ours, right)
    return close([ours[name] for name in names], [right[name] for name in names], what)


def check_classifier(kind):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(kind.made / kind.hub)
    model = kind.model(AutoModelForSequenceClassification)
    assert tokenizer.model_max_length == 128, tokenizer.model_max_length  # data.sequence_length
    blanks = ["où mer ", "où mer  ", "where\n", "the\t", " ", "\n"]
    pairs = PAIRS if kind.name == "pairs.tsv" else [(text, None) for text in TEXTS + blanks if "<" not in text]
    for first, second in pairs:
        encoded = tokenizer(first, second, return_tensors="pt") if second else tokenizer(first, return_tensors="pt")
        with torch.no_grad():
            logits = model(**encoded).logits[0]
        words = ("--text", first) + (("--pair", second) if second else ())
        for directory in (kind.run, kind.hub):
            check_answer(model, logits, kind.answers("predict", directory, *words)[0], (kind.name, directory, first))
    measured = [json.loads(kind.zoo("evaluate", directory, "--data", kind.name, "--json", "--device", "cpu"))
                for directory in (kind.run, kind.hub)] if kind.name == "pairs.tsv" else [{}, {}]  # fmt: skip
    assert measured[0].keys() == measured[1].keys(), measured
    close([measured[0][key] for key in ("loss", "accuracy") if key in measured[0]],
          [measured[1][key] for key in ("loss", "accuracy") if key in measured[1]], kind.name)  # fmt: skip
    if kind.name == "numbers.tsv":  # the mean of the numbers, about 1000.5, is where the training begins
        rows = [json.loads(line) for line in (kind.made / kind.run / "metrics.jsonl").read_text().splitlines()]
        losses = [row["valid_loss"] for row in rows if "valid_loss" in row]
        assert losses[0] < 20, losses


def check_words(kind):
    import torch
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(kind.made / kind.hub)
    model = kind.model(AutoModelForTokenClassification)
    text = TEXTS[0]
    encoded = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        logits = model(**encoded).logits[0]
    # The first token of each word says what the word is.
    firsts = {}
    for at, word in enumerate(encoded.word_ids()):
        if word is not None:
            offset = tokenizer(text, return_offsets_mapping=True)["offset_mapping"][at]
            firsts.setdefault(len(text[: offset[1]].split()), at)
    for directory in (kind.run, kind.hub):
        tokens = kind.answers("predict", directory, "--text", text)[0]["tokens"]
        assert [token["token"] for token in tokens] == text.split(), tokens
        for number, token in enumerate(tokens):
            check_answer(model, logits[firsts[number + 1]], token, (kind.name, directory, number))


def check_pictures(kind):
    import torch
    from PIL import Image
    from transformers import AutoImageProcessor, AutoModelForImageClassification

    processor = AutoImageProcessor.from_pretrained(kind.made / kind.hub)
    model = kind.model(AutoModelForImageClassification)
    for file in ("pictures/red/0.png", "pictures/blue/3.png"):
        with torch.no_grad():
            pixels = processor(Image.open(kind.made / file), return_tensors="pt")["pixel_values"]
            logits = model(pixels).logits[0]
        for directory in (kind.run, kind.hub):
            answer = kind.answers("predict", directory, "--image", file)[0]
            check_answer(model, logits, answer, (kind.name, directory, file))


def check_card(kind):
    """README.md has a head that the Hub reads, with the figures of the run, and no paths."""
    from huggingface_hub import ModelCard

    card = ModelCard.load(kind.made / kind.hub / "README.md")
    results = card.data.eval_results
    rows = [json.loads(line) for line in (kind.made / kind.run / "metrics.jsonl").read_text().splitlines()]
    measured = [row for row in rows if "valid_loss" in row]
    assert card.data.library_name == "transformers" and card.data.pipeline_tag, card.data
    loss = next(result.metric_value for result in results if result.metric_type == "loss")
    assert loss in [row["valid_loss"] for row in measured], (loss, measured)
    assert all(result.dataset_name == kind.name for result in results), results
    assert str(kind.made) not in card.content and CLASSES[kind.name] in card.text, card.content


def main():
    begin()
    import transformers

    transformers.logging.set_verbosity_error()
    program = pathlib.Path(sys.argv[1]).resolve()
    checks = {"LlamaForCausalLM": check_texts, "EsmForSequenceClassification": check_classifier,
              "EsmForTokenClassification": check_words, "IJepaForImageClassification": check_pictures}  # fmt: skip
    with tempfile.TemporaryDirectory() as made:
        made = pathlib.Path(made)
        write_data(made, random.Random(1))
        for name in sys.argv[2:] or [*CLASSES, *OTHERS]:
            if name in OTHERS:
                check_others(program, made, name)
                print(name, "as expected")
                continue
            kind = Kind(program, made, name)
            checks[CLASSES[name]](kind)
            check_card(kind)
            print(name, "equal")


if __name__ == "__main__":
    main()
