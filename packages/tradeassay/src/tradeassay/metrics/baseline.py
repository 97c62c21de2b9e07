"""Is an agent different from its baseline, or could the difference be luck?

The two are compared session by session (they lived through the same market, so most of the noise cancels) by
their *log growth*: its sum is positive exactly when the agent ended with more. The mean difference is tested by
its cosine interval (:mod:`tradeassay.metrics.cosine`). Where several are compared in one table, every one of them
allows for their number (:func:`corrected`): its interval, its p-value and its words.
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
"""Below this level an interval excludes zero too easily for a sentence that does not say so."""


class AgainstBaseline(msgspec.Struct, frozen=True, kw_only=True):
    """An agent against its baseline. ``difference`` is the yearly difference of growth, exp(mean log difference x
    periods per year) - 1, with its interval; ``distinguishable`` is True when that excludes zero, False when it
    does not, None when nothing could be compared; ``sentence`` says it in plain words. All three allow for the
    number of agents compared, and so does ``p_adjusted``; ``p_value`` is the two-sided one of this comparison
    alone."""

    baseline: str
    difference: Measure
    p_value: float | None
    distinguishable: bool | None
    sentence: str
    p_adjusted: float | None = None

    @property
    def side(self) -> Literal["above", "below"] | None:
        """On which side of the baseline it is for certain; None where that cannot be told."""
        if not self.distinguishable:
            return None
        return "above" if above(self.difference) else "below"

    @property
    def same(self) -> bool:
        return self.difference.low == self.difference.high == 0.0

    def said_of(self, name: str) -> str:
        """Return the sentence with the baseline under another name."""
        return self.sentence.replace(self.baseline, name, 1)


def compare_to_baseline(
    nav: Floats,
    baseline_nav: Floats,
    *,
    periods_per_year: int = 252,
    baseline: str = "buy and hold",
    bootstrap: BootstrapConfig = DEFAULT,
) -> AgainstBaseline:
    """Return whether a value path can be told apart from its baseline's. Each path has shape (n + 1,), or
    (repetitions, n + 1): then the mean over repetitions is compared, session by session. Raises :class:`UserError`
    when the lengths differ."""
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
    """Return a comparison that was not made, and why."""
    sentence = f"was not compared with {baseline}: {reason}"
    return AgainstBaseline(
        baseline=baseline,
        difference=not_scored(reason),
        p_value=None,
        distinguishable=None,
        sentence=sentence,
    )


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return Holm's adjusted p-values (Holm 1979), in the same order; None stays None and is not counted. Among k
    agents that only guess, one in twenty looks different at the 5 % level. Judged by the adjusted values, the
    chance that even one does is at most 5 %."""
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
    """Return the comparisons of one table with everything in them allowing for their number. Holm divides the
    error by as much as he multiplies the p-value with; so does the interval, and it excludes zero exactly when the
    adjusted p-value is below 1 - ``level``."""
    made: list[AgainstBaseline | None] = []
    compared = float(sum(one is not None and one.p_value is not None for one in found))
    for one, adjusted in zip(
        found, holm([None if one is None else one.p_value for one in found]), strict=True
    ):
        if one is None or one.p_value is None or adjusted is None or one.same:
            made.append(None if one is None else msgspec.structs.replace(one, p_adjusted=adjusted))
            continue
        times = min(max(1.0, adjusted / one.p_value), compared) if one.p_value > 0.0 else compared
        known, wider = one.difference, 1.0 - (1.0 - level) / times
        assert known.value is not None and known.high is not None and known.n is not None
        middle = math.log1p(known.value)
        reach = (math.log1p(known.high) - middle) * reach_ratio(known.n, known.level, wider)
        low, high = (significant(math.expm1(end)) for end in (middle - reach, middle + reach))
        wide = msgspec.structs.replace(known, low=low, high=high, level=significant(wider))
        made.append(_worded(one.baseline, wide, one.p_value, adjusted, level))
    return made


def _worded(
    baseline: str, difference: Measure, p: float, adjusted: float, level: float
) -> AgainstBaseline:
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
