"""Tunes in ABC notation (Walshaw 2011, the ABC music standard 2.1): what they are made of, and how they are read. (Writing:
abc_writing.py; transposing: abc_transposition.py.)

read_tune() understands what folk tunes for one instrument use: notes, rests, chords of notes, names of chords, tuplets,
ties, repeats, first and second endings, changes of key, metre and unit within the tune. It skips slurs, ornaments and
parts. Everything else is an AbcError, which says what and where.
"""

import re
from dataclasses import dataclass, field, replace
from fractions import Fraction

LETTERS = "CDEFGAB"
SEMITONES = (0, 2, 4, 5, 7, 9, 11)  # of the letters above C
UNIT = Fraction(1, 8)

# The letters in the order in which sharps come; flats come in the opposite order.
SHARPS = [LETTERS.index(letter) for letter in "FCGDAEB"]
FIFTHS = {"F": -1, "C": 0, "G": 1, "D": 2, "A": 3, "E": 4, "B": 5}
MODES = {"": 0, "maj": 0, "ion": 0, "m": -3, "min": -3, "aeo": -3, "mix": -1, "dor": -2, "phr": -4, "lyd": 1, "loc": -5}
ACCIDENTALS = {"^^": 2, "^": 1, "=": 0, "_": -1, "__": -2}
TUPLETS = {2: 3, 3: 2, 4: 3, 6: 2, 8: 3}  # that many notes in the time of these

KEY = re.compile(r"([A-G])([#b]?)\s*([A-Za-z]*)")
LENGTH = re.compile(r"(\d*)(/*)(\d*)")


class AbcError(Exception):
    """What is wrong with a tune."""


@dataclass(frozen=True)
class Key:
    tonic: int  # index of its letter
    sharps: int  # number of sharps in the signature; flats count below 0
    name: str  # as written: "D", "F#m", "Amix"

    def accidental(self, letter):
        """-1, 0 or 1: what the signature does to a letter."""
        if self.sharps > 0:
            return int(letter in SHARPS[:self.sharps])
        return -int(letter in SHARPS[::-1][:-self.sharps]) if self.sharps else 0


@dataclass(frozen=True)
class Pitch:
    letter: int
    octave: int  # 0: "C" to "B", 1: "c" to "b"
    accidental: int | None  # as written before the note; None: nothing is

    def position(self):
        return 7 * self.octave + self.letter


@dataclass(frozen=True)
class Event:
    """A note, a chord of notes, or a rest (no pitches)."""
    pitches: tuple
    length: Fraction  # as written, in whole notes
    time: Fraction  # as played: shorter or longer in a tuplet
    chord: str | None = None  # the name of a chord that begins here
    tuplet: int = 0  # this many notes from here on are a tuplet
    tie: bool = False


@dataclass
class Bar:
    metre: tuple  # (6, 8)
    key: Key
    events: list = field(default_factory=list)
    repeat_start: bool = False  # "|:" before the bar
    repeat_end: bool = False  # ":|" after it
    double: bool = False  # a double line or the end of a part after it
    ending: int = 0  # 1 or 2: a first or second ending begins

    def time(self):
        return sum((event.time for event in self.events), Fraction(0))

    def full(self):
        return Fraction(*self.metre)


@dataclass
class Tune:
    bars: list
    title: str = ""
    kind: str = ""  # of the field R: "jig"


def texts_of(content):
    """The texts of the tunes of a file. An empty line ends a tune."""
    return [re.split(r"\n\s*\n", text)[0] for text in re.split(r"(?m)^(?=X:)", content)[1:]]


def read_key(text):
    match = KEY.match(text.strip())
    mode = match and match.group(3).lower()[:3]
    if not match or mode not in MODES:
        raise AbcError(f"no key: K:{text}")
    accidental = {"#": 7, "b": -7, "": 0}[match.group(2)]
    sharps = FIFTHS[match.group(1)] + accidental + MODES[mode]
    if abs(sharps) > 7:
        raise AbcError(f"no key has {abs(sharps)} accidentals: K:{text}")
    return Key(LETTERS.index(match.group(1)), sharps, match.group(0).replace(" ", ""))


def read_metre(text):
    text = {"C": "4/4", "C|": "2/2"}.get(text.strip(), text.strip())
    match = re.fullmatch(r"(\d+)/(1|2|4|8|16)", text)
    if not match or not 1 <= int(match.group(1)) <= 24:
        raise AbcError(f"no metre: M:{text}")
    return int(match.group(1)), int(match.group(2))


def read_length(text):
    """(the factor of a length such as 3/2 at the beginning of the text, the number of its characters)"""
    match = LENGTH.match(text)
    whole, strokes, below = match.groups()
    if below and not strokes or (below and int(below) == 0) or (whole and int(whole) == 0):
        raise AbcError(f"no length: {match.group(0)}")
    divisor = int(below) if below else 2 ** len(strokes)
    return Fraction(int(whole or 1), divisor), match.end()


class Reader:
    """Reads the lines of one tune."""

    def __init__(self):
        self.tune = Tune([])
        self.metre, self.key, self.unit = (4, 4), None, None
        self.bar = None
        self.chord, self.tuplet = None, []  # tuplet: [notes left, factor, size if nothing of it is read]
        self.after_bar_line = False

    def field(self, name, value):
        if name == "T" and not self.tune.title:
            self.tune.title = value
        elif name == "R":
            self.tune.kind = value.lower()
        elif name == "M":
            self.metre = read_metre(value)
            self.change("metre", self.metre)
        elif name == "K":
            self.key = read_key(value)
            if self.unit is None:
                self.unit = Fraction(1, 16) if Fraction(*self.metre) < Fraction(3, 4) else Fraction(1, 8)
            self.change("key", self.key)
        elif name == "L":
            match = re.fullmatch(r"1/(\d{1,3})", value)
            if not match or int(match.group(1)) == 0:
                raise AbcError(f"no unit: L:{value}")
            self.unit = Fraction(1, int(match.group(1)))
        elif name == "P" and self.key:
            self.end_of_part()

    def change(self, what, value):
        if self.bar and not self.bar.events:
            setattr(self.bar, what, value)
        elif self.bar and what == "key":
            raise AbcError("the key changes within a bar")
        elif self.bar:
            raise AbcError("the metre changes within a bar")

    def end_of_part(self):
        if self.bar and self.bar.events:
            self.close(double=True)
        elif self.tune.bars:
            self.tune.bars[-1].double = True

    def open(self):
        if not self.key:
            raise AbcError("music before the field K:")
        if not self.bar:
            self.bar = Bar(self.metre, self.key)
        return self.bar

    def close(self, double=False):
        bar, self.bar = self.bar, None
        bar.double = double
        if self.tuplet:
            raise AbcError("a tuplet goes on after its bar")
        self.tune.bars.append(bar)

    def bar_line(self, signs):
        """signs: all of | : ] between two notes, without blanks."""
        if not signs.strip(":") and len(signs) != 2:
            raise AbcError(f"a single {signs} between notes")
        begun = self.open()
        if begun.events:
            self.close()
        bars = self.tune.bars
        if bars:
            bars[-1].repeat_end = bars[-1].repeat_end or signs.startswith(":")
            bars[-1].double = bars[-1].double or "||" in signs or "|]" in signs
        if signs.endswith(":"):
            self.open().repeat_start = True

    def music(self, line):
        at = 0
        while at < len(line):
            rest = line[at:]
            if match := re.match(r"\[([KML]):([^\]]*)\]", rest):
                self.field(match.group(1), match.group(2).strip())
            elif match := re.match(r"\[\s*([12])|\|([12])(?!\d)", rest):
                if match.group(2):
                    self.bar_line("|")
                self.ending(int(match.group(1) or match.group(2)))
            elif match := re.match(r"[|:][|:\]\s]*(?=\|[12])|[|:][|:\]\s]*", rest):
                self.bar_line("".join(match.group(0).split()))
            elif match := re.match(r'"([^"]*)"', rest):
                self.chord = match.group(1)
            elif match := re.match(r"\((\d)(?::(\d)?)?(?::(\d)?)?", rest):
                self.begin_tuplet(*(int(number) if number else None for number in match.groups()))
            elif match := re.match(r"(?:[\s\\~).+]|\((?!\d))+", rest):  # blanks, slurs, ornaments
                pass
            elif rest[0] == "-":
                self.tie()
                at += 1
                continue
            else:
                at += self.event(rest)
                continue
            at += match.end()

    def ending(self, number):
        bar = self.open()
        if bar.events:
            raise AbcError("an ending begins within a bar")
        bar.ending = number

    def begin_tuplet(self, notes, time, count):
        if self.tuplet:
            raise AbcError("a tuplet within a tuplet")
        time = time or TUPLETS.get(notes) or (3 if self.metre[1] == 8 and self.metre[0] % 3 == 0 else 2)
        if notes < 2 or count not in (None, notes):
            raise AbcError(f"a tuplet of {notes}")
        self.tuplet = [notes, Fraction(time, notes), notes]

    def tie(self):
        events = self.bar.events if self.bar else []
        if not events and self.tune.bars:
            events = self.tune.bars[-1].events
        if events:
            events[-1] = replace(events[-1], tie=True)

    def event(self, text):
        """Reads a note, chord or rest at the beginning of the text; the number of its characters."""
        if text[0] == "[":
            end = text.find("]")
            if end < 0:
                raise AbcError("a chord does not end: " + text[:10])
            inside, lengths, pitches = text[1:end].replace("+", "").replace(" ", ""), [], []
            while inside:
                pitch, length, n = self.note(inside)
                pitches.append(pitch)
                lengths.append(length)
                inside = inside[n:].lstrip("-")
            if not pitches or None in pitches:
                raise AbcError("a chord without notes: " + text[:end + 1])
            factor, n = read_length(text[end + 1:])
            n += end + 1
            length = lengths[0] * factor
        else:
            pitch, length, n = self.note(text)
            pitches = [pitch] if pitch else []
        length *= self.unit or UNIT
        bar, factor, begins = self.open(), Fraction(1), 0
        if self.tuplet:
            left, factor, begins = self.tuplet
            self.tuplet = [left - 1, factor, 0] if left > 1 else []
        bar.events.append(Event(tuple(pitches), length, length * factor, self.chord, begins))
        self.chord = None
        return n

    def note(self, text):
        """(the pitch or None for a rest, the factor of its length, the number of its characters)"""
        match = re.match(r"(\^\^|\^|=|__|_)?([A-Ga-g])([,']*)|([zx])", text)
        if not match:
            raise AbcError(f"not a note: {text[:10]!r}")
        factor, n = read_length(text[match.end():])
        if match.group(4):
            return None, factor, match.end() + n
        octave = int(match.group(2).islower()) + match.group(3).count("'") - match.group(3).count(",")
        accidental = ACCIDENTALS[match.group(1)] if match.group(1) else None
        return Pitch(LETTERS.index(match.group(2).upper()), octave, accidental), factor, match.end() + n

    def finish(self):
        if self.bar and self.bar.events:
            self.close()
        if not self.tune.bars:
            raise AbcError("no notes")
        return self.tune


def read_tune(text):
    """The tune of these lines. Throws AbcError."""
    reader = Reader()
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("%")[0].rstrip()
        try:
            if match := re.match(r"([A-Za-z]):(.*)", line):
                reader.field(match.group(1), match.group(2).strip())
            else:
                reader.music(line)
        except AbcError as error:
            raise AbcError(f"line {number}: {error}") from None
    return reader.finish()


def melody(tune):
    """(semitones from the note before, or None for a rest; time) of each event, its highest note: what a tune is, in any
    key and octave."""
    notes, last = [], None
    for bar in tune.bars:
        altered = {}
        for event in bar.events:
            heights = []
            for pitch in event.pitches:
                place = pitch.position()
                if pitch.accidental is not None:
                    altered[place] = pitch.accidental
                accidental = altered.get(place, bar.key.accidental(pitch.letter))
                heights.append(SEMITONES[pitch.letter] + 12 * pitch.octave + accidental)
            if not heights:
                notes.append((None, event.time))
                continue
            height = max(heights)
            notes.append((0 if last is None else height - last, event.time))
            last = height
    return notes
