"""Compiled strategies on several legs; arguments as in :mod:`~.kernels.single`."""

from __future__ import annotations

from math import log

import numpy as np

from tradeassay.code.engine.kernels import compiled, inner
from tradeassay.code.engine.kernels.parts import emit, gt, le, mean_of, spread_of
from tradeassay.core.view import Bools, Floats, Ints


@inner
def reversion(gap: Floats, begin: int, weights: Floats, p: Floats,
              rows: Ints, legs: Ints, fractions: Floats, signals: Ints) -> int:  # fmt: skip
    """Trade a gap that has left its mean back to it; ``weights`` of shape (2, bars) are the legs' at opening."""
    w, enter, leave = int(p[0]), p[1], p[2]
    state, count = 0, 0
    for t in range(begin + w - 1, gap.size):
        centre = mean_of(gap, t - w + 1, t)
        sd = spread_of(gap, t - w + 1, t, centre, 1)
        z = (gap[t] - centre) / sd if gt(sd, 0.0) else 0.0
        turn, rule = 0, -1
        if state == 1 and le(-leave, z):
            rule = 0
        elif state == -1 and le(z, leave):
            rule = 1
        elif state == 0 and gt(-enter, z):
            turn, rule = 1, 2
        elif state == 0 and gt(z, enter):
            turn, rule = -1, 3
        if rule >= 0:
            state = turn
            count = emit(rows, legs, fractions, signals, count, t, 0, turn * weights[0, t], rule)
            count = emit(rows, legs, fractions, signals, count, t, 1, -turn * weights[1, t], rule)
    return count


@compiled
def spread(
    opens: Floats, highs: Floats, lows: Floats, closes: Floats, first: Bools, last: Bools, p: Floats,
    rows: Ints, legs: Ints, fractions: Floats, signals: Ints,
) -> int:  # fmt: skip
    """Reversion of the log ratio of two legs."""
    gap = np.log(closes[0]) - np.log(closes[1])
    return reversion(gap, 0, np.full(closes.shape, 0.5), p, rows, legs, fractions, signals)


@compiled
def calendar_spread(
    opens: Floats, highs: Floats, lows: Floats, closes: Floats, first: Bools, last: Bools, p: Floats,
    rows: Ints, legs: Ints, fractions: Floats, signals: Ints,
) -> int:  # fmt: skip
    """Reversion of the price difference of two expiries."""
    return reversion(closes[0] - closes[1], 0, np.full(closes.shape, 0.5), p, rows, legs, fractions, signals)


@compiled
def pairs(
    opens: Floats, highs: Floats, lows: Floats, closes: Floats, first: Bools, last: Bools, p: Floats,
    rows: Ints, legs: Ints, fractions: Floats, signals: Ints,
) -> int:  # fmt: skip
    """Reversion of the residual of a rolling regression of one leg on the other."""
    w = int(p[0])
    n = closes.shape[1]
    gap = np.empty(n)
    weights = np.empty((2, n))
    for t in range(w - 1, n):
        x, y, xy, yy = 0.0, 0.0, 0.0, 0.0
        for s in range(t - w + 1, t + 1):
            a, b = log(closes[0, s]), log(closes[1, s])
            x += a
            y += b
            xy += a * b
            yy += b * b
        cov = xy / w - (x / w) * (y / w)
        var = yy / w - (y / w) * (y / w)
        beta = cov / var if gt(var, 0.0000000001) else 1.0
        gap[t] = log(closes[0, t]) - beta * log(closes[1, t])
        weights[0, t] = 1.0 / (1.0 + abs(beta))
        weights[1, t] = beta / (1.0 + abs(beta))
    return reversion(gap, w - 1, weights, p, rows, legs, fractions, signals)


@compiled
def cross_asset_momentum(
    opens: Floats, highs: Floats, lows: Floats, closes: Floats, first: Bools, last: Bools, p: Floats,
    rows: Ints, legs: Ints, fractions: Floats, signals: Ints,
) -> int:  # fmt: skip
    """All in the strongest leg, or in cash when none has risen."""
    n, threshold = int(p[0]), p[1]
    held, count = -1, 0
    for t in range(n, closes.shape[1]):
        best, leader = 0.0, -1
        for k in range(3):
            mom = closes[k, t] / closes[k, t - n] - 1.0
            if leader < 0 or gt(mom, best):
                best, leader = mom, k
        chosen = leader if gt(best, threshold) else -1
        if chosen == held:
            continue
        rule = 0 if chosen < 0 else chosen + 1
        for k in range(3):
            if k == chosen:
                count = emit(rows, legs, fractions, signals, count, t, k, 1.0, rule)
            elif k == held:
                count = emit(rows, legs, fractions, signals, count, t, k, 0.0, rule)
        held = chosen
    return count
