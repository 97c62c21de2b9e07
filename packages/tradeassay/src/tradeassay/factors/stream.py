"""Compute the nine factors one session at a time.

A new bar costs a few array operations on one row. Simulators and live trading use this module.
After the same bars, the values equal the result of :func:`compute` to the last bit.
"""

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tradeassay.core.arrays import Bools, Floats
from tradeassay.core.errors import UserError
from tradeassay.factors import _windows as windows
from tradeassay.factors.definition import FACTOR_NAMES, FACTORS, SKIPPED

_YEAR = 252
_RING, _MONTH_RING = 256, 32
_SHORT, _LONG = 20, 60
RECENT = _LONG + 1
"""Number of sessions for which all fields are needed: the longest sum window and one close before
it."""
_SHORT_SERIES, _LONG_SERIES = 15, 4
_ENOUGH = {factor.name: factor.enough for factor in FACTORS}
_AT = {name: k for k, name in enumerate(FACTOR_NAMES)}


class _Blocks:
    """Windows of stacked series, stored as blocks of 1, 2, 4 ... sessions that are joined pairwise.

    See ``_windows``. ``parts`` are the blocks that form the window, each as its number of doublings
    and the number of sessions since its end. For each block size, only the sessions within the
    lookback are stored.
    """

    def __init__(
        self,
        join: np.ufunc,
        nothing: float,
        parts: Sequence[tuple[int, int]],
        shape: tuple[int, ...],
    ):
        self._join, self._nothing, self._parts = join, nothing, parts
        depth = max(level for level, _ in parts)
        back = [max([0, *(ago for level, ago in parts if level == at)]) for at in range(depth + 1)]
        back = [max(far, 1 << level) if level < depth else far for level, far in enumerate(back)]
        self._levels = [np.full((1 << far.bit_length(), *shape), nothing) for far in back]

    def slot(self, row: int) -> Floats:
        level = self._levels[0]
        slot: Floats = level[row % len(level)]
        return slot

    def grow(self, row: int) -> None:
        """Join the blocks that end with session ``row``. Its slot must be filled."""
        below = self._levels[0]
        for level, above in enumerate(self._levels[1:]):
            ring = len(below)
            self._join(
                below[row % ring], below[(row - (1 << level)) % ring], out=above[row % len(above)]
            )
            below = above

    def prime(self, rows: int, series: Floats) -> None:
        """Load the last of the first ``rows`` sessions at once, shape (sessions, ...).

        The result equals calling :meth:`grow` for each session.
        """
        count, last = series.shape[0], len(self._levels) - 1
        spare = (np.empty_like(series), np.empty_like(series))
        for level, kept in enumerate(self._levels):
            taken = min(len(kept), count)
            kept[np.arange(rows - taken, rows) % len(kept)] = series[count - taken :]
            if level < last:
                back, joined = 1 << level, spare[level % 2]
                # Rows before the first session are added too: adding 0 turns a minus zero into
                # zero.
                self._join(series[:back], self._nothing, out=joined[:back])
                self._join(series[back:], series[:-back], out=joined[back:])
                series = joined

    def rescale(self, columns: NDArray[np.int64], ratio: Floats) -> None:
        for level in self._levels:
            level[..., columns] *= ratio

    def window(self, row: int) -> Floats:
        result: Floats | None = None
        for level, ago in self._parts:
            blocks = self._levels[level]
            block: Floats = blocks[(row - ago) % len(blocks)]
            result = block if result is None else self._join(result, block)
        assert result is not None
        return result


class _Sums:
    """Windows of summed series that are updated when they are read.

    ``write`` computes the series of one or more sessions from the inputs. If sessions were never
    read, only those inside the window are stored.
    """

    def __init__(
        self, parts: Sequence[tuple[int, int]], shape: tuple[int, int], write: Callable[..., None]
    ) -> None:
        self._parts, self._shape, self._write = parts, shape, write
        self._blocks: _Blocks | None = None
        self._first: tuple[int, tuple[Floats, ...]] | None = None
        self._waiting: deque[tuple[int, tuple[Floats, ...]]] = deque(
            maxlen=sum(1 << level for level, _ in parts)
        )

    def feed(self, row: int, *made_of: Floats) -> None:
        """Store the inputs of session ``row``. The caller must not change them afterwards."""
        self._waiting.append((row, made_of))

    def prime(self, rows: int, *made_of: Floats) -> None:
        """Load the last of the first ``rows`` sessions at once, with sessions on the first axis."""
        self._first = rows, made_of

    def window(self, row: int) -> Floats:
        if self._blocks is None:
            self._blocks = _Blocks(np.add, 0.0, self._parts, self._shape)
        if self._first is not None and len(self._waiting) < (self._waiting.maxlen or 0):
            rows, made_of = self._first
            series = np.empty((made_of[0].shape[0], *self._shape))
            self._write(series, *made_of)
            self._blocks.prime(rows, series)
        self._first = None
        for at, made_of in self._waiting:
            self._write(self._blocks.slot(at), *made_of)
            self._blocks.grow(at)
        self._waiting.clear()
        return self._blocks.window(row)


class FactorStream:
    """Factors of ``names`` columns, fed with bars from the oldest on.

    Each :meth:`push` returns the nine values, shape (9, names). Prices and volumes of all sessions
    must use the same share unit: rescale them when a share splits.
    """

    def __init__(self, names: int) -> None:
        self._row = -1
        self._close = np.full((_RING, names), np.nan)
        self._filled = np.full((_MONTH_RING, names), np.nan)
        self._filled_row = np.full((_MONTH_RING, names), -(10**9), dtype=np.int64)
        self._volume = np.full(names, np.nan)
        self._present = np.zeros((_RING, 2, names), dtype=np.bool_)
        self._counts = np.zeros((2, names), dtype=np.int64)
        self._short = _Sums(((4, 0), (2, 16)), (_SHORT_SERIES, names), _write_short)
        self._long = _Sums(((5, 0), (4, 32), (3, 48), (2, 56)), (_LONG_SERIES, names), _write_long)
        # Blocks may overlap for a maximum.
        self._tops = _Blocks(np.maximum, -np.inf, ((7, 0), (7, _YEAR - 128)), (names,))
        self._values: Floats | None = None
        self._valued: set[Callable[[FactorStream, Floats], None]] = set()

    def push(self, bars: Floats) -> Floats:
        """Add one session (see :meth:`feed`) and return :meth:`values`."""
        self.feed(bars)
        return self.values()

    def feed(self, bars: Floats) -> None:
        """Add one session, shape (5, names): open, high, close, volume, amount."""
        self._row += 1
        self._values = None
        with np.errstate(all="ignore"):
            known = windows.keep(bars.copy(), bars > 0)
            before = self._close[(self._row - 1) % _RING].copy()
            returns = known[2] / before - 1.0
            self._short.feed(self._row, known, before, returns, self._volume)
            self._long.feed(self._row, returns)
            self._volume = known[3]
            self._fill_year(known[2], known[1])

    def prime(self, high: Floats, close: Floats, recent: Floats) -> None:
        """Add the first sessions at once, at most 255. The result equals feeding them one by one.

        ``high`` and ``close`` have the shape (sessions, names). ``recent`` has all five fields of
        the last :data:`RECENT` sessions, shape (sessions, 5, names), because no sum looks back
        further. Raises :class:`UserError` if a session has already been added, or if there are too
        many sessions.
        """
        rows, names = close.shape
        if self._row >= 0 or rows >= _RING:
            hint = "feed them"
            raise UserError(
                f"cannot prime with {rows} sessions: the stream already has {self._row + 1}",
                hint=hint,
            )
        self._row, self._values = rows - 1, None
        if not rows:
            return
        with np.errstate(all="ignore"):
            self._prime_year(*(windows.keep(values.copy(), values > 0) for values in (close, high)))
            if rows < RECENT:
                recent = np.concatenate([np.full((1, 5, names), np.nan), recent])
            known = windows.keep(recent.copy(), recent > 0)
            returns = known[1:, 2] / known[:-1, 2] - 1.0
            self._long.prime(rows, returns)
            now, before = known[1:][-_SHORT:], known[:-1][-_SHORT:]
            self._short.prime(rows, now, before[:, 2], returns[-_SHORT:], before[:, 3])
            self._volume = known[-1, 3]

    def _prime_year(self, close: Floats, high: Floats) -> None:
        rows = close.shape[0]
        self._close[:rows] = close
        absent = np.isnan(close)
        month = np.arange(max(0, rows - _MONTH_RING), rows)
        filled, filled_row = close[month], np.repeat(month[:, None], close.shape[1], axis=1)
        gaps = np.flatnonzero(absent.any(axis=0))
        last = np.maximum.accumulate(
            np.where(absent[:, gaps], -1, np.arange(rows)[:, None]), axis=0
        )[month]
        known = np.take_along_axis(close[:, gaps], np.maximum(last, 0), axis=0)
        filled[:, gaps] = np.where(last >= 0, known, np.nan)
        filled_row[:, gaps] = np.where(last >= 0, last, -(10**9))
        self._filled[month % _MONTH_RING], self._filled_row[month % _MONTH_RING] = (
            filled,
            filled_row,
        )
        hidden = np.isnan(high)
        np.logical_not(absent, out=self._present[:rows, 0])
        np.logical_not(hidden, out=self._present[:rows, 1])
        self._counts += np.add.reduce(
            self._present[max(0, rows - _YEAR) : rows], axis=0, dtype=np.int16
        )
        self._tops.prime(rows, np.where(hidden, -np.inf, high))

    @property
    def last_close(self) -> Floats:
        """Return the closes of the last session, with NaN for a missing close."""
        last: Floats = self._close[self._row % _RING]
        return last

    @property
    def known_close(self) -> Floats:
        """Return the last known close of every name, however old, or NaN if there is none."""
        known: Floats = self._filled[self._row % _MONTH_RING]
        return known

    def rescale(self, columns: NDArray[np.int64], ratio: Floats) -> None:
        """Convert all stored data of some names into another share unit, as after a split.

        Prices are multiplied by ``ratio`` and volumes are divided by it. The factor values do not
        change, apart from rounding.
        """
        self._close[:, columns] *= ratio
        self._filled[:, columns] *= ratio
        self._tops.rescale(columns, ratio)
        self._volume = self._volume.copy()
        self._volume[columns] /= ratio
        self._values = None

    def values(self, names: Sequence[str] = FACTOR_NAMES) -> Floats:
        """Return factors at the close of the last session, with one row per factor.

        Factors over the same window are computed together when one of them is first read.
        """
        if self._values is None:
            self._values = np.empty((len(FACTOR_NAMES), self._close.shape[1]))
            self._valued.clear()
        missing = {_MADE_BY[name] for name in names} - self._valued
        if missing:
            with np.errstate(all="ignore"):
                for make in missing:
                    make(self, self._values)
            self._valued |= missing
        return (
            self._values if names is FACTOR_NAMES else self._values[[_AT[name] for name in names]]
        )

    def _fill_year(self, close: Floats, high: Floats) -> None:
        row, at, before = self._row, self._row % _MONTH_RING, (self._row - 1) % _MONTH_RING
        absent, hidden = np.isnan(close), np.isnan(high)
        self._close[row % _RING] = close
        self._filled[at] = np.where(absent, self._filled[before], close)
        self._filled_row[at] = np.where(absent, self._filled_row[before], row)
        present = self._present[self._row % _RING]
        np.logical_not(absent, out=present[0])
        np.logical_not(hidden, out=present[1])
        self._counts += present
        if self._row >= _YEAR:
            gone: NDArray[np.bool_] = self._present[(self._row - _YEAR) % _RING]
            self._counts -= gone
        self._tops.slot(row)[...] = np.where(hidden, -np.inf, high)
        self._tops.grow(row)

    def _from_short(self, values: Floats) -> None:
        sums = self._short.window(self._row)
        means = windows.average(sums[:3], sums[4:7], _ENOUGH["ILLIQ"])
        values[_AT["ILLIQ"]] = windows.log(means[0])
        values[_AT["REV_ON"]] = means[1]
        values[_AT["MOM_ID"]] = means[2]
        first, second = windows.centred(sums[8], sums[9:11], sums[11:13])
        values[_AT["CORR_PV"]] = windows.correlation(
            sums[8], sums[9], sums[10], sums[13], (first, second), _ENOUGH["CORR_PV"]
        )
        values[_AT["CV_VOL"]] = windows.relative_spread(
            sums[3], sums[7], sums[14], _ENOUGH["CV_VOL"]
        )

    def _from_long(self, values: Floats) -> None:
        n, s, ss, sss = self._long.window(self._row)
        deviations = windows.centred(n, s, ss)
        values[_AT["RV_60"]] = windows.spread(n, deviations, _ENOUGH["RV_60"]) * windows.YEAR
        values[_AT["SKEW"]] = -windows.skewness(n, s, ss, sss, deviations, _ENOUGH["SKEW"])

    def _from_year(self, values: Floats) -> None:
        row, at = self._row, self._row % _MONTH_RING
        start = row - (_YEAR - 1)
        last = self._filled[at] / self._tops.window(row)
        full = (self._counts[1] >= _ENOUGH["HIGH_52W"]) & (self._filled_row[at] >= start)
        values[_AT["HIGH_52W"]] = windows.keep(last, full)
        known = self._counts[0] >= _ENOUGH["MOM_12_1"]
        if row < SKIPPED - 1 or not known.any():
            values[_AT["MOM_12_1"]] = np.nan
            return
        month = (row - (SKIPPED - 1)) % _MONTH_RING
        momentum = self._filled[month] / self._first_since(max(start, 0), known) - 1.0
        values[_AT["MOM_12_1"]] = windows.keep(momentum, known & (self._filled_row[month] >= start))

    def _first_since(self, start: int, known: Bools) -> Floats:
        """Return the first present close in the rows from ``start`` to a month ago."""
        first: Floats = self._close[start % _RING].copy()
        missing = np.isnan(first) & known
        for row in range(start + 1, self._row - SKIPPED + 2):
            if not missing.any():
                break
            first = np.where(missing, self._close[row % _RING], first)
            missing = np.isnan(first) & known
        return first


_MADE_BY: dict[str, Callable[[FactorStream, Floats], None]] = {
    **dict.fromkeys(("ILLIQ", "REV_ON", "MOM_ID", "CORR_PV", "CV_VOL"), FactorStream._from_short),
    **dict.fromkeys(("RV_60", "SKEW"), FactorStream._from_long),
    **dict.fromkeys(("MOM_12_1", "HIGH_52W"), FactorStream._from_year),
}


def _write_short(
    slot: Floats, bars: Floats, before: Floats, returns: Floats, volume_before: Floats
) -> None:
    """Write the series of the 20-day windows: four masks, four values and the correlation series.

    ``slot`` and ``bars`` may have a session axis before their last two axes, the other arrays
    before their last axis.
    """
    opened, closed, volume, amount = (bars[..., at, :] for at in (0, 2, 3, 4))
    values, pair = slot[..., 4:8, :], slot[..., 9:11, :]
    np.divide(np.abs(returns), amount, out=values[..., 0, :])
    np.subtract(opened / before, 1.0, out=values[..., 1, :])
    np.subtract(closed / opened, 1.0, out=values[..., 2, :])
    values[..., 3, :] = amount
    present = np.isfinite(values)
    slot[..., :4, :] = present
    np.copyto(values, 0.0, where=~present)
    pair[..., 0, :] = returns
    pair[..., 1, :] = windows.log(volume / volume_before)
    finite = np.isfinite(pair)
    both = finite[..., 0, :] & finite[..., 1, :]
    slot[..., 8, :] = both
    np.copyto(pair, 0.0, where=~both[..., None, :])
    np.multiply(pair, pair, out=slot[..., 11:13, :])
    np.multiply(pair[..., 0, :], pair[..., 1, :], out=slot[..., 13, :])
    np.multiply(values[..., 3, :], values[..., 3, :], out=slot[..., 14, :])


def _write_long(slot: Floats, returns: Floats) -> None:
    """Write the series of the 60-day windows: a mask and three powers of returns."""
    present = np.isfinite(returns)
    slot[..., 0, :] = present
    kept = slot[..., 1, :]
    kept[...] = returns
    np.copyto(kept, 0.0, where=~present)
    np.multiply(kept, kept, out=slot[..., 2, :])
    np.multiply(slot[..., 2, :], kept, out=slot[..., 3, :])
