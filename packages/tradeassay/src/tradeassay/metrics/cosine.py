"""Inference on means and ratios of dependent returns that holds its level: equal-weighted cosine (EWC).

The long-run variance is the mean of the squared first cosine transforms of the series, and the ratio of the mean
to its error follows Student's t with as many degrees of freedom as there are transforms (Müller 2007). How many:
0.4 n^(2/3) for n trading days, the choice of Lazarus, Lewis, Stock and Watson (2018), who propose it for exactly
this. The number follows from the time that a record covers and not from its rows: weekly, monthly and hourly rows
of one account use the same cosines of time, and so end in the same interval. Ratios go by the delta method: the
same on the statistic's influence function. Nothing is resampled, so that an interval at a level corrected for a
thousand comparisons costs what one does at 95 %.

All series have the sessions on their last axis, (..., n), so that one and ten thousand take the same call.
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
"""Fewer sessions give no interval."""
_Statistic = Literal["mean", "sharpe"]
_FLAT = 1e-12
_MOST_GROWTH = 700.0
"""Log growth beyond which a return is no number any more."""


_DAILY = (200, 366)
"""Rows a year that are trading days: venues have 242 to 365 of them."""


def trading_days(n: int, periods_per_year: float) -> float:
    """Return how many trading days ``n`` rows cover: the rows themselves if they are daily."""
    if _DAILY[0] <= periods_per_year <= _DAILY[1]:
        return float(n)
    return n * 252.0 / periods_per_year


def cosine_terms(n: int, periods_per_year: float = 252) -> int:
    """Return how many cosine transforms make the variance of ``n`` rows: 0.4 d^(2/3) for d trading days.

    It is at least 1, and at most n - 2, because so many rows have no more transforms to give."""
    terms = int(0.4 * trading_days(n, periods_per_year) ** (2.0 / 3.0))
    return max(1, min(terms, n - 2))


def cosine_variance(values: Floats, periods_per_year: float = 252) -> Floats:
    """Return the variance of sqrt(n) x mean along the last axis; degrees of freedom are :func:`cosine_terms`."""
    values = np.asarray(values, dtype=np.float64)
    n = values.shape[-1]
    weights = _cosines(n, cosine_terms(n, periods_per_year))
    return np.asarray(((values @ weights) ** 2).mean(axis=-1))


def cosine_t(values: Floats, periods_per_year: float = 252) -> tuple[Floats, int]:
    """Return the ratio of the mean to its standard error along the last axis, and its degrees of freedom. NaN
    where a series does not vary."""
    values = np.asarray(values, dtype=np.float64)
    n = values.shape[-1]
    error = np.sqrt(cosine_variance(values, periods_per_year) / n)
    size = np.abs(values).max(axis=-1)
    ratio = values.mean(axis=-1) / np.where(error > _FLAT * size, error, np.nan)
    return np.asarray(ratio), cosine_terms(n, periods_per_year)


def mean_p_value(values: Floats, periods_per_year: float = 252) -> Floats:
    """Return the two-sided p-value of a mean of zero along the last axis; NaN where a series does not vary."""
    from scipy.special import stdtr  # takes a while to import

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
    """Return a yearly mean or Sharpe ratio with its interval. ``returns`` has shape (n,).

    ``periods_per_year`` scales the result. ``rows_per_year`` says how often rows come, where the result is scaled to
    something else than a year. Raises :class:`UserError` for another statistic, shape or level."""
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
    # By the delta method a ratio has the error of the mean of its influence function.
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
    """Return what returns of shape (n,) grow to over ``periods`` sessions, with the interval of their log growth.
    The interval of a product is that of the sum of logarithms: nobody loses more than everything. Raises
    :class:`UserError` as :func:`cosine_interval` does; no value where everything was lost in a session."""
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
    """Return how many times as far an interval of ``n`` sessions reaches at the other level."""
    return student_reach(cosine_terms(n), other) / student_reach(cosine_terms(n), level)


def _sharpe_of(values: Floats) -> tuple[Floats, Floats]:
    """Return the Sharpe ratio of one period along the last axis and its influence function; NaN if flat."""
    deviation = spread(values)
    deviation = np.where(deviation > 0, deviation, np.nan)
    centre = values.mean(axis=-1)
    ratio = np.asarray(centre / deviation)
    z = (values - centre[..., None]) / deviation[..., None]
    return ratio, z - 0.5 * ratio[..., None] * (z * z - 1.0)


@lru_cache(maxsize=64)
def _cosines(n: int, terms: int) -> Floats:
    """Return the weights (n, terms) of the first cosine transforms (type II), each of length 1."""
    at = (np.arange(n) + 0.5) / n
    order = np.arange(1, terms + 1)
    weights: Floats = math.sqrt(2.0 / n) * np.cos(math.pi * at[:, None] * order)
    weights.setflags(write=False)
    return weights
