"""Studentised bootstrap intervals: each resample is measured in units of its own standard error.

They converge faster than percentile intervals, which shows in short windows (Hall 1988; for the Sharpe ratio of
dependent returns Ledoit and Wolf 2008). The standard error is that of the statistic's influence function, with
Bartlett's kernel over as many lags as the mean block is long.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats
from tradeassay.metrics.bootstrap import BootstrapConfig, choose_block, content_seed, resamples
from tradeassay.metrics.intervals import long_run_variance, significant
from tradeassay.metrics.measures import spread

DEFAULT = BootstrapConfig()
Statistic = Literal["mean", "sharpe"]
Influence = Callable[[Floats], tuple[Floats, Floats]]
"""From series of shape (..., n) to the statistic (...) and its influence function (..., n)."""


def studentised_interval(
    returns: Floats,
    statistic: Statistic = "sharpe",
    *,
    periods_per_year: float = 252,
    bootstrap: BootstrapConfig = DEFAULT,
) -> Measure:
    """Return a yearly mean or Sharpe ratio with its studentised interval.

    ``returns`` has shape (n,). Raises :class:`UserError` for another statistic or shape.
    """
    if statistic not in ("mean", "sharpe"):
        raise UserError(f"no studentised interval for '{statistic}'", mend="choose mean or sharpe")
    returns = np.asarray(returns, dtype=np.float64)
    if returns.ndim != 1:
        raise UserError(f"returns of shape {returns.shape}", mend="give one series")
    scale = periods_per_year if statistic == "mean" else math.sqrt(periods_per_year)
    return studentise(returns, mean_of if statistic == "mean" else sharpe_of, scale=scale, bootstrap=bootstrap)


def sharpe_difference(
    returns: Floats, other: Floats, *, periods_per_year: float = 252, bootstrap: BootstrapConfig = DEFAULT
) -> Measure:
    """Return the yearly Sharpe ratio of one series less that of another over the same sessions (Ledoit and Wolf
    2008).

    Both are resampled with the same sessions. Raises :class:`UserError` for different shapes.
    """
    one, two = np.asarray(returns, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if one.shape != two.shape or one.ndim != 1:
        raise UserError(f"{one.shape} returns against {two.shape}", mend="give two series over the same sessions")
    return studentise(np.stack([one, two]), _sharpe_gap, scale=math.sqrt(periods_per_year), bootstrap=bootstrap)


def studentise(
    values: Floats, influence: Influence, *, scale: float, bootstrap: BootstrapConfig = DEFAULT
) -> Measure:
    """Return a statistic times ``scale`` with its studentised interval.

    ``values`` has shape (n,) or (series, n), and ``influence`` turns (..., n) or (series, ..., n)
    into the statistic and its influence function. No value where the statistic has none; no interval for fewer
    sessions than ``bootstrap.least`` or when more than 5 % of the resamples have no standard error.
    """
    n = values.shape[-1]
    if n < 2 or not np.isfinite(values).all():
        return not_scored("fewer than two sessions" if n < 2 else "a number in the series is missing")
    centre, own = influence(values)
    value = float(centre)
    if not math.isfinite(value):
        return not_scored("it is not defined for this series")
    if n < bootstrap.least:
        note = f"no interval: {n} sessions, at least {bootstrap.least} are needed"
        return Measure(value=significant(value * scale), level=bootstrap.level, n=n, note=note)
    block = choose_block(np.asarray(own), bootstrap)
    lags = min(n - 1, max(0, round(block) if block > 1.0 else 0))
    error = math.sqrt(float(long_run_variance(own, lags)) / n)
    ratios = []
    for rows in resamples(n, bootstrap.draws, block, content_seed(bootstrap, values)):
        drawn, psi = influence(values[..., rows])
        se = np.sqrt(long_run_variance(psi, lags) / n)
        ratios.append((drawn - value) / np.where(se > 0, se, np.nan))
    t = np.concatenate(ratios)
    t = t[np.isfinite(t)]
    if t.size < 0.95 * bootstrap.draws:
        note = "no interval: too many resamples have no standard error"
        return Measure(value=significant(value * scale), level=bootstrap.level, n=n, note=note)
    tail = (1.0 - bootstrap.level) / 2.0
    low_t, high_t = np.quantile(t, [tail, 1.0 - tail])
    return Measure(
        value=significant(value * scale),
        low=significant((value - float(high_t) * error) * scale),
        high=significant((value - float(low_t) * error) * scale),
        level=bootstrap.level,
        n=n,
        note="studentised interval",
    )


def mean_of(values: Floats) -> tuple[Floats, Floats]:
    """Return the mean along the last axis and its influence function."""
    centre = np.asarray(values.mean(axis=-1))
    return centre, values - centre[..., None]


def sharpe_of(values: Floats) -> tuple[Floats, Floats]:
    """Return the Sharpe ratio of one period along the last axis and its influence function; NaN if flat."""
    deviation = spread(values)
    deviation = np.where(deviation > 0, deviation, np.nan)
    centre = values.mean(axis=-1)
    ratio = np.asarray(centre / deviation)
    z = (values - centre[..., None]) / deviation[..., None]
    return ratio, z - 0.5 * ratio[..., None] * (z * z - 1.0)


def _sharpe_gap(values: Floats) -> tuple[Floats, Floats]:
    one, two = sharpe_of(values[0]), sharpe_of(values[1])
    return one[0] - two[0], one[1] - two[1]
