#!/usr/bin/env python3
"""How well models fold the chains of a test, with 95 % intervals over chains, beside structures that need little or no learning.

    benchmarks/proteins/folding.py RUN...      # runs of structure_prediction

`zoo predict` folds the sequences. The lDDT and TM-score of CA and the RMSD are computed here, with numpy alone. They must equal
those of `zoo evaluate`: --check compares them for each chain. Residue i is laid onto residue i. The script also prints how precise
the likeliest long-range contacts of a run are. The intervals come from a bootstrap over chains with 10,000 draws. The difference
between a model and a baseline has an interval from the same draws.

Baselines:
    straight chain     residues 3.8 Å apart on a line
    helix              an ideal alpha helix
    mean structure     mean distances of residues so far apart in the sequence, in training chains of that length, embedded in space
    nearest chain      the training chain with the best local alignment (BLOSUM62, affine gaps), the sequence threaded onto it
    contacts           the likeliest contacts of --contacts RUN, a language model of residues (`zoo contacts RUN --fit`), embedded

A second table has only the test chains without a relative in training: their best local alignment counts less than 75.

--data DIR: the folder with the folders train and test, of PDB files with one chain each; --zoo PROGRAM; --json FILE: also all
scores of all chains; --smoke: a few made-up chains and a model of two steps, as a test of this program.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
except ImportError:
    print("needs numpy", file=sys.stderr)
    sys.exit(77)

from alignment import local_scores, threaded
from structures import MeanStructure, from_contacts, helix, long_contacts, read_chain, scores, straight

ROOT = Path(__file__).resolve().parents[2]
DRAWS = 10_000
RELATIVE = 75  # the least score of a local alignment with a training chain that is a relative
METRICS = {"lddt_ca": ("lDDT", 3), "tm_score": ("TM-score", 3), "rmsd": ("RMSD", 1)}
SMOKE_RECIPE = """
name: tiny
task: structure_prediction
data: {train: structures/train, valid: structures/test, test: structures/test}
model: {architecture: {type: fold_flow, steps: 3, time_width: 8}, d_model: 16, n_layers: 1, n_heads: 2}
training: {steps: 2, batch_size: 2, optimizer: {lr: 0.001}, schedule: {warmup_steps: 1}, threads: 1}
"""


def zoo(program, *arguments, **environment):
    done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, env=os.environ | environment)
    if done.returncode:
        sys.exit(done.stderr.strip())
    return done.stdout


def chains_of(folder):
    chains = [read_chain(path) for path in sorted(folder.glob("*.pdb"))]
    if not chains:
        sys.exit(f"{folder}: has no .pdb files")
    return chains


def predicted(program, run, chains):
    """The chains as a run predicts them."""
    with tempfile.TemporaryDirectory() as folder:
        sequences, out = Path(folder) / "chains.fasta", Path(folder) / "folds"
        sequences.write_text("".join(f">{chain.name}\n{chain.letters}\n" for chain in chains), encoding="ascii")
        zoo(program, "predict", run, "--input", sequences, "--out", out)
        return [read_chain(out / f"{chain.name}.pdb") for chain in chains]


def from_language_model(program, run, fit, mean, chains):
    for chain in chains:
        said = json.loads(zoo(program, "contacts", run, "--fit", fit, "--text", chain.letters, "--json"))
        yield from_contacts(np.array(said["contacts"]), mean.wanted(len(chain.letters)))


def nearest(train, chains):
    """For each chain the training chain that is most like it, and the score of their local alignment."""
    found = [local_scores(chain.letters, [other.letters for other in train]) for chain in chains]
    return [train[int(scores.argmax())] for scores in found], np.array([scores.max() for scores in found])


def table_of(structures, chains):
    """By metric the scores of the chains, (N)."""
    rows = [scores(ca, chain.ca) for ca, chain in zip(structures, chains)]
    return {metric: np.array([row[metric] for row in rows]) for metric in METRICS}


def interval(values, draws):
    """95 % of the mean over chains."""
    means = values[draws].mean(1)
    return np.percentile(means, [2.5, 97.5])


def figure(values, draws, digits, sign=""):
    low, high = interval(values, draws)
    return f"{values.mean():{sign}.{digits}f} ({low:{sign}.{digits}f} to {high:{sign}.{digits}f})"


def print_tables(title, tables, runs, chosen):
    """Of the chosen chains."""
    n = int(chosen.sum())
    print(f"\n{title}: {n} chains\n")
    if not n:
        return
    tables = {name: {metric: values[chosen] for metric, values in table.items()} for name, table in tables.items()}
    draws = np.random.default_rng(1).integers(n, size=(DRAWS, n))
    print("| | " + " | ".join(title for title, _ in METRICS.values()) + " |")
    print("|---|" + "---|" * len(METRICS))
    for name, table in tables.items():
        print(f"| {name} | " + " | ".join(figure(table[m], draws, digits) for m, (_, digits) in METRICS.items()) + " |")
    for run in runs:
        print(f"\n| `{run}` minus | " + " | ".join(title for title, _ in METRICS.values()) + " |")
        print("|---|" + "---|" * len(METRICS))
        for name, table in tables.items():
            if name not in runs:
                cells = [figure(tables[run][m] - table[m], draws, digits, "+") for m, (_, digits) in METRICS.items()]
                print(f"| {name} | " + " | ".join(cells) + " |")


def print_contacts(name, contacts):
    contacts = contacts[~np.isnan(contacts[:, 0])]
    n = len(contacts)
    if not n:
        return
    draws = np.random.default_rng(1).integers(n, size=(DRAWS, n))
    touch, chance = contacts.T
    print(f"{name}: long-range contacts, L/5: {figure(touch, draws, 3)}; chance: {figure(chance, draws, 3)}; difference: "
          f"{figure(touch - chance, draws, 3, '+')}; {n} chains")  # fmt: skip


def check_scores(program, run, folder, chains, table):
    """The program evaluates each chain by itself, so that a flow begins with the noise of a prediction, and no chain that is longer
    than data.structures.longest_scored. PDB files have three digits."""
    worst, n_checked = {}, 0
    for i, chain in enumerate(chains):
        command = [str(program), "evaluate", str(run), "--data", str(folder / f"{chain.name}.pdb"), "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        if "longest_scored" in done.stderr and done.returncode:
            continue
        if done.returncode:
            sys.exit(done.stderr.strip())
        said = json.loads(done.stdout)
        n_checked += 1
        for metric in table:
            if metric in said:
                worst[metric] = max(worst.get(metric, 0.0), abs(float(said[metric]) - table[metric][i]))
    differences = ", ".join(f"{metric} {value:.1e}" for metric, value in worst.items())
    print(f"{Path(run).name}: {n_checked} chains differ from zoo evaluate by at most {differences}")
    if not n_checked or max(worst["lddt_ca"], worst["tm_score"]) > 1e-3 or worst["rmsd"] > 1e-2:
        sys.exit("the scores are not those of zoo evaluate")


def made_up_chains(folder):
    """Helices with a straight end, of other lengths and letters."""
    random = np.random.default_rng(1)
    for split, n in (("train", 6), ("test", 3)):
        (folder / split).mkdir(parents=True)
        for i in range(n):
            length = 24 + 2 * i
            ca = helix(length)
            ca[-8:] = ca[-9] + straight(9)[1:]
            lines = []
            for place in range(length):
                residue = random.choice(["ALA", "GLU", "LYS", "LEU", "GLY", "VAL"])
                for atom, shift in (("N", -0.9), ("CA", 0.0), ("C", 0.9), ("O", 1.5)):
                    x, y, z = ca[place] + shift * np.array([0.6, 0.5, 0.62])
                    lines.append(f"ATOM  {len(lines) + 1:5d}  {atom:<3} {residue} A{place + 1:4d}    "
                                 f"{x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00           {atom[0]}  ")  # fmt: skip
            (folder / split / f"chain{i}.pdb").write_text("\n".join([*lines, "TER", "END"]) + "\n", encoding="ascii")


def measure(arguments, data, runs):
    train, test = chains_of(data / "train"), chains_of(data / "test")
    mean = MeanStructure(train)
    tables = {}
    for run in runs:
        folded = predicted(arguments.zoo, run, test)
        table = tables[Path(run).name] = table_of([chain.ca for chain in folded], test)
        contacts = np.array([long_contacts(one.backbone, chain.backbone) for one, chain in zip(folded, test)])
        if arguments.check or arguments.smoke:
            check_scores(arguments.zoo, run, data / "test", test, table | {"long_contacts": contacts[:, 0]})
        print_contacts(Path(run).name, contacts)
    templates, alike = nearest(train, test)
    baselines = {
        "straight chain": (straight(len(chain.letters)) for chain in test),
        "helix": (helix(len(chain.letters)) for chain in test),
        "mean structure": (mean(len(chain.letters)) for chain in test),
        "nearest chain": (threaded(chain.letters, template) for chain, template in zip(test, templates)),
    }
    if arguments.contacts:
        baselines["contacts"] = from_language_model(arguments.zoo, arguments.contacts, data / "train", mean, test)
    tables |= {name: table_of(structures, test) for name, structures in baselines.items()}
    names = [Path(run).name for run in runs]
    print_tables("All", tables, names, alike >= 0)
    print_tables("Without a relative in training", tables, names, alike < RELATIVE)
    if arguments.json:
        lists = {name: {metric: list(values) for metric, values in table.items()} for name, table in tables.items()}
        document = {"chains": [chain.name for chain in test], "alike": alike.tolist(), "scores": lists}
        arguments.json.write_text(json.dumps(document), encoding="utf-8")


def main():
    data = Path(os.environ.get("ZOO_DATA", ROOT / "datasets")) / "structures"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN")
    parser.add_argument("--data", type=Path, default=data)
    parser.add_argument("--contacts", metavar="RUN")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--zoo", default=ROOT / "build/release/zoo")
    arguments = parser.parse_args()
    if not arguments.smoke:
        measure(arguments, arguments.data, arguments.runs)
        return
    with tempfile.TemporaryDirectory() as folder:
        made_up_chains(Path(folder) / "structures")
        recipe, run = Path(folder) / "tiny.yaml", Path(folder) / "tiny"
        recipe.write_text(SMOKE_RECIPE, encoding="utf-8")
        zoo(arguments.zoo, "train", recipe, "--out", run, ZOO_DATA=folder)
        measure(arguments, Path(folder) / "structures", [run])


if __name__ == "__main__":
    main()
