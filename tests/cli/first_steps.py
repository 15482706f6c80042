#!/usr/bin/env python3
"""What a new user does first, on small data: each command with its exit code and what it says.

    first_steps.py PROGRAM
"""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import wave
from pathlib import Path

QUICK = "--device cpu --steps 2 --batch-size 4 --set training.threads=1"


def write_data(folder):
    words = ["sun", "moon", "star", "sea", "wind", "rain", "light", "night"]
    source = random.Random(1)

    def text(n=6):
        return " ".join(source.choice(words) for _ in range(n))

    def write(name, content):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)

    def lines(make, n=40):
        return "".join(make(i) + "\n" for i in range(n))

    write("my text.txt", lines(lambda i: text(20)))
    write("reviews.csv", "review,sentiment\n" + lines(lambda i: f'"{text()}, ""{text(2)}""",{"good" if i % 2 else "bad"}'))
    write("paare.de", lines(lambda i: text()))
    write("paare.en", lines(lambda i: text()))
    write("scores.tsv", "text\tscore\n" + lines(lambda i: f"{text()}\t{i / 7:.2f}"))
    write("seeds.tsv", "text\tseed\n" + lines(lambda i: f"{text()}\t{text(5)} {i}"))
    write("bodies.jsonl", lines(lambda i: json.dumps({"body": text(30)})))
    write("rows.jsonl", lines(lambda i: json.dumps({"text": text(30)})))
    write("alpaca.json", json.dumps([{"instruction": text(), "output": text()}]))
    write("alpaca.jsonl", lines(lambda i: json.dumps({"instruction": text(), "input": "", "output": text()})))
    write("completions.jsonl", lines(lambda i: json.dumps({"prompt": text(), "completion": text()})))
    write("sharegpt.jsonl", lines(lambda i: json.dumps({"conversations": [{"from": "human", "value": text()},
                                                                          {"from": "gpt", "value": text()}]})))
    write("coco/annotations.json", json.dumps({"images": [], "annotations": [], "categories": []}))
    write("texts/one.txt", lines(lambda i: text(20)))
    write("texts/two.txt", lines(lambda i: text(20)))
    (folder / "spoken").mkdir()
    with wave.open(str(folder / "spoken" / "a.wav"), "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", ""))
        sound.writeframes(b"\0\0" * 800)


# Command, exit code, and expressions that its output or its only line on stderr has. Recipes are shown in several lines.
STEPS = [
    # Data of one's own without YAML.
    (f"train 'my text.txt' {QUICK}", 0, [r"task: language_modeling", r"zoo config 'my text.txt' > 'my text.yaml'"]),
    (f"train reviews.csv {QUICK}", 0, [r"40 texts in 2 classes \(column sentiment\)", r"text_column: review"]),
    ("predict runs/reviews --device cpu --input reviews.csv", 0, [r"^(good|bad)\t"]),
    (f"train paare.de paare.en {QUICK}", 0, [r"40 pairs of lines, from de to en", r"task: text_to_text"]),
    ("generate runs/paare --device cpu --prompt 'sun moon' --max-tokens 3", 0, [r"\n$"]),
    ("config scores.tsv", 0, [r"problem: regression", r"label_column: score"]),
    ("config seeds.tsv", 2, [r"seeds\.tsv: 40 rows in 40 classes \(column seed\)"]),
    ("config rows.jsonl", 0, [r"documents: line", r"text_column: text"]),
    ("config bodies.jsonl", 2, [r"there are: body: name them with data\.text_column"]),
    ("config alpaca.json", 2, [r"jq -c '\.\[\]' alpaca\.json > alpaca\.jsonl"]),
    ("config alpaca.jsonl", 2, [r"conversations train a model that has a chat template: name it"]),
    ("config completions.jsonl", 2, [r"conversations train a model that has a chat template: name it"]),
    ("config sharegpt.jsonl", 2, [r"conversations train a model that has a chat template: name it"]),
    ("config coco/annotations.json", 2, [r"task: object_detection"]),
    ("config texts", 0, [r"train: \[texts/one\.txt, texts/two\.txt\]"]),
    ("config spoken", 2, [r"the columns audio and text"]),
    # Models and keys that are not there.
    ("generate SmolLM2-135M --prompt a", 2, [r"hf download HuggingFaceTB/SmolLM2-135M", r"git clone https://"]),
    ("train gpt2", 2, [r"data\.train names no files: give them with --set data\.train=FILE"]),
    ("config learning_rate", 2, [r"did you mean the key 'training\.optimizer\.lr'\?"]),
    ("config lr", 0, [r"# Peak learning rate"]),
    (f"train gpt2 --set learning_rate=1 {QUICK}", 2, [r"did you mean 'training\.optimizer\.lr'\?"]),
    ("train texts --set model.d_model=127", 2, [r"the configuration that is chosen for texts.*: model\.n_heads"]),
    # Short forms, other weights, help.
    (f"train texts/one.txt --lr 0.001 --init-from 'runs/my text' {QUICK}", 0, [r"starts from"]),
    ("evaluate 'runs/my text' --device cpu --checkpoint last", 0, [r"loss"]),
    ("evaluate 'runs/my text' --device cpu --checkpoint step-99", 2, [r"there are: best, last, step-2"]),
    ("export 'runs/my text' exported --checkpoint best", 0, [r"AutoModel"]),
    ("help", 0, [r"train .*Train the model"]),
    ("help train", 0, [r"Examples:\nzoo train text\.txt"]),
    ("version", 0, [r"transformer-zoo [\d.]+ \(LibTorch"]),
    ("completion fish", 0, [r"complete -c zoo "]),
    ("compare 'runs/my text' --out page --device cpu", 0, [r"report   page/report\.html"]),
]


def main():
    program = Path(sys.argv[1]).resolve()
    problems = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder)
        environment = {**os.environ, "ZOO_DATA": name, "ZOO_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
        for command, code, expressions in STEPS:
            done = subprocess.run(f"exec '{program}' {command}", shell=True, cwd=folder, env=environment,
                                  capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
            said = done.stdout + done.stderr if code == 0 else done.stderr
            wrong = [f"no {one}" for one in expressions if not re.search(one, said, re.MULTILINE)]
            if done.returncode != code:
                wrong.append(f"exit code {done.returncode}, not {code}")
            if code == 2 and (said.count("\n") != 1 or len(said) > len("zoo: \n") + 300):
                wrong.append("not one line of at most 300 characters")
            if wrong:
                problems.append(f"$ zoo {command}\n{said[-1500:]}  -> {'; '.join(wrong)}")
    print("\n".join(problems) or f"{len(STEPS)} commands do what they should")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
