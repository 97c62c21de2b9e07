"""Many results judged at once: false discoveries, and intervals that hold for all of them together."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats
from tradeassay.metrics.bootstrap import BootstrapConfig, choose_block, content_seed, resamples
from tradeassay.metrics.intervals import significant
from tradeassay.metrics.long_run import long_run_variance

DEFAULT = BootstrapConfig()
_MORE = 2
"""Resamples per resample of a plain interval: the largest of many errors is a tail, and tails take more."""


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Return adjusted p-values (Benjamini and Hochberg 1995), in the same order; None stays None and is not
    counted.

    Of the results called different at 0.05 by them, at most one in twenty is expected to be a false alarm. That is
    less than Holm promises (no false alarm at all), and finds more.
    """
    order = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    lowest = 1.0
    for rank in range(len(order), 0, -1):
        p, place = order[rank - 1]
        lowest = min(lowest, p * len(order) / rank)
        adjusted[place] = significant(lowest)
    return adjusted


def simultaneous_intervals(
    values: Floats, *, scale: float = 1.0, bootstrap: BootstrapConfig = DEFAULT
) -> list[Measure]:
    """Return the means of several series with intervals that hold for all of them at once (bootstrap max-t).

    ``values`` has shape (n, series): sessions by agents, for example differences of log growth against a
    baseline. The same sessions are redrawn for all, so what the agents share is not paid for twice; the
    intervals are as wide as the largest of all studentised errors demands (Romano and Wolf 2005). A series
    that does not vary has its mean as both bounds and does not widen the others. Raises :class:`UserError` for
    another shape or a missing number.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or not np.isfinite(values).all():
        raise UserError(f"{values.shape} values with gaps, or not two-dimensional", mend="give (sessions, series)")
    n, count = values.shape
    if n < bootstrap.least:
        reason = f"{n} sessions, at least {bootstrap.least} are needed"
        return [not_scored(reason)] * count
    means = values.mean(axis=0)
    moving = values.std(axis=0) > 1e-12 * np.maximum(np.abs(values).max(axis=0), 1e-300)
    half = np.zeros(count)
    if moving.any():
        half[moving] = _half_widths(np.ascontiguousarray(values[:, moving].T), bootstrap)
    note = f"holds for all {count} together"
    return [
        Measure(
            value=significant(float(mean) * scale),
            low=significant(float(mean - wide) * scale),
            high=significant(float(mean + wide) * scale),
            level=bootstrap.level,
            n=n,
            note=note,
        )
        for mean, wide in zip(means, half, strict=True)
    ]


def _half_widths(series: Floats, config: BootstrapConfig) -> Floats:
    """Return how far the intervals of moving series (count, n) reach to each side of their means.

    Every resample is measured by its own standard errors, and the largest of them counts. The mean block length
    is the series' median one: the longest of many is long by chance, and would make the intervals too narrow.
    """
    n = series.shape[1]
    means = series.mean(axis=1)[:, None]
    block = float(np.median([choose_block(one, config) for one in series]))
    lags = min(n - 1, round(block) if block > 1.0 else 0)
    largest = []
    for rows in resamples(n, config.draws * _MORE, block, content_seed(config, series)):
        drawn = series[:, rows]
        error = np.sqrt(long_run_variance(drawn, lags) / n)
        ratio = np.abs(drawn.mean(axis=-1) - means) / np.where(error > 0, error, np.nan)
        largest.append(np.where(np.isfinite(ratio), ratio, 0.0).max(axis=0))
    reach = float(np.quantile(np.concatenate(largest), config.level))
    return np.asarray(reach * np.sqrt(long_run_variance(series, lags) / n))


def simultaneous_differences(
    navs: Sequence[Floats],
    baseline_nav: Floats,
    *,
    periods_per_year: int = 252,
    bootstrap: BootstrapConfig = DEFAULT,
) -> list[Measure]:
    """Return each agent's yearly difference of growth against the baseline, with intervals that hold for all at
    once.

    Each entry of ``navs`` has shape (n + 1,) or (repetitions, n + 1); repetitions are averaged. Agents that lost
    everything, or lived through other sessions, have no value and are not counted.
    """
    base = np.asarray(baseline_nav, dtype=np.float64)
    base = np.atleast_2d(base)
    if not (base > 0).all():
        return [not_scored("the baseline was worth nothing or less")] * len(navs)
    growth = np.diff(np.log(base), axis=-1).mean(axis=0)
    found: list[Measure] = []
    columns, places = [], []
    for nav in navs:
        paths = np.atleast_2d(np.asarray(nav, dtype=np.float64))
        if paths.shape[-1] != base.shape[-1]:
            found.append(not_scored("the sessions differ"))
        elif not (paths > 0).all():
            found.append(not_scored("an account was worth nothing or less"))
        else:
            columns.append(np.diff(np.log(paths), axis=-1).mean(axis=0) - growth)
            places.append(len(found))
            found.append(not_scored("not compared yet"))
    if columns:
        every = simultaneous_intervals(np.stack(columns, axis=1), bootstrap=bootstrap)
        for place, measure in zip(places, every, strict=True):
            found[place] = _yearly(measure, periods_per_year)
    return found


def _yearly(measure: Measure, periods: int) -> Measure:
    if measure.value is None or measure.low is None or measure.high is None:
        return measure
    value, low, high = (
        significant(math.expm1(one * periods)) for one in (measure.value, measure.low, measure.high)
    )
    return Measure(value=value, low=low, high=high, level=measure.level, n=measure.n, note=measure.note)
