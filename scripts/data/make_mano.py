#!/usr/bin/env python3
"""Mano: the value of expressions modulo 23, without intermediate results (Allen-Zhu 2025, "Physics of Language Models:
Part 4.1", https://arxiv.org/abs/2512.17351).

Usage: make_mano.py OUT [PART]

OUT/{train,valid,test}-L.txt   expressions of up to L operations, for L = 2, 3, 10: 200,000, 1,000 and 1,000 lines

A token is one character. The letters a to w are the numbers 0 to 22. A line has the number of operations (A is 1, B is
2, …), the expression in prefix form, a > and the value. The mark = stands before the value; it is no token, and tells a
program what is to be predicted. (2 * 3) - 4 = 2:

    B-*cde>=c

In train, all numbers of operations from 1 to L are equally likely, and a short expression may be there more than once.
valid and test have L operations in each line, none of them twice or in train. So a model must know the tables of sums,
differences and products modulo 23 by heart, and work from the inside of an expression to the outside.

Expressions are drawn as data-synthetic-pretrain/Mano/mano.py of the authors' PhysicsLM4 draws them, with their
operators (+, - and *; no division): each of the three is equally likely, and of the l - 1 operations that remain below
one of l, the left side has any number with the same probability. Differences:

- There, L is 10, 13 or 16. Files with 2 and 3 are for small models.
- There, expressions are drawn without end. Here a model reads 200,000 more than once.
- There, a model is trained on all tokens of expressions that follow each other in windows, each after a token for its
  beginning. Here a line is one expression, and only its value is predicted.
- There, each operator and each number of operations has two tokens that mean the same, and > is another token for each
  number of operations.
"""

from synthetic import Draw, distinct, run

MODULUS = 23
NUMBERS = "abcdefghijklmnopqrstuvw"
OPERATORS = "+-*"
N_TRAIN, N_HELD_OUT = 200_000, 1_000
LONGEST = (2, 3, 10)


def expression(draw, n):
    """A random expression of n operations, and its value."""
    if n == 0:
        number = draw.below(MODULUS)
        return NUMBERS[number], number
    operator = draw.one_of(OPERATORS)
    n_left = draw.below(n)
    left, a = expression(draw, n_left)
    right, b = expression(draw, n - 1 - n_left)
    value = a + b if operator == "+" else a - b if operator == "-" else a * b
    return operator + left + right, value % MODULUS


def line(draw, n):
    text, value = expression(draw, n)
    return f"{chr(ord('A') + n - 1)}{text}>={NUMBERS[value]}"


def files(part):
    for longest in LONGEST:
        draw, seen = Draw(f"mano {longest}"), set()
        for split in ("valid", "test"):
            yield f"{split}-{longest}.txt", distinct(lambda: line(draw, longest), N_HELD_OUT // part, seen)
        train = []
        while len(train) < N_TRAIN // part:
            drawn = line(draw, 1 + draw.below(longest))
            if drawn not in seen:
                train.append(drawn)
        yield f"train-{longest}.txt", train


if __name__ == "__main__":
    run(__doc__, files)
