#!/usr/bin/env python3
"""Keeps the tables of published models in docs/models.md equal to configs/models and to what `zoo inspect` says of them.

  scripts/make_catalogue.py           fails if the tables are not current
  scripts/make_catalogue.py --write   writes them into the page

The first comment of a configuration has the name, the paper and the names on the Hub:
  # NAME: what is special about it (AUTHORS YEAR).
  # Published as OWNER/MODEL, OWNER/MODEL.
ZOO_PROGRAM: the program; default build/release/zoo. It builds no model, so that those of 405 billion parameters take no
more memory than the others.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from page_section import with_section

ROOT = Path(__file__).resolve().parents[1]
FOLDER, PAGE = ROOT / "configs/models", ROOT / "docs/models.md"
BEGIN, END = "<!-- catalogue: begin, made by scripts/make_catalogue.py --write -->", "<!-- catalogue: end -->"
LENGTH = 512  # of the sequences that FLOPs are counted for: the shortest context of the models
IMAGES = ("vit", "resnet", "detr")
FAMILIES = {"decoder": "Decoders", "encoder": "Encoders", "encoder_decoder": "Encoder-decoders", **dict.fromkeys(IMAGES, "Images"),
            "dual_encoder": "Pictures and texts", "whisper": "Recordings", "wave_encoder": "Recordings"}
UNITS = {"Images": "a picture", "Pictures and texts": "a pair"}
ABOUT = f"""FLOPs are those of a forward pass: matrix products, where a multiply-add counts as two. For texts they are for one token
in a sequence of {LENGTH} tokens; with two sides, the source and the target have {LENGTH} tokens each, and a token of either
counts. For images they are for one picture: 224 × 224 pixels, with DETR 800 × 800. For pictures and texts
they are for a picture and the longest text that the model reads. For recordings they are for a vector of
the encoder (20 ms) and a token of the decoder, which have {LENGTH} each. Parameters include the head: the
prediction of tokens or masked tokens, 1,000 classes, or the boxes of 91 classes. A tied matrix counts once. The last columns are
memory: of the weights, and, for models that generate, of the keys and values of one sequence with as many tokens as the model
can have (`max_positions`). Keys and values of a source are not counted. 1 GB is 10⁹ bytes."""


class Problem(Exception):
    pass


def program():
    return os.environ.get("ZOO_PROGRAM", str(ROOT / "build/release/zoo"))


def configurations():
    return sorted(FOLDER.glob("*.yaml"))


def comment_of(path):
    """The first comment, as one line."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("# "):
            break
        lines.append(line[2:])
    return " ".join(lines)


def title_of(path):
    title, colon, _ = comment_of(path).partition(": ")
    if not colon or len(title) > 40:
        raise Problem(f'{path.name}: begin its comment with "# NAME: "')
    return title


def paper_of(path):
    found = re.search(r"\(([^()]+ \d{4})\)", comment_of(path))
    if not found:
        raise Problem(f"{path.name}: its comment lacks (AUTHORS YEAR)")
    return found[1]


def names_on_the_hub(path):
    found = re.search(r" Published as (\S+/\S+(?:, \S+/\S+)*)\.$", comment_of(path))
    return found[1].split(", ") if found else []


def chain_of(path):
    """The text of the configuration, followed by those that it extends."""
    text = path.read_text(encoding="utf-8")
    base = re.search(r"^extends: (\S+)$", text, re.MULTILINE)
    return text + chain_of(path.parent / base[1]) if base else text


def longest_sequence(path):
    found = re.search(r"(?<!\w)max_positions: (\d+)", chain_of(path))
    if not found:
        raise Problem(f"{path.name}: max_positions is missing")
    return int(found[1])


def inspected(path):
    """What `zoo inspect` says: of a token in a sequence of LENGTH, or of a picture."""
    def ask(*options):
        done = subprocess.run([program(), "inspect", str(path), "--json", *options], capture_output=True, text=True)
        if done.returncode:
            raise Problem(done.stderr.strip())
        return json.loads(done.stdout)
    is_of_images = re.search(r"^task: .*(image|object)", chain_of(path), re.MULTILINE)
    return ask() if is_of_images else ask("--length", str(LENGTH))


def number(value, unit=""):
    """1.23 G"""
    for prefix in ("", "k", "M", "G", "T"):
        if value < 999.5 or prefix == "T":
            digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
            return f"{value:.{digits}f} {prefix}{unit}".strip()
        value /= 1000


def bytes_of(n):
    """In float32 and in bfloat16."""
    return f"{number(n, 'B')} / {number(n / 2, 'B')}" if n else "–"


def kindred(name):
    """The name without the size, by which rows are sorted: t5-v1.1 for t5-v1.1-xl."""
    return re.sub(r"-(?!v\d)[^-]+(-(cased|pre-norm|dc5|v[\d.]+))?$", "", name)


def row(path, cost):
    generates = cost["architecture"] in ("decoder", "encoder_decoder", "whisper")
    memory = cost["memory"]
    cache = memory["cache_bytes_per_token"] * longest_sequence(path) + memory["state_bytes"] if generates else 0
    hub = [f"[{name}](https://huggingface.co/{name})" for name in names_on_the_hub(path)]
    cells = [
        f"[`{path.stem}`](../configs/models/{path.name})", title_of(path), ", ".join([paper_of(path), *hub]),
        f"{cost['parameters']:,}", number(cost["flops_per_token"]), bytes_of(memory["weight_bytes"]),
    ]
    return cells + ([bytes_of(cache)] if generates else [])


def tables(costs):
    """`costs`: what inspected() returns, by path."""
    text = [ABOUT]
    for heading in dict.fromkeys(FAMILIES.values()):
        paths = [path for path, cost in costs.items() if FAMILIES[cost["architecture"]] == heading]
        paths.sort(key=lambda path: (kindred(path.stem), costs[path]["parameters"], path.stem))
        unit = UNITS.get(heading, "a token")
        head = ["configuration", "model", "source", "parameters", f"FLOPs, {unit}", "weights, fp32 / bf16"]
        rows = [row(path, costs[path]) for path in paths]
        if any(len(cells) > len(head) for cells in rows):
            head.append("keys and values, fp32 / bf16")
            rows = [[*cells, "–"][: len(head)] for cells in rows]
        lines = [head, ["---", "---", "---"] + ["---:"] * (len(head) - 3), *rows]
        text += ["", f"### {heading}", "", *(f"| {' | '.join(cells)} |" for cells in lines)]
    return "\n".join(text)


def check(costs, write):
    """Returns whether the page has the tables; `write`: writes them."""
    page = PAGE.read_text(encoding="utf-8")
    new = with_section(page, BEGIN, END, tables(costs))
    if new is None:
        raise Problem(f"{PAGE.name} lacks the lines {BEGIN} and {END}")
    if write:
        PAGE.write_text(new, encoding="utf-8")
    return write or new == page


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    try:
        if not check({path: inspected(path) for path in configurations()}, arguments.write):
            raise Problem(f"{PAGE.relative_to(ROOT)} is not current; run scripts/make_catalogue.py --write")
    except (Problem, OSError) as problem:
        sys.exit(f"make_catalogue: {problem}")


if __name__ == "__main__":
    main()
