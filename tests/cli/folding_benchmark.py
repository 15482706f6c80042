#!/usr/bin/env python3
"""Runs the benchmark of folding on made-up chains and checks its output, and checks its baselines against what is known of them.

    folding_benchmark.py ZOO

Exit code without numpy: 77, or 1 if ZOO_REQUIRE_REFERENCES is set.
"""

import json
import sys
import tempfile
from math import isclose
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from benchmark import BENCHMARKS, check, check_success, run, run_test  # noqa: E402

PROGRAM = "proteins/folding.py"
BASELINES = ["straight chain", "helix", "mean structure", "nearest chain"]
METRICS = ["lddt_ca", "tm_score", "rmsd"]


def check_baselines():
    """Alignments whose scores are known, structures that must come back."""
    sys.path.insert(0, str(BENCHMARKS / "proteins"))
    import numpy as np
    from alignment import aligned, local_scores, threaded
    from structures import Chain, distances, embedded, from_contacts, handedness, helix, long_contacts, rmsd, scores

    # W against W counts 11, C against C 9, and a gap of two residues costs 11 + 2.
    said = list(local_scores("WWWWCCCC", ["WWWWCCCC", "WWWWAACCCC", "GGGG", "PWWP"]))
    check(said == [80, 80 - 13, 0, 22], f"local alignments count {said}")
    pairs = aligned("WWWWCCCC", "AWWWWGGCCCCD")
    check(pairs == [(i, i + 1) for i in range(4)] + [(i + 4, i + 7) for i in range(4)], f"aligned are {pairs}")
    pairs = aligned("DWWWWGGCCCC", "AAWWWWCCCC")
    check(pairs == [(i, i + 1) for i in range(5)] + [(i + 7, i + 6) for i in range(4)], f"aligned are {pairs}")

    random = np.random.default_rng(3)
    walk = np.cumsum(random.normal(size=(40, 3)) + [1, 0, 0], axis=0)
    letters = "".join(random.choice(list("ARNDCQEGHILKMFPSTWYV"), 40))
    whole = scores(threaded(letters, Chain("walk", letters, walk)), walk @ np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]]) + 4)
    check(isclose(whole["lddt_ca"], 1) and isclose(whole["tm_score"], 1) and whole["rmsd"] < 1e-6, f"a chain on itself: {whole}")
    mirrored = scores(walk * [1, 1, -1], walk)
    check(isclose(mirrored["lddt_ca"], 1) and mirrored["rmsd"] > 1, f"a mirror image is another structure: {mirrored}")
    longer = threaded("M" * 5 + letters + "M" * 5, Chain("walk", letters, walk))
    check(len(longer) == 50 and np.allclose(longer[5:45], walk), "the ends of a threaded chain move the rest")
    between = distances(longer)
    check(between[4, 5] < between[0, 5] and between[44, 45] < between[44, 49], "an end is turned around")
    check(np.allclose(distances(longer[45:]), distances(helix(5))) and handedness(longer[:5]) > 0, "an end is no helix")

    ideal = helix(30)
    check(handedness(ideal) > 0 and rmsd(embedded(distances(ideal)), ideal) < 0.1, "a helix does not come back from its distances")
    # A hairpin of two strands, from its contacts alone.
    places = np.arange(30.0)
    touch = np.exp(-np.abs(np.add.outer(places, places) - 29))
    bent = from_contacts(touch, 3.8 * np.abs(np.subtract.outer(places, places)))
    near = distances(bent)[np.arange(12), 29 - np.arange(12)]
    check(near.max() < 12 and distances(bent)[0, 14] > 20, f"a hairpin's strands are {near} apart")

    # A heap of residues, of which the prediction moves every one by some Å; one has no N.
    places = random.normal(size=(50, 1, 3)) * 9 + random.normal(size=(50, 3, 3))
    moved = places + random.normal(size=(50, 1, 3)) * 2
    places[7, 0] = np.nan

    def cb(residue):
        n, ca, c = residue
        return ca - 0.58273431 * np.cross(ca - n, c - ca) + 0.56802827 * (ca - n) - 0.54067466 * (c - ca)

    pairs = [(i, j) for i in range(50) for j in range(i + 24, 50) if 7 not in (i, j)]
    near = {pair: np.linalg.norm(cb(places[pair[0]]) - cb(places[pair[1]])) < 8 for pair in pairs}
    pairs.sort(key=lambda pair: np.linalg.norm(cb(moved[pair[0]]) - cb(moved[pair[1]])))
    expected = sum(near[pair] for pair in pairs[:10]) / 10, sum(near.values()) / len(pairs)
    said = long_contacts(moved, places)
    check(0 < expected[1] < expected[0] < 1 and np.allclose(said, expected), f"contacts are {said}, not {expected}")


def main(zoo):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scores.json"
        done = run(PROGRAM, "--smoke", "--zoo", zoo, "--json", str(file))
        check_success(done)
        document = json.loads(file.read_text(encoding="utf-8"))
    check_baselines()
    check(document["chains"] == ["chain0", "chain1", "chain2"], f"the chains are {document['chains']}")
    check(list(document["scores"]) == ["tiny", *BASELINES], f"it compares {list(document['scores'])}")
    for name, table in document["scores"].items():
        check(list(table) == METRICS and all(len(values) == 3 for values in table.values()), f"{name}: {table}")
        lddt, tm, rmsd = (sum(values) / 3 for values in table.values())
        check(0 <= lddt <= 1 and 0 < tm <= 1 and rmsd > 0, f"{name}: {table}")
        row = next(line for line in done.stdout.splitlines() if line.startswith(f"| {name} | "))
        check(f"| {name} | {lddt:.3f} (" in row and f" | {tm:.3f} (" in row and f" | {rmsd:.1f} (" in row, f"{row}: {table}")
    check("tiny: 3 chains differ from zoo evaluate by at most lddt_ca" in done.stdout, done.stdout)
    n_alone = sum(score < 75 for score in document["alike"])
    check("All: 3 chains" in done.stdout and f"Without a relative in training: {n_alone} chains" in done.stdout, done.stdout)
    check("tiny: long-range contacts, L/5: " in done.stdout and "; 2 chains" in done.stdout, done.stdout)
    check("| `tiny` minus |" in done.stdout, done.stdout)
    # The made-up chains are helices with straight ends.
    by_name = {name: sum(table["lddt_ca"]) / 3 for name, table in document["scores"].items()}
    check(by_name["helix"] > 0.7 > by_name["straight chain"], f"{by_name}")


if __name__ == "__main__":
    run_test(main, __doc__)
