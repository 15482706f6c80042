#!/usr/bin/env python3
"""The Free Spoken Digit Dataset (Jakobovski et al., CC BY-SA 4.0) as lists of recordings, for speech recognition.

Usage: prepare_fsdd.py RECORDINGS OUT

RECORDINGS is a directory with the files DIGIT_SPEAKER_INDEX.wav. OUT gets

    train.tsv, valid.tsv, test.tsv   lists: the columns audio, text ("zero" to "nine") and speaker
    recordings/*.wav                 the recordings
    recordings.sha256                their checksums

Six speakers say each digit 45 times. INDEX 0 to 4 is the published test split, 5 to 9 is for validation. Releases with
more recordings are cut to these.
"""

import re
import shutil
import sys
from pathlib import Path

from speech_lists import DIGITS, write_lists, write_sums

MOST = 45  # recordings of a digit by a speaker
TEST, VALID = 5, 10  # the first indices that are not for testing, and not for validation


def split_of(index):
    return "test" if index < TEST else "valid" if index < VALID else "train"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, out = map(Path, sys.argv[1:])
    (out / "recordings").mkdir(parents=True, exist_ok=True)
    lists = {"train": [], "valid": [], "test": []}
    for path in sorted(source.glob("*.wav")):
        name = re.fullmatch(r"([0-9])_([a-z]+)_([0-9]+)\.wav", path.name)
        if not name or int(name[3]) >= MOST:
            continue
        shutil.copyfile(path, out / "recordings" / path.name)
        lists[split_of(int(name[3]))].append((path.name, DIGITS[int(name[1])], name[2]))
    if not all(lists.values()):
        sys.exit(f"{source}: no recordings DIGIT_SPEAKER_INDEX.wav")
    write_lists(out, lists)
    write_sums(out)


main()
