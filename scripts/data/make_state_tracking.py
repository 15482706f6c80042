#!/usr/bin/env python3
"""State tracking: the product of each beginning of a word over a group, such as parity and permutations of five.

Usage: make_state_tracking.py OUT [PART]

OUT/parity-{train,valid,test,test-80,test-160,test-320}.tsv      the group Z2: bits, and whether the number of ones is odd
OUT/GROUP-{train,valid,test,test-32,test-64,test-128}.tsv        GROUP: s5, s5-swaps, a5, z60

A line has the columns `sentence`, a word, and `label`, with one label for each of its characters: the product of the
elements up to it (task: token_classification).

    0110100	0100111

- s5: all 120 permutations of five things. Permutation i of their alphabetical order is the character U+4E00 + i, and
  01234 is the first. The product pq takes x to p(q(x)): in a word, the last permutation acts first.
- s5-swaps: the same, but the elements of a word are the ten permutations that exchange two things.
- a5: the 60 even ones, with the characters that they have in s5. It is the smallest group that is not solvable. No
  circuit of constant depth and with threshold gates (TC0) is known that finds its products, and transformers of a fixed
  depth are such circuits.
- z60: the numbers 0 to 59 and their sum modulo 60, from U+4E00. It has as many elements as a5, but such circuits find
  its sums.

train has 1 to 40 bits or 1 to 16 permutations or numbers, all lengths equally likely: 40,000 lines. A short word may be
in it more than once. valid and test have 1,000 lines each, with words of 21 to 40, or of 9 to 16, that are not in
train. test-N has 500 lines with N each; the labels that are in reach of training (the first 40 or 16) are -, so that
only longer words are counted.

The groups, and one label for each beginning, are those of Merrill et al. 2024 ("The Illusion of State in State-Space
Models"). Parity at lengths up to 40, and longer ones for the test, is a task of Delétang et al. 2023 ("Neural Networks
and the Chomsky Hierarchy") and Grazzi et al. 2025 ("Unlocking State-Tracking in Linear RNNs Through Negative
Eigenvalues"), who also have words of swaps. Differences:

- Merrill et al. train with words of one length k and all shorter ones, for many k, and test with k. They have up to
  five million words of a length, and a group A4 x Z5, which is left out here.
- Their models read a token for the beginning first.
- Delétang et al. ask for the parity of the whole word only.
"""

from itertools import permutations

from synthetic import Draw, distinct, run

N_TRAIN, N_HELD_OUT, N_LONG = 40_000, 1_000, 500
S5 = list(permutations(range(5)))
LETTER = {element: chr(0x4E00 + i) for i, element in enumerate(S5)}


def after(p, q):
    """The permutation that does q, then p."""
    return tuple(p[i] for i in q)


def is_even(p):
    return sum(p[i] > p[j] for i in range(5) for j in range(i + 1, 5)) % 2 == 0


def is_swap(p):
    return sum(p[i] != i for i in range(5)) == 2


class Group:
    """Elements that words are made of, their product, and how they are written."""

    def __init__(self, longest, elements, identity, product, letter):
        self.longest = longest  # in training
        self.elements, self.identity, self.product, self.letter = elements, identity, product, letter

    def line(self, draw, n, n_uncounted):
        state, word, states = self.identity, "", ""
        for i in range(n):
            element = draw.one_of(self.elements)
            state = self.product(state, element)
            word += self.letter(element)
            states += "-" if i < n_uncounted else self.letter(state)
        return f"{word}\t{states}"


def permutation_group(elements):
    return Group(16, elements, S5[0], after, LETTER.get)


GROUPS = {
    "parity": Group(40, [0, 1], 0, lambda a, b: a ^ b, str),
    "s5": permutation_group(S5),
    "s5-swaps": permutation_group([p for p in S5 if is_swap(p)]),
    "a5": permutation_group([p for p in S5 if is_even(p)]),
    "z60": Group(16, list(range(60)), 0, lambda a, b: (a + b) % 60, lambda a: chr(0x4E00 + a)),
}


def files(part):
    def table(name, lines):
        return f"{name}.tsv", ["sentence\tlabel"] + lines

    for name, group in GROUPS.items():
        draw, seen, longest = Draw(f"state-tracking {name}"), set(), group.longest

        def held_out_line():
            return group.line(draw, longest // 2 + 1 + draw.below(longest - longest // 2), 0)

        for split in ("valid", "test"):
            yield table(f"{name}-{split}", distinct(held_out_line, N_HELD_OUT // part, seen))
        train = []
        while len(train) < N_TRAIN // part:
            line = group.line(draw, 1 + draw.below(longest), 0)
            if line not in seen:
                train.append(line)
        yield table(f"{name}-train", train)
        for n in (2 * longest, 4 * longest, 8 * longest):
            long = distinct(lambda: group.line(draw, n, longest), N_LONG // part, set())
            yield table(f"{name}-test-{n}", long)


if __name__ == "__main__":
    run(__doc__, files)
