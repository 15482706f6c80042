#!/usr/bin/env python3
"""Makes tokenizers/unicode/tables.cpp: what the installed `tokenizers` takes characters for.

Its parts have the tables of several versions of Unicode (Rust's own, those of crates, Oniguruma's). They are asked here
for every code point, so that no version of a library on this machine decides which tokens a text gets.

    make_unicode_tables.py           writes the file
    make_unicode_tables.py --check   compares it with the installed `tokenizers`; a difference is an error
    make_unicode_tables.py --count   says by how many code points each table differs from Unicode 14, which PCRE2 has
"""

import argparse
import pathlib
import sys
import unicodedata

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

FILE = pathlib.Path(__file__).parents[1] / "tokenizers/unicode/tables.cpp"
ALL = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf".split()
SCRIPTS = ["Han", "Hiragana", "Katakana", "Latin", "Greek", "Cyrillic", "Arabic", "Devanagari", "Kannada", "Telugu",
           "Hangul", "Thai", "Hebrew", "Bopomofo"]


def matches(expression, text):
    """The places of single characters in `text` that match."""
    cut = pre_tokenizers.Split(Regex(f"(?:{expression})+"), "removed", invert=True)
    return {i for _, (begin, end) in cut.pre_tokenize_str(text) for i in range(begin, end)}


def where(predicate):
    return {ord(c) for c in ALL if predicate(c)}


def removed(normalizer, text):
    return {ord(c) for c in set(text) - set(normalizer.normalize_str(text))}


def cut_out(cutter):
    """The characters that are a piece of their own between letters, and those that are in no piece."""
    alone, covered = set(), set()
    for _, (begin, end) in cutter.pre_tokenize_str("".join("a" + c for c in ALL) + "a"):
        if begin % 2 == 1 and end == begin + 1:
            alone.add(ord(ALL[begin // 2]))
        covered.update(range(begin | 1, end, 2))
    return alone, {ord(c) for i, c in enumerate(ALL) if 2 * i + 1 not in covered}


def classes():
    """Name of a table → its code points."""
    clean = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    strip = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
    nfd = normalizers.NFD().normalize_str
    alone, none = {}, {}
    for name in ("BertPreTokenizer", "Digits", "Whitespace", "WhitespaceSplit"):
        alone[name], none[name] = cut_out(pre_tokenizers.__dict__[name]())
    spaces = none["WhitespaceSplit"]
    kept = [c for c in ALL if c not in "\0\ufffd" and ord(c) not in spaces]
    controls = {ord(c) for c in ALL if ord(c) in spaces and c not in " \t\n\r" and clean.normalize_str(c) == ""}
    starters = [c for c in ALL if nfd(c) == c]
    return {
        "bert_removed": removed(clean, "".join(kept)) | controls,
        "bert_nonspacing": removed(strip, "a".join(starters)),
        "bert_punctuation": alone["BertPreTokenizer"],
        "combining": removed(normalizers.StripAccents(), "".join(ALL)),
        "numeric": alone["Digits"],
        "word": {ord(c) for c in ALL} - alone["Whitespace"] - none["Whitespace"],
        "white_space": spaces,
        "grapheme_extending": joined_after_a(),
        "grapheme_preceding": joined_before_a(),
        "later_than_normal_forms": where(is_later),
    }


def charsmap(rules):
    """A SentencePiece charsmap that replaces one-byte texts: {byte: text}."""
    import base64
    import struct
    units = [0] * 512
    # The root leads to the block at 256. The unit of a byte c is 256 ^ c: its label, that there is a value, and an offset
    # that leads to the unit of the value.
    texts = b""
    values = {}
    for key, value in rules.items():
        values[key] = len(texts)
        texts += value.encode() + b"\0"
    units[0] = 256 << 10
    for key in rules:
        place = 256 ^ key
        target = len(units)
        units += [0] * 256
        units[place] = key | 1 << 8 | ((place ^ target) << 10)
        units[target] = values[key] | 1 << 31
    trie = struct.pack(f"<{len(units)}I", *units)
    return struct.pack("<I", len(trie)) + trie + texts


def precompiled(rules):
    return normalizers.Precompiled(charsmap(rules))


def whole_graphemes(rules, first, second):
    """Which pairs are one grapheme to Precompiled: it replaces a whole one by what its first byte says."""
    lines = precompiled(rules).normalize_str("".join(a + b + "\n" for a, b in zip(first, second))).split("\n")
    return [line == "b" for line in lines[:-1]]


def joined_after_a():
    others = [c for c in ALL if c not in "\0\n"]
    return {ord(c) for c, is_one in zip(others, whole_graphemes({ord("a"): "b"}, "a" * len(others), others)) if is_one}


def joined_before_a():
    """Of those with less than 4 bytes: the others are no part of a short grapheme."""
    by_lead = {}
    for c in ALL:
        if c not in "\0\n" and ord(c) < 0x10000:
            by_lead.setdefault(c.encode()[0], []).append(c)
    return {ord(c) for lead, group in by_lead.items()
            for c, is_one in zip(group, whole_graphemes({lead: "b"}, group, "a" * len(group))) if is_one}


NORMALIZERS = {form: normalizers.__dict__[form]().normalize_str for form in ("NFC", "NFD", "NFKC", "NFKD")}


def probes(c):
    return [c, c + "\u0334", "\u0345" + c, "a" + c]


def utf8proc():
    import ctypes
    import ctypes.util
    library = ctypes.CDLL(ctypes.util.find_library("utf8proc"))
    library.utf8proc_map.argtypes = [ctypes.c_char_p, ctypes.c_ssize_t, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int]
    library.utf8proc_map.restype = ctypes.c_ssize_t
    libc = ctypes.CDLL(None)
    libc.free.argtypes = [ctypes.c_void_p]
    stable, compat, compose, decompose = 1 << 1, 1 << 2, 1 << 3, 1 << 4
    options = {"NFC": compose, "NFD": decompose, "NFKC": compose | compat, "NFKD": decompose | compat}

    def normalize(form, text):
        data, out = text.encode(), ctypes.c_void_p()
        size = library.utf8proc_map(data, len(data), ctypes.byref(out), stable | options[form])
        result = ctypes.string_at(out, size).decode()
        libc.free(out)
        return result
    return normalize


BY_UTF8PROC = utf8proc()


def is_later(c):
    """Whether utf8proc knows a decomposition or a class that the normal forms of `tokenizers` do not know."""
    category = unicodedata.category(c)
    if category == "Co" or (category != "Cn" and unicodedata.normalize("NFKD", c) == c and not unicodedata.combining(c)):
        return False  # nor will a later version know any
    return any(normalize(text) != BY_UTF8PROC(form, text)
               for text in probes(c) for form, normalize in NORMALIZERS.items() if form in ("NFKC", "NFKD"))


def lowercase():
    """(first, last, step, delta) of the code points with one in lower case."""
    lower = normalizers.Lowercase().normalize_str
    ranges = []
    for c in ALL:
        small = lower(c)
        if small == c or c == "\u0130":
            continue
        assert len(small) == 1, hex(ord(c))
        code, delta = ord(c), ord(small) - ord(c)
        last = ranges[-1] if ranges else None
        if last and last[3] == delta and code - last[1] in (1, 2) and last[2] in (0, code - last[1]):
            last[1], last[2] = code, code - last[1]
        else:
            ranges.append([code, code, 0, delta])
    assert lower("\u0130") == "i\u0307"
    return [(first, last, step or 1, delta) for first, last, step, delta in ranges]


def stand_ins():
    """(first, last, stand-in): for code points that Oniguruma takes for something else than Unicode 14."""
    everything = "".join(ALL)
    assigned = [everything[i] for i in sorted(matches(r"[^\p{Cn}\p{Co}]", everything))]
    text = "".join(assigned)
    known_here = set(assigned)
    assert all(c in known_here for c in ALL if unicodedata.category(c) not in ("Cn", "Co"))
    category = {}
    for name in CATEGORIES:
        for i in matches(rf"\p{{{name}}}", text):
            category[i] = name
    script = {}
    for name in SCRIPTS:
        for i in matches(rf"\p{{{name}}}", text):
            script[i] = name
    size = lambda c: len(c.encode())
    known, other = {}, []
    for i, c in enumerate(assigned):
        now = category[i]
        if now == unicodedata.category(c):
            # No letter of which there are two forms: an expression may ignore case.
            if c.lower() == c.upper():
                known.setdefault((now, script.get(i), size(c)), c)
        else:
            other.append((ord(c), now, script.get(i), size(c)))
    ranges = []
    for code, now, of_script, bytes_ in other:
        stand_in = known.get((now, of_script, bytes_)) or known.get((now, None, bytes_))
        if stand_in is None:  # letters with two forms
            stand_in = next(c for i, c in enumerate(assigned) if category[i] == now and size(c) == bytes_
                            and unicodedata.category(c) == now)
        last = ranges[-1] if ranges else None
        if last and last[1] + 1 == code and last[2] == ord(stand_in):
            last[1] = code
        else:
            ranges.append([code, code, ord(stand_in)])
    return ranges


def ranges_of(codes):
    ranges = []
    for code in sorted(codes):
        if ranges and ranges[-1][1] + 1 == code:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return ranges


def table(kind, name, rows):
    cells = ["{" + ", ".join(f"0x{value:X}" if value >= 0 else f"-0x{-value:X}" for value in row) + "}" for row in rows]
    lines, line = [], "   "
    for i, cell in enumerate(cells):
        cell = " " + cell + ("," if i + 1 < len(cells) else "")
        if len(line) + len(cell) > 110:
            lines.append(line)
            line = "   "
        line += cell
    lines.append(line)
    return f"constexpr {kind} {name}_rows[] = {{\n" + "\n".join(lines) + "};\n"


def text_of_file():
    tables = {name: ranges_of(codes) for name, codes in classes().items()}
    parts = [table("CodeRange", name, rows) for name, rows in tables.items()]
    parts += [table("CaseRange", "lower", lowercase()), table("StandIn", "stand_in", stand_ins())]
    spans = [("CodeRange", name) for name in tables] + [("CaseRange", "lower"), ("StandIn", "stand_in")]
    defined = [f"std::span<const {kind}> {name}_table() {{ return {name}_rows; }}" for kind, name in spans]
    return f"""// Made by scripts/make_unicode_tables.py from tokenizers {tokenizers.__version__}. Do not change it by hand.

#include "tokenizers/unicode/tables.h"

namespace zoo {{
namespace {{

// clang-format off
{chr(10).join(parts)}// clang-format on

}}  // namespace

{chr(10).join(defined)}

}}  // namespace zoo
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--count", action="store_true")
    arguments = parser.parse_args()
    if arguments.count:
        print("code points with another general category in patterns:", sum(r[1] - r[0] + 1 for r in stand_ins()))
        by_python = {
            "bert_removed": lambda c: unicodedata.category(c) in ("Cc", "Cf", "Co") and c not in "\t\n\r\0",
            "bert_nonspacing": lambda c: unicodedata.category(c) == "Mn" and unicodedata.normalize("NFD", c) == c,
            "bert_punctuation": lambda c: unicodedata.category(c)[0] == "P" or c in "$+<=>^`|~",
            "combining": lambda c: unicodedata.category(c)[0] == "M",
            "numeric": lambda c: unicodedata.category(c)[0] == "N",
        }
        for name, codes in classes().items():
            if name in by_python:
                print(f"{name}:", len(codes ^ where(by_python[name])))
            elif name == "later_than_normal_forms":
                print(f"{name}:", len(codes))
        return
    text = text_of_file()
    if not arguments.check:
        FILE.write_text(text)
    elif text != FILE.read_text():
        sys.exit(f"{FILE} does not say what tokenizers {tokenizers.__version__} does: run scripts/make_unicode_tables.py")


if __name__ == "__main__":
    main()
