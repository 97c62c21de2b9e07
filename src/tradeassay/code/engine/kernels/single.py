"""Compiled strategies on one leg that know no sessions.

Every kernel takes opens, highs, lows and closes of shape (legs, bars), marks of sessions' first and last bars, its
parameters in the order of the frozen semantics, and four buffers to write decisions into; it returns how many. The
numbers written as signals are the places of the rules there.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from tradeassay.code.engine.kernels import compiled, inner
from tradeassay.code.engine.kernels.parts import bottom_of, emit, gt, le, mean_of, spread_of, top_of
from tradeassay.core.view import Bools, Floats, Ints


@compiled
def double_ma(
    opens: Floats, highs: Floats, lows: Floats, closes: Floats, first: Bools, last: Bools, p: Floats,
    rows: Ints, legs: Ints, fractions: Floats, signals: Ints,
) -> int:  # fmt: skip
    """Two moving averages; running sums around the first price, so that they stay exact over long data."""
    fast, slow = int(p[0]), int(p[1])
    start = max(fast, slow) - 1
    x = closes[0]
    base = x[0] if x.size else 0.0
    quick, calm, state, count = 0.0, 0.0, 0, 0
    for t in range(x.size):
        value = x[t] - base
        quick += value
        calm += value
        if t >= fast:
            quick -= x[t - fast] - base
        if t >= slow:
            calm -= x[t - slow] - base
        if t >= start:
            a, b = quick / fast + base, calm / slow + base
            if state != 1 and gt(a, b):
                state = 1
                count = emit(rows, legs, fractions, signals, count, t, 0, 1.0, 0)
            elif state != -1 and gt(b, a):
                state = -1
                count = emit(rows, legs, fractions, signals, count, t, 0, -1.0, 1)
    return count


@compiled
def bollinger(
    opens: Floats, highs: Floats, lows: Floats, closes: Floats, first: Bools, last: Bools, p: Floats,
    rows: Ints, legs: Ints, fractions: Floats, signals: Ints,
) -> int:  # fmt: skip
    """Mean reversion from the bands, with a stop."""
    n, k, stop = int(p[0]), p[1], p[2]
    x = closes[0]
    state, entry, count = 0, 0.0, 0
    for t in range(x.size):
        price = x[t]
        if state == 1 and le(price, entry * (1 - stop)):
            state = 0
            count = emit(rows, legs, fractions, signals, count, t, 0, 0.0, 0)
            continue
        if state == -1 and le(entry * (1 + stop), price):
            state = 0
            count = emit(rows, legs, fractions, signals, count, t, 0, 0.0, 1)
            continue
        if t < n - 1:
            continue
        mid = mean_of(x, t - n + 1, t)
        if state == 1:
            if le(mid, price):
                state = 0
                count = emit(rows, legs, fractions, signals, count, t, 0, 0.0, 2)
        elif state == -1:
            if le(price, mid):
                state = 0
                count = emit(rows, legs, fractions, signals, count, t, 0, 0.0, 3)
        else:
            sd = spread_of(x, t - n + 1, t, mid, 0)
            if gt(mid - k * sd, price):
                state, entry = 1, price
                count = emit(rows, legs, fractions, signals, count, t, 0, 1.0, 4)
            elif gt(price, mid + k * sd):
                state, entry = -1, price
                count = emit(rows, legs, fractions, signals, count, t, 0, -1.0, 5)
    return count


@inner
def true_range(high: float, low: float, before: float) -> float:
    """Return how far a bar reached, yesterday's close included."""
    return max(max(high - low, abs(high - before)), abs(low - before))


@inner
def turtle_exit(state: int, price: float, halt: float, high: Floats, low: Floats, t: int, n: int) -> int:
    """Return the rule that ends a position (the stop first, then the channel), or -1."""
    if state == 1:
        if le(price, halt):
            return 0
        return 2 if t >= n and gt(bottom_of(low, t - n, t - 1), price) else -1
    if le(halt, price):
        return 1
    return 3 if t >= n and gt(price, top_of(high, t - n, t - 1)) else -1


@inner
def turtle_entry(price: float, high: Floats, low: Floats, t: int, n: int) -> int:
    """Return the side of a break of the entry channel, or 0."""
    if gt(price, top_of(high, t - n, t - 1)):
        return 1
    return -1 if gt(bottom_of(low, t - n, t - 1), price) else 0


@compiled
def turtle(
    opens: Floats, highs: Floats, lows: Floats, closes: Floats, first: Bools, last: Bools, p: Floats,
    rows: Ints, legs: Ints, fractions: Floats, signals: Ints,
) -> int:  # fmt: skip
    """Channel breakouts in units of volatility, added to as they advance, stopped by range."""
    enter_n, exit_n, atr_n = int(p[0]), int(p[1]), int(p[2])
    add, stop, most, risk, cap = p[3], p[4], p[5], p[6], p[7]
    high, low, x = highs[0], lows[0], closes[0]
    state, units, latest, halt, unit, n0 = 0, 0.0, 0.0, 0.0, 0.0, 0.0
    atr, total, count = np.nan, 0.0, 0
    for t in range(x.size):
        price = x[t]
        if t > 0:
            tr = true_range(high[t], low[t], x[t - 1])
            if t <= atr_n:
                total += tr
                if t == atr_n:
                    atr = total / atr_n
            else:
                atr += (tr - atr) / atr_n
        side = float(state)
        if state != 0:
            out = turtle_exit(state, price, halt, high, low, t, exit_n)
            if out >= 0:
                count = emit(rows, legs, fractions, signals, count, t, 0, 0.0, out)
                state, units = 0, 0.0
                continue
            far = le(latest + add * n0, price) if state == 1 else le(price, latest - add * n0)
            if gt(most, units) and far:
                wanted = side * (units + 1.0) * unit
                count = emit(rows, legs, fractions, signals, count, t, 0, wanted, 4 if state == 1 else 5)
                units += 1.0
                latest = price
                halt = price - side * stop * n0
        elif t >= enter_n and gt(atr, 0.0):
            size = min(cap, risk * price / atr)
            state = turtle_entry(price, high, low, t, enter_n)
            if state != 0:
                side = float(state)
                count = emit(rows, legs, fractions, signals, count, t, 0, side * size, 6 if state == 1 else 7)
                units, latest, unit, n0 = 1.0, price, size, atr
                halt = price - side * stop * atr
    return count


@compiled
def index_enhancement(
    opens: Floats, highs: Floats, lows: Floats, closes: Floats, first: Bools, last: Bools, p: Floats,
    rows: Ints, legs: Ints, fractions: Floats, signals: Ints,
) -> int:  # fmt: skip
    """A base exposure, more after a rise, less after a fall."""
    m, threshold, base, delta = int(p[0]), p[1], p[2], p[3]
    x = closes[0]
    state, held, count = -1, 0.0, 0
    for t in range(m, x.size):
        mom = x[t] / x[t - m] - 1.0
        if gt(mom, threshold):
            now, wanted = 0, base + delta
        elif gt(-threshold, mom):
            now, wanted = 1, base - delta
        else:
            now, wanted = 2, base
        if now != state:
            state = now
            if wanted != held:
                held = wanted
                count = emit(rows, legs, fractions, signals, count, t, 0, wanted, now)
    return count


@compiled
def vol_target(
    opens: Floats, highs: Floats, lows: Floats, closes: Floats, first: Bools, last: Bools, p: Floats,
    rows: Ints, legs: Ints, fractions: Floats, signals: Ints,
) -> int:  # fmt: skip
    """Exposure in inverse proportion to volatility, traded when it has moved enough."""
    n, goal, cap, band, year = int(p[0]), p[1], p[2], p[3], p[4]
    x = closes[0]
    ret = np.empty(x.size)
    scale = sqrt(year)
    held, count = 0.0, 0
    for t in range(x.size):
        if t > 0:
            ret[t] = x[t] / x[t - 1] - 1.0
        if t >= n:
            vol = spread_of(ret, t - n + 1, t, mean_of(ret, t - n + 1, t), 1) * scale
            want = min(cap, goal / vol) if gt(vol, 0.0) else cap
            if gt(abs(want - held), band):
                held = want
                count = emit(rows, legs, fractions, signals, count, t, 0, want, 0)
    return count


@inner
def rsi_rule(state: int, gap: float, before: float, rsi: float, over: float, under: float) -> int:
    """Return the rule that fires, or -1. What is not known yet is NaN, and fires nothing."""
    if state == 1:
        return 0 if gt(0.0, gap) or gt(rsi, over) else -1
    if state == -1:
        return 1 if gt(gap, 0.0) or gt(under, rsi) else -1
    if le(before, 0.0) and gt(gap, 0.0) and gt(over, rsi):
        return 2
    return 3 if le(0.0, before) and gt(0.0, gap) and gt(rsi, under) else -1


@compiled
def rsi_macd(
    opens: Floats, highs: Floats, lows: Floats, closes: Floats, first: Bools, last: Bools, p: Floats,
    rows: Ints, legs: Ints, fractions: Floats, signals: Ints,
) -> int:  # fmt: skip
    """Fresh crosses of the MACD line, unless the RSI says that the move has been made."""
    n, over, under = int(p[0]), p[1], p[2]
    fast, slow, sign = int(p[3]), int(p[4]), int(p[5])
    x = closes[0]
    gain, loss, ef, es, line = 0.0, 0.0, 0.0, 0.0, 0.0
    ready = slow + sign - 2
    state, count, before = 0, 0, np.nan
    for t in range(x.size):
        if t > 0:
            move = x[t] - x[t - 1]
            up, down = max(move, 0.0), max(-move, 0.0)
            if t <= n:
                gain += up / n
                loss += down / n
            else:
                gain += (up - gain) / n
                loss += (down - loss) / n
        ef = ef + x[t] / fast if t < fast else ef + (x[t] - ef) * (2.0 / (fast + 1.0))
        es = es + x[t] / slow if t < slow else es + (x[t] - es) * (2.0 / (slow + 1.0))
        if t < slow - 1:
            continue
        macd = ef - es
        line = line + macd / sign if t <= ready else line + (macd - line) * (2.0 / (sign + 1.0))
        if t < ready:
            continue
        gap = macd - line
        rsi = 50.0
        if gt(gain + loss, 0.0):
            rsi = 100.0 * gain / (gain + loss)
        rule = rsi_rule(state, gap, before, rsi if t >= n else np.nan, over, under)
        if rule >= 0:
            state = (0, 0, 1, -1)[rule]
            count = emit(rows, legs, fractions, signals, count, t, 0, float(state), rule)
        before = gap
    return count
