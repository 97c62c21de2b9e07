"""Intervals of means and ratios of dependent returns: equal-weighted cosine (EWC).

The long-run variance is the mean of the squared first cosine transforms of the series. The ratio of
the mean to its standard error has Student's t distribution. Its degrees of freedom are the number
of transforms (Müller 2007). This number is 0.4 n^(2/3) for n trading days, as Lazarus, Lewis, Stock
and Watson (2018) propose. It depends on the time that a record covers and not on its rows. So
weekly, monthly and hourly rows of one account use the same cosines of time and give the same
interval. Ratios use the delta method: the same interval for the statistic's influence function.
There is no resampling. So an interval at a level corrected for a thousand comparisons costs as much
as one at 95 %.

All series have the sessions on their last axis, (..., n). One series and ten thousand series take
the same call.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal

import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.intervals import between, significant, student_reach
from tradeassay.metrics.measures import spread

_LEAST = 20
"""Minimum number of sessions for an interval."""
_Statistic = Literal["mean", "sharpe"]
_FLAT = 1e-12
_MOST_GROWTH = 700.0
"""Largest log growth that is converted into a return."""


_DAILY = (200, 366)
"""Minimum and maximum number of rows per year for daily rows. Venues have 242 to 365."""


def trading_days(n: int, periods_per_year: float) -> float:
    """Return the number of trading days in ``n`` rows. Daily rows are the trading days."""
    if _DAILY[0] <= periods_per_year <= _DAILY[1]:
        return float(n)
    return n * 252.0 / periods_per_year


def cosine_terms(n: int, periods_per_year: float = 252) -> int:
    """Return the number of cosine transforms for ``n`` rows: 0.4 d^(2/3) for d trading days.

    It is at least 1 and at most n - 2, the number of transforms that n rows allow.
    """
    terms = int(0.4 * trading_days(n, periods_per_year) ** (2.0 / 3.0))
    return max(1, min(terms, n - 2))


def cosine_variance(values: Floats, periods_per_year: float = 252) -> Floats:
    """Return the variance of sqrt(n) x mean along the last axis.

    Its degrees of freedom are :func:`cosine_terms`.
    """
    values = np.asarray(values, dtype=np.float64)
    n = values.shape[-1]
    weights = _cosines(n, cosine_terms(n, periods_per_year))
    return np.asarray(((values @ weights) ** 2).mean(axis=-1))


def cosine_t(values: Floats, periods_per_year: float = 252) -> tuple[Floats, int]:
    """Return the t ratio of the mean along the last axis, and its degrees of freedom.

    The ratio is NaN if a series does not vary.
    """
    values = np.asarray(values, dtype=np.float64)
    n = values.shape[-1]
    error = np.sqrt(cosine_variance(values, periods_per_year) / n)
    size = np.abs(values).max(axis=-1)
    ratio = values.mean(axis=-1) / np.where(error > _FLAT * size, error, np.nan)
    return np.asarray(ratio), cosine_terms(n, periods_per_year)


def mean_p_value(values: Floats, periods_per_year: float = 252) -> Floats:
    """Return the two-sided p-value of a zero mean along the last axis, or NaN without variation."""
    from scipy.special import stdtr  # slow to import

    t, freedom = cosine_t(values, periods_per_year)
    return np.asarray(2.0 * stdtr(freedom, -np.abs(t)))


def cosine_interval(
    returns: Floats,
    statistic: _Statistic = "sharpe",
    *,
    periods_per_year: float = 252,
    level: float = 0.95,
    least: int = _LEAST,
    rows_per_year: float | None = None,
) -> Measure:
    """Return an annualised mean or Sharpe ratio with its interval. ``returns`` has shape (n,).

    ``periods_per_year`` scales the result. ``rows_per_year`` is the frequency of the rows, if the
    result is not scaled to a year. Raises :class:`UserError` for an unknown statistic, a wrong
    shape or an invalid level.
    """
    if statistic not in ("mean", "sharpe"):
        raise UserError(f"no interval for '{statistic}'", hint="choose mean or sharpe")
    returns = np.asarray(returns, dtype=np.float64)
    if returns.ndim != 1:
        raise UserError(f"returns of shape {returns.shape}", hint="give one series")
    if not 0.0 < level < 1.0:
        raise UserError(
            f"a confidence level of {level}", hint="choose one between 0 and 1, e.g. 0.95"
        )
    n = returns.size
    if n < 2 or not np.isfinite(returns).all():
        return not_scored(
            "fewer than two sessions" if n < 2 else "a number in the series is missing"
        )
    # By the delta method, a ratio has the standard error of the mean of its influence function.
    if statistic == "mean":
        scale, centre = periods_per_year, returns.mean()
        influence = returns - centre
    else:
        scale, (centre, influence) = math.sqrt(periods_per_year), _sharpe_of(returns)
    value = float(centre)
    if not math.isfinite(value):
        return not_scored("it is not defined for this series")
    shown = significant(value * scale)
    if n < least:
        note = f"no interval: {n} sessions, at least {least} are needed"
        return Measure(value=shown, level=level, n=n, note=note)
    frequency = periods_per_year if rows_per_year is None else rows_per_year
    error = math.sqrt(float(cosine_variance(influence, frequency)) / n)
    if not error > _FLAT * float(np.abs(returns).max()):
        return Measure(value=shown, level=level, n=n, note="no interval: it never moves")
    freedom = cosine_terms(n, frequency)
    reach = student_reach(freedom, level) * error
    note = f"cosine interval, {freedom} degrees of freedom"
    return between(
        value * scale, ((value - reach) * scale, (value + reach) * scale), level, n, note
    )


def growth_interval(
    returns: Floats, *, periods: float, level: float, least: int, rows_per_year: float = 252
) -> Measure:
    """Return the growth over ``periods`` sessions of returns of shape (n,), with its interval.

    The interval is computed for the sum of log returns, so a loss never exceeds everything. Raises
    :class:`UserError` like :func:`cosine_interval`. There is no value if a session lost everything.
    """
    returns = np.asarray(returns, dtype=np.float64)
    if not (returns > -1.0).all():
        return not_scored("everything was lost in a session")
    logs = np.log1p(returns)
    return growth_ends(
        cosine_interval(
            logs,
            "mean",
            periods_per_year=periods,
            level=level,
            least=least,
            rows_per_year=rows_per_year,
        )
    )


def growth_ends(logs: Measure) -> Measure:
    if logs.value is None:
        return logs
    value, low, high = (
        None if end is None else significant(math.expm1(min(end, _MOST_GROWTH)))
        for end in (logs.value, logs.low, logs.high)
    )
    return Measure(value=value, low=low, high=high, level=logs.level, n=logs.n, note=logs.note)


def reach_ratio(n: int, level: float, other: float) -> float:
    """Return the width of an interval at the level ``other`` relative to its width at ``level``.

    ``n`` is the number of sessions.
    """
    return student_reach(cosine_terms(n), other) / student_reach(cosine_terms(n), level)


def _sharpe_of(values: Floats) -> tuple[Floats, Floats]:
    """Return the Sharpe ratio per period along the last axis and its influence function.

    Both are NaN for a flat series.
    """
    deviation = spread(values)
    deviation = np.where(deviation > 0, deviation, np.nan)
    centre = values.mean(axis=-1)
    ratio = np.asarray(centre / deviation)
    z = (values - centre[..., None]) / deviation[..., None]
    return ratio, z - 0.5 * ratio[..., None] * (z * z - 1.0)


@lru_cache(maxsize=64)
def _cosines(n: int, terms: int) -> Floats:
    """Return the weights (n, terms) of the first cosine transforms (type II), of length 1."""
    at = (np.arange(n) + 0.5) / n
    order = np.arange(1, terms + 1)
    weights: Floats = math.sqrt(2.0 / n) * np.cos(math.pi * at[:, None] * order)
    weights.setflags(write=False)
    return weights
