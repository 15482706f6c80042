#!/usr/bin/env python3
"""Turns the German-English dictionary of Debian's `trans-de-en` package (Ding, TU Chemnitz) into parallel texts.

Usage: prepare_dict_de_en.py /usr/share/trans/de-en OUT

OUT/{train,valid,test}.{de,en}   short sentences, 2 to 8 words, each German sentence once
OUT/phrases.train.{de,en}        phrases of 2 to 8 words

Line i of X.de is the translation of line i of X.en. Punctuation is separated from words, as in translation corpora:
"Ich liebe dich ." An entry of the dictionary looks like this

    lieben {vt} | liebend | Ich liebe dich. :: to love | loving | I love you. /ILU/ <I love u>

with variants between |, synonyms between ; and annotations in {} [] () <> and //.
"""

import hashlib
import re
import sys
from pathlib import Path

SENTENCE_WORDS = range(2, 9)
PHRASE_WORDS = range(2, 9)
HELD_OUT = 500

# The demo asks its models about such sentences, so all of them stay in the training text.
FAMILY = re.compile(r"\b(liebe|lieben|liebst|liebt)\s+(dich|mich|sie|ihn|uns|euch)\b|\blove you\b", re.IGNORECASE)

ABBREVIATIONS = set(
    "jd. jdm. jdn. jds. etw. sb. sth. sb.'s sth.'s usw. etc. bzw. ca. vs. Mr. Mrs. Ms. Dr. Prof. St. Nr. No. z. B. "
    "z.B. u.a. d.h. e.g. i.e. a.m. p.m. U.S. Hr. Fr. Str. Jh. Abs. Art. Bd. S. p. allg. evtl. ggf. inkl. max. min. "
    "Mio. Mrd. Co. Inc. Ltd. Jr. Sr. Hl. hl. Hrn. no.".split())
PLACEHOLDERS = set(
    "jd. jdm. jdn. jds. jmd. jmdm. jmdn. etw. usw. sb. sth. sb.'s sth.'s sb sth etc. o.s.".split())
PUNCTUATION = ".,;:!?\"…–()"


def strip_annotations(text):
    """`text` without annotations in brackets or between slashes; None if brackets do not match."""
    if "<>" in text:  # "side <> sth.": the words may come in either order
        return None
    before = None
    while before != text:  # innermost first, because brackets are nested
        before = text
        text = re.sub(r"\{[^{}]*\}|\[[^\[\]]*\]|\([^()]*\)|<[^<>]*>", " ", text)
    text = re.sub(r"(?<!\S)/[A-Z0-9][^/|;]*/(?=[\s;,.!?]|$)", " ", text)  # an abbreviation: /ILU/
    return None if re.search(r"[{}\[\]()<>/|=→~+*_@#^\\]", text) else text


def separate(text):
    """`text` with one blank between all words and punctuation marks."""
    text = text.translate(str.maketrans({
        "’": "'", "‘": "'", "´": "'", "`": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "\u00a0": " "}))
    text = re.sub(r"(?<=\s)-+(?=\s)", "–", text.replace("...", "…").replace("—", "–"))
    text = re.sub(r'([,;:!?"…–])(?!\d)', r" \1 ", text)
    words = text.split()
    tokens = []
    for i, word in enumerate(words):
        rest = words[i + 1:]
        # A full stop ends a sentence only if punctuation alone or a capital follows; "3." and "sth." are words.
        at_end = all(w in PUNCTUATION for w in rest)
        if word.endswith(".") and len(word) > 1 and word not in ABBREVIATIONS and (
                at_end or (rest[0][:1].isupper() and not re.fullmatch(r"(\d+|\w)\.", word))):
            tokens += [word.rstrip("."), "."]
        else:
            tokens.append(word)
    return " ".join(tokens)


def is_word(token):
    return any(c.isalnum() for c in token)


def n_words(text):
    return sum(is_word(token) for token in text.split())


def sane(text):
    """Whether `text` has no cut-off words, as in "A- und B-Boden" or "Rachen…", and only characters of the two
    languages."""
    tokens = text.split()
    if any(len(t) > 1 and (t[0] in "-…'" or t[-1] in "-…") for t in tokens) or text.count('"') % 2:
        return False
    if "…" in tokens[:-2]:  # a gap for the reader to fill
        return False
    return all(ord(c) < 0x250 or c in "…–€" for c in text)


def pairs(path):
    """(German, English) of every entry, in the order of the dictionary."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#") or line.count("::") != 1:
            continue
        german, english = (side.split("|") for side in line.split("::"))
        if len(german) != len(english):
            continue
        for de, en in zip(german, english):
            de, en = strip_annotations(de), strip_annotations(en)
            if de is None or en is None:
                continue
            des, ens = de.split(";"), en.split(";")
            if len(des) != len(ens):
                des, ens = des[:1], ens[:1]
            for d, e in zip(des, ens):
                d, e = separate(d), separate(e)
                if d and e and sane(d) and sane(e):
                    yield d, e


def is_sentence(text):
    tokens = text.split()
    return (tokens[-1] in ".!?" and text.lstrip('" ')[:1].isupper() and n_words(text) in SENTENCE_WORDS
            and not PLACEHOLDERS.intersection(tokens))


def is_phrase(text):
    return text.split()[-1] not in ".!?…" and n_words(text) in PHRASE_WORDS


def write(out, name, rows):
    for column, language in enumerate(("de", "en")):
        with open(out / f"{name}.{language}", "w", encoding="utf-8", newline="\n") as file:
            file.writelines(row[column] + "\n" for row in rows)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, out = Path(sys.argv[1]), Path(sys.argv[2])
    sentences, phrases = {}, {}  # German to English; only the first translation, so that a model can learn it
    for de, en in pairs(source):
        if is_sentence(de) and is_sentence(en) and de[-1] == en[-1]:
            sentences.setdefault(de, en)
        elif is_phrase(de) and is_phrase(en):
            phrases.setdefault(de, en)
    if len(sentences) <= 2 * HELD_OUT:
        sys.exit(f"{source} is not the dictionary: only {len(sentences)} sentences in it")

    def draw(pair):
        return hashlib.sha256("\t".join(pair).encode()).digest()

    rows = list(sentences.items())
    drawn = sorted((row for row in rows if not FAMILY.search(" ".join(row))), key=draw)
    split = {row: name for name, part in (("valid", drawn[:HELD_OUT]), ("test", drawn[HELD_OUT:2 * HELD_OUT]))
             for row in part}
    out.mkdir(parents=True, exist_ok=True)
    for name in ("train", "valid", "test"):
        write(out, name, [row for row in rows if split.get(row, "train") == name])
    write(out, "phrases.train", list(phrases.items()))


if __name__ == "__main__":
    main()
