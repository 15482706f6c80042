"""Repeats and bar lengths of tunes (abc_notation.py)."""

from dataclasses import replace

from abc_notation import AbcError


def parts(bars):
    """The indices [begin, end) of the parts of a tune: what double lines and signs of repeats divide. A first and a
    second ending belong to the part before them; the second ends with the next double line or sign."""
    result, begin = [], 0
    for i in range(1, len(bars)):
        before = bars[i - 1]
        begins = bars[i].repeat_start or before.double or before.repeat_end
        if begins and bars[i].ending != 2:
            result.append((begin, i))
            begin = i
    return [*result, (begin, len(bars))]


def with_explicit_repeats(tune):
    """The tune with |: where a part begins that ends with :|, and without |: where nothing ends it. Throws AbcError for
    endings that make no sense."""
    bars = [replace(bar) for bar in tune.bars]
    for begin, end in parts(bars):
        part = bars[begin:end]
        ends = [i for i, bar in enumerate(part) if bar.repeat_end]
        endings = [(bar.ending, i) for i, bar in enumerate(part) if bar.ending]
        if endings:
            numbers = [number for number, _ in endings]
            if numbers != [1, 2]:
                raise AbcError("a first ending without a second one, or the other way round")
            second = endings[1][1]
            if second - 1 not in ends or endings[0][1] == 0:
                raise AbcError("a first ending without a sign of repeat")
            if ends[-1] >= second:  # ":|" also after the second ending
                part[ends[-1]].repeat_end, part[ends[-1]].double = False, True
        is_repeated = any(bar.repeat_end for bar in part)
        part[0].repeat_start = is_repeated
        if begin and is_repeated and not bars[begin - 1].repeat_end:
            bars[begin - 1].double = begin - 1 > 0 or bars[0].time() >= bars[0].full()
    return replace(tune, bars=bars)


def joins(bars):
    """(bar, the bar that is played after it) wherever a part begins or ends in between."""
    result = []
    for begin, end in parts(bars):
        second = next((i for i in range(begin, end) if bars[i].ending == 2), None)
        if second is not None:
            result.append((second - 1, begin))
        elif bars[end - 1].repeat_end:
            result.append((end - 1, begin))
        if end < len(bars):
            result.append((end - 1, end))
    return result


def wrong_bars(tune):
    """The numbers (from 1 on) of the bars whose length is wrong.

    A bar has the length of its metre. Only at the beginning and at the end of a part it may be shorter: a pick-up is
    completed by the bar that is played before it, so both together have the length of a bar. The first bar of a tune is
    completed by nothing, and the last one need not be."""
    bars = tune.bars
    begins = {begin for begin, _ in parts(bars)}
    last = {end - 1 for _, end in parts(bars)} | {i - 1 for i, bar in enumerate(bars) if bar.ending == 2}
    wrong = {i for i, bar in enumerate(bars)
             if bar.time() > bar.full() or bar.time() < bar.full() and i not in begins and i not in last}
    for before, after in joins(bars):
        ending, pickup = bars[before].time(), bars[after].time()
        full = bars[before].full()
        if before in wrong or after in wrong or ending + pickup == full or ending == full and pickup == bars[after].full():
            continue
        if before == 0 and ending < full and pickup == bars[after].full():  # the pick-up stands before the sign "|:"
            continue
        wrong.add(before)
    return sorted(i + 1 for i in wrong)


def without_false_ties(tune):
    """The tune without ties to another note: a tie joins two notes of one height."""
    events = [(i, j) for i, bar in enumerate(tune.bars) for j in range(len(bar.events))]
    bars = [replace(bar, events=list(bar.events)) for bar in tune.bars]
    for n, (i, j) in enumerate(events):
        event = bars[i].events[j]
        if not event.tie:
            continue
        following = bars[events[n + 1][0]].events[events[n + 1][1]].pitches if n + 1 < len(events) else ()
        places = {pitch.position() for pitch in following if pitch.accidental is None}
        part_ends = j + 1 == len(bars[i].events) and (bars[i].repeat_end or bars[i].double)
        if part_ends or not event.pitches or not all(pitch.position() in places for pitch in event.pitches):
            bars[i].events[j] = replace(event, tie=False)
    return replace(tune, bars=bars)
