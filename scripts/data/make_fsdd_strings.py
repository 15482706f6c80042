#!/usr/bin/env python3
"""Strings of spoken digits, made of the recordings of fsdd.

Usage: make_fsdd_strings.py FSDD OUT [PART]      PART: only a PART-th of the strings, for tests

FSDD is the directory of the corpus of that name. OUT gets

    train.tsv, valid.tsv, test.tsv   lists of 4,000, 300 and 500 strings: the columns audio, text ("four zero nine") and
                                     speaker
    recordings/*.wav                 the strings
    recordings.sha256                their checksums

A string has 3 to 7 digits that one speaker says, with 20 to 300 milliseconds of silence between two of them and up to
200 before the first and after the last. The recordings of a string are from the same split of fsdd as the string. The
files are the same on every machine: samples are copied, and all numbers are from synthetic.Draw.
"""

import sys
import wave
from collections import defaultdict
from pathlib import Path

from speech_lists import write_lists, write_sums
from synthetic import Draw

STRINGS = {"train": 4_000, "valid": 300, "test": 500}
FEWEST, MOST = 3, 7  # digits of a string
RATE = 8_000
SHORTEST_GAP, LONGEST_GAP, LONGEST_EDGE = 160, 2_400, 1_600  # samples
BYTES = 2  # of a sample


def read_split(fsdd, split):
    """The recordings of a split: of each speaker, (word, samples as bytes)."""
    speakers = defaultdict(list)
    for line in (fsdd / f"{split}.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        name, word, speaker = line.split("\t")
        with wave.open(str(fsdd / name)) as file:
            if (file.getframerate(), file.getnchannels(), file.getsampwidth()) != (RATE, 1, BYTES):
                sys.exit(f"{fsdd / name}: not {RATE} samples of 16 bits per second in one channel")
            speakers[speaker].append((word, file.readframes(file.getnframes())))
    return speakers


def silence(samples):
    return bytes(BYTES * samples)


def make_string(draw, recordings):
    """(what is said, samples)"""
    chosen = [draw.one_of(recordings) for _ in range(FEWEST + draw.below(MOST - FEWEST + 1))]
    sound = silence(draw.below(LONGEST_EDGE + 1))
    for i, (_, samples) in enumerate(chosen):
        if i > 0:
            sound += silence(SHORTEST_GAP + draw.below(LONGEST_GAP - SHORTEST_GAP + 1))
        sound += samples
    return " ".join(word for word, _ in chosen), sound + silence(draw.below(LONGEST_EDGE + 1))


def write_wav(path, samples):
    with wave.open(str(path), "wb") as file:
        file.setparams((1, BYTES, RATE, 0, "NONE", ""))
        file.writeframes(samples)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    fsdd, out = map(Path, sys.argv[1:3])
    part = int(sys.argv[3]) if len(sys.argv) == 4 else 1
    (out / "recordings").mkdir(parents=True, exist_ok=True)
    lists = {}
    for split, n in STRINGS.items():
        draw = Draw(f"fsdd-strings {split}")
        speakers = read_split(fsdd, split)
        names = sorted(speakers)
        lists[split] = []
        for number in range(1, n // part + 1):
            speaker = draw.one_of(names)
            text, samples = make_string(draw, speakers[speaker])
            name = f"{split}-{number:04}.wav"
            write_wav(out / "recordings" / name, samples)
            lists[split].append((name, text, speaker))
    write_lists(out, lists)
    write_sums(out)


main()
