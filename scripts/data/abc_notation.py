"""Tunes in ABC notation (Walshaw 2011, the ABC music standard 2.1): reading, writing, transposing.

read_tune() understands what folk tunes for one instrument use: notes, rests, chords of notes, names of chords, tuplets,
ties, repeats, first and second endings, changes of key, metre and unit within the tune. It skips slurs, ornaments and
parts. Everything else is an AbcError, which says what and where.

write_tune() writes one form for each tune: eighth notes as unit, a blank after each beat, four bars a line, repeats with
both of their signs.
"""

import re
from dataclasses import dataclass, field, replace
from fractions import Fraction

LETTERS = "CDEFGAB"
SEMITONES = (0, 2, 4, 5, 7, 9, 11)  # of the letters above C
UNIT = Fraction(1, 8)
BARS_IN_LINE = 4

# The letters in the order in which sharps come; flats come in the opposite order.
SHARPS = [LETTERS.index(letter) for letter in "FCGDAEB"]
FIFTHS = {"F": -1, "C": 0, "G": 1, "D": 2, "A": 3, "E": 4, "B": 5}
MODES = {"": 0, "maj": 0, "ion": 0, "m": -3, "min": -3, "aeo": -3, "mix": -1, "dor": -2, "phr": -4, "lyd": 1, "loc": -5}
ACCIDENTALS = {"^^": 2, "^": 1, "=": 0, "_": -1, "__": -2}
WRITTEN = {value: text for text, value in ACCIDENTALS.items()}
TUPLETS = {2: 3, 3: 2, 4: 3, 6: 2, 8: 3}  # that many notes in the time of these

KEY = re.compile(r"([A-G])([#b]?)\s*([A-Za-z]*)")
LENGTH = re.compile(r"(\d*)(/*)(\d*)")
CHORD_NAME = re.compile(r"([A-G])([#b]?)(m7|m6|maj7|m|dim|7|6|)(?:/([A-G])([#b]?))?")


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


def write_length(length):
    units = length / UNIT
    below = "" if units.denominator == 1 else f"/{units.denominator}"
    return ("" if units.numerator == 1 else str(units.numerator)) + below


def write_pitch(pitch):
    letter = LETTERS[pitch.letter]
    accidental = "" if pitch.accidental is None else WRITTEN[pitch.accidental]
    if pitch.octave > 0:
        return accidental + letter.lower() + "'" * (pitch.octave - 1)
    return accidental + letter + "," * -pitch.octave


def write_event(event):
    notes = "".join(write_pitch(pitch) for pitch in event.pitches) or "z"
    if len(event.pitches) > 1:
        notes = f"[{notes}]"
    chord = f'"{event.chord}"' if event.chord else ""
    tuplet = f"({event.tuplet}" if event.tuplet else ""
    return chord + tuplet + notes + write_length(event.length) + ("-" if event.tie else "")


def beat_of(metre):
    """The time between two blanks: three eighths, or a quarter."""
    above, below = metre
    return Fraction(3, 8) if below == 8 and above % 3 == 0 else Fraction(1, 4)


def write_bar(bar, is_pickup):
    """The events of a bar with a blank after each beat. A pick-up ends with a beat."""
    at = bar.full() - bar.time() if is_pickup else Fraction(0)
    parts, in_tuplet = [], 0
    for event in bar.events:
        parts.append(write_event(event))
        at += event.time
        in_tuplet = event.tuplet - 1 if event.tuplet else max(in_tuplet - 1, 0)
        if not in_tuplet and (at / beat_of(bar.metre)).denominator == 1:
            parts.append(" ")
    return "".join(parts).strip()


def line_after(bar, following):
    if following is None:
        return ":|" if bar.repeat_end else "|]"
    if bar.repeat_end:
        return ":|"
    if bar.double:
        return "||"
    return "" if following.repeat_start else "|"


def write_tune(tune, fields=()):
    """The tune in one form; `fields` are lines before M:, such as R:jig."""
    bars, first = tune.bars, tune.bars[0]
    lines = ["X:1", *fields, f"M:{first.metre[0]}/{first.metre[1]}", f"L:{UNIT}", f"K:{first.key.name}"]
    line, in_line = [], 0
    for i, bar in enumerate(bars):
        before = bars[i - 1] if i else None
        following = bars[i + 1] if i + 1 < len(bars) else None
        begins_part = before is None or bar.repeat_start or before.repeat_end or before.double
        if before and (bar.metre != before.metre or bar.key != before.key):
            if line:
                lines.append(" ".join(line))
            line, in_line = [], 0
            if bar.metre != before.metre:
                lines.append(f"M:{bar.metre[0]}/{bar.metre[1]}")
            if bar.key != before.key:
                lines.append(f"K:{bar.key.name}")
        if bar.repeat_start:
            line.append("|:")
        if bar.ending:
            line.append(f"[{bar.ending}")
        is_pickup = begins_part and not bar.ending and bar.time() < bar.full()
        line.append(write_bar(bar, is_pickup))
        line += filter(None, [line_after(bar, following)])
        in_line += not is_pickup
        part_ends = (bar.repeat_end or bar.double) and not (following and following.ending == 2)
        if part_ends or in_line == BARS_IN_LINE and not (following and following.ending == 2):
            lines.append(" ".join(line))
            line, in_line = [], 0
    if line:
        lines.append(" ".join(line))
    return "\n".join(lines) + "\n"


def clean_chord(name):
    """A chord's name in one spelling ("D/f+" is D/F#, "Gd" Gdim), without what is unusual; None if it is no chord."""
    name = name.strip(" ()")
    match = re.match(r"([A-G])([#b]?)(maj7|m7|m6|m|dim|d(?![a-z])|6|7|)[^/]*(?:/([A-Ga-g])([#+b]?))?", name)
    if not match:
        return None
    root, accidental, quality, bass, bass_accidental = match.groups()
    result = root + accidental + ("dim" if quality == "d" else quality)
    return result + (f"/{bass.upper()}{(bass_accidental or '').replace('+', '#')}" if bass else "")


def move_name(letter, sign, steps, old, new):
    """The letter of a chord with its sign, moved from one key to another; respelled where a piano has a white key."""
    accidental = {"#": 1, "b": -1, "": 0}[sign or ""]
    index = LETTERS.index(letter)
    moved = (index + steps) % 7
    change = new.accidental(moved) + accidental - old.accidental(index)
    if not (abs(change) > 1 or (change == 1 and LETTERS[moved] in "EB") or (change == -1 and LETTERS[moved] in "FC")):
        return LETTERS[moved] + {1: "#", -1: "b", 0: ""}[change]
    semitone = (SEMITONES[moved] + change) % 12
    names = ["C", "C#", "D", "Eb", "E", "F", "F#", "G", "G#", "A", "Bb", "B"]
    return names[semitone]


def move_chord(name, steps, old, new):
    match = CHORD_NAME.fullmatch(name)
    if not match:
        raise AbcError(f"no name of a chord: {name}")
    root, sign, quality, bass, bass_sign = match.groups()
    moved = move_name(root, sign, steps, old, new) + quality
    return moved + (f"/{move_name(bass, bass_sign, steps, old, new)}" if bass else "")


def moved_key(key, steps, fifths):
    """A key some letters higher, with so many sharps more."""
    tonic, sharps = (key.tonic + steps) % 7, key.sharps + fifths
    mode = KEY.match(key.name).group(3)
    accidental = sharps - FIFTHS[LETTERS[tonic]] - MODES[mode.lower()[:3]]
    if accidental not in (-7, 0, 7) or abs(sharps) > 6:
        raise AbcError("no usual key")
    return Key(tonic, sharps, LETTERS[tonic] + {-7: "b", 0: "", 7: "#"}[accidental] + mode)


def transpose(tune, steps, fifths):
    """The tune `steps` letters higher (lower if negative), in keys with `fifths` sharps more. Every note keeps its
    distance from the signature, so that accidentals hold for the same notes of a bar. Throws AbcError if a key has more
    than six accidentals or a note would need two."""
    bars = []
    for bar in tune.bars:
        key, events = moved_key(bar.key, steps, fifths), []
        for event in bar.events:
            pitches = []
            for pitch in event.pitches:
                octave, letter = divmod(pitch.position() + steps, 7)
                accidental = pitch.accidental
                if accidental is not None:
                    accidental += key.accidental(letter) - bar.key.accidental(pitch.letter)
                    if abs(accidental) > 1:
                        raise AbcError("a note needs two accidentals")
                pitches.append(Pitch(letter, octave, accidental))
            chord = event.chord and move_chord(event.chord, steps, bar.key, key)
            events.append(replace(event, pitches=tuple(pitches), chord=chord))
        bars.append(replace(bar, key=key, events=events))
    return replace(tune, bars=bars)


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
