#!/usr/bin/env python3
"""Tunes in ABC notation: scripts/data/abc_*.py, prepare_nottingham.py and scripts/tunes.py. With
ZOO_NOTTINGHAM=DIR the published tunes in DIR are read, too."""

import hashlib
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from fractions import Fraction
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "scripts/data")]
sys.dont_write_bytecode = True
from abc_notation import AbcError, melody, read_key, read_tune, texts_of  # noqa: E402
from abc_structure import with_explicit_repeats, without_false_ties, wrong_bars  # noqa: E402
from abc_transposition import clean_chord, move_chord, transpose  # noqa: E402
from abc_writing import form, write_tune  # noqa: E402
from prepare_nottingham import groups_of, in_keys  # noqa: E402
from shares import wilson  # noqa: E402
from tunes import Pieces  # noqa: E402

NOTTINGHAM = os.environ.get("ZOO_NOTTINGHAM")
JIG = """X:1
R:jig
M:6/8
L:1/8
K:G
|: D | "G"G2B "D7"A^GA | "Em"(3Bcde "C/E"=f3 | [1 "G"g3- g2 :| [2 "G"g3 G2 ||
|: d | e2d- dcB | [GB]3 z2 :|
"""


def tune(music, metre="4/4", key="C"):
    return read_tune(f"X:1\nM:{metre}\nL:1/8\nK:{key}\n{music}\n")


def wrong(music, metre="4/4"):
    return wrong_bars(tune(music, metre))


class Notation(unittest.TestCase):
    def test_a_tune_is_written_as_it_is_read(self):
        self.assertEqual(write_tune(with_explicit_repeats(read_tune(JIG)), ["R:jig"]), JIG)

    def test_a_blank_follows_each_beat(self):
        self.assertIn("AB cd e2 f2 | ab3 g4 |]", write_tune(tune("ABcde2f2|ab3g4|")))
        self.assertIn("ABc def | e3f3 |]", write_tune(tune("ABcdef|e3f3|", "6/8")).replace("e3 f3", "e3f3"))

    def test_all_units_become_eighths(self):
        for unit, music in (("1/4", "A/B/ c3/4d/4 e2"), ("1/8", "AB c3/2d/2 e4"), ("1/16", "A2B2 c3d e8")):
            read = read_tune(f"X:1\nM:4/4\nL:{unit}\nK:C\n{music}|\n")
            self.assertIn("AB c3/2d/2 e4 |]", write_tune(read))

    def test_without_a_unit_it_depends_on_the_metre(self):
        self.assertEqual(read_tune("X:1\nM:2/4\nK:C\nA4A4|\n").bars[0].time(), Fraction(1, 2))
        self.assertEqual(read_tune("X:1\nM:6/8\nK:C\nA3A3|\n").bars[0].time(), Fraction(3, 4))

    def test_tuplets_and_chords_have_their_time(self):
        self.assertEqual(tune("(3ABc [ce]2 (2:3:2 AB|").bars[0].time(), Fraction(2 + 2 + 3, 8))

    def test_errors_say_the_line(self):
        for music, text in (("A B [ce", "line 5: a chord does not end"), ("A ? B", "line 5: not a note"),
                            ("(3AB|", "line 5: a tuplet"), ("A/0", "line 5: no length")):
            with self.assertRaisesRegex(AbcError, text):
                tune(music)
        with self.assertRaisesRegex(AbcError, "music before"):
            read_tune("X:1\nABc|\n")
        with self.assertRaisesRegex(AbcError, "no notes"):
            read_tune("X:1\nK:C\n")

    def test_any_text_is_read_or_refused(self):
        draw, letters = random.Random(3), 'ABcd|:[]"(3/2^=_-zXMKL\n <>.,\'%'
        for _ in range(3000):
            text = "X:1\nK:C\n" + "".join(draw.choices(letters, k=draw.randrange(40)))
            try:
                read = with_explicit_repeats(read_tune(text))
            except AbcError:
                continue
            wrong_bars(read)
            melody(read)

    def test_chords_have_one_spelling(self):
        for given, expected in (("D/f+", "D/F#"), ("Gd", "Gdim"), ("(E7)", "E7"), ("F#m7", "F#m7"), ("Fine", "F"),
                                ("Am/c", "Am/C"), ("slow", None)):
            self.assertEqual(clean_chord(given), expected)


class Transposition(unittest.TestCase):
    def test_every_interval_stays(self):
        jig = read_tune(JIG)
        for steps, fifths in ((1, 2), (-1, -2), (3, -1), (4, 1), (2, -3), (-3, 1)):
            moved = transpose(jig, steps, fifths)
            self.assertEqual(melody(moved), melody(jig))
            self.assertEqual(melody(read_tune(write_tune(moved))), melody(jig))

    def test_back_again_is_the_same(self):
        jig = read_tune(JIG)
        self.assertEqual(write_tune(transpose(transpose(jig, 1, 2), -1, -2)), write_tune(jig))

    def test_accidentals_follow_the_signature(self):
        self.assertIn("K:D\n\"A7\"^D=c", write_tune(transpose(tune('"G7"^C_B', key="C"), 1, 2)))
        self.assertIn("K:F\n=B_e", write_tune(transpose(tune("^F_B", key="C"), 3, -1)))

    def test_names_of_chords_move_by_the_same_interval(self):
        semitones = dict(zip("CDEFGAB", (0, 2, 4, 5, 7, 9, 11)))

        def root(name):
            return (semitones[name[0]] + name.count("#") - name[1:].count("b")) % 12
        for old, new, steps, up in (("C", "D", 1, 2), ("G", "Bb", 2, 3), ("D", "A", 4, 7), ("Am", "F#m", -2, 9)):
            for name in ("C", "F#", "Bb", "E", "B", "G#"):
                moved = move_chord(name, steps, read_key(old), read_key(new))
                self.assertEqual(root(moved), (root(name) + up) % 12, (name, old, new))

    def test_all_keys_are_different(self):
        texts = [write_tune(moved) for moved in in_keys(read_tune(JIG))]
        self.assertGreater(len(texts), 4)
        self.assertEqual(len(set(texts)), len(texts))


class Bars(unittest.TestCase):
    def test_full_bars_are_right(self):
        self.assertEqual(wrong("ABcd efga|(3ABc d2 e4|[ce]4 z4|"), [])

    def test_a_bar_within_a_part_must_be_full(self):
        self.assertEqual(wrong("A8|A7|A8|A8|"), [2])
        self.assertEqual(wrong("A8|A9|A8|A8|"), [2])

    def test_a_pick_up_is_completed_by_the_bar_before_it(self):
        self.assertEqual(wrong("|:A2|A8|A8|A6:|"), [])
        self.assertEqual(wrong("|:A2|A8|A8|A8:|"), [4])
        self.assertEqual(wrong("A2|:A8|A8|A8:|"), [])
        self.assertEqual(wrong("|:A2|A8|A6:||:B2|B8|B6:|"), [])
        self.assertEqual(wrong("|:A2|A8|A6:||:B8|B8:|"), [3])

    def test_each_ending_completes(self):
        self.assertEqual(wrong("|:A2|A8|[1A6:|[2A8||A8|"), [])
        self.assertEqual(wrong("|:A2|A8|[1A8:|[2A8||A8|"), [3])

    def test_the_metre_may_change(self):
        self.assertEqual(wrong("A8|\nM:3/4\nA6|A6|\nM:4/4\nA8|"), [])
        self.assertEqual(wrong("A8|[M:3/4]A8|A6|"), [2])

    def test_repeats_get_both_signs(self):
        text = write_tune(with_explicit_repeats(tune("A8|B8:|c8|d8:|")))
        self.assertIn("|: A8 | B8 :|\n|: c8 | d8 :|", text)

    def test_the_form_is_that_of_tunes_whose_repeats_end(self):
        expression = re.compile(form())
        def formed(music):
            return write_tune(with_explicit_repeats(tune(music)), ["R:jig"]).strip("\n")
        for music in ("A8|B8|c8|d8|", "A8|B8:|c8|d8:|", "|:A2|A8|[1A6:|[2A8||[ce]8|", "A8|\nM:3/4\nA6|A6|\nM:4/4\nA8|",
                      "|:A2|A8|A6:||:B8|B8:|"):
            self.assertTrue(expression.fullmatch(formed(music)), formed(music))
        for text in (formed("A8|B8:|").replace(":|", "|]"), formed("A8|B8:|c8|d8:|").replace(":|\n|:", "|\n|:"),
                     formed("A8|B8|").replace(" |]", ""), formed("A8|B8|").replace("R:jig\n", "")):
            self.assertFalse(expression.fullmatch(text), text)

    def test_endings_without_a_sense_are_refused(self):
        for music in ("A8|[1B8|[2c8|", "A8|[2B8:|", "[1A8:|[2B8|"):
            with self.assertRaises(AbcError):
                with_explicit_repeats(tune(music))

    def test_ties_join_equal_notes_only(self):
        self.assertIn("A2- A2 B4 |]", write_tune(without_false_ties(tune("A2-A2B4-|"))))
        self.assertIn("A2 B2", write_tune(without_false_ties(tune("A2-B2A4|"))))


class Measure(unittest.TestCase):
    def test_the_longest_common_piece_is_that_of_all_pairs(self):
        draw = random.Random(1)
        tunes = [[draw.randrange(3) for _ in range(draw.randrange(1, 30))] for _ in range(6)]
        pieces = Pieces(tunes)
        for _ in range(50):
            notes = [draw.randrange(3) for _ in range(20)]
            runs = {tuple(notes[i:j]) for i, j in itertools.combinations(range(len(notes) + 1), 2)}
            expected = max((len(run) for run in runs for known in tunes
                            if any(tuple(known[i:i + len(run)]) == run for i in range(len(known)))), default=0)
            self.assertEqual(pieces.longest(notes), expected)

    def test_wilson_is_as_published(self):
        lower, upper = wilson(81, 263)  # Newcombe 1998, table I
        self.assertAlmostEqual(lower, 0.2553, 4)
        self.assertAlmostEqual(upper, 0.3662, 4)

    def test_copies_are_found_in_any_key(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            (folder / "train.abc").write_text(JIG)
            moved = write_tune(transpose(read_tune(JIG), 1, 2))
            bad = "X:1\nM:6/8\nL:1/8\nK:G\nA5 | B6 | c5 | d6 |\n"
            outputs = [{"text": text[len("X:1\n"):]} for text in (moved, bad, "X:1\nnonsense?")]
            (folder / "tunes.json").write_text(json.dumps({"results": [{"prompt": "X:1\n", "outputs": outputs}]}))
            programs = folder / "bin"
            programs.mkdir()
            program = programs / "abc2midi"  # complains about nonsense
            program.write_text('#!/bin/sh\ngrep -q nonsense "$1" && echo "Error: nonsense"; touch "$3"\n')
            program.chmod(0o755)
            done = subprocess.run([sys.executable, ROOT / "scripts/tunes.py", folder / "tunes.json", "--training",
                                   folder / "train.abc", "--json"], capture_output=True, encoding="utf-8", check=True,
                                  env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"})
        result = json.loads(done.stdout)
        self.assertEqual([result[name]["count"] for name in ("read", "right_bars", "copies")], [2, 1, 1])
        self.assertEqual([bool(tune["error"]) for tune in result["tunes"]], [False, False, True])
        self.assertEqual(result["tunes"][1]["wrong_bars"], [3])


def random_tune(draw, title):
    """A tune of three bars, as a text."""
    notes = "".join(draw.choice("CDEFGABcdefg") for _ in range(24))
    return f"X:1\nT:{title}\nM:4/4\nL:1/8\nK:C\n{notes[:8]}|{notes[8:16]}|{notes[16:]}|\n"


class Corpus(unittest.TestCase):
    def test_get_data_makes_the_texts_from_the_tunes_of_a_mirror(self):
        with tempfile.TemporaryDirectory() as folder:
            folder, draw = Path(folder), random.Random(4)
            mirror, expected = folder / "mirror/nottingham", folder / "expected"
            for path in (mirror, expected, folder / "scripts/data"):
                path.mkdir(parents=True)
            tunes = [random_tune(draw, f"tune {chr(97 + i // 676)}{chr(97 + i // 26 % 26)}{chr(97 + i % 26)}")
                     for i in range(905)]
            (mirror / "jigs.abc").write_text("\n".join(tunes))
            (mirror / "train.abc").write_text("not this one")
            subprocess.run([sys.executable, ROOT / "scripts/data/prepare_nottingham.py", mirror, expected], check=True,
                           capture_output=True)
            for path in [ROOT / "scripts/get_data.sh", *(ROOT / "scripts/data").glob("*.py")]:
                shutil.copy(path, folder / path.relative_to(ROOT))
            files = [mirror / "jigs.abc", *(expected / f"{split}.abc" for split in ("train", "valid", "test"))]
            (folder / "scripts/data/SHA256SUMS").write_text("".join(
                f"{hashlib.sha256(path.read_bytes()).hexdigest()}  nottingham/{path.name}\n" for path in files))

            def get():
                return subprocess.run([folder / "scripts/get_data.sh", "nottingham"], capture_output=True, encoding="utf-8",
                                      env={**os.environ, "ZOO_DATA": str(folder / "data"),
                                           "ZOO_DATA_MIRROR": str(folder / "mirror")})
            done = get()
            self.assertEqual(done.returncode, 0, done.stderr)
            for path in files:
                self.assertEqual((folder / "data/nottingham" / path.name).read_bytes(), path.read_bytes())
            self.assertIn("already", get().stderr)
            (folder / "data/nottingham/test.abc").unlink()
            (mirror / "jigs.abc").write_text("\n".join(tunes[:-1]))
            done = get()
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn("jigs.abc has sha256", done.stderr)

    def test_tunes_with_one_melody_are_in_one_group(self):
        draw = random.Random(2)
        first, other, namesake = (read_tune(random_tune(draw, title))
                                  for title in ("The Old Road", "Hornpipe", "Old Road, No. 2"))
        again = transpose(first, 1, 2)
        again.title = "Another Name"
        groups = groups_of([first, other, namesake, again])
        self.assertEqual(groups[0], groups[2])
        self.assertEqual(groups[0], groups[3])
        self.assertNotEqual(groups[0], groups[1])

    @unittest.skipUnless(NOTTINGHAM, "ZOO_NOTTINGHAM names no folder")
    def test_most_published_tunes_have_right_bars(self):
        n = right = 0
        for path in sorted(Path(NOTTINGHAM).glob("*.abc")):
            for text in texts_of(path.read_text(encoding="latin-1")):
                n += 1
                try:
                    right += not wrong_bars(with_explicit_repeats(read_tune(text)))
                except AbcError:
                    pass
        self.assertGreater(right, 0.93 * n)


if __name__ == "__main__":
    unittest.main()
