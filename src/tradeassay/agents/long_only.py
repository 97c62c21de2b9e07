"""The long-only portfolio of least variance: a convex problem, solved by accelerated projected gradients."""

from __future__ import annotations

import numpy as np

from tradeassay.core.view import Floats

_MAX_ITERATIONS = 2_000
_TOLERANCE = 1e-12


def least_variance(covariance: Floats, cap: float) -> Floats:
    """Return the weights w that minimise w' C w with 0 <= w <= cap and sum(w) = 1.

    A ``cap`` too small to invest everything is raised to 1 / names. Deterministic: starts from equal weights and
    takes steps of fixed length.
    """
    names = len(covariance)
    cap = max(cap, 1.0 / names)
    step = 1.0 / float(np.linalg.eigvalsh(covariance)[-1])
    weights = np.full(names, 1.0 / names)
    ahead, speed = weights, 1.0
    for _ in range(_MAX_ITERATIONS):
        moved = onto_capped_simplex(ahead - step * (covariance @ ahead), cap)
        change = moved - weights
        if float(np.dot(ahead - moved, change)) > 0.0:
            # The momentum points uphill: forget it (O'Donoghue and Candes' restart).
            speed = 1.0
        faster = (1.0 + np.sqrt(1.0 + 4.0 * speed * speed)) / 2.0
        ahead = moved + ((speed - 1.0) / faster) * change
        weights, speed = moved, faster
        if float(np.max(np.abs(change))) < _TOLERANCE:
            break
    return weights


def onto_capped_simplex(point: Floats, cap: float) -> Floats:
    """Return the nearest vector with entries in [0, cap] that sum to 1 (cap x length must be at least 1).

    The answer is clip(point - t, 0, cap) for one t. The sum is piecewise linear in t, so its breakpoints tell it
    exactly.
    """
    breaks = np.sort(np.concatenate((point - cap, point)))
    rising = np.sort(point)
    below = np.concatenate(([0.0], np.cumsum(rising)))

    def excess(at: Floats) -> Floats:
        total = below[-1]
        # sum over i of max(point_i - at, 0), by ranks in the sorted point
        rank = np.searchsorted(rising, at, side="right")
        above: Floats = (total - below[rank]) - (len(point) - rank) * at
        return above

    sums = excess(breaks) - excess(breaks + cap)
    # Sums fall along the breaks; the wanted 1 lies between the last break with at least 1 and the next.
    i = int(np.count_nonzero(sums >= 1.0)) - 1
    i = min(max(i, 0), len(breaks) - 2)
    slope = sums[i] - sums[i + 1]
    share = 0.0 if slope <= 0.0 else (sums[i] - 1.0) / slope
    t = breaks[i] + share * (breaks[i + 1] - breaks[i])
    clipped: Floats = np.clip(point - t, 0.0, cap)
    return clipped
