#!/usr/bin/env python3
"""Writes the outputs of docs/applications.md, ten of each application, with the runs of its recipes.

Usage: applications.py [--zoo build/release/zoo] [--datasets datasets] [--runs runs] [--only NAME…] [--page FILE]
                       [--pictures] [--write]

NAME is speech, strings, proteins, tunes, functions or gaps. Without --write it prints the outputs. The ten are not
selected: seed 1 draws them from the test split, or they are the first that the run writes with seed 1.
--pictures draws docs/images/applications-tunes.png: the first three tunes as sheet music. It needs Debian's programs
abcm2ps and chromium, and Pillow from PyPI.
"""

import argparse
import csv
import random
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "benchmarks/code"))

from functions import Gap, fill, texts_of, zoo  # noqa: E402
from page_section import with_section  # noqa: E402

PAGE = ROOT / "docs/applications.md"
PICTURE = ROOT / "docs/images/applications-tunes.png"
OUTPUTS = 10
DRAWN = 3            # tunes in the picture
RESIDUES = 80        # that are shown of a chain


def drawn(items):
    """Ten of the items, drawn with seed 1, in their order."""
    return [items[i] for i in sorted(random.Random(1).sample(range(len(items)), OUTPUTS))]


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def fenced(text, language=""):
    return f"```{language}\n{text.strip(chr(10))}\n```"


def transcripts(options, name):
    """Test recordings of a corpus, what is said in them, and what the run of the same name writes."""
    rows = drawn(rows_of(options.datasets / name / "test.tsv"))
    files = [options.datasets / name / row["audio"] for row in rows]
    results = zoo(options.zoo, "predict", options.runs / name, "--audio", *files)["results"]
    lines = ["| recording | speaker | said | written |", "|---|---|---|---|"]
    for row, result in zip(rows, results):
        lines.append(f"| `{Path(row['audio']).name}` | {row['speaker']} | {row['text']} | {result['text']} |")
    return "\n".join(lines)


def structures(options):
    """Chains of CB513, from their first residue that counts, with the states that structure3 predicts and DSSP's."""
    blocks = []
    for row in drawn(rows_of(options.datasets / "proteins/structure.test.tsv")):
        tokens = zoo(options.zoo, "predict", options.runs / "structure3", "--text", row["sequence"])["results"][0]["tokens"]
        predicted, true = "".join(token["label"] for token in tokens), row["dssp3"]
        counted = [(p, t) for p, t in zip(predicted, true) if t in "HEC"]
        right = sum(p == t for p, t in counted)
        begin = next(i for i, t in enumerate(true) if t in "HEC")
        shown = slice(begin, begin + RESIDUES)
        blocks.append(f"sequence   {row['sequence'][shown]}\n"
                      f"predicted  {predicted[shown]}\n"
                      f"true       {true[shown]}   {right} of {len(counted)} right")
    return fenced("\n\n".join(blocks))


def samples(options, run):
    outputs = zoo(options.zoo, "generate", options.runs / run, "--prompt", "", "--num-samples", OUTPUTS, "--seed", 1)
    return [output["text"].strip() for output in outputs["results"][0]["outputs"]]


def tunes(options):
    texts = samples(options, "nottingham")
    if options.pictures:
        draw(texts[:DRAWN])
    return fenced("\n\n".join(texts))


def draw(texts):
    """Sheet music of tunes as one picture."""
    from PIL import Image, ImageOps  # only pictures need it

    with tempfile.TemporaryDirectory() as folder:
        source, page = Path(folder) / "tunes.abc", Path(folder) / "tunes.html"
        source.write_text("%%pageheight 60cm\n%%topmargin 0\n\n" + "\n\n".join(texts) + "\n", encoding="utf-8")
        music = subprocess.run(["abcm2ps", "-X", "-q", "-O", "-", source], capture_output=True, encoding="utf-8").stdout
        page.write_text(music.replace("<body>", '<body style="background: white; margin: 0 auto; width: 820px">'),
                        encoding="utf-8")
        subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=860,2000",
                        f"--screenshot={PICTURE}", page.as_uri()], stderr=subprocess.DEVNULL, check=True)
    with Image.open(PICTURE) as picture:
        ink = ImageOps.invert(picture.convert("L")).getbbox()
        picture.crop((0, max(ink[1] - 20, 0), picture.width, ink[3] + 20)).convert("L").save(PICTURE, optimize=True)


def functions(options):
    return fenced("\n\n".join(samples(options, "python")), "python")


def gaps(options):
    """Test functions with a line masked out, and what greedy search writes there."""
    texts = texts_of(options.datasets / "python-stdlib/test.jsonl")
    short = [text for text in texts if 4 <= text.count("\n") < 9 and max(map(len, text.split("\n"))) < 90]
    draw = random.Random(1)
    cases = [Gap(text, draw) for text in drawn(short)]
    prompts = [gap.prompt("suffix first") for gap in cases]
    blocks = []
    for gap, text in zip(cases, fill(options.zoo, options.runs / "python", prompts)):
        indentation = gap.before.split("\n")[-1]
        blocks.append(f"{gap.before}{gap.line}   # masked\n{indentation}{text}   # written{gap.after}")
    return fenced("\n\n".join(blocks), "python")


SECTIONS = {
    "speech": lambda options: transcripts(options, "fsdd"),
    "strings": lambda options: transcripts(options, "fsdd-strings"),
    "proteins": structures,
    "tunes": tunes,
    "functions": functions,
    "gaps": gaps,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zoo", default=ROOT / "build/release/zoo", type=Path)
    parser.add_argument("--datasets", default=ROOT / "datasets", type=Path)
    parser.add_argument("--runs", default=ROOT / "runs", type=Path)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--page", default=PAGE, type=Path, help="that --write changes")
    parser.add_argument("--pictures", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    for name in options.only:
        content = SECTIONS[name](options)
        if not options.write:
            print(f"{name}\n\n{content}\n")
            continue
        begin = f"<!-- {name}: begin, made by scripts/applications.py --write -->"
        page = with_section(options.page.read_text(encoding="utf-8"), begin, f"<!-- {name}: end -->", content)
        if page is None:
            sys.exit(f"{options.page}: the lines around {name} are missing")
        options.page.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
