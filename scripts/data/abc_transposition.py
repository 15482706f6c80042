"""Moves tunes (abc_notation.py) to other keys, and gives names of chords one spelling."""

import re
from dataclasses import replace

from abc_notation import FIFTHS, KEY, LETTERS, MODES, SEMITONES, AbcError, Key, Pitch

CHORD_NAME = re.compile(r"([A-G])([#b]?)(m7|m6|maj7|m|dim|7|6|)(?:/([A-G])([#b]?))?")


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
