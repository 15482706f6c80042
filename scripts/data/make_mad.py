#!/usr/bin/env python3
"""The six tasks of MAD (Poli et al. 2024, "Mechanistic Design and Scaling of Hybrid Architectures").

Usage: make_mad.py OUT [PART]

OUT/{in-context,fuzzy,noisy}-recall-{train,valid,test}.txt   12,800, 640 and 1,280 lines
OUT/selective-copying-{train,valid,test}.tsv                 12,800, 640 and 1,280 lines
OUT/memorization-{train,valid,test}.tsv                      256, 640 and 1,280 lines
OUT/compression-{train,valid,test}.tsv                       12,800, 640 and 1,280 lines

A token is one character. No line is in two files of a task or twice in one. Vocabularies, lengths and numbers of lines
are the baselines of mad-lab (configs/tasks/*.yml), and lines are drawn as its mad/data/instances.py draws them.

Recall, 128 tokens: pairs of one of 8 keys (a to h) and one of 8 values (A to H). A key has the same value in the whole
line. The mark = stands before each value whose key came before; it is no token, and tells a program what is to be
predicted. The last key always came before.

    aFcBa=FgAc=B

Noisy recall: a fifth of the pairs are two of 16 tokens of noise instead (0 to 9, u to z). At least one is no noise.

Fuzzy recall, 129 tokens: a key is 1 to 3 different ones of 7 tokens (a to g), a value 1 to 3 different ones of 8 (A to
H). In valid and test each key has 3. Full stops fill the line from the left.

    ...abcFHgABabc=F=H

Selective copying, 256 tokens: 16 of 14 tokens (a to n) with 223 full stops before and between them, then a bar and 16
full stops. The labels of these stops are the 16 tokens in their order.

Memorization, 32 tokens: each of 127 keys (from U+4E00) has one of 128 values (from U+AC00), the same in all files. A
line is 16 keys with a full stop after each, whose label is the key's value. No line says which value that is: a model
learns it by heart from the labels.

Compression, 32 tokens: 31 of 15 tokens (a to o) and a bar. The labels are all tokens of the line. The task is one for
models whose last vector alone says the labels (model.architecture: autoencoder); others copy the line.

These three tables have the columns `sentence` and `label`, with one label for each character, - where none is counted
(task: token_classification).

Differences:

- In mad-lab, a model for recall learns to predict all tokens of a line, and is tested on those that are marked here.
  Here it learns the marked ones only.
- Outputs are labels in the three tables. mad-lab has one vocabulary for inputs and outputs.
- In mad-lab, the last key of fuzzy recall can be one that did not come before. Here its pair always did. Where it comes
  twice before the end, the second value has marks.
- mad-lab has no data for validation.
- mad-lab repeats each task with other vocabularies, lengths, shares of noise and numbers of lines (`changes` in its
  configurations). Only the baselines are made here.
"""

from synthetic import Draw, distinct, run

SIZES = {"train": 12_800, "valid": 640, "test": 1_280}
KEYS, VALUES, NOISE = "abcdefgh", "ABCDEFGH", "0123456789uvwxyz"
MARK, FILLER, COPY = "=", ".", "|"
N_TOKENS, NOISE_P = 128, 0.2
FUZZY_KEYS, MOTIF = KEYS[:7], 3
COPY_TOKENS, COPY_LENGTH, N_COPIED = "abcdefghijklmn", 256, 16
COMPRESSED, COMPRESSION_LENGTH = "abcdefghijklmno", 32
FACT_KEYS = [chr(0x4E00 + i) for i in range(127)]
FACT_VALUES = [chr(0xAC00 + i) for i in range(128)]
N_FACTS_A_LINE, N_FACT_LINES = 16, 256


class Pairs:
    """A line of keys and values, with marks before the values that can be known."""

    def __init__(self):
        self.line, self.n_tokens, self.values = "", 0, {}

    def add(self, key, new_value):
        """Adds the key and its value, which is new_value unless it has one."""
        is_known = key in self.values
        value = self.values.setdefault(key, new_value)
        self.line += key + "".join((MARK if is_known else "") + token for token in value)
        self.n_tokens += len(key) + len(value)

    def add_noise(self, noise):
        self.line += noise
        self.n_tokens += len(noise)


def recall_line(draw, noise_p):
    pairs, n_pairs = Pairs(), N_TOKENS // 2
    certain = draw.below(n_pairs - 1)  # a pair that is no noise
    for i in range(n_pairs - 1):
        if i != certain and draw.random() < noise_p:
            pairs.add_noise(draw.one_of(NOISE) + draw.one_of(NOISE))
        else:
            pairs.add(draw.one_of(KEYS), draw.one_of(VALUES))
    pairs.add(draw.one_of(list(pairs.values)), "")
    return pairs.line


def motif(draw, tokens, n):
    return "".join(draw.some_of(tokens, n))


def fuzzy_line(draw, fewest_in_key):
    def key():
        return motif(draw, FUZZY_KEYS, fewest_in_key + draw.below(MOTIF + 1 - fewest_in_key))

    def value():
        return motif(draw, VALUES, 1 + draw.below(MOTIF))

    asked, answer, pairs, was_added = key(), value(), Pairs(), False
    end = N_TOKENS - len(asked + answer) - 2 * MOTIF
    # Between this place and the end there is always the beginning of a pair.
    place = draw.below(end - 2 * MOTIF + 1)
    while pairs.n_tokens < end:
        if pairs.n_tokens >= place and not was_added:
            pairs.add(asked, answer)
            was_added = True
        else:
            another = key()
            pairs.add(another, answer if another == asked else value())
    pairs.add(asked, answer)
    return FILLER * (N_TOKENS + 1 - pairs.n_tokens) + pairs.line


def copying_line(draw):
    copied = [draw.one_of(COPY_TOKENS) for _ in range(N_COPIED)]
    fillers = [0] * N_COPIED  # before each of them
    for _ in range(COPY_LENGTH - 2 * N_COPIED - 1):
        fillers[draw.below(N_COPIED)] += 1
    text = "".join(n * FILLER + token for n, token in zip(fillers, copied)) + COPY
    return f"{text}{N_COPIED * FILLER}\t{len(text) * '-'}{''.join(copied)}"


def compression_line(draw):
    line = "".join(draw.one_of(COMPRESSED) for _ in range(COMPRESSION_LENGTH - 1)) + COPY
    return f"{line}\t{line}"


def facts():
    draw = Draw("mad memorization facts")
    return dict(zip(draw.shuffled(FACT_KEYS), draw.shuffled(FACT_VALUES)))


def memorization_line(draw, value_of):
    keys = [draw.one_of(FACT_KEYS) for _ in range(N_FACTS_A_LINE)]
    return "".join(key + FILLER for key in keys) + "\t" + "".join("-" + value_of[key] for key in keys)


def files(part):
    value_of = facts()
    tasks = {"in-context-recall": lambda draw, _: recall_line(draw, 0),
             "fuzzy-recall": lambda draw, split: fuzzy_line(draw, 1 if split == "train" else MOTIF),
             "noisy-recall": lambda draw, _: recall_line(draw, NOISE_P),
             "selective-copying": lambda draw, _: copying_line(draw),
             "memorization": lambda draw, _: memorization_line(draw, value_of),
             "compression": lambda draw, _: compression_line(draw)}
    for task, line in tasks.items():
        draw, seen = Draw(f"mad {task}"), set()
        is_table = not task.endswith("recall")
        for split, n in SIZES.items():
            if task == "memorization" and split == "train":
                n = N_FACT_LINES
            lines = distinct(lambda: line(draw, split), max(1, n // part), seen)
            yield (f"{task}-{split}.tsv", ["sentence\tlabel"] + lines) if is_table else (f"{task}-{split}.txt", lines)


if __name__ == "__main__":
    run(__doc__, files)
