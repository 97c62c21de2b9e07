"""Means and shares of answers whose days are in common: each day counts as one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats
from tradeassay.metrics.intervals import between, significant, student_reach, wilson_interval


def clustered_mean(values: Floats, clusters: Sequence[Hashable], level: float) -> Measure:
    """Return a mean with Student's interval over clusters of any size; none with fewer than three clusters."""
    value = float(values.mean())
    places = {name: k for k, name in enumerate(dict.fromkeys(clusters))}
    at = np.array([places[name] for name in clusters])
    sums = np.bincount(at, weights=values - value, minlength=len(places))
    n = len(places)
    if n < 3:
        return Measure(value=significant(value), level=level, n=values.size, note=f"no interval: {n} days")
    error = float(np.sqrt((sums**2).sum() * n / (n - 1))) / values.size
    half = student_reach(n - 1, level) * error
    return between(value, (value - half, value + half), level, values.size, f"over {n} days")


def clustered_rate(hits: Sequence[bool], days: Sequence[str], level: float, nothing: str) -> Measure:
    """Return a share with Wilson's interval at as many answers as their clustering by day leaves."""
    if not hits:
        return not_scored(nothing)
    values = np.array(hits, dtype=np.float64)
    share, n = float(values.mean()), values.size
    plain = clustered_mean(values, days, level)
    effective = float(len(set(days)))
    if plain.low is not None and 0.0 < share < 1.0:
        error = (share - plain.low) / student_reach(len(set(days)) - 1, level)
        effective = min(float(n), share * (1.0 - share) / error**2) if error > 0.0 else effective
    whole = max(1, round(effective))
    low, high = wilson_interval(share * whole, whole, level)
    return Measure(value=significant(share), low=low, high=high, level=level, n=n)
