"""References for statistics: Student's t by numerical integration with thirty digits, the tests by their
definitions."""

import math

import mpmath as mp
import numpy as np
import torch
from reference import write_case

mp.mp.dps = 30
DOUBLE = torch.float64


def scale(degrees):
    return mp.gamma((degrees + 1) / 2) / (mp.sqrt(mp.pi) * mp.gamma(degrees / 2))


def density(t, degrees):
    return scale(degrees) / mp.sqrt(degrees) * (1 + t * t / degrees) ** (-(degrees + 1) / 2)


def upper_tail(t, degrees):
    """P(T > t): the integral of the density from t on, with x = sqrt(degrees) tan(angle), so that the end is finite."""
    t, degrees = mp.mpf(t), mp.mpf(degrees)
    start = mp.atan(t / mp.sqrt(degrees))
    # The integrand is scaled to begin with 1, because the accuracy of quad is absolute. It falls within the first piece.
    first = mp.cos(start)
    ends = [start + (mp.pi / 2 - start) / 8**k for k in range(3, -1, -1)]
    integral = mp.quad(lambda angle: abs(mp.cos(angle) / first) ** (degrees - 1), [start, *ends])
    return scale(degrees) * first ** (degrees - 1) * integral


def quantile(p, degrees):
    """The t with P(T <= t) = p. Newton's method from 0 approaches it from one side, because the distribution is concave
    beyond 0."""
    p, degrees = mp.mpf(p), mp.mpf(degrees)
    if p < 0.5:
        return -quantile(1 - p, degrees)
    t, step = mp.mpf(0), mp.mpf(1)
    while abs(step) > mp.mpf(10) ** -22 * (1 + t):
        step = (upper_tail(t, degrees) - (1 - p)) / density(t, degrees)
        t += step
    return t


def tensor(values):
    return torch.tensor([float(value) for value in values], dtype=DOUBLE)


def distribution(directory):
    times = [0.0, 0.01, 0.5, 1.0, 2.0, 2.776, 5.0, 30.0]
    for degrees in [1, 2, 4, 7.5, 29, 250]:
        tails = [2 * upper_tail(t, degrees) for t in times]
        probabilities = [0.001, 0.3, 0.975]
        write_case(
            directory,
            f"student_t_{degrees}",
            inputs={
                "degrees": tensor([degrees]),
                "t": tensor(times),
                "p": tensor(probabilities),
            },
            outputs={
                "tails": tensor(tails),
                "quantile": tensor([quantile(p, degrees) for p in probabilities]),
            },
        )


def interval(values):
    """Mean, low, high, deviation."""
    n = len(values)
    mean, deviation = values.mean(), values.std(unbiased=True)
    half = float(quantile("0.975", n - 1)) * deviation / n**0.5
    return torch.stack([mean, mean - half, mean + half, deviation])


def paired(directory):
    for n in [2, 3, 5, 12]:
        baseline = 3 + torch.randn(n, dtype=DOUBLE)
        values = baseline + 0.2 + 0.3 * torch.randn(n, dtype=DOUBLE)
        difference = values - baseline
        statistic = difference.mean() / (difference.std(unbiased=True) / n**0.5)
        p = 2 * upper_tail(abs(statistic.item()), n - 1)
        write_case(
            directory,
            f"paired_{n}",
            inputs={"values": values, "baseline": baseline},
            outputs={"interval": interval(values), "difference": interval(difference)[:3], "p": tensor([p])},
        )


def holm(directory):
    """Holm's correction by its definition: hypotheses are rejected in order of rising p, until one is not rejected. The
    corrected p of a hypothesis is the smallest level that rejects it, found by trying all levels where a decision
    changes."""
    for m in [1, 2, 6, 15]:
        p = torch.rand(m, dtype=DOUBLE) ** 4

        def rejected(level):
            result = set()
            for rank, index in enumerate(torch.argsort(p).tolist()):
                if p[index].item() * (m - rank) > level:
                    break
                result.add(index)
            return result

        levels = sorted({min(1.0, p[i].item() * k) for i in range(m) for k in range(1, m + 1)} | {1.0})
        corrected = [next((level for level in levels if i in rejected(level)), 1.0) for i in range(m)]
        write_case(directory, f"holm_{m}", inputs={"p": p}, outputs={"corrected": tensor(corrected)})


def noncentral(directory):
    """P(|T| >= t) of the noncentral T = (Z + shift) / S, integrated over Z: given Z, it is a tail of S."""
    for degrees in [1, 2, 5, 30]:
        times = [0.5, 2.0, 4.3, 12.7]
        shifts = [0.0, 1.0, 3.5]

        def tails(t, shift):
            # S <= |Z + shift| / t, where degrees · S² is chi-squared.
            def given(z):
                x = mp.mpf(degrees) * ((z + shift) / t) ** 2 / 2
                return mp.gammainc(mp.mpf(degrees) / 2, 0, x, regularized=True) * mp.npdf(z)

            return mp.quad(given, [-12, -6, -shift, 0, 6, 12] if shift else [-12, -4, 0, 4, 12])

        write_case(
            directory,
            f"noncentral_{degrees}",
            inputs={"degrees": tensor([degrees]), "t": tensor(times), "shift": tensor(shifts)},
            outputs={"tails": tensor([tails(t, shift) for t in times for shift in shifts])},
        )


def fisher(directory):
    cases = [(f, above, below) for f in [0.1, 1.0, 3.7, 40.0] for above, below in [(1, 4), (3, 12), (10, 2)]]

    def tail(f, above, below):
        x = mp.mpf(below) / (below + above * mp.mpf(f))
        return mp.betainc(mp.mpf(below) / 2, mp.mpf(above) / 2, 0, x, regularized=True)

    inputs = {name: tensor([case[i] for case in cases]) for i, name in enumerate(["f", "above", "below"])}
    write_case(directory, "fisher", inputs=inputs, outputs={"tail": tensor([tail(*case) for case in cases])})


def least_squares(rows, y):
    """The solution, the covariance of the solution for noise of variance 1, and the sum of the squared residuals."""
    rows = np.array(rows, dtype=float)
    inverse = np.linalg.inv(rows.T @ rows)
    solution = inverse @ rows.T @ y
    return solution, inverse, float(((y - rows @ solution) ** 2).sum())


def ratio_interval(a, b, covariance, variance, t):
    """Fieller's interval of a / b: all ratios r with (a - r b)² <= t² Var(a - r b), as the roots of that equation."""
    aa, ab, bb = covariance
    roots = np.roots([b * b - t * t * variance * bb, -2 * (a * b - t * t * variance * ab), a * a - t * t * variance * aa])
    assert np.isreal(roots).all() and b * b > t * t * variance * bb
    return sorted(roots.real)


def power_laws(directory):
    """log(loss) = c_variant - exponent · log(flops) by linear regression with one column for each variant, as
    statsmodels' OLS fits it. Each case: the number of points of each variant."""
    rng = np.random.default_rng(7)
    nan = float("nan")
    for name, sizes in {"4": [4], "5": [3, 2], "6": [3, 3], "6_of_3": [2, 2, 2], "7": [2, 5]}.items():
        variant = np.repeat(np.arange(len(sizes)), sizes)
        flops = 1e12 * np.exp(np.concatenate([np.linspace(0, 3, n) + 0.3 * i for i, n in enumerate(sizes)]))
        loss = 40 * (1 + 0.1 * variant) * flops**-0.08 * np.exp(0.004 * rng.normal(size=len(flops)))
        x, y, n, v = np.log(flops), np.log(loss), len(flops), len(sizes)
        dummies = (variant[:, None] == np.arange(v)).astype(float)

        def interval(value, variance, degrees):
            if degrees < 1:
                return [value, nan, nan]
            half = float(quantile("0.975", degrees)) * variance**0.5
            return [value, value - half, value + half]

        own, scales, own_residual = [], [], 0.0
        for i in range(v):
            rows = np.stack([np.ones(sizes[i]), x[variant == i]], 1)
            solution, covariance, residual = least_squares(rows, y[variant == i])
            degrees = sizes[i] - 2
            own += interval(-solution[1], residual / max(degrees, 1) * covariance[1, 1], degrees)
            scales.append(math.exp(solution[0]))
            own_residual += residual
        solution, covariance, residual = least_squares(np.concatenate([dummies, x[:, None]], 1), y)
        degrees = n - v - 1
        variance = residual / degrees
        shared = interval(-solution[v], variance * covariance[v, v], degrees)
        # Equal losses of variant i and of variant 0: log of the ratio of the FLOPs = (c_0 - c_i) / slope.
        ratios, t = [1.0, 1.0, 1.0], float(quantile("0.975", degrees))
        for i in range(1, v):
            a, b = solution[0] - solution[i], solution[v]
            aa = covariance[0, 0] + covariance[i, i] - 2 * covariance[0, i]
            ab, bb = covariance[0, v] - covariance[i, v], covariance[v, v]
            ratios += [math.exp(r) for r in [a / b, *ratio_interval(a, b, (aa, ab, bb), variance, t)]]
        p, below = nan, n - 2 * v
        if v > 1 and below >= 1:
            f = mp.mpf((residual - own_residual) / (v - 1) / (own_residual / below))
            at = mp.mpf(below) / (below + (v - 1) * f)
            p = mp.betainc(mp.mpf(below) / 2, mp.mpf(v - 1) / 2, 0, at, regularized=True)
        write_case(
            directory,
            f"power_law_{name}",
            inputs={"variant": tensor(variant), "flops": tensor(flops), "loss": tensor(loss)},
            outputs={
                "own": tensor(own), "scales": tensor(scales), "shared": tensor(shared),
                "ratios": tensor(ratios), "p_equal": tensor([p]),
            },
        )  # fmt: skip


CASES = [distribution, paired, holm, noncentral, fisher, power_laws]
