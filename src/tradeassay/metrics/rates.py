"""Shares with Wilson's interval."""

from __future__ import annotations

from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.intervals import significant, wilson_interval


def rate_measure(successes: int, n: int, *, nothing: str, level: float = 0.95) -> Measure:
    """Return successes / n with Wilson's score interval, or no value because of ``nothing`` when n is 0."""
    if n == 0:
        return not_scored(nothing)
    low, high = wilson_interval(successes, n, level)
    return Measure(
        value=significant(successes / n), low=low, high=high, level=level, n=n, note="interval by Wilson's formula"
    )
