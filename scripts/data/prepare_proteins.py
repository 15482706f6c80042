#!/usr/bin/env python3
"""Makes the files for secondary structure in the folder TO from train.tsv (PISCES) and cb513.tsv in FROM:

    prepare_proteins.py FROM TO

structure.train.tsv, structure.valid.tsv: the chains of train.tsv; every twentieth is for validation.
structure.strands.tsv: the chains for training with strands. Half of all chains have hardly any, so these are worth
reading twice. structure.test.tsv: the chains of cb513.tsv.

Columns: sequence, dssp8 (the states of DSSP), dssp3 (helix H, strand E, coil C), fold (not in CB513).

train.tsv has C, coil, also for residues that the crystal does not show, and CB513 does not count these. A run of C is
taken for such residues where it is longer than CB513 has them: beyond the first 6 residues next to a known state at the
ends of a chain, and beyond 6 on both sides of an inner run of more than 16. They get "-": not counted.
"""

import csv
import re
import sys
from pathlib import Path

# The reduction of eight states to three of most publications (Rost & Sander 1993).
THREE_STATES = str.maketrans("HGIEBCST-", "HHHEECCC-")
KEPT_AT_ENDS, KEPT_WITHIN, LONGEST_WITHIN = 6, 6, 16
VALIDATION = 20  # every so many chains


def without_unseen(states):
    """The states with "-" where a run of C is too long for residues that are seen."""
    states = list(states)
    for run in re.finditer("C+", "".join(states)):
        begin, end = run.span()
        if begin == 0 or end == len(states):
            first = begin if begin == 0 else begin + KEPT_AT_ENDS
            last = end if end == len(states) else end - KEPT_AT_ENDS
        elif end - begin > LONGEST_WITHIN:
            first, last = begin + KEPT_WITHIN, end - KEPT_WITHIN
        else:
            continue
        if first < last:
            states[first:last] = "-" * (last - first)
    return "".join(states)


def rows_of(path):
    with open(path, newline="", encoding="ascii") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def write(path, rows, columns):
    with open(path, "w", encoding="ascii", newline="\n") as file:
        print(*columns, sep="\t", file=file)
        for row in rows:
            print(*(row[column] for column in columns), sep="\t", file=file)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, folder = Path(sys.argv[1]), Path(sys.argv[2])
    chains, test = rows_of(source / "train.tsv"), rows_of(source / "cb513.tsv")
    for row in chains:
        row["dssp8"] = without_unseen(row["dssp8"])
    for row in chains + test:
        row["dssp3"] = row["dssp8"].translate(THREE_STATES)
    chains = [row for row in chains if row["dssp8"].strip("-")]
    columns = ["sequence", "dssp8", "dssp3", "fold"]
    train = [row for i, row in enumerate(chains) if i % VALIDATION]
    write(folder / "structure.train.tsv", train, columns)
    write(folder / "structure.strands.tsv", [row for row in train if row["fold"] != "alpha"], columns)
    write(folder / "structure.valid.tsv", chains[::VALIDATION], columns)
    write(folder / "structure.test.tsv", test, columns[:3])


if __name__ == "__main__":
    main()
