"""Writes tunes (abc_notation.py) in one form: eighth notes as unit, a blank after each beat, four bars a line."""

from fractions import Fraction

from abc_notation import ACCIDENTALS, LETTERS, UNIT

BARS_IN_LINE = 4
WRITTEN = {value: text for text, value in ACCIDENTALS.items()}


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


def form():
    """A regular expression of the form of tunes in which every repeat that begins also ends. Bars may have any length. Metre and
    key may change between bars, but not between a double bar line and a repeat."""
    bar = r"([^|:\[\]\n]|\n([KM]:[^|:\[\]\n]+\n)?|\[[A-Ga-g^_=,']+\])+"
    bars = rf"{bar}(\|{bar})*"
    last = r"(\|\||\|\])"
    endings = rf"\[1 {bars}:\|[ \n]\[2 {bars}{last}"
    repeat = rf"\|:{bars}(:\||\|[ \n]{endings})"
    fields = r"X:1\nR:[a-z ]+\nM:[0-9]+/[0-9]+\nL:1/8\nK:[A-G][b#]?m?\n"
    return rf"{fields}(({bars}{last}|({bar})?{repeat})\n?)+"


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
