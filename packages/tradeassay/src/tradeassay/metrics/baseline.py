"""Test whether an agent differs from its baseline by more than luck.

Both are compared session by session in *log growth*. They lived through the same market, so most of
the noise cancels. The sum of the differences is positive exactly if the agent ended with more. The
mean difference is tested by its cosine interval (:mod:`tradeassay.metrics.cosine`). If a table
compares several agents, :func:`corrected` adjusts every interval, p-value and sentence for their
number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, above, not_scored
from tradeassay.metrics.cosine import cosine_interval, growth_ends, mean_p_value, reach_ratio
from tradeassay.metrics.intervals import DEFAULT, BootstrapConfig, significant

_SAME = 1e-12
_USUAL = 0.9
"""Confidence level below which the sentence states the level.

At a lower level an interval excludes zero too easily.
"""


class AgainstBaseline(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of an agent with its baseline.

    ``difference`` is the annual difference of growth, exp(mean log difference x periods per year) -
    1, with its interval. ``distinguishable`` is True if the interval excludes zero, False if it
    does not, and None if there was no comparison. ``sentence`` states the result in plain words.
    These three and ``p_adjusted`` are adjusted for the number of agents compared. ``p_value`` is
    the two-sided p-value of this comparison alone.
    """

    baseline: str
    difference: Measure
    p_value: float | None
    distinguishable: bool | None
    sentence: str
    p_adjusted: float | None = None

    @property
    def side(self) -> Literal["above", "below"] | None:
        """Return the side of the baseline on which the agent significantly is, or None."""
        if not self.distinguishable:
            return None
        return "above" if above(self.difference) else "below"

    @property
    def same(self) -> bool:
        return self.difference.low == self.difference.high == 0.0

    def said_of(self, name: str) -> str:
        """Return the sentence with another name for the baseline."""
        return self.sentence.replace(self.baseline, name, 1)


def compare_to_baseline(
    nav: Floats,
    baseline_nav: Floats,
    *,
    periods_per_year: int = 252,
    baseline: str = "buy and hold",
    bootstrap: BootstrapConfig = DEFAULT,
) -> AgainstBaseline:
    """Return whether a value path differs significantly from its baseline's path.

    Each path has shape (n + 1,), or (repetitions, n + 1). For repetitions, their mean is compared
    session by session. Raises :class:`UserError` if the lengths differ.
    """
    agent, base = (
        np.atleast_2d(np.asarray(nav, np.float64)),
        np.atleast_2d(np.asarray(baseline_nav, np.float64)),
    )
    if agent.shape[-1] != base.shape[-1]:
        hint = "run both over the same sessions"
        raise UserError(
            f"paths of {agent.shape[-1]} and {base.shape[-1]} values cannot be compared", hint=hint
        )
    n = agent.shape[-1] - 1
    if not (agent > 0).all() or not (base > 0).all():
        return nothing_to_compare(baseline, "an account was worth nothing or less")
    if n < bootstrap.least:
        return nothing_to_compare(baseline, f"{n} sessions, at least {bootstrap.least} are needed")
    gap = np.diff(np.log(agent), axis=-1).mean(axis=0) - np.diff(np.log(base), axis=-1).mean(axis=0)
    if np.abs(gap).max() <= _SAME:
        note = "the two paths are the same"
        equal = Measure(value=0.0, low=0.0, high=0.0, level=bootstrap.level, n=n, note=note)
        return _worded(baseline, equal, 1.0, 1.0, bootstrap.level)
    mean = cosine_interval(
        gap, "mean", periods_per_year=periods_per_year, level=bootstrap.level, least=bootstrap.least
    )
    if mean.value is None or mean.low is None:
        return nothing_to_compare(baseline, str(mean.reason or mean.note))
    p = significant(float(mean_p_value(gap)))
    return _worded(baseline, growth_ends(mean), p, p, bootstrap.level)


def nothing_to_compare(baseline: str, reason: str) -> AgainstBaseline:
    """Return an empty comparison with the reason for its absence."""
    sentence = f"was not compared with {baseline}: {reason}"
    return AgainstBaseline(
        baseline=baseline,
        difference=not_scored(reason),
        p_value=None,
        distinguishable=None,
        sentence=sentence,
    )


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return Holm's adjusted p-values (Holm 1979) in the same order. None stays None.

    Among agents that only guess, one in twenty looks different at the 5 % level. With the adjusted
    values, the chance that even one of them does is at most 5 %. None is not counted as a
    comparison.
    """
    order = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(order):
        highest = max(highest, min(1.0, p * (len(order) - rank)))
        adjusted[place] = significant(highest)
    return adjusted


def corrected(
    found: Sequence[AgainstBaseline | None], level: float
) -> list[AgainstBaseline | None]:
    """Return the comparisons of one table, adjusted for the number of comparisons.

    Holm's method multiplies a p-value by a factor. The error level of the interval is divided by
    the same factor, so the interval excludes zero exactly if the adjusted p-value is below 1 -
    ``level``. None stays None.
    """
    results: list[AgainstBaseline | None] = []
    compared = float(
        sum(comparison is not None and comparison.p_value is not None for comparison in found)
    )
    p_values = [None if comparison is None else comparison.p_value for comparison in found]
    for comparison, adjusted in zip(found, holm(p_values), strict=True):
        if comparison is None:
            results.append(None)
            continue
        p = comparison.p_value
        if p is None or adjusted is None or comparison.same:
            results.append(msgspec.structs.replace(comparison, p_adjusted=adjusted))
            continue
        times = min(max(1.0, adjusted / p), compared) if p > 0.0 else compared
        known, wider = comparison.difference, 1.0 - (1.0 - level) / times
        assert known.value is not None and known.high is not None and known.n is not None
        middle = math.log1p(known.value)
        reach = (math.log1p(known.high) - middle) * reach_ratio(known.n, known.level, wider)
        low, high = (significant(math.expm1(end)) for end in (middle - reach, middle + reach))
        wide = msgspec.structs.replace(known, low=low, high=high, level=significant(wider))
        results.append(_worded(comparison.baseline, wide, p, adjusted, level))
    return results


def _worded(
    baseline: str, difference: Measure, p: float, adjusted: float, level: float
) -> AgainstBaseline:
    """Return a comparison with its sentence."""
    low, high = difference.low or 0.0, difference.high or 0.0
    if low == high == 0.0:
        sentence = f"is the same as {baseline}, session by session"
    elif low > 0.0 or high < 0.0:
        sentence = (
            f"{'beats' if low > 0 else 'falls behind'} {baseline} by more than chance explains"
        )
        sentence += f", judged at a level of only {level:.0%}" if level < _USUAL else ""
    else:
        sentence = f"cannot be told apart from {baseline}"
        if p <= 1.0 - level:
            sentence += " once the number of agents compared is allowed for"
    return AgainstBaseline(
        baseline=baseline,
        difference=difference,
        p_value=p,
        p_adjusted=adjusted,
        distinguishable=low > 0.0 or high < 0.0,
        sentence=sentence,
    )
