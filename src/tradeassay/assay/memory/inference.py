"""Means over windows with an interval and a p-value: from windows where there are enough, else from sessions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from tradeassay.assay.memory.records import Inference, MemoryConfig
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats
from tradeassay.metrics import BootstrapConfig, resamples
from tradeassay.metrics.bootstrap import choose_block, content_seed
from tradeassay.metrics.intervals import significant


@dataclass(frozen=True, slots=True)
class Sample:
    """Results of one window and seed each: a total, its daily series, and the cluster that the window lies in."""

    totals: Floats
    daily: tuple[Floats, ...]
    clusters: tuple[Hashable, ...]
    windows: tuple[Hashable, ...]

    @property
    def independent(self) -> int:
        """How many clusters there are."""
        return len(set(self.clusters))


@dataclass(frozen=True, slots=True)
class Inferred:
    """A mean with its interval, its two-sided p-value against zero, and what chance was measured on."""

    measure: Measure
    p_value: float | None
    by: Inference | None


def infer(sample: Sample, config: MemoryConfig) -> Inferred:
    """Return the mean over clusters, each counting once.

    With enough clusters the interval is Student's over their means. With fewer it comes from a stationary
    bootstrap over sessions, seeds averaged: it then speaks of these windows only, and says so.
    """
    if sample.totals.size == 0:
        return Inferred(not_scored("nothing was played"), None, None)
    means = _cluster_means(sample.totals, sample.clusters)
    value = significant(float(means.mean()))
    if (sample.totals == 0.0).all() and all((one == 0.0).all() for one in sample.daily):
        exact = Measure(
            value=0.0, low=0.0, high=0.0, level=config.level, n=means.size, note="zero on every session"
        )
        return Inferred(exact, None, None)
    if means.size >= config.least_windows:
        return _over_windows(means, value, config)
    return _over_sessions(sample, value, config)


def welch(one: Sample, other: Sample, config: MemoryConfig) -> Measure:
    """Return the difference of two means over different windows, with Welch's interval over their clusters."""
    first, second = _cluster_means(one.totals, one.clusters), _cluster_means(other.totals, other.clusters)
    if first.size == 0 or second.size == 0:
        return not_scored("there are no windows on one side of the cutoff")
    value = significant(float(first.mean() - second.mean()))
    n = first.size + second.size
    if first.size < 2 or second.size < 2:
        return Measure(value=value, level=config.level, n=n, note="no interval: one window on a side")
    from scipy.stats import t

    parts = [side.var(ddof=1) / side.size for side in (first, second)]
    spread = sum(parts)
    if spread == 0.0:
        return Measure(value=value, level=config.level, n=n, note="no interval: the windows do not differ")
    freedom = spread**2 / sum(part**2 / (side.size - 1) for part, side in zip(parts, (first, second), strict=True))
    half = float(t.ppf(0.5 + config.level / 2.0, freedom)) * float(np.sqrt(spread))
    return Measure(
        value=value,
        low=significant(value - half),
        high=significant(value + half),
        level=config.level,
        n=n,
        note="Welch's interval over windows; the markets differ too",
    )


def _cluster_means(totals: Floats, clusters: Sequence[Hashable]) -> Floats:
    places = {name: k for k, name in enumerate(dict.fromkeys(clusters))}
    at = np.array([places[name] for name in clusters], dtype=np.int64)
    sums = np.bincount(at, weights=totals, minlength=len(places))
    means: Floats = sums / np.bincount(at, minlength=len(places))
    return means


def _over_windows(means: Floats, value: float, config: MemoryConfig) -> Inferred:
    from scipy.stats import t

    error = float(means.std(ddof=1)) / float(np.sqrt(means.size))
    if error == 0.0:
        return Inferred(Measure(value=value, level=config.level, n=means.size, note="no spread"), None, "windows")
    half = float(t.ppf(0.5 + config.level / 2.0, means.size - 1)) * error
    measure = Measure(
        value=value,
        low=significant(value - half),
        high=significant(value + half),
        level=config.level,
        n=means.size,
        note=f"Student's interval over {means.size} windows that do not overlap",
    )
    return Inferred(measure, significant(float(2.0 * t.sf(abs(value) / error, means.size - 1))), "windows")


def _over_sessions(sample: Sample, value: float, config: MemoryConfig) -> Inferred:
    series = [
        np.mean([sample.daily[k] for k, name in enumerate(sample.windows) if name == window], axis=0)
        for window in dict.fromkeys(sample.windows)
        if len({sample.daily[k].size for k, name in enumerate(sample.windows) if name == window}) == 1
    ]
    joined = np.concatenate(series) if series else np.empty(0)
    bootstrap = BootstrapConfig(draws=config.draws, level=config.level)
    if joined.size < bootstrap.least:
        note = f"no interval: {joined.size} sessions, {bootstrap.least} are needed"
        return Inferred(Measure(value=value, level=config.level, n=joined.size, note=note), None, None)
    block, seed = choose_block(joined, bootstrap), content_seed(bootstrap, joined)
    # A mean per window: what all sessions sum to, shared out among the windows.
    drawn = np.concatenate(
        [joined[rows].sum(axis=1) for rows in resamples(joined.size, config.draws, block, seed)]
    )
    apart = (drawn - joined.sum()) / len(series)
    tail = (1.0 - config.level) / 2.0
    low, high = np.quantile(apart, [tail, 1.0 - tail])
    measure = Measure(
        value=value,
        # The basic interval: reflected, so that it and the p-value agree.
        low=significant(value - float(high)),
        high=significant(value - float(low)),
        level=config.level,
        n=joined.size,
        note=f"block bootstrap over {joined.size} sessions of {len(series)} windows; it speaks of these only",
    )
    beyond = int((np.abs(apart) >= abs(value)).sum())
    return Inferred(measure, significant((beyond + 1) / (config.draws + 1)), "sessions")
