"""Small models of every kind for the tests of `zoo serve`. Each learns for a moment, from data that is made here."""

import json
import math
import os
import struct
import sys
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import zoo_copies  # noqa: E402

GERMAN = {"rot": "red", "blau": "blue", "alt": "old", "neu": "new", "und": "and", "ein": "a", "Hund": "dog", "Haus": "house"}
TEMPLATE = (
    "{% for tool in tools or [] %}{{ tool.function.name }} {% endfor %}"
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}"
    '{% for call in message.tool_calls or [] %}<tool_call>\n{"name": "{{ call.function.name }}", "arguments": '
    "{{ call.function.arguments | tojson }}}\n</tool_call>{% endfor %}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
WIDTH = {"d_model": 32, "n_layers": 2, "n_heads": 4}
CONFIGS = {
    "gpt": {
        "task": "language_modeling",
        "data": {"train": "lines.txt", "sequence_length": 64, "tokenizer": {"type": "bpe", "vocab_size": 300}},
        "model": {"architecture": "decoder", **WIDTH},
        "training": {"steps": 100, "optimizer": {"lr": 3.0e-3}, "schedule": {"warmup_steps": 10}, "batch_size": 16},
    },
    "letters": {
        "task": "language_modeling",
        "data": {"train": "lines.txt", "sequence_length": 64, "tokenizer": {"type": "char"}},
        "model": {"architecture": "decoder", **WIDTH},
        "training": {"steps": 60, "optimizer": {"lr": 3.0e-3}, "schedule": {"warmup_steps": 10}, "batch_size": 16},
    },
    "bert": {
        "task": "masked_language_modeling",
        "data": {
            "train": "lines.txt",
            "documents": "line",
            "sequence_length": 32,
            "tokenizer": {"type": "wordpiece", "vocab_size": 200},
        },
        "model": {"architecture": "encoder", **WIDTH},
        "training": {"steps": 100, "optimizer": {"lr": 3.0e-3}, "schedule": {"warmup_steps": 10}, "batch_size": 16},
    },
    "reviews": {
        "task": "text_classification",
        "data": {
            "train": "reviews.tsv",
            "text_column": "review",
            "label_column": "rating",
            "sequence_length": 32,
            "tokenizer": {"vocab_size": 320},
        },
        "model": {"architecture": "encoder", **WIDTH},
        "training": {"steps": 60, "optimizer": {"lr": 3.0e-3}, "schedule": {"warmup_steps": 10}, "batch_size": 16},
    },
    "names": {
        "task": "token_classification",
        "data": {
            "train": "names.tsv",
            "text_column": "sentence",
            "label_column": "labels",
            "sequence_length": 32,
            "tokenizer": {"vocab_size": 320},
        },
        "model": {"architecture": "encoder", **WIDTH},
        "training": {"steps": 60, "optimizer": {"lr": 3.0e-3}, "schedule": {"warmup_steps": 10}, "batch_size": 16},
    },
    "de-en": {
        "task": "text_to_text",
        "data": {"train": "lines", "source": "de", "target": "en", "sequence_length": 32, "tokenizer": {"vocab_size": 320}},
        "model": {"architecture": "encoder_decoder", **WIDTH},
        "training": {"steps": 150, "optimizer": {"lr": 3.0e-3}, "schedule": {"warmup_steps": 10}, "batch_tokens": 400},
    },
    "pictures": {
        "task": "image_classification",
        "data": {"train": "drawings", "images": {"size": 16}},
        "model": {"architecture": {"type": "vit", "patch_size": 4}, **WIDTH},
        "training": {"steps": 40, "optimizer": {"lr": 3.0e-3}, "schedule": {"warmup_steps": 10}, "batch_size": 16},
    },
    "objects": {
        "task": "object_detection",
        "data": {"train": "objects.json", "images": {"size": 64}},
        "model": {"architecture": {"type": "detr", "n_queries": 5, "backbone": {"depth": 18, "width": 8}}, **WIDTH},
        "training": {"steps": 3, "optimizer": {"lr": 3.0e-3}, "schedule": {"warmup_steps": 10}, "batch_size": 4},
    },
}
CONFIGS["speech"] = {
    "task": "speech_recognition",
    "data": {
        "train": "recordings.tsv",
        "tokenizer": {"type": "char"},
        "audio": {"sample_rate": 8000, "n_mels": 12, "n_fft": 200, "hop": 80, "max_seconds": 3},
    },
    "model": {"architecture": {"type": "speech_encoder", "max_frames": 300}, "position": "sinusoidal", **WIDTH, "n_layers": 1},
    "training": {"steps": 60, "optimizer": {"lr": 1.0e-2}, "schedule": {"warmup_steps": 10}, "batch_size": 16},
}
CONFIGS["folder"] = {
    "task": "structure_prediction",
    "data": {"train": "chain.pdb", "valid": "chain.pdb"},
    "model": {"architecture": {"type": "fold_flow", "steps": 10}, **WIDTH},
    "training": {"steps": 10, "optimizer": {"lr": 3.0e-3}, "schedule": {"warmup_steps": 2}, "batch_size": 4},
}
CHAIN = "AEAKAAEKLVVVVVGGVV"


def pdb():
    """The backbone of CHAIN, roughly as a helix."""
    names = {"A": "ALA", "E": "GLU", "K": "LYS", "L": "LEU", "V": "VAL", "G": "GLY"}
    lines = []
    for i, letter in enumerate(CHAIN):
        for j, (atom, ahead, radius) in enumerate((("N", -0.45, 1.6), ("CA", 0, 2.3), ("C", 0.45, 1.7), ("O", 0.5, 2.0))):
            turn, rise = 1.745 * (i + ahead * 0.6), 1.5 * (i + ahead)
            x, y = radius * math.cos(turn), radius * math.sin(turn)
            lines.append(f"ATOM  {4 * i + j + 1:5d}  {atom:<3} {names[letter]} A{i + 1:4d}    {x:8.3f}{y:8.3f}{rise:8.3f}"
                         f"  1.00  0.00           {atom[0]}\n")  # fmt: skip
    return "".join(lines) + "END\n"


def spoken(i):
    """A WAV file of one to three tones, and its words: high or low."""
    rate, words = 8000, [("high" if (i >> place) % 2 else "low") for place in range(1 + i % 3)]
    samples = []
    for word in words:
        pitch = (1600 if word == "high" else 400) + 3 * (i % 11)
        samples += [round(16000 * math.sin(2 * math.pi * pitch * t / rate)) for t in range(1600)] + [0] * 600
    data = struct.pack(f"<{len(samples)}h", *samples)
    form = struct.pack("<HHIIHH", 1, 1, rate, 2 * rate, 2, 16)
    chunks = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(chunks)) + chunks, " ".join(words)


def png(width, height, pixel):
    """A grey picture, whose values are pixel(x, y)."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes(pixel(x, y) for x in range(width)) for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def striped(i):
    """A picture of rows or columns."""
    return png(16, 16, lambda x, y: 200 + i % 7 if (y if i % 2 else x) % 4 < 2 else 30)


def write_data(folder):
    words, nouns = list(GERMAN)[:4], ["Hund", "Haus"]
    texts = [f"ein {a} und {b} {noun}" for a in words for b in words for noun in nouns]
    english = [" ".join(GERMAN[word] for word in text.split()) for text in texts]
    files = {
        "lines.txt": "".join(f"it was {text} in the snow\n" for text in english * 4),
        "lines.de": "\n".join(texts * 6) + "\n", "lines.en": "\n".join(english * 6) + "\n",
        "reviews.tsv": "review\trating\n" + "".join(f"a {word} film\t{'up' if i % 2 else 'down'}\n"
                                                    for i in range(200) for word in [["dull", "fine", "poor", "lovely"][i % 4]]),
        "chain.pdb": pdb(),
        "names.tsv": "sentence\tlabels\n" + "".join(f"{a} met {b} today\tB-PER O B-PER O\n" for a in ("Anna", "Peter", "Ida", "Paul")
                                                    for b in ("Otto", "Eva", "Max") for _ in range(12)),
    }  # fmt: skip
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    for i in range(40):
        file = folder / "drawings" / ("rows" if i % 2 else "columns") / f"{i}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(striped(i))
    (folder / "sounds").mkdir()
    lines = ["audio\ttext\n"]
    for i in range(64):
        sound, text = spoken(i)
        (folder / "sounds" / f"{i}.wav").write_bytes(sound)
        lines.append(f"sounds/{i}.wav\t{text}\n")
    (folder / "recordings.tsv").write_text("".join(lines), encoding="utf-8")
    images, annotations = [], []
    (folder / "images").mkdir()
    for i in range(16):
        x, y = 4 + 2 * (i % 8), 4 + 3 * (i % 5)
        (folder / "images" / f"{i}.png").write_bytes(
            png(64, 64, lambda px, py, x=x, y=y: 220 if x <= px < x + 24 and y <= py < y + 24 else 20)
        )
        images.append({"id": i, "file_name": f"{i}.png", "width": 64, "height": 64})
        annotations.append({"id": i, "image_id": i, "category_id": 1, "bbox": [x, y, 24, 24], "area": 576, "iscrowd": 0})
    (folder / "objects.json").write_text(
        json.dumps({"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "square"}]}),
        encoding="utf-8",
    )


def run_zoo(zoo, folder, *arguments):
    env = {**os.environ, "ZOO_DATA": str(folder), "ZOO_CACHE": str(folder / "cache")}
    done = zoo_copies.run_zoo(zoo, *arguments, cwd=folder, env=env)
    if done.returncode:
        raise RuntimeError(f"zoo {arguments[0]} ended with {done.returncode}: {done.stderr.strip()}")


def make_models(zoo, folder, names=None):
    """Name → directory of each model: CONFIGS, and `chat`, which is `gpt` with a template for conversations."""
    folder = Path(folder)
    write_data(folder)
    wanted, models = names or [*CONFIGS, "chat"], {}
    for name in CONFIGS:
        if name not in wanted and not (name == "gpt" and "chat" in wanted):
            continue
        (folder / f"{name}.yaml").write_text(json.dumps({"name": name, **CONFIGS[name]}), encoding="utf-8")  # JSON is YAML
        run_zoo(zoo, folder, "train", f"{name}.yaml", "--out", name, "--device", "cpu")
        models[name] = folder / name
    if "chat" in wanted:
        run_zoo(zoo, folder, "export", "gpt", "chat")
        (folder / "chat/chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
        models["chat"] = folder / "chat"
    return {name: models[name] for name in wanted}
