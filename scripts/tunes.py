#!/usr/bin/env python3
"""Writes tunes as files, sheet music and MIDI, and measures how many are right.

Usage: tunes.py FILE… [--out DIR] [--training FILE.abc] [--json]
       tunes.py --form        prints a regular expression of tunes whose repeats all end, for zoo generate --regex

A FILE is what `zoo generate --json` printed, or an ABC file with tunes. With --out, each tune becomes DIR/NNN.abc, NNN.mid
(by abc2midi) and NNN.svg (by abcm2ps); Debian has both programs, in the packages abcmidi and abcm2ps. It prints four shares
of the tunes, with Wilson's intervals of 95 %:

    read             abc2midi reads the tune without a warning or an error
    right bars       the tune can be read here and no bar has a wrong length (scripts/data/abc_structure.py)
    copies           more than half of a tune's notes, in one piece, are in a tune of --training, in whatever key

and the longest piece that a tune has in common with one of the training tunes, as a share of its notes. Compare it with the
test tunes, which people wrote: `tunes.py test.abc --training train.abc`.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "data"))

from abc_notation import AbcError, melody, read_tune, texts_of  # noqa: E402
from abc_structure import wrong_bars  # noqa: E402
from abc_writing import form  # noqa: E402
from shares import share_text, wilson  # noqa: E402

COPY = 0.5  # of a tune's notes in one piece: then it is a copy


def texts_in(path):
    """The texts of the tunes in a file."""
    content = path.read_text(encoding="utf-8", errors="replace")
    if not content.lstrip().startswith("{"):
        return texts_of(content)
    results = json.loads(content)["results"]
    return [result["prompt"] + output["text"] for result in results for output in result["outputs"]]


class Pieces:
    """Which runs of notes occur in some tunes: a suffix automaton (Blumer et al. 1985) of their melodies."""

    def __init__(self, melodies):
        self.next, self.link, self.length = [{}], [-1], [0]
        last = 0
        for number, notes in enumerate(melodies):
            for note in [*notes, ("end", number)]:
                last = self.extend(last, note)

    def add_state(self, length, following, link):
        self.next.append(following)
        self.link.append(link)
        self.length.append(length)
        return len(self.next) - 1

    def extend(self, last, note):
        new = self.add_state(self.length[last] + 1, {}, 0)
        state = last
        while state >= 0 and note not in self.next[state]:
            self.next[state][note] = new
            state = self.link[state]
        if state < 0:
            return new
        target = self.next[state][note]
        if self.length[target] == self.length[state] + 1:
            self.link[new] = target
            return new
        copy = self.add_state(self.length[state] + 1, dict(self.next[target]), self.link[target])
        while state >= 0 and self.next[state].get(note) == target:
            self.next[state][note] = copy
            state = self.link[state]
        self.link[target] = self.link[new] = copy
        return new

    def longest(self, notes):
        """The number of notes of the longest run that also occurs in one of the tunes."""
        state, length, best = 0, 0, 0
        for note in notes:
            while state and note not in self.next[state]:
                state = self.link[state]
                length = self.length[state]
            if note in self.next[state]:
                state = self.next[state][note]
                length += 1
            best = max(best, length)
        return best


def complaints(abc, midi):
    """What abc2midi complains about while it makes a MIDI file: a list of lines."""
    done = subprocess.run(["abc2midi", abc, "-o", midi], capture_output=True, encoding="utf-8", errors="replace")
    lines = (done.stdout + done.stderr).splitlines()
    found = [line for line in lines if re.search("warning|error", line, re.IGNORECASE)]
    if not found and (done.returncode != 0 or not midi.exists()):
        found = [f"abc2midi ends with code {done.returncode}"]
    return found


def titled(text, number):
    """The text with a number and a title, as ABC wants them."""
    fields = f"X:{number}\nT:Tune {number}\n"
    text = re.sub(r"\A\s*X:.*\n", fields, text)
    return text if text.startswith("X:") else fields + text


def measure(text, number, folder, pieces):
    """What is said of a tune, as a dictionary."""
    abc, midi = folder / f"{number:03}.abc", folder / f"{number:03}.mid"
    abc.write_text(titled(text, number).rstrip("\n") + "\n", encoding="utf-8")
    result = {"complaints": complaints(abc, midi), "error": None, "wrong_bars": [], "notes": 0, "copied": 0}
    try:
        tune = read_tune(text)
    except AbcError as error:
        result["error"] = str(error)
        return result
    notes = melody(tune)
    return {**result, "wrong_bars": wrong_bars(tune), "notes": len(notes), "copied": pieces.longest(notes)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--out", type=Path, help="the folder for .abc, .mid and .svg")
    parser.add_argument("--training", type=Path, help="the tunes of which nothing should be copied")
    parser.add_argument("--json", action="store_true", help="one JSON document with what was found in each tune")
    parser.add_argument("--form", action="store_true", help="only print the regular expression")
    options = parser.parse_args()
    if options.form:
        print(form(), end="")
        return
    if not options.files:
        parser.error("name a FILE with tunes")
    melodies = set()
    if options.training:
        for text in texts_of(options.training.read_text(encoding="utf-8")):
            melodies.add(tuple(melody(read_tune(text))[1:]))  # the same in every key
    pieces = Pieces(sorted(melodies, key=repr))
    texts = [text for path in options.files for text in texts_in(path)]
    if not texts:
        sys.exit("tunes.py: no tunes")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            results = [measure(text, number, folder, pieces) for number, text in enumerate(texts, 1)]
            for number in range(1, len(texts) + 1) if options.out else ():
                sheet = folder / f"{number:03}.svg"
                subprocess.run(["abcm2ps", "-q", "-X", "-O", sheet, folder / f"{number:03}.abc"], capture_output=True)
        except FileNotFoundError as error:
            sys.exit(f"tunes.py: {error.filename} is missing: apt-get install abcmidi abcm2ps")
    n = len(results)
    counts = {"read": sum(not r["complaints"] for r in results),
              "right_bars": sum(not r["error"] and not r["wrong_bars"] for r in results),
              "copies": sum(r["copied"] > COPY * r["notes"] for r in results)}
    copied = [r["copied"] / r["notes"] for r in results if r["notes"]]
    if options.json:
        shares = {name: {"count": count, "of": n, "interval": wilson(count, n)} for name, count in counts.items()}
        print(json.dumps({**shares, "tunes": results}, indent=1))
        return
    print(f"read by abc2midi without a complaint  {share_text(counts['read'], n)}")
    print(f"right bars                            {share_text(counts['right_bars'], n)}")
    if options.training and copied:
        print(f"copies                                {share_text(counts['copies'], n)}")
        print("longest piece of a training tune      median "
              f"{100 * statistics.median(copied):.0f} %, at most {100 * max(copied):.0f} % of the notes")


if __name__ == "__main__":
    main()
