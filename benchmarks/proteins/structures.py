"""Chains in space with numpy alone: their files, how alike two of them are, and structures that need no learning.

The scores are computed as data/structures/structure_comparison.h says, independently of the program.
"""

import numpy as np

LETTERS = {
    "ALA": "A", "ARG": "R", "ASN": "N", "ASP": "D", "CYS": "C", "GLN": "Q", "GLU": "E", "GLY": "G", "HIS": "H", "ILE": "I",
    "LEU": "L", "LYS": "K", "MET": "M", "PHE": "F", "PRO": "P", "SER": "S", "THR": "T", "TRP": "W", "TYR": "Y", "VAL": "V",
}  # fmt: skip
STEP = 3.8  # Å from a CA to the next one


class Chain:
    """Letters and places of the residues that have a CA: ca is (L, 3) in Å, backbone (L, 3, 3) N, CA and C, NaN for what is missing."""

    def __init__(self, name, letters, ca, backbone=None):
        self.name, self.letters, self.ca, self.backbone = name, letters, ca, backbone


def read_chain(path):
    residues = {}
    for line in path.read_text(encoding="ascii").splitlines():
        if line.startswith("ATOM"):
            name, atoms = residues.setdefault(line[21:27], (line[17:20], {}))
            atoms[line[12:16].strip()] = [float(line[at : at + 8]) for at in (30, 38, 46)]
    kept = [(name, atoms) for name, atoms in residues.values() if "CA" in atoms]
    backbone = np.array([[atoms.get(atom, [np.nan] * 3) for atom in ("N", "CA", "C")] for _, atoms in kept])
    return Chain(path.stem, "".join(LETTERS.get(name, "X") for name, _ in kept), backbone[:, 1], backbone)


def distances(points):
    return np.linalg.norm(points[:, None] - points[None], axis=-1)


def motions(moving, fixed, weights):
    """The rotations (F, 3, 3) and shifts (F, 3) that lay the points of F choices, (F, L) of 0 and 1, best onto the fixed ones."""
    total = weights.sum(1, keepdims=True)
    from_, to = weights @ moving / total, weights @ fixed / total
    products = np.einsum("fl,li,lj->fij", weights, moving, fixed) - total[..., None] * from_[:, :, None] * to[:, None]
    u, _, vt = np.linalg.svd(products)
    # Without a reflection (Kabsch 1976).
    vt[:, 2] *= np.sign(np.linalg.det(u) * np.linalg.det(vt))[:, None]
    rotations = (u @ vt).transpose(0, 2, 1)
    return rotations, to - np.einsum("fij,fj->fi", rotations, from_)


def square_distances(moving, fixed, weights):
    """(F, L): after each motion."""
    rotations, shifts = motions(moving, fixed, weights)
    moved = moving @ rotations.transpose(0, 2, 1) + shifts[:, None]
    return ((moved - fixed) ** 2).sum(-1)


def rmsd(predicted, truth):
    return np.sqrt(square_distances(predicted, truth, np.ones((1, len(truth)))).mean())


def tm_score(predicted, truth):
    """Residue i on residue i, divided by the length; the search of Zhang & Skolnick's program (2004), all fragments at once."""
    n = len(truth)
    scale = max(0.5, 1.24 * (n - 15) ** (1 / 3) - 1.8) if n > 15 else 0.5
    near, best = min(max(scale, 4.5), 8), 0.0
    places = np.arange(n)
    for fragment in sorted({max(min(n, 4), n >> i) for i in range(5)} | {min(n, 4)}):
        first = np.arange(n - fragment + 1)[:, None]
        chosen = (places >= first) & (places < first + fragment)
        for step in range(21):
            square = square_distances(predicted, truth, chosen.astype(float))
            best = max(best, (1 / (1 + square / scale**2)).sum(1).max() / n)
            most = np.full(len(chosen), near - 1 if step == 0 else near + 1)
            while (few := (square < most[:, None] ** 2).sum(1) < min(3, n)).any():
                most[few] += 0.5 + most[few] / 8
            grown = square < most[:, None] ** 2
            changed = (grown != chosen).any(1)
            chosen = grown[changed]
            if not len(chosen):
                break
    return best


def lddt(predicted, truth):
    """Mariani et al. 2013, of CA atoms, over all pairs nearer than 15 Å in the truth."""
    right = distances(truth)
    pairs = (right < 15) & ~np.eye(len(truth), dtype=bool)
    errors = np.abs(distances(predicted) - right)[pairs]
    return np.mean([(errors < most).mean() for most in (0.5, 1, 2, 4)])


def scores(predicted, truth):
    return {"lddt_ca": lddt(predicted, truth), "tm_score": tm_score(predicted, truth), "rmsd": rmsd(predicted, truth)}


def cb_distances(backbone):
    """Of the CB that the backbones hold, as AlphaFold's sources build it."""
    n, ca, c = backbone.transpose(1, 0, 2)
    b, d = ca - n, c - ca
    return distances(-0.58273431 * np.cross(b, d) + 0.56802827 * b - 0.54067466 * d + ca)


def long_contacts(predicted, truth):
    """Of the L/5 pairs that are nearest in the prediction, of those at least 24 residues apart, the share whose CB are within 8 Å in
    the truth, and that share of all such pairs; NaN for both if there are none."""
    first, second = np.triu_indices(len(truth), 24)
    right, said = cb_distances(truth)[first, second], cb_distances(predicted)[first, second]
    known = ~np.isnan(right)
    touch = (right[known] < 8)[np.argsort(said[known], kind="stable")]
    return (touch[: max(1, len(truth) // 5)].mean(), touch.mean()) if len(touch) else (np.nan, np.nan)


def straight(length):
    return np.arange(length)[:, None] * np.array([[STEP, 0, 0]])


def helix(length):
    """The CA atoms of an ideal alpha helix, right-handed: 100° and 1.5 Å for each residue, 2.3 Å from the axis."""
    angles = np.deg2rad(100) * np.arange(length)
    return np.stack([2.3 * np.cos(angles), 2.3 * np.sin(angles), 1.5 * np.arange(length)], 1)


def handedness(ca):
    """The mean triple product of three bonds in a row: positive in right-handed helices."""
    bonds = np.diff(ca, axis=0)
    return np.einsum("li,li->l", np.cross(bonds[:-2], bonds[1:-1]), bonds[2:]).mean() if len(bonds) > 2 else 0.0


def embedded(wanted, weights=None, rounds=100):
    """Points whose distances are as wanted, (L, L): classical scaling, then SMACOF, which lessens the weighted
    squares of the errors of the distances. The result is the mirror image that has more right-handed turns."""
    n = len(wanted)
    weights = np.ones((n, n)) if weights is None else weights.copy()
    np.fill_diagonal(weights, 0)
    centre = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(-centre @ wanted**2 @ centre / 2)
    points = vectors[:, -3:] * np.sqrt(np.maximum(values[-3:], 1e-6))
    laplacian = np.diag(weights.sum(1)) - weights
    inverse = np.linalg.pinv(laplacian)
    for _ in range(rounds):
        ratio = -weights * wanted / np.maximum(distances(points), 1e-6)
        np.fill_diagonal(ratio, 0)
        np.fill_diagonal(ratio, -ratio.sum(1))
        points = inverse @ ratio @ points
    return points if handedness(points) >= 0 else points * [1, 1, -1]


class MeanStructure:
    """For a length: the mean distances of residues so far apart in the sequence, in the training chains of about this length (a
    Gaussian of 15 % of the length), embedded in space."""

    def __init__(self, chains):
        longest = max(len(chain.letters) for chain in chains)
        self.lengths = np.array([len(chain.letters) for chain in chains])
        self.sums, self.counts = np.zeros((2, len(chains), longest))
        for i, chain in enumerate(chains):
            d = distances(chain.ca)
            for apart in range(1, len(d)):
                line = np.diagonal(d, apart)
                self.sums[i, apart], self.counts[i, apart] = line.sum(), len(line)

    def wanted(self, length):
        """(L, L) mean distances."""
        alike = np.exp(-(((self.lengths / length - 1) / 0.15) ** 2) / 2)
        n = alike @ self.counts
        mean = np.zeros(length)
        for apart in range(1, length):
            # Where no chain of this length says it, as far as the last separation that is known.
            known = apart < len(n) and n[apart] > 1e-9
            mean[apart] = alike @ self.sums[:, apart] / n[apart] if known else mean[apart - 1]
        places = np.arange(length)
        return mean[np.abs(places[:, None] - places)]

    def __call__(self, length):
        return embedded(self.wanted(length))


def spread(wanted, pairs, reach):
    """Distances of which none is longer than a way over shorter ones: the edges are `pairs`, (L, L) bool, of `reach` Å, and the
    bonds between neighbours."""
    n = len(wanted)
    ways = np.where(pairs, reach, wanted)
    places = np.arange(n - 1)
    ways[places, places + 1] = ways[places + 1, places] = STEP
    np.fill_diagonal(ways, 0)
    for via in range(n):
        np.minimum(ways, ways[:, via, None] + ways[via], out=ways)
    return ways


def from_contacts(probabilities, wanted):
    """Of the pairs at least six residues apart the likeliest ones, as many as residues, touch; all others have the mean distances
    of their separation, `wanted`, as far as those contacts allow."""
    n = len(wanted)
    apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    upper = np.argwhere(np.triu(apart >= 6))
    order = np.argsort([-probabilities[i, j] for i, j in upper], kind="stable")[:n]
    pairs = np.zeros((n, n), dtype=bool)
    for i, j in upper[order]:
        pairs[i, j] = pairs[j, i] = True
    weights = np.where(pairs | (apart < 6), 4.0, 1.0)
    return embedded(spread(wanted, pairs, 6.5), weights)
