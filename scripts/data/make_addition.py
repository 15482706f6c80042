#!/usr/bin/env python3
"""Addition of two whole numbers, digit by digit.

Usage: make_addition.py OUT [PART]

OUT/{train,valid,test}.{source,target}   numbers of 1 to 5 digits: 345+7612 and 7957
OUT/test-long.{source,target}            numbers of 6 to 10 digits, more than in all of training: 1,000 lines

The numbers of digits of the two summands are balanced: each of the 25 pairs has about 4,000 lines for training, 40 for
validation and 40 for test. There are fewer of the short ones (1+1 digits, 1+2, 2+1), because there are not as many
sums; a twentieth of them goes to each of validation and test. No sum is in two files or twice in one, and a+b counts as
the same sum as b+a. The order of the lines is random. Digits are written from left to right, without zeros in front.

Such sums are a usual test of whether a model learns an algorithm. Nogueira et al. 2021 ("Investigating the Limitations
of Transformers with Simple Arithmetic Tasks") and Lee et al. 2023 ("Teaching Arithmetic to Small Transformers") compare
ways of writing them. The one here is the plain one. The corpus is none of theirs.
"""

from synthetic import Draw, run

TRAIN, HELD_OUT = 4_000, 40  # of each pair of numbers of digits
HELD_OUT_SHARE = 20  # where there are few sums, one of so many
DIGITS, LONG_DIGITS = range(1, 6), range(6, 11)


def numbers(n_digits):
    return range(0 if n_digits == 1 else 10 ** (n_digits - 1), 10 ** n_digits)


def sums(draw, fewer, more, n):
    """n different sums of a number of `fewer` and one of `more` digits, in either order; all if there are fewer."""
    a, b = numbers(fewer), numbers(more)
    there_are = len(a) * (len(a) + 1) // 2 if fewer == more else len(a) * len(b)
    found = {}  # in the order in which they were drawn; a set has no order
    while len(found) < min(n, there_are):
        x, y = draw.one_of(a), draw.one_of(b)
        found[min(x, y), max(x, y)] = (x, y) if draw.below(2) else (y, x)
    return list(found.values())


def parallel(draw, name, pairs):
    pairs = draw.shuffled(pairs)
    yield f"{name}.source", [f"{x}+{y}" for x, y in pairs]
    yield f"{name}.target", [str(x + y) for x, y in pairs]


def files(part):
    draw = Draw("addition")
    splits = {"train": [], "valid": [], "test": []}
    n_train, n_held_out = TRAIN // part, max(1, HELD_OUT // part)
    for fewer in DIGITS:
        for more in range(fewer, DIGITS.stop):
            orders = 1 if fewer == more else 2
            found = sums(draw, fewer, more, orders * (n_train + 2 * n_held_out))
            held_out = min(orders * n_held_out, len(found) // HELD_OUT_SHARE)
            splits["valid"] += found[:held_out]
            splits["test"] += found[held_out:2 * held_out]
            splits["train"] += found[2 * held_out:]
    for split, pairs in splits.items():
        yield from parallel(draw, split, pairs)

    draw, pairs = Draw("addition long"), []
    for fewer in LONG_DIGITS:
        for more in range(fewer, LONG_DIGITS.stop):
            pairs += sums(draw, fewer, more, (1 if fewer == more else 2) * n_held_out)
    yield from parallel(draw, "test-long", pairs)


if __name__ == "__main__":
    run(__doc__, files)
