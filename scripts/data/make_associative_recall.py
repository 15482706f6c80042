#!/usr/bin/env python3
"""Multi-query associative recall (Arora et al. 2023, "Zoology").

Usage: make_associative_recall.py OUT [PART]

OUT/{train,valid,test}-N-D.txt   one sequence a line: N tokens, with D pairs of a key and its value

A token is one character: a key one of 256 from U+4E00, a value one of 256 from U+AC00, and a full stop everywhere else.
A sequence begins with its pairs. Then each of their keys is asked once, and its value follows as the answer. The mark =
stands before each answer; it is no token, and tells a program what is to be predicted. With letters for keys and digits
for values:

    a3b7c1..b=7....c=1a=3..

N, D are 64, 4; 128, 8; 256, 16; 256, 32; 256, 64 with 10,000 lines for training (9,600 of the last, so that its file is
smaller than 8 MB), and also 512, 64; 512, 128 for validation and test, with 500 lines each. No line is in two files.

The sequences are drawn as zoology/data/associative_recall.py (multiquery_ar) draws them. All keys and all values of a
sequence differ. The part after the pairs has (N - 2D) / 2 places of two tokens. D of them are drawn for the questions
without replacement, place i (from 1) with a weight of i^(A - 1), so that most questions come soon. Differences:

- A is 0.1 here. The configurations of Zoology have 0.01, which gives nearly the same weights.
- In Zoology the value does not follow its key in the input. Keys and labels are two sequences, and the token after the
  key is filler. Here the answer is in the sequence, at the place of this filler, so that a language model can learn it
  as the next token. So the model also reads the answers before a question. They tell nothing about it that the pairs do
  not, because each key is asked once.
- Zoology has 8,192 tokens and, for each N and D, 100,000 sequences for training.
- The filler is one token, as in the configurations of Zoology. (random_non_queries would make it random tokens.)
"""

from bisect import bisect_right
from itertools import accumulate

from synthetic import Draw, distinct, run

KEYS = [chr(0x4E00 + i) for i in range(256)]
VALUES = [chr(0xAC00 + i) for i in range(256)]
FILLER, MARK = ".", "="
# N, D, number of lines for training
SETTINGS = ((64, 4, 10_000), (128, 8, 10_000), (256, 16, 10_000), (256, 32, 10_000), (256, 64, 9_600), (512, 64, 0),
            (512, 128, 0))
HELD_OUT = 500


def root(n, k):
    """The k-th root of the integer n, rounded down."""
    low, high = 0, 1 << (n.bit_length() // k + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle ** k <= n else (low, middle)
    return low


def weights(n):
    """2^32 i^-0.9 for i = 1, …, n, rounded down. With integers, because machines may round powers of floats
    differently."""
    return [root((1 << 320) // i ** 9, 10) for i in range(1, n + 1)]


def places(draw, weights, n):
    """The indices of n of the weights, drawn one after another without replacement."""
    weights, chosen = list(weights), []
    sums = list(accumulate(weights))
    while len(chosen) < n:
        i = bisect_right(sums, draw.below(sums[-1]))
        if weights[i]:
            chosen.append(i)
            weights[i] = 0
        else:  # drawn before
            sums = list(accumulate(weights))
    return chosen


def line(draw, n_tokens, n_pairs, place_weights):
    keys, values = draw.some_of(KEYS, n_pairs), draw.some_of(VALUES, n_pairs)
    rest = [2 * FILLER] * len(place_weights)
    for place, key, value in zip(places(draw, place_weights, n_pairs), keys, values):
        rest[place] = key + MARK + value
    return "".join(key + value for key, value in zip(keys, values)) + "".join(rest)


def files(part):
    for n_tokens, n_pairs, n_train in SETTINGS:
        draw, seen = Draw(f"associative-recall {n_tokens} {n_pairs}"), set()
        place_weights = weights((n_tokens - 2 * n_pairs) // 2)
        for split, n in (("train", n_train), ("valid", HELD_OUT), ("test", HELD_OUT)):
            if n:
                yield (f"{split}-{n_tokens}-{n_pairs}.txt",
                       distinct(lambda: line(draw, n_tokens, n_pairs, place_weights), n // part, seen))


if __name__ == "__main__":
    run(__doc__, files)
