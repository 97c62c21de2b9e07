"""Compiled strategies on one leg that know no sessions.

Every kernel takes opens, highs, lows and closes of shape (legs, bars), marks of sessions' first and last bars, its
parameters in the order of the frozen semantics, and four buffers to write decisions into; it returns how many. The
numbers written as signals are the places of the rules there.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from tradeassay.codegen.engine.kernels import compiled
from tradeassay.codegen.engine.kernels.parts import bottom_of, emit, gt, le, mean_of, spread_of, top_of
from tradeassay.core.view import Bools, Floats, Ints


@compiled
def double_ma(o: Floats, h: Floats, l: Floats, c: Floats, first: Bools, last: Bools, p: Floats,
              rows: Ints, legs: Ints, fractions: Floats, signals: Ints) -> int:  # fmt: skip
    """Two moving averages; running sums around the first price, so that they stay exact over long data."""
    fast, slow = int(p[0]), int(p[1])
    start = max(fast, slow) - 1
    x = c[0]
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
def bollinger(o: Floats, h: Floats, l: Floats, c: Floats, first: Bools, last: Bools, p: Floats,
              rows: Ints, legs: Ints, fractions: Floats, signals: Ints) -> int:  # fmt: skip
    """Mean reversion from the bands, with a stop."""
    n, k, stop = int(p[0]), p[1], p[2]
    x = c[0]
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


@compiled
def turtle(o: Floats, h: Floats, l: Floats, c: Floats, first: Bools, last: Bools, p: Floats,
           rows: Ints, legs: Ints, fractions: Floats, signals: Ints) -> int:  # fmt: skip
    """Channel breakouts in units of volatility, added to as they advance, stopped by range."""
    enter_n, exit_n, atr_n = int(p[0]), int(p[1]), int(p[2])
    add, stop, most, risk, cap = p[3], p[4], p[5], p[6], p[7]
    high, low, x = h[0], l[0], c[0]
    state, units, latest, halt, unit, n0 = 0, 0.0, 0.0, 0.0, 0.0, 0.0
    atr, total, count = np.nan, 0.0, 0
    for t in range(x.size):
        price = x[t]
        if t > 0:
            tr = max(max(high[t] - low[t], abs(high[t] - x[t - 1])), abs(low[t] - x[t - 1]))
            if t <= atr_n:
                total += tr
                if t == atr_n:
                    atr = total / atr_n
            else:
                atr += (tr - atr) / atr_n
        side = float(state)
        if state != 0:
            adverse = le(price, halt) if state == 1 else le(halt, price)
            if adverse:
                count = emit(rows, legs, fractions, signals, count, t, 0, 0.0, 0 if state == 1 else 1)
                state, units = 0, 0.0
                continue
            if t >= exit_n:
                if state == 1:
                    out = gt(bottom_of(low, t - exit_n, t - 1), price)
                else:
                    out = gt(price, top_of(high, t - exit_n, t - 1))
                if out:
                    count = emit(rows, legs, fractions, signals, count, t, 0, 0.0, 2 if state == 1 else 3)
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
            if gt(price, top_of(high, t - enter_n, t - 1)):
                state = 1
            elif gt(bottom_of(low, t - enter_n, t - 1), price):
                state = -1
            if state != 0:
                side = float(state)
                count = emit(rows, legs, fractions, signals, count, t, 0, side * size, 6 if state == 1 else 7)
                units, latest, unit, n0 = 1.0, price, size, atr
                halt = price - side * stop * atr
    return count


@compiled
def index_enhancement(o: Floats, h: Floats, l: Floats, c: Floats, first: Bools, last: Bools, p: Floats,
                      rows: Ints, legs: Ints, fractions: Floats, signals: Ints) -> int:  # fmt: skip
    """A base exposure, more after a rise, less after a fall."""
    m, threshold, base, delta = int(p[0]), p[1], p[2], p[3]
    x = c[0]
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
def vol_target(o: Floats, h: Floats, l: Floats, c: Floats, first: Bools, last: Bools, p: Floats,
               rows: Ints, legs: Ints, fractions: Floats, signals: Ints) -> int:  # fmt: skip
    """Exposure in inverse proportion to volatility, traded when it has moved enough."""
    n, goal, cap, band, year = int(p[0]), p[1], p[2], p[3], p[4]
    x = c[0]
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


@compiled
def rsi_macd(o: Floats, h: Floats, l: Floats, c: Floats, first: Bools, last: Bools, p: Floats,
             rows: Ints, legs: Ints, fractions: Floats, signals: Ints) -> int:  # fmt: skip
    """Fresh crosses of the MACD line, unless the RSI says that the move has been made."""
    n, over, under = int(p[0]), p[1], p[2]
    fast, slow, sign = int(p[3]), int(p[4]), int(p[5])
    x = c[0]
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
        known = t >= n
        rsi = 50.0
        if gt(gain + loss, 0.0):
            rsi = 100.0 * gain / (gain + loss)
        if state == 1:
            if gt(0.0, gap) or (known and gt(rsi, over)):
                state = 0
                count = emit(rows, legs, fractions, signals, count, t, 0, 0.0, 0)
        elif state == -1:
            if gt(gap, 0.0) or (known and gt(under, rsi)):
                state = 0
                count = emit(rows, legs, fractions, signals, count, t, 0, 0.0, 1)
        elif known and t > ready:
            if le(before, 0.0) and gt(gap, 0.0) and gt(over, rsi):
                state = 1
                count = emit(rows, legs, fractions, signals, count, t, 0, 1.0, 2)
            elif le(0.0, before) and gt(0.0, gap) and gt(rsi, under):
                state = -1
                count = emit(rows, legs, fractions, signals, count, t, 0, -1.0, 3)
        before = gap
    return count
