#!/usr/bin/env python3
"""Turns the German message catalogues (.mo files of gettext) of programs into parallel texts.

Usage: prepare_messages_de_en.py FOLDER DICTIONARY OUT

FOLDER is searched for .../de/LC_MESSAGES/*.mo. A catalogue maps English messages to German ones. DICTIONARY is the
corpus of prepare_dict_de_en.py: one model may be trained on both.

OUT/{train,valid,test}.{de,en}   messages of 2 to 8 words, each German message once
OUT/words.train.{de,en}          messages of one word

Line i of X.de is the translation of line i of X.en. Words and punctuation are separated as in prepare_dict_de_en.py.
Marks of menus are removed: the letter of a keyboard shortcut (&Open, _Open, ~Open), final dots and colons. Messages with
formats (%s), markup, paths or line breaks are left out, as are singular and plural in one. No German and no English
message is in two splits, also with other punctuation or capitals, and none is in a split of this corpus and in another
split of the dictionary.
"""

import hashlib
import re
import struct
import sys
from collections import Counter
from pathlib import Path

from prepare_dict_de_en import n_words, separate, write

WORDS = range(2, 9)
HELD_OUT = {"valid": 500, "test": 1500}  # about as many for each message of training as the dictionary has
LEAST_PAIRS = 5000
MAGIC = 0x950412DE

SHORTCUT = re.compile(r"[&_~](?=\w)")
ALLOWED = re.compile(r"[\w\s.,:;!?'\"’‘“”„»«()/+…–-]+")


def catalogue(path):
    """(message, translation) of each entry of a .mo file (GNU gettext manual, "The Format of GNU MO Files")."""
    data = path.read_bytes()
    try:
        order = "<" if struct.unpack_from("<I", data)[0] == MAGIC else ">"
        magic, _, n, originals, translations = struct.unpack_from(order + "5I", data)
        if magic != MAGIC:
            raise ValueError("no magic number")

        def text(table, i):
            length, begin = struct.unpack_from(order + "2I", data, table + 8 * i)
            if begin + length > len(data):
                raise ValueError(f"entry {i} lies outside the file")
            return data[begin:begin + length]

        entries = [(text(originals, i), text(translations, i)) for i in range(n)]
        header = next((value for key, value in entries if not key), b"")
        charset = re.search(rb"charset=([\w-]+)", header)
        encoding = charset.group(1).decode() if charset else "utf-8"
        return [(key.decode(encoding), value.decode(encoding)) for key, value in entries if key]
    except (struct.error, ValueError, LookupError) as error:  # UnicodeDecodeError is a ValueError
        sys.exit(f"{path} is not a message catalogue: {error}")


def plain(text):
    """A message as text: without shortcuts, final dots and colons; None if it has anything but words."""
    if "\n" in text.strip():
        return None
    text = " ".join(SHORTCUT.sub("", text, count=1).split())
    text = re.sub(r"\s*(\.{2,}|…|:)$", "", text)
    if not text or not ALLOWED.fullmatch(text) or re.search(r"[_/.]\w*[_/.]|(^|\s)[/-]+\w|\w[.]\w\w|[()]\s*[()]|\d{4,}", text):
        return None
    text = separate(text)
    return text if text.count('"') % 2 == 0 and text.count("(") == text.count(")") else None


def pairs(folder):
    """(German, English) of all usable messages, in the order of the files' names."""
    for path in sorted(folder.rglob("de/LC_MESSAGES/*.mo")):
        for english, german in catalogue(path):
            if "\0" in english:  # singular and plural
                continue
            english = english.split("\4")[-1]  # a context may stand before the message
            english, german = plain(english), plain(german)
            if english and german and english != german and (english[-1] in ".!?") == (german[-1] in ".!?"):
                yield german, english


def key(text):
    """The same for messages that differ in punctuation or capitals only."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def one_translation_each(rows):
    """The rows with each German message once, with its most frequent translation."""
    votes, first = {}, {}
    for german, english in rows:
        votes.setdefault(key(german), Counter())[english] += 1
        first.setdefault(key(german), german)
    return [(first[k], counter.most_common(1)[0][0]) for k, counter in votes.items() if k]


def keys_in(dictionary, *names):
    """The keys of all lines of these parts of the dictionary, in both languages."""
    files = (dictionary / f"{name}.{language}" for name in names for language in ("de", "en"))
    return {key(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()}


def held_out(rows, seen):
    """Rows to hold out, in the order of a hash: with an English message that no other row has, and neither message
    among the keys `seen`."""
    n_of = Counter(key(english) for _, english in rows)
    unique = [row for row in rows if n_of[key(row[1])] == 1 and not seen.intersection(map(key, row))]
    return sorted(unique, key=lambda row: hashlib.sha256("\t".join(row).encode()).digest())


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    folder, dictionary, out = map(Path, sys.argv[1:])
    unseen = keys_in(dictionary, "valid", "test")
    rows = [row for row in one_translation_each(pairs(folder)) if not unseen.intersection(map(key, row))]
    messages = [row for row in rows if all(n_words(text) in WORDS for text in row)]
    words = [row for row in rows if all(n_words(text) == 1 for text in row)]
    if len(messages) < LEAST_PAIRS:
        sys.exit(f"the catalogues have only {len(messages)} German messages; at least {LEAST_PAIRS} are needed")
    drawn = held_out(messages, keys_in(dictionary, "train", "phrases.train"))
    n_valid, n_drawn = HELD_OUT["valid"], sum(HELD_OUT.values())
    kept_back = set(drawn[:n_drawn])
    out.mkdir(parents=True, exist_ok=True)
    write(out, "train", [row for row in messages if row not in kept_back])
    write(out, "valid", drawn[:n_valid])
    write(out, "test", drawn[n_valid:n_drawn])
    write(out, "words.train", words)


if __name__ == "__main__":
    main()
