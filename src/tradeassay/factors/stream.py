"""The nine factors one session at a time: each new bar costs a few array operations of one row.

For simulators and live use. After the same bars, the values equal those of :func:`compute` to the last bit.
"""

from __future__ import annotations

import numpy as np

from tradeassay.core import exact
from tradeassay.core.view import Floats
from tradeassay.factors import moments
from tradeassay.factors.compute import SKIPPED
from tradeassay.factors.definition import FACTOR_NAMES, FACTORS

_YEAR = 252
_ENOUGH = {factor.name: factor.enough for factor in FACTORS}


class _Sums:
    """Window sums of stacked series, kept as blocks of 1, 2, 4 ... rows (see ``rolling``)."""

    def __init__(self, window: int, series: int, names: int) -> None:
        self._window = window
        self._ring = 1 << window.bit_length()
        self._levels = np.zeros((window.bit_length(), self._ring, series, names))

    def push(self, row: int, values: Floats) -> Floats:
        """Take the series of session ``row`` and return their sums over the window."""
        block, at = values, row % self._ring
        for level in range(len(self._levels)):
            self._levels[level, at] = block
            if level + 1 < len(self._levels):
                block = block + self._levels[level, (row - (1 << level)) % self._ring]
        result: Floats | None = None
        offset = 0
        for level in reversed(range(len(self._levels))):
            if self._window & (1 << level):
                part = self._levels[level, (row - offset) % self._ring]
                result = part.copy() if result is None else result + part
                offset += 1 << level
        assert result is not None
        return result


class _Tops:
    """Highest value of the last 252 rows."""

    def __init__(self, names: int) -> None:
        self._levels = np.full((8, 256, names), -np.inf)

    def push(self, row: int, values: Floats) -> Floats:
        block = values
        for level in range(8):
            self._levels[level, row % 256] = block
            if level < 7:
                block = np.maximum(block, self._levels[level, (row - (1 << level)) % 256])
        top: Floats = np.maximum(block, self._levels[7, (row - (_YEAR - 128)) % 256])
        return top


class FactorStream:
    """Feed bars of ``names`` columns oldest first; each :meth:`push` returns the nine values, shape (9, names).

    Prices and volumes of all sessions must be in one share unit (scale them when a share splits).
    """

    def __init__(self, names: int) -> None:
        self._row = -1
        self._close = np.full((256, names), np.nan)
        self._filled = np.full((256, names), np.nan)
        self._filled_row = np.full((256, names), -(10**9), dtype=np.int64)
        self._volume = np.full(names, np.nan)
        self._present = np.zeros((256, 2, names))
        self._counts = np.zeros((2, names))
        self._short = _Sums(20, 15, names)
        self._long = _Sums(60, 4, names)
        self._tops = _Tops(names)

    def push(self, open_: Floats, high: Floats, close: Floats, volume: Floats, amount: Floats) -> Floats:
        """Take one session and return the factors at its close, in the order of ``FACTOR_NAMES``."""
        self._row += 1
        with np.errstate(all="ignore"):
            opened, top, closed, traded, money = (
                np.where(x > 0, x, np.nan) for x in (open_, high, close, volume, amount)
            )
            before = self._close[(self._row - 1) % 256].copy() if self._row else np.full_like(closed, np.nan)
            returns = closed / before - 1.0
            change = exact.log(traded / self._volume)
            self._remember(closed, traded)
            values = {
                **self._from_short(returns, change, opened / before - 1.0, closed / opened - 1.0, money),
                **self._from_long(returns),
                **self._from_year(closed, top),
            }
        return np.stack([values[name] for name in FACTOR_NAMES])

    def _remember(self, close: Floats, volume: Floats) -> None:
        at, before = self._row % 256, (self._row - 1) % 256
        present = ~np.isnan(close)
        self._close[at] = close
        self._volume = volume
        self._filled[at] = np.where(present, close, self._filled[before])
        self._filled_row[at] = np.where(present, self._row, self._filled_row[before])

    def _from_short(
        self, returns: Floats, change: Floats, overnight: Floats, intraday: Floats, amount: Floats
    ) -> dict[str, Floats]:
        both = np.isfinite(returns) & np.isfinite(change)
        x, y = np.where(both, returns, 0.0), np.where(both, change, 0.0)
        single = np.stack([np.abs(returns) / amount, overnight, intraday, amount])
        present = np.isfinite(single)
        single = np.where(present, single, 0.0)
        money = single[3]
        pair = np.stack([both, x, y, x * x, y * y, x * y, money * money])
        sums = self._short.push(self._row, np.concatenate([present, single, pair]))
        n, s = sums[:4], sums[4:8]
        joint, sx, sy, sxx, syy, sxy, squares = sums[8:]
        return {
            "ILLIQ": moments.log_average(n[0], s[0], _ENOUGH["ILLIQ"]),
            "REV_ON": moments.average(n[1], s[1], _ENOUGH["REV_ON"]),
            "MOM_ID": moments.average(n[2], s[2], _ENOUGH["MOM_ID"]),
            "CORR_PV": moments.correlation(joint, sx, sy, sxx, syy, sxy, _ENOUGH["CORR_PV"]),
            "CV_VOL": moments.relative_spread(n[3], s[3], squares, _ENOUGH["CV_VOL"]),
        }

    def _from_long(self, returns: Floats) -> dict[str, Floats]:
        present = np.isfinite(returns)
        x = np.where(present, returns, 0.0)
        square = x * x
        n, s, ss, sss = self._long.push(self._row, np.stack([present, x, square, square * x]))
        return {
            "RV_60": moments.spread(n, s, ss, _ENOUGH["RV_60"]) * moments.YEAR,
            "SKEW": -moments.skewness(n, s, ss, sss, _ENOUGH["SKEW"]),
        }

    def _from_year(self, close: Floats, high: Floats) -> dict[str, Floats]:
        row, at = self._row, self._row % 256
        start = row - (_YEAR - 1)
        present = np.stack([~np.isnan(close), ~np.isnan(high)]).astype(np.float64)
        self._counts = self._counts + present - (self._present[(row - _YEAR) % 256] if row >= _YEAR else 0.0)
        self._present[at] = present
        top = self._tops.push(row, np.where(np.isnan(high), -np.inf, high))
        last = np.where(self._filled_row[at] >= start, self._filled[at], np.nan)
        momentum = np.full_like(close, np.nan)
        if row >= SKIPPED - 1:
            month = (row - (SKIPPED - 1)) % 256
            near = np.where(self._filled_row[month] >= start, self._filled[month], np.nan)
            momentum = near / self._first_since(max(start, 0)) - 1.0
        return {
            "MOM_12_1": np.where(self._counts[0] >= _ENOUGH["MOM_12_1"], momentum, np.nan),
            "HIGH_52W": np.where(self._counts[1] >= _ENOUGH["HIGH_52W"], last / top, np.nan),
        }

    def _first_since(self, start: int) -> Floats:
        """Return the first close present in the rows from ``start`` to a month ago."""
        first: Floats = self._close[start % 256].copy()
        known = self._counts[0] >= _ENOUGH["MOM_12_1"]
        for row in range(start + 1, self._row - SKIPPED + 2):
            missing = np.isnan(first) & known
            if not missing.any():
                break
            first = np.where(missing, self._close[row % 256], first)
        return first
