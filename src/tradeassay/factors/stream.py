"""The nine factors one session at a time: each new bar costs a few array operations of one row.

For simulators and live use. After the same bars, the values equal those of :func:`compute` to the last bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tradeassay.core import exact
from tradeassay.core.errors import UserError
from tradeassay.core.view import Bools, Floats
from tradeassay.factors import windows
from tradeassay.factors.definition import FACTOR_NAMES, FACTORS, SKIPPED

_YEAR = 252
_RING = 256
_REACH_SHORT, _REACH_LONG = 64, 128
"""Sessions back to which the sums over 20 and 60 sessions, and the blocks they are made of, can reach."""
_ENOUGH = {factor.name: factor.enough for factor in FACTORS}
_AT = {name: k for k, name in enumerate(FACTOR_NAMES)}


class _Sums:
    """Window sums of stacked series, kept as blocks of 1, 2, 4 ... rows (see ``windows``)."""

    def __init__(self, window: int, series: int, names: int) -> None:
        self._depth = window.bit_length()
        self._ring = 1 << self._depth
        self._levels = np.zeros((self._depth, self._ring, series, names))
        self._parts: list[tuple[int, int]] = []
        offset = 0
        for level in reversed(range(self._depth)):
            if window & (1 << level):
                self._parts.append((level, offset))
                offset += 1 << level

    def slot(self, row: int) -> Floats:
        """Return where to write the series of session ``row``."""
        slot: Floats = self._levels[0, row % self._ring]
        return slot

    def grow(self, row: int) -> None:
        """Sum the blocks that end with session ``row``, whose slot has been filled."""
        at, ring, levels = row % self._ring, self._ring, self._levels
        for level in range(self._depth - 1):
            np.add(levels[level, at], levels[level, (row - (1 << level)) % ring], out=levels[level + 1, at])

    def sums(self, row: int) -> Floats:
        """Return the sums over the window that ends with session ``row``."""
        at, ring, levels = row % self._ring, self._ring, self._levels
        result: Floats = levels[self._parts[0][0], at]
        for level, offset in self._parts[1:]:
            result = result + levels[level, (row - offset) % ring]
        return result


class _Tops:
    """Highest value of the last 252 rows."""

    def __init__(self, names: int) -> None:
        self._levels = np.full((8, _RING, names), -np.inf)

    def grow(self, row: int, values: Floats) -> None:
        at, levels = row % _RING, self._levels
        levels[0, at] = values
        for level in range(7):
            np.maximum(levels[level, at], levels[level, (row - (1 << level)) % _RING], out=levels[level + 1, at])

    def prime(self, values: Floats) -> None:
        rows, levels = values.shape[0], self._levels
        levels[0, :rows] = values
        for level in range(7):
            back = 1 << level
            levels[level + 1, :rows] = levels[level, :rows]
            if rows > back:
                np.maximum(
                    levels[level, back:rows], levels[level, : rows - back], out=levels[level + 1, back:rows]
                )

    def rescale(self, columns: NDArray[np.int64], ratio: Floats) -> None:
        self._levels[:, :, columns] *= ratio

    def top(self, row: int) -> Floats:
        at, levels = row % _RING, self._levels
        top: Floats = np.maximum(levels[7, at], levels[7, (row - (_YEAR - 128)) % _RING])
        return top


class FactorStream:
    """Feed bars of ``names`` columns oldest first; each :meth:`push` returns the nine values, shape (9, names).

    Prices and volumes of all sessions must be in one share unit (scale them when a share splits).
    """

    def __init__(self, names: int) -> None:
        self._row = -1
        self._close = np.full((_RING, names), np.nan)
        self._filled = np.full((_RING, names), np.nan)
        self._filled_row = np.full((_RING, names), -(10**9), dtype=np.int64)
        self._volume = np.full(names, np.nan)
        self._present = np.zeros((_RING, 2, names), dtype=np.bool_)
        self._counts = np.zeros((2, names), dtype=np.int64)
        self._short = _Sums(20, 15, names)
        self._long = _Sums(60, 4, names)
        self._tops = _Tops(names)

    def push(self, bars: Floats) -> Floats:
        """Take one session (see :meth:`feed`) and return :meth:`values`."""
        self.feed(bars)
        return self.values()

    def feed(self, bars: Floats) -> None:
        """Take one session, shape (5, names): open, high, close, volume, amount."""
        self._row += 1
        with np.errstate(all="ignore"):
            known = windows.keep(bars.copy(), bars > 0)
            before = self._close[(self._row - 1) % _RING]
            returns = known[2] / before - 1.0
            self._fill_short(known, before, returns)
            self._fill_long(returns)
            self._fill_year(known[2], known[1])

    def prime(self, history: Floats) -> None:
        """Take the first sessions at once, shape (sessions, 5, names), at most 255; the same as feeding them.

        What lies too far back for any sum to reach is not added up. Raises :class:`UserError` when
        something has been taken already, or for more sessions.
        """
        rows = history.shape[0]
        if self._row >= 0 or rows >= _RING:
            raise UserError(
                f"{rows} sessions cannot prime a stream that has taken {self._row + 1}", mend="feed them"
            )
        with np.errstate(all="ignore"):
            known = windows.keep(history.copy(), history > 0)
            self._prime_year(known[:, 2], known[:, 1])
            first_short = max(0, rows - _REACH_SHORT)
            for row in range(max(0, rows - _REACH_LONG), rows):
                self._row = row
                before = self._close[(row - 1) % _RING]
                returns = known[row, 2] / before - 1.0
                if row >= first_short:
                    if row == first_short and row:
                        self._volume = known[row - 1, 3]
                    self._fill_short(known[row], before, returns)
                self._fill_long(returns)
        self._row = rows - 1

    def _prime_year(self, close: Floats, high: Floats) -> None:
        rows = close.shape[0]
        at = np.arange(rows)[:, None]
        last = np.maximum.accumulate(np.where(np.isnan(close), -1, at), axis=0)
        some = last >= 0
        self._close[:rows] = close
        self._filled[:rows] = np.where(some, np.take_along_axis(close, np.maximum(last, 0), axis=0), np.nan)
        self._filled_row[:rows] = np.where(some, last, -(10**9))
        np.logical_not(np.isnan(close), out=self._present[:rows, 0])
        np.logical_not(np.isnan(high), out=self._present[:rows, 1])
        self._counts += self._present[max(0, rows - _YEAR) : rows].sum(axis=0)
        self._tops.prime(np.where(np.isnan(high), -np.inf, high))

    @property
    def last_close(self) -> Floats:
        """The closes of the last session taken; NaN where there was none."""
        last: Floats = self._close[self._row % _RING]
        return last

    @property
    def known_close(self) -> Floats:
        """The last close of every name, however old; NaN where there was none yet."""
        known: Floats = self._filled[self._row % _RING]
        return known

    def rescale(self, columns: NDArray[np.int64], ratio: Floats) -> None:
        """Convert everything taken so far for some names into another share unit, as a split does.

        Prices are multiplied by ``ratio``, volumes divided. The values stay what they are, apart from rounding.
        """
        self._close[:, columns] *= ratio
        self._filled[:, columns] *= ratio
        self._tops.rescale(columns, ratio)
        self._volume = self._volume.copy()
        self._volume[columns] /= ratio

    def values(self) -> Floats:
        """Return the factors at the close of the last session taken, in the order of ``FACTOR_NAMES``."""
        values = np.empty((len(FACTOR_NAMES), self._close.shape[1]))
        with np.errstate(all="ignore"):
            self._from_short(values)
            self._from_long(values)
            self._from_year(values)
        return values

    def _fill_short(self, bars: Floats, before: Floats, returns: Floats) -> None:
        """Write the series of the 20-day windows: four masks, four values, and those of the correlation."""
        opened, _, closed, volume, amount = bars
        slot = self._short.slot(self._row)
        values, pair = slot[4:8], slot[9:11]
        np.divide(np.abs(returns), amount, out=values[0])
        np.subtract(opened / before, 1.0, out=values[1])
        np.subtract(closed / opened, 1.0, out=values[2])
        values[3] = amount
        present = np.isfinite(values)
        slot[:4] = present
        np.copyto(values, 0.0, where=~present)
        pair[0] = returns
        pair[1] = exact.log(volume / self._volume)
        self._volume = volume
        both = np.isfinite(pair).all(axis=0)
        slot[8] = both
        np.copyto(pair, 0.0, where=~both)
        np.multiply(pair, pair, out=slot[11:13])
        np.multiply(pair[0], pair[1], out=slot[13])
        np.multiply(values[3], values[3], out=slot[14])
        self._short.grow(self._row)

    def _fill_long(self, returns: Floats) -> None:
        """Write the series of the 60-day windows: a mask and three powers."""
        slot = self._long.slot(self._row)
        present = np.isfinite(returns)
        slot[0] = present
        slot[1] = returns
        np.copyto(slot[1], 0.0, where=~present)
        np.multiply(slot[1], slot[1], out=slot[2])
        np.multiply(slot[2], slot[1], out=slot[3])
        self._long.grow(self._row)

    def _fill_year(self, close: Floats, high: Floats) -> None:
        """Remember closes, where the last one was, and the highest high."""
        row, at, before = self._row, self._row % _RING, (self._row - 1) % _RING
        absent, hidden = np.isnan(close), np.isnan(high)
        self._close[at] = close
        self._filled[at] = np.where(absent, self._filled[before], close)
        self._filled_row[at] = np.where(absent, self._filled_row[before], row)
        self._count(absent, hidden)
        self._tops.grow(row, np.where(hidden, -np.inf, high))

    def _from_short(self, values: Floats) -> None:
        sums = self._short.sums(self._row)
        means = windows.average(sums[:3], sums[4:7], _ENOUGH["ILLIQ"])
        values[_AT["ILLIQ"]] = exact.log(means[0])
        values[_AT["REV_ON"]] = means[1]
        values[_AT["MOM_ID"]] = means[2]
        first, second = windows.centred(sums[8], sums[9:11], sums[11:13])
        values[_AT["CORR_PV"]] = windows.correlation(
            sums[8], sums[9], sums[10], sums[13], (first, second), _ENOUGH["CORR_PV"]
        )
        values[_AT["CV_VOL"]] = windows.relative_spread(sums[3], sums[7], sums[14], _ENOUGH["CV_VOL"])

    def _from_long(self, values: Floats) -> None:
        n, s, ss, sss = self._long.sums(self._row)
        deviations = windows.centred(n, s, ss)
        values[_AT["RV_60"]] = windows.spread(n, deviations, _ENOUGH["RV_60"]) * windows.YEAR
        values[_AT["SKEW"]] = -windows.skewness(n, s, ss, sss, deviations, _ENOUGH["SKEW"])

    def _from_year(self, values: Floats) -> None:
        row, at = self._row, self._row % _RING
        start = row - (_YEAR - 1)
        last = self._filled[at] / self._tops.top(row)
        full = (self._counts[1] >= _ENOUGH["HIGH_52W"]) & (self._filled_row[at] >= start)
        values[_AT["HIGH_52W"]] = windows.keep(last, full)
        known = self._counts[0] >= _ENOUGH["MOM_12_1"]
        if row < SKIPPED - 1 or not known.any():
            values[_AT["MOM_12_1"]] = np.nan
            return
        month = (row - (SKIPPED - 1)) % _RING
        momentum = self._filled[month] / self._first_since(max(start, 0), known) - 1.0
        values[_AT["MOM_12_1"]] = windows.keep(momentum, known & (self._filled_row[month] >= start))

    def _count(self, absent: Bools, hidden: Bools) -> None:
        """Count closes and highs present in the last 252 rows."""
        present = self._present[self._row % _RING]
        np.logical_not(absent, out=present[0])
        np.logical_not(hidden, out=present[1])
        self._counts += present
        if self._row >= _YEAR:
            gone: NDArray[np.bool_] = self._present[(self._row - _YEAR) % _RING]
            self._counts -= gone

    def _first_since(self, start: int, known: Bools) -> Floats:
        """Return the first close present in the rows from ``start`` to a month ago."""
        first: Floats = self._close[start % _RING].copy()
        missing = np.isnan(first) & known
        for row in range(start + 1, self._row - SKIPPED + 2):
            if not missing.any():
                break
            first = np.where(missing, self._close[row % _RING], first)
            missing = np.isnan(first) & known
        return first
