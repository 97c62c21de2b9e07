"""Is an agent different from its baseline, or could the difference be luck?

The two are compared session by session (they lived through the same market, so most of the noise cancels) by
their *log growth*: its sum is positive exactly when the agent ended with more. The mean difference is tested by
its cosine interval (:mod:`tradeassay.metrics.cosine`). ``percentile`` resamples it instead, with the
stationary bootstrap, both sides with the same sessions, five times as often as for an interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats, Ints
from tradeassay.metrics.bootstrap import BootstrapConfig, choose_block, content_seed, resamples, seed_resamples
from tradeassay.metrics.cosine import cosine_interval, mean_p_value
from tradeassay.metrics.intervals import measure_from, significant
from tradeassay.metrics.score import DEFAULT

Inference = Literal["cosine", "percentile"]
_SAME = 1e-12
_USUAL = 0.9
"""Below this level an interval excludes zero too easily for a sentence that does not say so."""
_MORE = 5
"""Comparisons take more resamples than intervals: a p-value is corrected for the number of agents, so it must be
able to become small."""


class AgainstBaseline(msgspec.Struct, frozen=True, kw_only=True):
    """An agent against its baseline.

    ``difference`` is the yearly difference of growth, exp(mean log difference x periods per year) - 1, with its
    interval; ``p_value`` is two-sided (how small a level would still exclude zero). ``distinguishable`` is True
    when the interval excludes zero, False when it does not, None when nothing could be compared.
    ``sentence`` says it in plain words.
    """

    baseline: str
    difference: Measure
    p_value: float | None
    distinguishable: bool | None
    sentence: str


def compare_to_baseline(
    nav: Floats,
    baseline_nav: Floats,
    *,
    periods_per_year: int = 252,
    baseline: str = "buy and hold",
    bootstrap: BootstrapConfig = DEFAULT,
    inference: Inference = "cosine",
) -> AgainstBaseline:
    """Return whether a value path can be told apart from its baseline's.

    Each path has shape (n + 1,), or (repetitions, n + 1): then the mean over repetitions is compared, session by
    session; by ``percentile`` repetitions are redrawn together with the sessions. Raises :class:`UserError` when
    the lengths differ.
    """
    agent, base = np.atleast_2d(np.asarray(nav, np.float64)), np.atleast_2d(np.asarray(baseline_nav, np.float64))
    if agent.shape[-1] != base.shape[-1]:
        raise UserError(
            f"paths of {agent.shape[-1]} and {base.shape[-1]} values cannot be compared",
            hint="run both over the same sessions",
        )
    n = agent.shape[-1] - 1
    if not (agent > 0).all() or not (base > 0).all():
        return nothing_to_compare(baseline, "an account was worth nothing or less")
    ours, theirs = np.diff(np.log(agent), axis=-1), np.diff(np.log(base), axis=-1)
    if n < bootstrap.least:
        return nothing_to_compare(baseline, f"{n} sessions, at least {bootstrap.least} are needed")
    centre = float((ours.mean(axis=0) - theirs.mean(axis=0)).mean())
    if max(np.abs(side - theirs.mean(axis=0)).max() for side in (ours, theirs)) <= _SAME:
        return _identical(baseline, n, bootstrap)
    if inference == "cosine":
        gap = ours.mean(axis=0) - theirs.mean(axis=0)
        # Repetitions may differ among themselves; their means are compared, and equal means are a known case.
        if np.abs(gap).max() <= _SAME:
            return _identical(baseline, n, bootstrap)
        return _by_cosine(gap, periods_per_year, baseline, bootstrap)
    drawn = _draw(ours, theirs, bootstrap)
    difference = measure_from(
        float(np.expm1(centre * periods_per_year)), np.expm1(drawn * periods_per_year), level=bootstrap.level, n=n
    )
    return _verdict(baseline, difference, _two_sided(drawn))


def _by_cosine(gap: Floats, year: int, baseline: str, bootstrap: BootstrapConfig) -> AgainstBaseline:
    mean = cosine_interval(gap, "mean", periods_per_year=year, level=bootstrap.level, least=bootstrap.least)
    if mean.value is None or mean.low is None or mean.high is None:
        return nothing_to_compare(baseline, str(mean.reason or mean.note))
    value, low, high = (significant(float(np.expm1(one))) for one in (mean.value, mean.low, mean.high))
    difference = Measure(value=value, low=low, high=high, level=mean.level, n=mean.n, note=mean.note)
    return _verdict(baseline, difference, significant(float(mean_p_value(gap))))


def nothing_to_compare(baseline: str, reason: str) -> AgainstBaseline:
    """Return a comparison that was not made, and why."""
    sentence = f"was not compared with {baseline}: {reason}"
    return AgainstBaseline(
        baseline=baseline, difference=not_scored(reason), p_value=None, distinguishable=None, sentence=sentence
    )


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return Holm's adjusted p-values (Holm 1979), in the same order; None stays None and is not counted.

    Among k agents that only guess, one in twenty looks different at the 5 % level. Judged by the adjusted values,
    the chance that even one does is at most 5 %.
    """
    order = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(order):
        highest = max(highest, min(1.0, p * (len(order) - rank)))
        adjusted[place] = significant(highest)
    return adjusted


def _draw(ours: Floats, theirs: Floats, config: BootstrapConfig) -> Floats:
    """Return the resampled mean differences of log growth, shape (draws,)."""
    n, draws = ours.shape[-1], config.draws * _MORE
    seed = content_seed(config, ours, theirs)
    block = choose_block(ours.mean(axis=0) - theirs.mean(axis=0), config)
    chunks = [(_means(ours, rows), _means(theirs, rows)) for rows in resamples(n, draws, block, seed)]
    sides = [np.concatenate([chunk[side] for chunk in chunks]) for side in (0, 1)]
    means = [
        np.take_along_axis(side, seed_resamples(side.shape[1], draws, seed + place), axis=1).mean(axis=1)
        for place, side in enumerate(sides)
    ]
    return np.asarray(means[0] - means[1])


def _means(returns: Floats, rows: Ints) -> Floats:
    """Return the mean of every seed's resampled sessions, shape (draws, seeds)."""
    return np.stack([one.take(rows).mean(axis=-1) for one in returns], axis=-1)


def _two_sided(drawn: Floats) -> float:
    """Return the smallest level at which the percentile interval would exclude zero, at least 2 / (draws + 1)."""
    below, above = int((drawn <= 0).sum()), int((drawn >= 0).sum())
    return significant(min(1.0, 2.0 * (1 + min(below, above)) / (drawn.size + 1)))


def _verdict(baseline: str, difference: Measure, p_value: float) -> AgainstBaseline:
    low, high = difference.low, difference.high
    if difference.value is None or low is None or high is None:
        return nothing_to_compare(baseline, str(difference.reason or difference.note))
    apart = low > 0 or high < 0
    if not apart:
        sentence = f"cannot be told apart from {baseline}"
    else:
        sentence = f"{'beats' if low > 0 else 'falls behind'} {baseline} by more than luck explains"
        if difference.level is not None and difference.level < _USUAL:
            sentence += f", judged at a level of only {difference.level:.0%}"
    return AgainstBaseline(
        baseline=baseline,
        difference=difference,
        p_value=p_value,
        distinguishable=apart,
        sentence=sentence,
    )


def _identical(baseline: str, n: int, config: BootstrapConfig) -> AgainstBaseline:
    note = "the two paths are the same"
    return AgainstBaseline(
        baseline=baseline,
        difference=Measure(value=0.0, low=0.0, high=0.0, level=config.level, n=n, note=note),
        p_value=1.0,
        distinguishable=False,
        sentence=f"is the same as {baseline}, session by session",
    )
