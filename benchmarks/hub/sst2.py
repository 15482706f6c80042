"""A small BERT fine-tuned on sentences of SST-2 by the zoo and by a plain loop with transformers, and opened by the other.

    python benchmarks/hub/sst2.py SST2_DIRECTORY [--steps 50]

transformers writes a model with random weights and a vocabulary. Each step reads the same 64 sentences, so that the order
of the data is the same. Compares the losses of all steps, and after the export the logits.
"""

import argparse
import csv
import json
import subprocess
import tempfile
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertConfig, PreTrainedTokenizerFast
from transformers.models.bert.modeling_bert import BertForSequenceClassification

ROWS, RATE = 64, 1e-3


def make_model(directory, sentences):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=600, special_tokens=specials, show_progress=False)
    tokenizer.train_from_iterator(sentences, trainer)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = {name + "_token": token for name, token in zip(("pad", "unk", "cls", "sep", "mask"), specials)}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(fast), hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        max_position_embeddings=128, hidden_dropout_prob=0, attention_probs_dropout_prob=0, pad_token_id=0,
        id2label={0: "0", 1: "1"}, label2id={"0": 0, "1": 1},
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(directory)
    fast.save_pretrained(directory)


def train(zoo, directory, table, run, steps):
    config = {
        "name": "sst2", "init_from": str(directory), "task": "text_classification",
        "data": {"train": str(table), "valid": str(table), "sequence_length": 128},
        "training": {
            "steps": steps, "batch_size": ROWS, "log_every": 1, "evaluate_every": steps, "precision": "fp32",
            "optimizer": {"lr": RATE, "weight_decay": 0, "betas": [0.9, 0.99]}, "schedule": {"type": "constant"},
        },
    }  # fmt: skip
    run.with_suffix(".yaml").write_text(json.dumps(config))
    command = [zoo, "train", str(run.with_suffix(".yaml")), "--out", str(run), "--device", "cpu"]
    subprocess.run(command, check=True, capture_output=True)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [row["train_loss"] for row in rows if "train_loss" in row]


def plain_loop(directory, sentences, labels, steps):
    model = AutoModelForSequenceClassification.from_pretrained(directory).train()
    inputs = AutoTokenizer.from_pretrained(directory)(sentences, return_tensors="pt", padding=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.99), eps=1e-8, weight_decay=0)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(**inputs, labels=torch.tensor(labels)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sst2", type=Path)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--zoo", default="build/release/zoo")
    arguments = parser.parse_args()
    with open(arguments.sst2 / "train.tsv", newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)][:ROWS]
    sentences = [row["sentence"].strip() for row in rows]
    labels = [int(row["label"]) for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        model, run, exported = (Path(folder) / name for name in ("model", "run", "exported"))
        table = Path(folder) / "rows.tsv"
        table.write_text("sentence\tlabel\n" + "".join(f"{s}\t{n}\n" for s, n in zip(sentences, labels)))
        make_model(model, sentences)
        ours = train(arguments.zoo, model, table, run, arguments.steps)
        theirs = plain_loop(model, sentences, labels, arguments.steps)
        worst = max(abs(a - b) for a, b in zip(ours, theirs))
        print(f"losses of {len(ours)} steps: zoo {ours[0]:.4f} … {ours[-1]:.6f}, transformers {theirs[0]:.4f} … "
              f"{theirs[-1]:.6f}; they differ by at most {worst:.2g}")
        subprocess.run([arguments.zoo, "export", str(run), str(exported)], check=True, capture_output=True)
        opened = AutoModelForSequenceClassification.from_pretrained(exported).eval()
        inputs = AutoTokenizer.from_pretrained(exported)(sentences, return_tensors="pt", padding=True)
        with torch.no_grad():
            probabilities = opened(**inputs).logits.softmax(-1)
        command = [arguments.zoo, "predict", str(run), "--json"]
        for sentence in sentences:
            command += ["--text", sentence]
        results = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["results"]
        worst = 0
        for row, result in zip(probabilities, results):
            said = {entry["label"]: entry["probability"] for entry in result["labels"]}
            worst = max([worst, *(abs(said[opened.config.id2label[i]] - row[i].item()) for i in range(2))])
        print(f"exported and opened by transformers: probabilities differ by at most {worst:.2g}, "
              f"labels {opened.config.id2label}")


main()
