"""The training chain whose sequence is most like another one, and its structure with that other sequence threaded onto it."""

import numpy as np
from structures import helix, motions

ORDER = "ARNDCQEGHILKMFPSTWYV"
# BLOSUM62 (Henikoff & Henikoff 1992), up to the diagonal.
BLOSUM62 = """
 4
-1  5
-2  0  6
-2 -2  1  6
 0 -3 -3 -3  9
-1  1  0  0 -3  5
-1  0  0  2 -4  2  5
 0 -2  0 -1 -3 -2 -2  6
-2  0  1 -1 -3  0  0 -2  8
-1 -3 -3 -3 -1 -3 -3 -4 -3  4
-1 -2 -3 -4 -1 -2 -3 -4 -3  2  4
-1  2  0 -1 -3  1  1 -2 -1 -3 -2  5
-1 -1 -2 -3 -1  0 -2 -3 -2  1  2 -1  5
-2 -3 -3 -3 -2 -3 -3 -3 -1  0  0 -3  0  6
-1 -2 -2 -1 -3 -1 -1 -2 -2 -3 -3 -1 -2 -4  7
 1 -1  1  0 -1  0  0  0 -1 -2 -2  0 -1 -2 -1  4
 0 -1  0 -1 -1 -1 -1 -2 -2 -1 -1 -1 -1 -2 -1  1  5
-3 -3 -4 -4 -2 -2 -3 -2 -2 -3 -2 -3 -1  1 -4 -3 -2 11
-2 -2 -2 -3 -2 -1 -2 -3  2 -1 -1 -2 -1  3 -3 -2 -2  2  7
 0 -3 -3 -3 -1 -2 -2 -3 -3  3  1 -2  1 -1 -2 -2  0 -3 -1  4
"""
OPEN, EXTEND = 11, 1  # a gap of k residues costs OPEN + k · EXTEND, as in BLAST
PADDING = len(ORDER) + 1
NEVER = -1000
KEPT = 4  # residues of the template that a helix which continues it is laid onto


def substitutions():
    """(22, 22): letters of ORDER, an unknown one, and padding, which is never aligned."""
    table = np.full((len(ORDER) + 2,) * 2, -1)
    for i, line in enumerate(BLOSUM62.split("\n")[1:-1]):
        table[i, : i + 1] = table[: i + 1, i] = [int(number) for number in line.split()]
    table[PADDING] = table[:, PADDING] = NEVER
    return table


TABLE = substitutions()


def numbers(letters):
    return np.array([ORDER.find(letter) if letter in ORDER else len(ORDER) for letter in letters])


def local_scores(letters, others):
    """The scores of the best local alignments (Gotoh 1982) with each of the others."""
    longest = max(map(len, others))
    rows = np.full((len(others), longest), PADDING)
    for row, other in zip(rows, others):
        row[: len(other)] = numbers(other)
    places = EXTEND * np.arange(longest + 1)
    above = np.zeros((len(others), longest + 1), dtype=np.int32)
    down = np.full_like(above, NEVER)
    best = np.zeros(len(others), dtype=np.int32)
    for number in numbers(letters):
        down = np.maximum(above - OPEN, down) - EXTEND
        here = np.maximum(down, 0)
        here[:, 1:] = np.maximum(here[:, 1:], above[:, :-1] + TABLE[number][rows])
        # The best gap that ends here began at some place before it.
        across = np.maximum.accumulate(here + places, axis=1)[:, :-1] - OPEN - places[1:]
        here[:, 1:] = np.maximum(here[:, 1:], across)
        best = np.maximum(best, here.max(1))
        above = here
    return best


def aligned(letters, other):
    """Pairs (i, j) of the best alignment (Gotoh 1982) of all letters with a part of the other sequence, whose ends cost nothing."""
    rows, columns = numbers(letters), numbers(other)
    n, m = len(rows), len(columns)
    places = EXTEND * np.arange(m + 1)
    # The best scores in which the two letters are a pair, in which a gap in the other sequence ends here, either of these, or any.
    pair, down, here, best = (np.full((n + 1, m + 1), NEVER * (n + m)) for _ in range(4))
    best[0] = 0
    for i in range(1, n + 1):
        down[i] = np.maximum(best[i - 1] - OPEN, down[i - 1]) - EXTEND
        pair[i, 1:] = best[i - 1, :-1] + TABLE[rows[i - 1]][columns]
        here[i] = best[i] = np.maximum(pair[i], down[i])
        best[i, 1:] = np.maximum(best[i, 1:], np.maximum.accumulate(here[i] + places)[:-1] - OPEN - places[1:])
    i, j = n, int(best[n].argmax())
    pairs = []
    while i and j:
        if best[i, j] == pair[i, j]:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif best[i, j] == down[i, j]:
            while down[i, j] != best[i - 1, j] - OPEN - EXTEND:
                i -= 1
            i -= 1
        else:
            j = next(k for k in range(j - 1, -1, -1) if best[i, j] == here[i, k] - OPEN - EXTEND * (j - k))
    return pairs[::-1]


def continued(ca, length):
    """The next `length` places of a helix that continues these."""
    kept = min(KEPT, len(ca))
    ideal = helix(kept + length)
    rotations, shifts = motions(ideal[:kept], ca[-kept:], np.ones((1, kept)))
    return (ideal @ rotations[0].T + shifts[0])[kept:]


def threaded(letters, template):
    """CA atoms for all letters: those of aligned residues as in the template, of others between them on a straight line, and of
    those before and behind them on helices that continue the ends."""
    pairs = aligned(letters, template.letters)
    first, last = pairs[0][0], pairs[-1][0]
    inner = np.stack([np.interp(np.arange(first, last + 1), [i for i, _ in pairs], template.ca[[j for _, j in pairs], axis])
                      for axis in range(3)], 1)  # fmt: skip
    before = continued_before(inner, first)
    return np.concatenate([before, inner, continued(inner, len(letters) - 1 - last)])


def continued_before(ca, length):
    """As continued(), in front: a helix read backwards is no less right-handed."""
    return continued(ca[::-1], length)[::-1]
