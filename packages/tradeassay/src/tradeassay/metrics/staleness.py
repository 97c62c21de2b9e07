"""Test whether returns lag their market: stale prices and smoothed values hide market exposure.

A fund that is priced late reports today a part of the market's earlier moves. Its beta to the
market of the same day is then too small. The missing part looks like alpha and low volatility
(Dimson 1979, Getmansky, Lo and Makarov 2004). The test asks whether earlier market returns move the
series in the direction of its whole exposure. It allows for errors whose size changes with the
market's moves (HC3, MacKinnon and White 1985).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.measure import Measure
from tradeassay.metrics.cosine import cosine_terms, cosine_variance
from tradeassay.metrics.intervals import between, significant, student_reach

_DAILY = 100
"""Number of rows per year above which rows are days."""
_HORIZONS_DAILY = (1, 2, 5, 10, 20)
"""Lags tested on daily rows: one row for a late price, a week, two weeks and a month."""
_HORIZONS_SLOW = (1, 2, 3, 5, 8, 12)
"""Lags tested on weekly and monthly rows, for quarterly appraisals and for longer lags."""
_ROWS_PER_LAG = 20
"""Minimum number of rows per tested lag.

With fewer rows, the sum of the lags has no usable error.
"""
_LEAST_HORIZON = 3
"""Number of lags that are always tested in a record of at least :data:`_LEAST_ROWS` rows.

A quarterly appraisal on monthly rows needs them. Its effect is visible within three years.
"""
_LEAST_ROWS = 36
_LEVEL = 0.001
"""One-sided level of the search over all horizons. It is divided by the number of horizons.

One liquid account in a thousand is called stale.
"""
_MATERIAL = 0.10
"""Minimum late share of the exposure of a stale series.

Liquid stocks have late shares of a few hundredths, which do not change their alpha.
"""
_LONGER_LEVEL = 0.05
"""One-sided level at which further lags are added for a stale series.

An unneeded lag costs little, but a missing lag leaves market exposure in the alpha.
"""
_IDLE = 0.45
"""Minimum share of rows without a new price in a series that is rarely priced."""
_REGULAR = 0.9
"""Minimum share of the gaps between prices that differ by at most a third from the usual gap.

The gaps of monthly prices differ because months have 19 to 23 sessions.
"""
_LEAST_PRICES = 10
"""Minimum number of prices for the error of a slope of the returns between prices."""
_PRICES_FOR_TWO = 18
"""Minimum number of prices for a second slope, on the market in the previous gap."""
_PRICED_LEVEL = 0.01
"""One-sided level for a series that is priced at regular intervals.

It is mild because the regularity is already evidence. The only alternative is an account that is
invested on only one row in several, and such an account has no late part.
"""
_LONGEST_GAP = 63
"""Maximum number of rows between two prices: a quarter of daily rows."""
_EXACT = 1e-9
"""Share of all slopes below which a slope, or its error, is a rounding error."""
_SURE = 1e-12
"""P-value below which all p-values are treated as equal. The shortest such horizon is selected."""
_MOST_LEVERAGE = 0.95
"""Minimum of 1 - leverage in HC3. A row that determines its fitted value has no residual."""


class Regression:
    """Ordinary least squares over time with intervals that allow for serial dependence.

    ``y`` has shape (n,), ``columns`` are series of the same shape. A constant is added as the first
    column.
    """

    def __init__(self, y: Floats, columns: Sequence[Floats]) -> None:
        self._design = np.column_stack([np.ones(y.size), *columns])
        self.coefficients = np.linalg.lstsq(self._design, y, rcond=1e-12)[0]
        self.rest: Floats = y - self._design @ self.coefficients
        gap = y - y.mean()
        whole = float(gap @ gap)
        self.explained = 1.0 - float(self.rest @ self.rest) / whole if whole > 0 else 0.0

    def coefficient(
        self,
        place: int,
        *,
        scale: float = 1.0,
        level: float = 0.95,
        least: int = 20,
        year: int = 252,
    ) -> Measure:
        """Return a coefficient times ``scale`` with its interval. Coefficient 0 is the constant.

        ``year`` is the number of rows per year.
        """
        n = self.rest.size
        value = float(self.coefficients[place]) * scale
        if n < least:
            return Measure(value=significant(value), n=n, note=f"no interval: {n} rows")
        # A coefficient is the mean of its influence function, so the interval of that mean is the
        # coefficient's. A row with high leverage hides its own error, so residuals are
        # leave-one-out residuals.
        whole = np.linalg.pinv(self._design.T @ self._design / n)
        leverage = np.einsum("ij,jk,ik->i", self._design, whole, self._design) / n
        kept = np.maximum(1.0 - leverage, 1.0 - _MOST_LEVERAGE)
        influence = (self._design @ whole[place]) * self.rest / kept * scale
        error = math.sqrt(float(cosine_variance(influence, year)) / n)
        if not error > 0.0:
            note = "no interval: nothing is left to explain"
            return Measure(value=significant(value), n=n, note=note)
        reach = student_reach(cosine_terms(n, year), level) * error
        return between(value, (value - reach, value + reach), level, n)


def lagged(series: Floats, lags: int) -> list[Floats]:
    """Return a series and its lags 1 to ``lags``. Missing first values are the series' mean."""
    columns = [series]
    for lag in range(1, lags + 1):
        late = np.full(series.size, series.mean())
        late[lag:] = series[:-lag]
        columns.append(late)
    return columns


class Lateness(msgspec.Struct, frozen=True, kw_only=True):
    """The lag of a series behind its market.

    ``lags`` is the number of rows (0: not late). ``share`` is the late share of the exposure, 0 to
    1. ``beta`` is the exposure to the market of the same row without lags, ``full_beta`` the
    exposure including the late part. ``p`` is the one-sided p-value of the late part at the most
    favourable horizon, times the number of horizons tested.
    """

    lags: int
    share: float
    beta: float
    full_beta: float
    p: float


_NOT_LATE = Lateness(lags=0, share=0.0, beta=0.0, full_beta=0.0, p=1.0)


class _Fit:
    """Least squares of ``y`` on a constant and ``columns``, with HC3 errors for sums of slopes."""

    def __init__(self, y: Floats, columns: Sequence[Floats]) -> None:
        # Columns are scaled by the first one, so that the constant and the slopes have similar
        # sizes.
        scale = float(columns[0].std()) or 1.0
        design = np.column_stack([np.ones(y.size), *columns])
        design[:, 1:] /= scale
        weights = design @ np.linalg.pinv(design.T @ design)
        fitted = weights.T @ y
        leverage = (weights * design).sum(axis=1)
        self.freedom = max(y.size - design.shape[1], 1)
        self._weights = weights[:, 1:] / scale
        self._missed = (y - design @ fitted) / np.maximum(1.0 - leverage, 1.0 - _MOST_LEVERAGE)
        self.slopes: Floats = fitted[1:] / scale

    def t_of_sum(self, first: int, *, sign: float) -> float:
        """Return the HC3 t ratio of the sum of slope ``first`` and all later slopes.

        It is multiplied by ``sign``.
        """
        influence = self._weights[:, first:].sum(axis=1) * self._missed
        error = math.sqrt(float(influence @ influence))
        value = sign * float(self.slopes[first:].sum())
        # If the residuals are zero, slopes and errors are rounding errors.
        exact = _EXACT * float(np.abs(self.slopes).sum())
        if abs(value) <= exact:
            return 0.0
        return value / max(error, exact)


def _lag_fit(total: Floats, market: Floats, lags: int) -> _Fit:
    """Regress a series on its market and ``lags`` lags.

    Rows before the first full lag are left out.
    """
    n = total.size - lags
    return _Fit(total[lags:], [market[lags - lag : lags - lag + n] for lag in range(lags + 1)])


def lateness(total: Floats, market: Floats, year: int) -> Lateness:
    """Return the lag of a series behind its market in rows, and the late share of its exposure.

    ``total`` and ``market`` are returns of the same rows, shape (n,). ``year`` is the number of
    rows per year. Horizons are 1 to 20 rows (daily) or 1 to 12 rows (weekly, monthly; at most n /
    20, but 3 from 36 rows on). For each horizon the series is regressed on the market of the same
    row and of the earlier rows. The test is a Wald test that the sum of the lagged coefficients is
    zero. It is one-sided in the direction of the whole exposure, with HC3 errors (MacKinnon and
    White 1985) and Student's t. A series is late if the sum is significant at 1 in 1,000 after
    division by the number of horizons, and is at least a tenth of the whole exposure.

    A joint test of all lags has power against any pattern, but noise, options and reversals have
    patterns too. A late price can only add exposure of the same sign. Testing the sum also detects
    twenty small lags, as in a value that is set once a month.
    """
    from scipy.special import stdtr

    n = total.size
    most = n // _ROWS_PER_LAG
    if n >= _LEAST_ROWS:
        most = max(most, _LEAST_HORIZON)
    priced = _priced_rarely(total, market)
    if priced is not None:
        return priced
    horizons = _HORIZONS_DAILY if year >= _DAILY else _HORIZONS_SLOW
    tried = [lags for lags in horizons if lags <= most]
    if not tried or not np.ptp(market) > 0.0 or not np.ptp(total) > 0.0:
        return _NOT_LATE
    fits = {lags: _lag_fit(total, market, lags) for lags in tried}
    plain = _lag_fit(total, market, 0)
    best, best_p = 0, 1.0
    for lags, fit in fits.items():
        whole = float(fit.slopes.sum())
        late = float(fit.slopes[1:].sum())
        if whole == 0.0 or late / whole < _MATERIAL:
            continue
        t = fit.t_of_sum(1, sign=math.copysign(1.0, whole))
        p = max(float(stdtr(fit.freedom, -t)) * len(tried), _SURE)
        if p < best_p:
            best, best_p = lags, p
    if not best or best_p >= _LEVEL:
        return msgspec.structs.replace(
            _NOT_LATE, beta=float(plain.slopes[0]), full_beta=float(plain.slopes[0]), p=best_p
        )
    sign = math.copysign(1.0, float(fits[best].slopes.sum()))
    for lags in tried:
        fit = fits[lags]
        if lags > best and stdtr(fit.freedom, -fit.t_of_sum(best + 1, sign=sign)) < _LONGER_LEVEL:
            best = lags
    betas = fits[best].slopes
    return Lateness(
        lags=best,
        share=min(max(float(betas[1:].sum() / betas.sum()), 0.0), 1.0),
        beta=float(plain.slopes[0]),
        full_beta=float(betas.sum()),
        p=min(best_p, 1.0),
    )


def _priced_rarely(total: Floats, market: Floats) -> Lateness | None:
    """Return the lateness of a series that has a new price only every k rows, or None otherwise.

    The returns of rows with a new price are regressed on the market of that row, on the market
    since the previous price, and on the market in the gap before. The last two slopes must have the
    sign of the whole exposure and be jointly significant, with HC3 errors, at
    :data:`_PRICED_LEVEL`.
    """
    from scipy.special import stdtr

    values, counts = np.unique(total, return_counts=True)
    usual = int(np.argmax(counts))
    if counts[usual] < _IDLE * total.size:
        return None
    rows = np.flatnonzero(total != values[usual])
    gaps = np.diff(rows)
    if gaps.size < _LEAST_PRICES:
        return None
    gap = int(np.median(gaps))
    regular = np.abs(gaps - gap) <= gap / 3.0
    if not 2 <= gap <= _LONGEST_GAP or regular.mean() < _REGULAR:
        return None
    path = np.concatenate([[0.0], np.cumsum(market)])
    # The first two prices have no previous gap.
    at, before, earlier = rows[2:], rows[1:-1], rows[:-2]
    between = path[at] - path[before + 1]
    previous = path[before + 1] - path[earlier + 1]
    columns = [market[at], between]
    if at.size >= _PRICES_FOR_TWO:
        columns.append(previous)
    fit = _Fit(total[at], columns)
    whole = float(fit.slopes.sum())
    now, late = float(fit.slopes[0]), float(fit.slopes[1:].sum())
    p = float(stdtr(fit.freedom, -fit.t_of_sum(1, sign=math.copysign(1.0, whole))))
    if p >= _PRICED_LEVEL or late * whole <= 0.0:
        return None
    lags = gap - 1
    if len(columns) > 2:
        t = fit.t_of_sum(2, sign=math.copysign(1.0, whole))
        lags += gap if stdtr(fit.freedom, -t) < _LONGER_LEVEL else 0
    # A row without a price has no exposure. A row with a price has the exposure of the whole gap.
    exposure = abs(now) + abs(late) * (gap - 1)
    return Lateness(
        lags=min(lags, max(gap - 1, total.size // _ROWS_PER_LAG)),
        share=abs(late) * (gap - 1) / exposure,
        beta=now / gap,
        full_beta=float(fit.slopes[1]) if abs(fit.slopes[1]) > abs(now) else now,
        p=p,
    )


def stale_lags(total: Floats, market: Floats, year: int) -> int:
    """Return the lag of a series behind its market in rows, or 0. See :func:`lateness`."""
    return lateness(total, market, year).lags


def late_share(total: Floats, market: Floats, year: int) -> float:
    """Return the late share of the exposure to the market, 0 to 1. See :func:`lateness`."""
    return lateness(total, market, year).share
