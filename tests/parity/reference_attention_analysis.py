"""Head statistics and attention roll-out of random attention, from their definitions, in loops over NumPy arrays.

The arithmetic is independent of the C++ code: it takes other steps, all in double.
"""

import math

import numpy as np
import torch
from reference import write_case

N_HEADS = 3


def random_attention(random, n_layers, T, S, causal=False):
    """(layers, heads, T, S) in float32; some heads are sharp, some nearly even, and one weight in six is 0."""
    scores = random.normal(size=(n_layers, N_HEADS, T, S)) * random.choice([0.3, 2, 8], size=(n_layers, N_HEADS, 1, 1))
    weights = np.exp(scores)
    hidden = random.random(size=weights.shape) < 1 / 6
    hidden[..., 0] = False  # no row is empty
    weights[hidden] = 0
    if causal:
        weights *= np.tril(np.ones((T, S)))
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def statistics(weights, is_self):
    """The six numbers of one head, NaN if undefined: entropy, distance, first, previous, itself, error."""
    T, S = weights.shape
    w = weights.astype(np.float64)
    entropy = np.mean([-sum(p * math.log(p) for p in row if p > 0) for row in w])
    first = np.mean([row[0] for row in w])
    if not is_self:
        error = np.mean([sum(w[t, s] * abs((s + 0.5) / S - (t + 0.5) / T) for s in range(S)) for t in range(T)])
        return [entropy, math.nan, first, math.nan, math.nan, error]
    distance = np.mean([sum(w[t, s] * abs(t - s) for s in range(S)) for t in range(T)])
    previous = np.mean([w[t, t - 1] for t in range(1, T)]) if T > 1 else math.nan
    return [entropy, distance, first, previous, np.mean([w[t, t] for t in range(T)]), math.nan]


def rollouts(layers):
    """Abnar and Zuidema 2020, equation 1 and section 3: one matrix for each layer."""
    found = []
    for heads in layers.astype(np.float64):
        T = heads.shape[-1]
        raw = sum(heads) / len(heads)
        step = np.zeros((T, T))
        for t in range(T):
            row = [0.5 * raw[t, s] + (0.5 if t == s else 0) for s in range(T)]
            step[t] = [value / sum(row) for value in row]
        found.append(step if not found else np.einsum("ij,jk->ik", step, found[-1]))
    return np.stack(found)


def case(name, seed, S, T):
    def write(directory):
        random = np.random.default_rng(seed)
        inputs = {
            "encoder": random_attention(random, 4, S, S),
            "decoder": random_attention(random, 3, T, T, causal=True),
            "cross": random_attention(random, 3, T, S),
        }
        outputs = {
            f"{kind}_statistics": np.array([[statistics(head, kind != "cross") for head in layer] for layer in layers])
            for kind, layers in inputs.items()
        }
        outputs |= {f"{kind}_rollout": rollouts(inputs[kind]) for kind in ("encoder", "decoder")}
        last = inputs["cross"][-1].astype(np.float64)
        last = sum(last) / len(last)
        last = last / last.sum(-1, keepdims=True)
        outputs["cross_rollout"] = np.einsum("ts,sk->tk", last, outputs["encoder_rollout"][-1])[None]
        write_case(
            directory,
            name,
            inputs={key: torch.from_numpy(value) for key, value in inputs.items()},
            outputs={key: torch.from_numpy(value) for key, value in outputs.items()},
        )

    return write


CASES = [case("texts", 1, S=11, T=8), case("short", 2, S=2, T=5), case("one_token", 3, S=1, T=1)]
