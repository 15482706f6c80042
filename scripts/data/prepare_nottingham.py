#!/usr/bin/env python3
"""Turns the tunes of the Nottingham Music Database (ABC files) into texts to learn from.

Usage: prepare_nottingham.py FOLDER OUT

OUT/{train,valid,test}.abc   tunes with an empty line between them, each in the form of abc_writing.py

A tune has its kind (R:jig, from the file's name), metre, unit, key, melody, names of chords. Its title is left out: a
model that has learnt a title by heart goes on with its tune. Tunes that cannot be read, and those with a bar of the wrong
length, are left out. Each tune of the training data is there in up to eight keys, from three flats to four sharps, in an
order that the tunes' hashes give; the others are in their own key only.

Tunes of the same title and tunes that share much of their melody are in one split.
"""

import hashlib
import re
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from abc_notation import AbcError, melody, read_tune, texts_of
from abc_structure import with_explicit_repeats, without_false_ties, wrong_bars
from abc_transposition import clean_chord, transpose
from abc_writing import write_tune

KINDS = {"jigs": "jig", "reels": "reel", "waltzes": "waltz", "hpps": "hornpipe", "slip": "slip jig", "morris": "morris",
         "playford": "playford", "xmas": "carol", "ashover": "dance"}
SHARPS = range(-3, 5)  # of the keys to move a tune to
LOWEST, HIGHEST = -3, 16  # G, to e'
PHRASE = 8  # notes
SHARED = 0.3  # of the phrases of the shorter tune: then two tunes are in one split
LEAST_TUNES = 900


def kind_of(path):
    return next((kind for name, kind in KINDS.items() if path.stem.startswith(name)), "tune")


def clean(text):
    """The tune of a text; throws AbcError if it is of no use."""
    tune = without_false_ties(with_explicit_repeats(read_tune(text)))
    if wrong_bars(tune):
        raise AbcError("a bar has the wrong length")
    for bar in tune.bars:
        bar.events = [replace(event, chord=event.chord and clean_chord(event.chord)) for event in bar.events]
    return tune


def title_key(title):
    """The same for titles that differ in an article, a number, punctuation or capitals only."""
    words = re.findall(r"[a-z]+", title.lower().replace("'", ""))
    return " ".join(word for word in words if word not in {"the", "a", "no", "i", "ii", "iii"})


def groups_of(tunes):
    """For each tune, the number of its group: tunes of one title or with much melody in common."""
    leader = list(range(len(tunes)))

    def find(i):
        while leader[i] != i:
            leader[i] = leader[leader[i]]
            i = leader[i]
        return i

    def join(i, j):
        leader[max(find(i), find(j))] = min(find(i), find(j))

    titles, owners, phrases = {}, defaultdict(list), []
    for i, tune in enumerate(tunes):
        join(i, titles.setdefault(title_key(tune.title), i))
        notes = melody(tune)
        # The first interval of a phrase belongs to the note before it.
        phrases.append({(notes[j][1], *notes[j + 1:j + PHRASE]) for j in range(len(notes) - PHRASE + 1)})
        for phrase in phrases[-1]:
            owners[phrase].append(i)
    shared = defaultdict(int)
    for together in owners.values():
        for n, i in enumerate(together):
            for j in together[n + 1:]:
                shared[i, j] += 1
    for (i, j), n in shared.items():
        if n >= SHARED * min(len(phrases[i]), len(phrases[j])):
            join(i, j)
    return [find(i) for i in range(len(tunes))]


def hashed(text):
    return hashlib.sha256(text.encode()).hexdigest()


def split_of(group_key):
    """7 % of the groups are for validation, 7 % for the test."""
    share = int(hashed("split " + group_key)[:8], 16) / 16**8
    return "valid" if share < 0.07 else "test" if share < 0.14 else "train"


def in_keys(tune):
    """The tune in all keys of SHARPS in which it is neither too high nor too low."""
    places = [pitch.position() for bar in tune.bars for event in bar.events for pitch in event.pitches]
    low, high = min(places), max(places)
    for sharps in SHARPS:
        fifths = sharps - tune.bars[0].key.sharps
        if fifths == 0:
            yield tune
            continue
        up = 4 * fifths % 7
        for steps in sorted((up - 7, up, up + 7 * (up == 0)), key=abs):
            if low + steps < LOWEST or high + steps > HIGHEST:
                continue
            try:
                yield transpose(tune, steps, fifths)
            except AbcError:  # a key with too many accidentals
                pass
            break


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    tunes, kinds, left_out = [], [], 0
    for path in sorted(folder.glob("*.abc")):
        if path.stem in ("train", "valid", "test"):
            continue
        for text in texts_of(path.read_text(encoding="latin-1")):
            try:
                tunes.append(clean(text))
                kinds.append(kind_of(path))
            except AbcError:
                left_out += 1
    if len(tunes) < LEAST_TUNES:
        sys.exit(f"{folder} has only {len(tunes)} tunes that can be read")
    groups = groups_of(tunes)
    splits = {"train": [], "valid": [], "test": []}
    for tune, kind, group in zip(tunes, kinds, groups):
        split = split_of(tunes[group].title)
        for moved in in_keys(tune) if split == "train" else [tune]:
            splits[split].append(write_tune(moved, [f"R:{kind}"]))
    for split, texts in splits.items():
        texts = sorted(set(texts), key=hashed)
        with open(out / f"{split}.abc", "w", encoding="utf-8", newline="\n") as file:
            file.write("\n".join(texts))
        print(f"{split}: {len(texts)} texts", file=sys.stderr)
    print(f"{len(tunes)} tunes in {len(set(groups))} groups; {left_out} are left out", file=sys.stderr)


if __name__ == "__main__":
    main()
