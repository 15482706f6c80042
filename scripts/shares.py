"""Shares with their intervals."""

import math


def wilson(count, n, z=1.96):
    """(lower, upper) end of Wilson's interval of 95 % for a share of count of n (Wilson 1927)."""
    if n == 0:
        return 0.0, 1.0
    share = count / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def share_text(count, n):
    """Such as "93 of 100: 93.0 % (86.3 to 96.6 %)"."""
    lower, upper = wilson(count, n)
    share = 100 * count / n if n else 0.0
    return f"{count} of {n}: {share:.1f} % ({100 * lower:.1f} to {100 * upper:.1f} %)"
