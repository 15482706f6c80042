#!/usr/bin/env python3
"""Depo: who comes k steps later on a circle, whose arrows are in disorder (Allen-Zhu 2025, "Physics of Language Models:
Part 4.1", https://arxiv.org/abs/2512.17351).

Usage: make_depo.py OUT [PART]

OUT/{train,valid,test}.txt      up to 12 names of one token, up to 4 steps: 40,000, 500 and 500 lines
OUT/{train,valid,test}-1.txt    up to 225 names of 1 or 2 tokens, up to 8 steps (Depo1): 15,000, 500 and 500 lines
OUT/{train,valid,test}-2.txt    up to 75 names of 5 to 7 tokens, up to 16 steps (Depo2): 8,000, 500 and 500 lines

A token is one character. A line begins with the arrows of one circle in a random order, each as two names. Questions
follow: a number of steps (① to ⑯), a name, a colon, and the name that is so many steps later. The mark = stands before
each token of this answer; it is no token, and tells a program what is to be predicted. With three names of one token:

    caabbc①a:=b②a:=c

The last token of a name is one of 50 letters (a to z, A to X; in Depo2 one of a, b, c), the others are one of as many
from U+0100. So a model sees where a name ends. No line is in two files of a setting or twice in one.

Circles and questions are drawn as data-synthetic-pretrain/Depo/depo.py of the authors' PhysicsLM4 draws them. In train,
n names of at most N are as likely as 1 / (n + sqrt N), from 3 on, and all numbers of steps up to K are equally likely.
In valid and test there are N names, and the steps are powers of two up to K. There are ten questions, or n if that is
less, each from another name. Differences:

- There, N is 225, 300 or 375 (Depo1) and 75, 100 or 125 (Depo2). The smaller files here are for small models.
- There, lines are drawn without end, and a model reads several in a window, each after a token for its beginning. Here
  a line is one circle, and there are few of them.
- There, the colon is predicted, too.
"""

from bisect import bisect_right
from itertools import accumulate
from math import sqrt

from synthetic import Draw, distinct, run

MARK = "="
MOST_QUESTIONS, HELD_OUT = 10, 500
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWX"


class Setting:
    def __init__(self, suffix, most_names, most_steps, n_tokens, fewest, most, n_train):
        self.suffix = suffix  # of the names of the files
        self.most_names, self.most_steps = most_names, most_steps
        self.fewest, self.most = fewest, most  # tokens of a name
        self.first_tokens, self.last_tokens = [chr(0x100 + i) for i in range(n_tokens)], LETTERS[:n_tokens]
        self.n_train = n_train
        self.sums = list(accumulate(1 / (n + sqrt(most_names)) for n in range(3, most_names + 1)))

    def n_names(self, draw):
        return 3 + bisect_right(self.sums, draw.random() * self.sums[-1])

    def name(self, draw):
        n = self.fewest + draw.below(self.most - self.fewest + 1)
        return "".join(draw.one_of(self.first_tokens) for _ in range(n - 1)) + draw.one_of(self.last_tokens)


SETTINGS = (Setting("", 12, 4, 50, 1, 1, 40_000), Setting("-1", 225, 8, 50, 1, 2, 15_000),
            Setting("-2", 75, 16, 3, 5, 7, 8_000))


def line(draw, setting, is_training):
    n = setting.n_names(draw) if is_training else setting.most_names
    circle = distinct(lambda: setting.name(draw), n, set())
    arrows = draw.shuffled([circle[i] + circle[(i + 1) % n] for i in range(n)])
    steps = range(1, setting.most_steps + 1)
    if not is_training:
        steps = [k for k in steps if k & (k - 1) == 0]
    questions = []
    for i in draw.some_of(range(n), min(n, MOST_QUESTIONS)):
        k = draw.one_of(steps)
        answer = circle[(i + k) % n]
        questions.append(f"{chr(0x2460 + k - 1)}{circle[i]}:{''.join(MARK + token for token in answer)}")
    return "".join(arrows + questions)


def files(part):
    for setting in SETTINGS:
        draw, seen = Draw(f"depo {setting.suffix}"), set()
        for split, n in (("train", setting.n_train), ("valid", HELD_OUT), ("test", HELD_OUT)):
            lines = distinct(lambda: line(draw, setting, split == "train"), n // part, seen)
            yield f"{split}{setting.suffix}.txt", lines


if __name__ == "__main__":
    run(__doc__, files)
