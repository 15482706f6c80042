#!/usr/bin/env python3
"""Sentences of fortunes, spoken by espeak-ng in several voices.

Usage: make_espeak.py FORTUNES OUT [PART]      PART: only a PART-th of the sentences, for tests

FORTUNES is the directory of the corpus of that name; espeak-ng is Debian's package. OUT gets

    train.tsv, valid.tsv, test.tsv   lists of 3,000, 200 and 200 sentences: the columns audio, text (small letters and
                                     apostrophes) and speaker, which is the voice
    recordings/*.wav                 the sentences
    recordings.sha256                their checksums

A sentence has 3 to 12 words of letters alone. The training sentences are from the training part of fortunes, the others
from its validation part. What espeak-ng makes of a sentence depends on its version.
"""

import re
import subprocess
import sys
from functools import partial
from multiprocessing.pool import ThreadPool
from pathlib import Path

from speech_lists import write_lists, write_sums
from synthetic import Draw

SENTENCES = {"train": 3_000, "valid": 200, "test": 200}
SOURCES = {"train": "train.txt", "valid": "valid.txt", "test": "valid.txt"}
VOICES = [f"{accent}+{voice}" for accent in ("en-gb", "en-us", "en-gb-scotland") for voice in ("m1", "m3", "m7", "f1", "f2", "f4")]
SLOWEST, FASTEST = 140, 200  # words per minute
FEWEST, MOST = 3, 12  # words


def sentences(path):
    """The sentences of a part of fortunes that can be spoken as they are written, each once."""
    found = {}
    for fortune in path.read_text(encoding="utf-8").split("\n%\n"):
        for sentence in re.split(r"(?<=[.!?])\s+", " ".join(fortune.split())):
            if not all(re.fullmatch(r"[A-Za-z]['a-z]*,?", word) for word in sentence[:-1].split(" ")) or sentence[-1] not in ".!?":
                continue
            text = re.sub(r"[^a-z' ]", "", sentence.lower())
            if FEWEST <= len(text.split()) <= MOST:
                found.setdefault(text, sentence)
    return sorted(found.items())


def speak(out, row):
    name, sentence, voice, speed = row
    command = ["espeak-ng", "-v", voice, "-s", str(speed), "-w", str(out / "recordings" / name), sentence]
    subprocess.run(command, check=True, capture_output=True)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    fortunes, out = map(Path, sys.argv[1:3])
    part = int(sys.argv[3]) if len(sys.argv) == 4 else 1
    (out / "recordings").mkdir(parents=True, exist_ok=True)
    lists, rows, used = {}, [], set()
    for split, n in SENTENCES.items():
        draw = Draw(f"espeak {split}")
        left = [item for item in sentences(fortunes / SOURCES[split]) if item[0] not in used]
        lists[split] = []
        for number, (text, sentence) in enumerate(draw.some_of(left, min(n // part, len(left))), start=1):
            used.add(text)
            voice = draw.one_of(VOICES)
            name = f"{split}-{number:04}.wav"
            rows.append((name, sentence, voice, SLOWEST + draw.below(FASTEST - SLOWEST + 1)))
            lists[split].append((name, text, voice))
    try:
        with ThreadPool() as pool:
            pool.map(partial(speak, out), rows)
    except FileNotFoundError:
        sys.exit("espeak-ng is missing: install the package espeak-ng")
    except subprocess.CalledProcessError as error:
        sys.exit(f"espeak-ng failed: {error.stderr.decode(errors='replace').strip()}")
    write_lists(out, lists)
    write_sums(out)


main()
