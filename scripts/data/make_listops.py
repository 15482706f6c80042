#!/usr/bin/env python3
"""ListOps: nested operations on lists of digits, and their values (Nangia & Bowman 2018).

Usage: make_listops.py OUT [PART]

OUT/{train,valid,test}.tsv       16 to 128 tokens: 30,000, 2,000 and 2,000 expressions
OUT/lra-{train,valid,test}.tsv   501 to 1,999 tokens, as in the Long Range Arena (Tay et al. 2021): 20,000, 2,000, 2,000

A line is label<TAB>sentence, after a header with these names:

    2	[MAX 1 [MIN 4 2 ] 0 ]

The operators are [MIN, [MAX, [MED (the median; of an even number, the mean of the two in the middle, rounded down) and
[SM (the sum modulo 10). They have 2 to 10 arguments. Blanks separate the tokens. The label is the value, a digit. No
expression is in two files or twice in one.

The trees are drawn as lra_benchmarks/data/listops.py of the Long Range Arena draws them: an argument is an operation
with probability 1/4, else a digit; at depth 10 it is always a digit. Trees of another length are thrown away.
Differences:

- The Long Range Arena has 96,000 expressions for training, and no short ones.
- Its files have a tree of pairs, ( ( ( [MAX 1 ) 2 ) ] ). Its programs drop the parentheses when they read it. They are
  left out here.
"""

from synthetic import Draw, distinct, run

OPERATION_P = 0.25  # the Long Range Arena calls it VALUE_P
MAX_DEPTH, MAX_ARGS = 10, 10
OPERATORS = ("[MIN", "[MAX", "[MED", "[SM")
DIGITS = "0123456789"
# prefix of the files, fewest and most tokens, number of lines
SETTINGS = (("", 16, 128, {"train": 30_000, "valid": 2_000, "test": 2_000}),
            ("lra-", 501, 1999, {"train": 20_000, "valid": 2_000, "test": 2_000}))


class TooLong(Exception):
    pass


def result(operator, values):
    if operator == "[MIN":
        return min(values)
    if operator == "[MAX":
        return max(values)
    if operator == "[SM":
        return sum(values) % 10
    values, half = sorted(values), len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) // 2


def tree(draw, most):
    """The tokens and the value of a random operation. Raises TooLong as soon as it must get more than `most` tokens."""
    tokens, room, random = [], most - 1, draw.random

    def operation(depth):
        nonlocal room
        n_args = 2 + draw.below(MAX_ARGS - 1)
        room -= n_args + 1  # in the place of one token: the operator, at least one token for each argument, and ]
        if room < 0:
            raise TooLong
        operator = draw.one_of(OPERATORS)
        tokens.append(operator)
        values = []
        for _ in range(n_args):
            if depth + 1 < MAX_DEPTH and random() < OPERATION_P:
                values.append(operation(depth + 1))
            else:
                digit = int(random() * 10)
                tokens.append(DIGITS[digit])
                values.append(digit)
        tokens.append("]")
        return result(operator, values)

    return tokens, operation(1)  # a digit alone would be too short


def line(draw, fewest, most):
    while True:
        try:
            tokens, value = tree(draw, most)
        except TooLong:
            continue
        if len(tokens) >= fewest:
            return f"{value}\t{' '.join(tokens)}"


def files(part):
    for prefix, fewest, most, sizes in SETTINGS:
        draw, seen = Draw(f"listops {prefix}"), set()
        for split, n in sizes.items():
            lines = distinct(lambda: line(draw, fewest, most), n // part, seen)
            yield f"{prefix}{split}.tsv", ["label\tsentence"] + lines


if __name__ == "__main__":
    run(__doc__, files)
