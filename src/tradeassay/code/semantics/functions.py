"""The functions of the rule language. Each looks back only: value ``t`` of the result depends on rows up to ``t``.

Written plainly, window by window: this is the authority that fast code is compared with. Missing values are NaN,
and a window that holds one gives NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tradeassay.core.view import Floats, Ints

_TIE: Final = 1e-12
"""A spread this small beside the values is rounding: it counts as zero."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """Which session each bar belongs to (counted from 0), and whether it is the first or the last of it.

    That a bar is the last one is known from the exchange's timetable, not from the data after it.
    """

    session: Ints
    first: Floats
    last: Floats


def mean(x: Floats, n: float) -> Floats:
    """Return the mean of the last ``n`` values, the present one included."""
    return _windows(x, n, lambda w: float(w.sum() / w.size))


def total(x: Floats, n: float) -> Floats:
    """Return the sum of the last ``n`` values."""
    return _windows(x, n, lambda w: float(w.sum()))


def std(x: Floats, n: float, ddof: float) -> Floats:
    """Return the standard deviation of the last ``n`` values; exactly 0 where they do not vary."""

    def spread(w: Floats) -> float:
        found = float(np.std(w, ddof=int(ddof)))
        return 0.0 if found <= _TIE * float(np.abs(w).max()) else found

    return _windows(x, n, spread)


def highest(x: Floats, n: float) -> Floats:
    """Return the largest of the last ``n`` values, the present one included."""
    return _windows(x, n, lambda w: float(w.max()))


def lowest(x: Floats, n: float) -> Floats:
    """Return the smallest of the last ``n`` values, the present one included."""
    return _windows(x, n, lambda w: float(w.min()))


def prev(x: Floats, k: float) -> Floats:
    """Return the value ``k`` bars ago."""
    shift = int(k)
    out = np.full(x.shape, np.nan)
    if shift < x.size:
        out[shift:] = x[: x.size - shift]
    return out


def ema(x: Floats, n: float) -> Floats:
    """Return the exponential mean: weight 2 / (n + 1), started with the plain mean of the first ``n`` values."""
    return _smoothed(x, int(n), 2.0 / (n + 1.0))


def wilder(x: Floats, n: float) -> Floats:
    """Return Wilder's mean: weight 1 / n, started with the plain mean of the first ``n`` values."""
    return _smoothed(x, int(n), 1.0 / n)


def day_open(x: Floats, calendar: Calendar) -> Floats:
    """Return the first value of the present session."""
    out = np.empty(x.shape)
    for t in range(x.size):
        out[t] = x[t] if calendar.first[t] else out[t - 1]
    return out


def day_before(x: Floats, calendar: Calendar, kind: str, n: float) -> Floats:
    """Return the ``high``, ``low`` or ``close`` of the last ``n`` whole sessions before the present one.

    ``high`` is the largest of them, ``low`` the smallest, ``max_close`` and ``min_close`` are over their closes,
    and ``close`` is that of the last one. NaN until ``n`` whole sessions have passed.
    """
    sessions = int(calendar.session[-1]) + 1 if x.size else 0
    daily = np.full(sessions, np.nan)
    for s in range(sessions):
        w = x[calendar.session == s]
        daily[s] = w.max() if kind == "high" else w.min() if kind == "low" else w[-1]
    pick: dict[str, Callable[[Floats], float]] = {
        "high": lambda w: float(w.max()),
        "low": lambda w: float(w.min()),
        "close": lambda w: float(w[-1]),
        "max_close": lambda w: float(w.max()),
        "min_close": lambda w: float(w.min()),
    }
    out = np.full(x.shape, np.nan)
    count = int(n)
    for t in range(x.size):
        s = int(calendar.session[t])
        if s >= count:
            out[t] = pick[kind](daily[s - count : s])
    return out


def day_so_far(x: Floats, calendar: Calendar, kind: str) -> Floats:
    """Return the running ``high`` or ``low`` of the present session, the present bar included."""
    out = np.empty(x.shape)
    for t in range(x.size):
        fresh = calendar.first[t] or t == 0
        out[t] = x[t] if fresh else (max(out[t - 1], x[t]) if kind == "high" else min(out[t - 1], x[t]))
    return out


def calendar_of(times: NDArray[Any], last: NDArray[np.bool_] | None = None) -> Calendar:
    """Return the calendar of bars by the UTC day they open on; ``last`` marks sessions' last bars where known."""
    days = times.astype("M8[D]").astype(np.int64)
    fresh = np.concatenate(([True], np.diff(days) != 0)) if days.size else np.empty(0, dtype=bool)
    session = np.cumsum(fresh) - 1
    ends = np.concatenate((fresh[1:], [True])) if last is None and days.size else last
    marks = np.zeros(days.size) if ends is None else np.asarray(ends, dtype=np.float64)
    return Calendar(session.astype(np.int64), fresh.astype(np.float64), marks)


def _windows(x: Floats, n: float, function: Callable[[Floats], float]) -> Floats:
    size = int(n)
    out = np.full(x.shape, np.nan)
    for t in range(size - 1, x.size):
        w = x[t - size + 1 : t + 1]
        if not np.isnan(w).any():
            out[t] = function(w)
    return out


def _smoothed(x: Floats, n: int, weight: float) -> Floats:
    out = np.full(x.shape, np.nan)
    known = np.flatnonzero(~np.isnan(x))
    if known.size < n:
        return out
    start = int(known[0]) + n - 1
    value = float(x[known[0] : start + 1].sum() / n)
    out[start] = value
    for t in range(start + 1, x.size):
        value += weight * (float(x[t]) - value)
        out[t] = value
    return out
