"""Compute the nine factors, either for every session and name or only for the last session.

The value in row t uses rows up to and including t. It is known at the close of session t. For a
value known strictly before day d, use the row of the previous session or the last row of an as-of
view.

The two classes form sums, counts and extremes differently. :class:`_EveryRow` slides the window
over all sessions. :class:`_LastRow` computes only the last session, which is enough for a decision.
It costs a small part of the time and gives the same bits.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from tradeassay.core.arrays import Bools, Floats
from tradeassay.factors import _windows as windows
from tradeassay.factors._windows import rolling_max, rolling_sum, rolling_sums, window_sum
from tradeassay.factors.definition import FACTOR_NAMES, SKIPPED, FactorBars, definition

_Field = Literal["open", "high", "low", "close", "volume", "amount"]
_YEAR, _LONG, _SHORT = 252, 60, 20
_CELLS = 1 << 16
"""Cells per block. About ten arrays of this size fit into a core's second-level cache."""
_WIDTH = 64
"""Names per block of the short factors. They fill whole cache lines of a row."""
_REACH = 64
"""A factor with at most this many bars is short. Blocks of longer factors span all sessions."""


def compute(factor: str, bars: FactorBars) -> Floats:
    """Return one factor, shape (sessions, names). Raises :class:`UserError` for an unknown name."""
    value: Floats = _compute((definition(factor).name,), bars)[0]
    return value


def compute_all(bars: FactorBars) -> dict[str, Floats]:
    return dict(zip(FACTOR_NAMES, _compute(FACTOR_NAMES, bars), strict=True))


def latest(factor: str, bars: FactorBars) -> Floats:
    """Return the last row of :func:`compute`, shape (names,), from the last bars only.

    The values are NaN if there are no bars.
    """
    name = definition(factor).name
    value: Floats = _last_row((name,), bars.open, bars.high, bars.close, bars.volume, bars.amount)[
        0
    ]
    return value


def latest_all(bars: FactorBars) -> dict[str, Floats]:
    return dict(zip(FACTOR_NAMES, last_row(bars), strict=True))


def last_row(bars: FactorBars) -> Floats:
    """Return the factors at the close of the last session, shape (9, names).

    The factors are in the order of ``FACTOR_NAMES``. A missing value is NaN. Without bars all
    values are NaN.
    """
    return _last_row(FACTOR_NAMES, bars.open, bars.high, bars.close, bars.volume, bars.amount)


class _DailyBars(Protocol):
    """The part of a market view that factors need."""

    def bars(self, field: _Field, lookback: int | None = None) -> Floats:
        """Return the last completed daily bars, shape (rows, columns)."""


def last_row_of(view: _DailyBars) -> Floats:
    """Return the factors known now, shape (9, columns of the view).

    It reads no more bars than needed.
    """
    return _last_row(
        FACTOR_NAMES,
        view.bars("open", _SHORT + 1),
        view.bars("high", _YEAR),
        view.bars("close", _YEAR),
        view.bars("volume", _SHORT + 1),
        view.bars("amount", _SHORT + 1),
    )


def _compute(names: Sequence[str], bars: FactorBars) -> Floats:
    """Compute factors in blocks of sessions and names that fit into the cache.

    A block starts earlier by the lookback of its factors, so its values equal those without blocks.
    """
    sessions, columns = bars.close.shape
    values = np.empty((len(names), sessions, columns))
    rows = {name: definition(name).rows for name in names}
    whole = max(1, sessions)
    fields = (bars.open, bars.high, bars.close, bars.volume, bars.amount)
    for long, height, width in (
        (True, whole, max(1, _CELLS // whole)),
        (False, _CELLS // _WIDTH, _WIDTH),
    ):
        places = {k: name for k, name in enumerate(names) if (rows[name] > _REACH) == long}
        lead = max((rows[name] for name in places.values()), default=1) - 1
        for first in range(0, columns if places else 0, width):
            for start in range(0, sessions, height):
                early, stop = max(0, start - lead), min(start + height, sessions)
                block = _EveryRow(*(field[early:stop, first : first + width] for field in fields))
                with np.errstate(all="ignore"):
                    for k, name in places.items():
                        values[k, start:stop, first : first + width] = block.value(name)[
                            start - early :
                        ]
    return values


def _last_row(names: Sequence[str], *fields: Floats) -> Floats:
    """Return factors at the last session.

    Factors with the same lookback share intermediate series.
    """
    sessions, columns = fields[2].shape
    values = np.full((len(names), columns), np.nan)
    if sessions == 0 or columns == 0:
        return values
    reach = {
        name: next(n for n in (_SHORT, _LONG, _YEAR) if definition(name).rows <= n + 1)
        for name in names
    }
    blocks = {
        n: _LastRow(*(field[-(n + (n != _YEAR)) :] for field in fields))
        for n in set(reach.values())
    }
    with np.errstate(all="ignore"):
        for k, name in enumerate(names):
            values[k] = blocks[reach[name]].value(name)
    return values


class _EveryRow:
    """The factors of every session, shape (sessions, names).

    Series shared by factors are cached.
    """

    _spans: tuple[int, ...] = (_LONG, _SHORT)
    """Window lengths for which sums of returns are computed together."""

    def __init__(self, *fields: Floats) -> None:
        self._raw = dict(zip(("open", "high", "close", "volume", "amount"), fields, strict=True))
        self._taken: dict[str, Floats] = {}

    def value(self, name: str) -> Floats:
        enough = definition(name).enough
        if name == "MOM_12_1":
            close = self._field("close")
            known = self._year_known(close, enough)
            near = self._nearest(close, SKIPPED - 1, -1, known)
            return windows.keep(near / self._nearest(close, _YEAR - 1, 1, known) - 1.0, known)
        if name == "HIGH_52W":
            high = self._field("high")
            known = self._present_enough(high, enough)
            return windows.keep(
                self._nearest(self._field("close"), 0, -1, known) / self._highest(high), known
            )
        if name in ("RV_60", "SKEW"):
            n, x, xx, xxx, deviations = self._moments
            if name == "SKEW":
                return -windows.skewness(n, x, xx, xxx, deviations, enough)
            return windows.spread(n, deviations, enough) * windows.YEAR
        if name == "ILLIQ":
            ratio = np.abs(self._returns)
            ratio /= self._field("amount")
            return windows.log(self._mean(ratio, enough))
        if name == "REV_ON":
            return self._mean(_change(self._field("open"), _shift(self._field("close"))), enough)
        if name == "MOM_ID":
            return self._mean(_change(self._field("close"), self._field("open")), enough)
        if name == "CORR_PV":
            return self._price_with_volume(enough)
        assert name == "CV_VOL"
        present = np.isfinite(self._field("amount"))
        x, n = _filled(self._field("amount"), present), self._count(present, _SHORT)
        return windows.relative_spread(n, self._sum(x, _SHORT), self._sum(x * x, _SHORT), enough)

    def _price_with_volume(self, enough: int) -> Floats:
        volume = self._field("volume")
        y = windows.log(volume / _shift(volume))
        present = self._returns_present & np.isfinite(y)
        n, x, y = self._count(present, _SHORT), _filled(self._returns, present), _filled(y, present)
        if "_return_sums" in vars(self) and np.array_equal(present, self._returns_present):
            (_, sum_x), (_, squares), _ = self._return_sums
        else:
            sum_x, squares = self._sum(x, _SHORT), self._sum(x * x, _SHORT)
        sum_y, product = self._sum(y, _SHORT), self._sum(x * y, _SHORT)
        spread_x = windows.centred(n, sum_x, squares)
        spread_y = windows.centred(n, sum_y, self._sum(np.multiply(y, y, out=y), _SHORT))
        return windows.correlation(n, sum_x, sum_y, product, (spread_x, spread_y), enough)

    def _field(self, name: str) -> Floats:
        if name not in self._taken:
            self._taken[name] = self._take(name)
        return self._taken[name]

    @cached_property
    def _returns(self) -> Floats:
        close = self._field("close")
        return _change(close, _shift(close))

    @cached_property
    def _returns_present(self) -> Bools:
        return np.isfinite(self._returns)

    @cached_property
    def _return_sums(self) -> tuple[list[Floats], list[Floats], Floats]:
        """Return sums of returns, squared returns and cubed returns.

        The first two are over each of the spans, the third over 60 sessions.
        """
        x = _filled(self._returns, self._returns_present)
        square = x * x
        return (
            self._sums(x, *self._spans),
            self._sums(square, *self._spans),
            self._sum(square * x, _LONG),
        )

    @cached_property
    def _moments(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return count, sum, sum of squares, sum of cubes and squared deviations of 60 returns."""
        n = self._count(self._returns_present, _LONG)
        sums, squares, cubes = self._return_sums
        return n, sums[0], squares[0], cubes, windows.centred(n, sums[0], squares[0])

    def _mean(self, values: Floats, enough: int) -> Floats:
        """Return the mean of the present values in 20 sessions.

        ``values`` is overwritten: missing values become 0.
        """
        present = np.isfinite(values)
        if not present.all():
            np.copyto(values, 0.0, where=~present)
        return windows.average(self._count(present, _SHORT), self._sum(values, _SHORT), enough)

    def _sum(self, values: Floats, span: int) -> Floats:
        return self._sums(values, span)[0]

    # Methods that differ between all rows and the last row.

    def _take(self, field: str) -> Floats:
        """Return a field with NaN in place of values that are not positive."""
        taken = np.array(self._raw[field], dtype=np.float64, order="C")
        if (taken <= 0).any():
            windows.keep(taken, taken > 0)
        return taken

    def _sums(self, values: Floats, *spans: int) -> list[Floats]:
        return rolling_sums(values, *spans)

    def _count(self, present: Bools, span: int) -> Floats:
        counted: NDArray[np.uint8] = rolling_sum(present.view(np.uint8), span)
        return counted.astype(np.float64)

    def _present_enough(self, values: Floats, enough: int) -> Bools:
        """Return whether at least ``enough`` of a year's values are present."""
        known: Bools = rolling_sum((~np.isnan(values)).view(np.uint8), _YEAR) >= enough
        return known

    def _year_known(self, values: Floats, enough: int) -> Bools:
        """Return :meth:`_present_enough`, and require that the session a month ago exists."""
        known = self._present_enough(values, enough)
        known[: SKIPPED - 1] = False
        return known

    def _highest(self, values: Floats) -> Floats:
        np.copyto(values, -np.inf, where=np.isnan(values))
        return rolling_max(values, _YEAR)

    def _nearest(self, close: Floats, back: int, step: int, known: Bools) -> Floats:
        """Return the close ``back`` rows before each row, or the first close of a shorter record.

        If that close is missing and the value will be ``known``, take the next present close in the
        direction of ``step`` (1 = later, -1 = earlier) within the year that ends at the row. Such
        cases are rare, so each is looked up separately.
        """
        rows, columns = close.shape
        found = np.empty_like(close)
        found[:back] = close[:1]
        found[back:] = close[: max(rows - back, 0)]
        lost = np.flatnonzero(np.isnan(found) & known)
        oldest = np.maximum(lost // columns - (_YEAR - 1), 0) * columns
        place = lost - back * columns
        place = np.where(place < 0, lost % columns, place)
        flat = close.reshape(-1)
        while lost.size:
            place = place + step * columns
            inside = (place >= oldest) & (place <= lost)
            lost, place, oldest = lost[inside], place[inside], oldest[inside]
            values = flat[place]
            found.reshape(-1)[lost] = values
            still = np.isnan(values)
            lost, place, oldest = lost[still], place[still], oldest[still]
        return found


class _LastRow(_EveryRow):
    """The factors of the last session, shape (names,), from no more rows than the lookback."""

    _spans = (_LONG,)

    def _take(self, field: str) -> Floats:
        taken = np.asarray(self._raw[field], dtype=np.float64)
        return windows.keep(taken.copy(), taken > 0) if (taken <= 0).any() else taken

    def _sums(self, values: Floats, *spans: int) -> list[Floats]:
        return [window_sum(values, span) for span in spans]

    def _count(self, present: Bools, span: int) -> Floats:
        # A window has at most 252 rows. A byte can hold the count, and bytes are summed fast.
        counted = np.add.reduce(present[-span:].view(np.uint8), axis=0, dtype=np.uint8)
        return np.asarray(counted.astype(np.float64))

    def _present_enough(self, values: Floats, enough: int) -> Bools:
        known: Bools = self._count(~np.isnan(values), _YEAR) >= enough
        return known

    def _year_known(self, values: Floats, enough: int) -> Bools:
        long = values.shape[0] >= SKIPPED
        return (
            self._present_enough(values, enough)
            if long
            else np.zeros(values.shape[1], dtype=np.bool_)
        )

    def _highest(self, values: Floats) -> Floats:
        highest: Floats = np.fmax.reduce(values, axis=0)
        return highest

    def _nearest(self, close: Floats, back: int, step: int, known: Bools) -> Floats:
        row = max(close.shape[0] - 1 - back, 0)
        found: Floats = close[row].copy()
        for column in np.flatnonzero(np.isnan(found) & known).tolist():
            path = close[row:, column] if step > 0 else close[row::-1, column]
            there = np.flatnonzero(~np.isnan(path))
            found[column] = path[there[0]] if there.size else np.nan
        return found


def _change(now: Floats, before: Floats) -> Floats:
    result: Floats = now / before
    result -= 1.0
    return result


def _shift(values: Floats) -> Floats:
    shifted = np.empty_like(values)
    shifted[:1] = np.nan
    shifted[1:] = values[:-1]
    return shifted


def _filled(values: Floats, present: Bools) -> Floats:
    if present.all():
        return values
    filled = values.copy()
    np.copyto(filled, 0.0, where=~present)
    return filled
