#!/usr/bin/env python3
"""Three tasks of repeating what was read: copying a string, finding the letter that followed a mark (induction), and going
on from any letter that was there before (repeats).

Usage: make_copy.py OUT [PART]

OUT/{train,valid,test}.{source,target}   4 to 20 letters from a to z, and the same letters: 20,000, 1,000, 1,000 lines
OUT/test-long.{source,target}            21 to 40 letters, more than in all of training: 1,000 lines
OUT/induction-{train,valid,test}.txt     64 to 128 tokens: 20,000, 1,000, 1,000 lines
OUT/repeats-{train,valid,test}.txt       17 to 64 tokens: 20,000, 1,000, 1,000 lines

All lengths are equally likely. No line is in two files of a task or twice in one.

Copying is a task of Graves et al. 2014 ("Neural Turing Machines"), there with vectors of bits. Jelassi et al. 2024
("Repeat After Me") study strings that are longer than those of training, with models that read both strings as one
sequence. Here each string has its own file, so that an encoder-decoder can learn them, too.

Induction is the task "induction head" of Fu et al. 2023 ("Hungry Hungry Hippos", H3). A token is one character. A line
has random letters with a star among them. It ends with a second star and the answer, which is the letter after the
first star. The mark = stands before the answer; it is no token, and tells a program what is to be predicted:

    gk*qxeoab*=q

The first star is equally likely at each place that leaves a letter after it. In the paper, all sequences have the same
length, and their end is a label that the model does not read.

Repeats have an answer at many places, so a small model learns them soon. A line has 12 to 40 random letters from a to z
and A to Z, and goes on with a part of them again, of 5 to 24 letters. The part begins anywhere. Each of its letters but
the first is an answer:

    KgtqxeobWaLxmq=x=e=o=b=W
"""

from synthetic import Draw, distinct, run

LETTERS = "abcdefghijklmnopqrstuvwxyz"
BOTH_CASES = LETTERS + LETTERS.upper()
TRIGGER, MARK = "*", "="
SIZES = {"train": 20_000, "valid": 1_000, "test": 1_000}


def letters(draw, n, among=LETTERS):
    return "".join(draw.one_of(among) for _ in range(n))


def string(draw, fewest, most):
    return letters(draw, fewest + draw.below(most - fewest + 1))


def induction_line(draw, fewest, most):
    n = fewest + draw.below(most - fewest + 1)
    text = letters(draw, n - 3)  # without the two stars and the answer
    first = draw.below(len(text))
    return text[:first] + TRIGGER + text[first:] + TRIGGER + MARK + text[first]


def repeats_line(draw):
    n = 12 + draw.below(29)
    text = letters(draw, n, BOTH_CASES)
    length = 5 + draw.below(min(20, n - 5))
    first = draw.below(n - length)
    return text + MARK.join(text[first:first + length])


def files(part):
    draw, seen = Draw("copy"), set()
    for split, n in SIZES.items():
        lines = distinct(lambda: string(draw, 4, 20), n // part, seen)
        yield f"{split}.source", lines
        yield f"{split}.target", lines
    draw = Draw("copy long")
    lines = distinct(lambda: string(draw, 21, 40), SIZES["test"] // part, set())
    yield "test-long.source", lines
    yield "test-long.target", lines
    draw, seen = Draw("induction"), set()
    for split, n in SIZES.items():
        yield f"induction-{split}.txt", distinct(lambda: induction_line(draw, 64, 128), n // part, seen)
    draw, seen = Draw("repeats"), set()
    for split, n in SIZES.items():
        yield f"repeats-{split}.txt", distinct(lambda: repeats_line(draw), n // part, seen)


if __name__ == "__main__":
    run(__doc__, files)
