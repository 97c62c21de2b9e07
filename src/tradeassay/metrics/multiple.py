"""Many results judged at once: false discoveries, intervals that hold for all together, and the best of many.

Hansen's test for superior predictive ability (2005), Romano and Wolf's StepM (2005) and the model confidence
set of Hansen, Lunde and Nason (2011) are those of the package ``arch``, the false discovery rate is scipy's.
Resamples are seeded by the numbers themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats
from tradeassay.metrics.bootstrap import BootstrapConfig, choose_block, content_seed, resamples
from tradeassay.metrics.intervals import long_run_variance, significant

DEFAULT = BootstrapConfig()
_MORE = 2
"""Resamples per resample of a plain interval: the largest of many errors is a tail, and tails take more."""


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Return adjusted p-values (Benjamini and Hochberg 1995), in the same order; None stays None and is not
    counted.

    Of the results called different at 0.05 by them, at most one in twenty is expected to be a false alarm. That is
    less than Holm promises (no false alarm at all), and finds more.
    """
    from scipy.stats import false_discovery_control

    known = [p for p in p_values if p is not None]
    adjusted = iter(false_discovery_control(known) if known else ())
    return [None if p is None else significant(float(next(adjusted))) for p in p_values]


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
        raise UserError(f"{values.shape} values with gaps, or not two-dimensional", hint="give (sessions, series)")
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


class Superior(msgspec.Struct, frozen=True, kw_only=True):
    """``p_value``: of the hypothesis that none beats the benchmark (consistent; ``lower`` and ``upper`` bound it).

    ``better`` names the strategies that StepM finds better, with a chance of at most 1 - level of even one
    false alarm. None and a ``reason`` where nothing could be tested.
    """

    p_value: float | None
    lower: float | None
    upper: float | None
    better: tuple[str, ...]
    level: float
    reason: str | None = None


class ConfidenceSet(msgspec.Struct, frozen=True, kw_only=True):
    """``included``: strategies that cannot be told apart from the best at ``level``; ``p_values`` by name.

    A strategy is in the set when its p-value is above 1 - level.
    """

    included: tuple[str, ...]
    excluded: tuple[str, ...]
    p_values: dict[str, float]
    level: float
    reason: str | None = None


def superior(
    returns: Floats, benchmark: Floats, names: Sequence[str] | None = None, *, bootstrap: BootstrapConfig = DEFAULT
) -> Superior:
    """Test whether any strategy has a higher mean return than the benchmark.

    ``returns`` has shape (n, strategies), ``benchmark`` (n,). Give log growth to compare growth. Strategies
    that equal the benchmark are left out. Raises :class:`UserError` for shapes that do not fit or missing
    numbers.
    """
    table, base = _checked(returns), np.asarray(benchmark, dtype=np.float64)
    if base.shape != table.shape[:1] or not np.isfinite(base).all():
        raise UserError(
            f"{base.shape} benchmark returns for {table.shape}", hint="give one per session, without gaps"
        )
    labels = _labels(names, table.shape[1])
    gap = table - base[:, None]
    moving = np.flatnonzero(gap.std(axis=0) > 1e-15)
    none = Superior(p_value=None, lower=None, upper=None, better=(), level=bootstrap.level)
    if table.shape[0] < bootstrap.least:
        return msgspec.structs.replace(
            none, reason=f"{table.shape[0]} sessions, at least {bootstrap.least} are needed"
        )
    if not moving.size:
        return msgspec.structs.replace(none, reason="no strategy differs from the benchmark")
    from arch.bootstrap import SPA, StepM

    settings = _settings(gap[:, moving], bootstrap)
    # arch compares losses: a return is a negative loss.
    test = SPA(-base, -table[:, moving], **settings)
    test.compute()
    steps = StepM(-base, -table[:, moving], size=1.0 - bootstrap.level, **settings)
    try:
        steps.compute()
        places = [int(place) for place in steps.superior_models]
    except ValueError:  # arch goes on with nobody once the last strategy was found better in a later step
        places = list(range(moving.size))
    better = tuple(labels[moving[place]] for place in places)
    lower, consistent, upper = (significant(float(test.pvalues[one])) for one in ("lower", "consistent", "upper"))
    return Superior(p_value=consistent, lower=lower, upper=upper, better=better, level=bootstrap.level)


def model_confidence_set(
    returns: Floats, names: Sequence[str] | None = None, *, bootstrap: BootstrapConfig = DEFAULT
) -> ConfidenceSet:
    """Return the strategies that cannot be told apart from the best by their mean return.

    ``returns`` has shape (n, strategies). Raises :class:`UserError` for another shape, gaps, or fewer than two
    strategies.
    """
    table = _checked(returns)
    labels = _labels(names, table.shape[1])
    if table.shape[1] < 2:
        raise UserError("one strategy is its own confidence set", hint="give at least two")
    if table.shape[0] < bootstrap.least:
        reason = f"{table.shape[0]} sessions, at least {bootstrap.least} are needed"
        return ConfidenceSet(included=labels, excluded=(), p_values={}, level=bootstrap.level, reason=reason)
    twins = [(a, b) for b in range(table.shape[1]) for a in range(b) if np.array_equal(table[:, a], table[:, b])]
    if twins:
        a, b = twins[0]
        raise UserError(f"'{labels[a]}' and '{labels[b]}' are the same series", hint="give it once")
    from arch.bootstrap import MCS

    spread = table - table.mean(axis=1, keepdims=True)
    test = MCS(-table, size=1.0 - bootstrap.level, **_settings(spread, bootstrap))
    test.compute()
    found = {int(place): float(p) for place, p in test.pvalues["Pvalue"].items()}
    return ConfidenceSet(
        included=tuple(labels[place] for place in sorted(int(one) for one in test.included)),
        excluded=tuple(labels[place] for place in sorted(int(one) for one in test.excluded)),
        p_values={labels[place]: significant(found[place]) for place in sorted(found)},
        level=bootstrap.level,
    )


def _settings(gap: Floats, config: BootstrapConfig) -> dict[str, Any]:
    block = max(choose_block(np.ascontiguousarray(gap[:, k]), config) for k in range(gap.shape[1]))
    return {
        "block_size": max(1, round(block)),
        "reps": config.draws,
        "bootstrap": "stationary",
        "seed": content_seed(config, gap) % 2**32,
    }


def _checked(returns: Floats) -> Floats:
    table = np.asarray(returns, dtype=np.float64)
    if table.ndim != 2 or not table.size or not np.isfinite(table).all():
        raise UserError(
            f"{table.shape} returns with gaps, or not two-dimensional", hint="give (sessions, strategies)"
        )
    return table


def _labels(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    labels = tuple(str(place) for place in range(count)) if names is None else tuple(names)
    if len(labels) != count or len(set(labels)) != count:
        raise UserError(f"{len(labels)} names for {count} strategies", hint="give each its own name")
    return labels
