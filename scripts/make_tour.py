#!/usr/bin/env python3
"""Renews docs/tour.md and its translations: the source code they quote, the output of their commands, their pictures.

  scripts/make_tour.py            trains two small models if they are not trained yet (runs/tour; five minutes on two
                                  cores), writes code and outputs into the pages, and draws docs/images/tour-*.svg
  scripts/make_tour.py --check    changes nothing and fails if a command that needs no trained model prints something else
                                  than the pages show

Commands stand in the pages' blocks ```console, each in a line "$ COMMAND" before its output. They run in the repository's
root with build/release, or the folder of $ZOO_PROGRAM, in front of PATH.
"""

import argparse
import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import tour_pictures as pictures

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(ROOT.glob("docs/tour*.md"))
IMAGES = ROOT / "docs/images"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUNS = "runs/tour/"
TRAININGS = {"gpt": "configs/gpt/shakespeare-char-cpu.yaml", "translator": "configs/translation/dict-de-en.yaml"}


def program():
    return Path(os.environ.get("ZOO_PROGRAM", ROOT / "build/release/zoo"))


@functools.cache
def output_of(command):
    """What a shell command prints on standard output."""
    environment = {**os.environ, "PATH": f"{program().parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"make_tour: {command}\n{done.stderr}")
    # The page does not say where the repository is.
    return "".join(line.rstrip().replace(f"{ROOT}/", "") + "\n" for line in done.stdout.splitlines())


def commands_of(block):
    """The commands of a block with their outputs."""
    found = []
    for line in block.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append([line[2:].rstrip("\n"), ""])
        else:
            found[-1][1] += line
    return found


def needs_a_run(command):
    return RUNS in command


def check():
    stale = []
    for page in PAGES:
        for block in BLOCK.findall(page.read_text()):
            for command, shown in commands_of(block):
                if not needs_a_run(command) and output_of(command) != shown:
                    stale.append((page.name, command))
    for name, command in stale:
        print(f"make_tour: docs/{name} shows another output of: {command}\n"
              "make_tour: run scripts/make_tour.py", file=sys.stderr)
    return 1 if stale else 0


def train():
    corpora = ("tinyshakespeare", "dict-de-en")
    subprocess.run([ROOT / "scripts/get_data.sh", *corpora], check=True)
    for name, config in TRAININGS.items():
        subprocess.run([program(), "train", config, "--out", RUNS + name, "--resume"], cwd=ROOT, check=True)


def write_outputs():
    def renewed(match):
        lines = [f"$ {command}\n{output_of(command)}" for command, _ in commands_of(match[1])]
        return "```console\n" + "".join(lines) + "```"
    for page in PAGES:
        page.write_text(BLOCK.sub(renewed, page.read_text()))


def draw():
    IMAGES.mkdir(exist_ok=True)
    numbers = json.loads(output_of(program().parent / "tour_numbers"))
    translation = json.loads(output_of(f'zoo attention {RUNS}translator --text "Ich liebe dich ." --json'))
    text = json.loads(output_of(f'zoo attention {RUNS}gpt --text "ROMEO: I love" --json'))
    drawn = {
        "attention": pictures.translator_maps(translation, [
            ("encoder", 1, 0, "encoder"), ("decoder", 1, 0, "decoder"), ("cross", 1, 5, "cross-attention")]),
        "heads": pictures.heads_of_a_layer(text, 1),
        "positions": pictures.positions(numbers),
        "activations": pictures.activations(numbers["activations"]),
        "residual": pictures.residual(numbers["residual"]),
    }
    for name, svg in drawn.items():
        (IMAGES / f"tour-{name}.svg").write_text(svg)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        return check()
    train()
    write_outputs()
    draw()
    return subprocess.run([ROOT / "scripts/quote_sources.py", "--write"]).returncode


if __name__ == "__main__":
    sys.exit(main())
