"""Compiled strategies that live within a session; arguments as in :mod:`~.kernels.single`."""

from __future__ import annotations

import numpy as np

from tradeassay.code.engine.kernels import compiled
from tradeassay.code.engine.kernels.parts import bottom_of, emit, gt, top_of
from tradeassay.core.view import Bools, Floats, Ints


@compiled
def dual_thrust(
    opens: Floats, highs: Floats, lows: Floats, closes: Floats, first: Bools, last: Bools, p: Floats,
    rows: Ints, legs: Ints, fractions: Floats, signals: Ints,
) -> int:  # fmt: skip
    """Breaks of the open by a share of the last days' range; flat at the day's end."""
    n, k1, k2 = int(p[0]), p[1], p[2]
    x, high, low, opening = closes[0], highs[0], lows[0], opens[0]
    # One entry per session that has ended; there are at most as many as bars.
    sessions = int(np.sum(first)) + 1
    tops, bottoms, ends = np.empty(sessions), np.empty(sessions), np.empty(sessions)
    day, upper, lower = -1, np.nan, np.nan
    hi, lo, state, count = 0.0, 0.0, 0, 0
    for t in range(x.size):
        if first[t]:
            if day >= 0:
                tops[day], bottoms[day], ends[day] = hi, lo, x[t - 1]
            day += 1
            hi, lo = high[t], low[t]
            if day >= n:
                a = top_of(tops, day - n, day - 1) - bottom_of(ends, day - n, day - 1)
                b = top_of(ends, day - n, day - 1) - bottom_of(bottoms, day - n, day - 1)
                reach = max(a, b)
                upper, lower = opening[t] + k1 * reach, opening[t] - k2 * reach
        else:
            hi, lo = max(hi, high[t]), min(lo, low[t])
        if last[t]:
            if state != 0:
                state = 0
                count = emit(rows, legs, fractions, signals, count, t, 0, 0.0, 0)
        elif state != 1 and gt(x[t], upper):
            state = 1
            count = emit(rows, legs, fractions, signals, count, t, 0, 1.0, 1)
        elif state != -1 and gt(lower, x[t]):
            state = -1
            count = emit(rows, legs, fractions, signals, count, t, 0, -1.0, 2)
    return count


@compiled
def r_breaker(
    opens: Floats, highs: Floats, lows: Floats, closes: Floats, first: Bools, last: Bools, p: Floats,
    rows: Ints, legs: Ints, fractions: Floats, signals: Ints,
) -> int:  # fmt: skip
    """Breaks beyond yesterday's levels, and reversals inside them; flat at the day's end."""
    f1, f2, f3 = p[0], p[1], p[2]
    x, high, low = closes[0], highs[0], lows[0]
    setup_s, setup_b, enter_s, enter_b = np.nan, np.nan, np.nan, np.nan
    break_b, break_s = np.nan, np.nan
    hi, lo, state, count = 0.0, 0.0, 0, 0
    for t in range(x.size):
        if first[t]:
            if t > 0:
                end = x[t - 1]
                setup_s = hi + f1 * (end - lo)
                setup_b = lo - f1 * (hi - end)
                enter_s = (1 + f2) / 2 * (hi + lo) - f2 * lo
                enter_b = (1 + f2) / 2 * (hi + lo) - f2 * hi
                break_b = setup_s + f3 * (setup_s - setup_b)
                break_s = setup_b - f3 * (setup_s - setup_b)
            hi, lo = high[t], low[t]
        else:
            hi, lo = max(hi, high[t]), min(lo, low[t])
        price = x[t]
        if last[t]:
            if state != 0:
                state = 0
                count = emit(rows, legs, fractions, signals, count, t, 0, 0.0, 0)
        elif state != 1 and gt(price, break_b):
            state = 1
            count = emit(rows, legs, fractions, signals, count, t, 0, 1.0, 1)
        elif state != -1 and gt(break_s, price):
            state = -1
            count = emit(rows, legs, fractions, signals, count, t, 0, -1.0, 2)
        elif state == 1 and gt(hi, setup_s) and gt(enter_s, price):
            state = -1
            count = emit(rows, legs, fractions, signals, count, t, 0, -1.0, 3)
        elif state == -1 and gt(setup_b, lo) and gt(price, enter_b):
            state = 1
            count = emit(rows, legs, fractions, signals, count, t, 0, 1.0, 4)
    return count
