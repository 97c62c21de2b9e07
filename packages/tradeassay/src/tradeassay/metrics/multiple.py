"""Tests of many results at once: lucky winners, the best of many, and statistical tiers.

Hansen's test for superior predictive ability (2005) is taken from the package ``arch``. Resamples
are seeded by the values. The probability of backtest overfitting is computed by combinatorially
symmetric cross-validation (Bailey et al. 2017): the sessions are cut into blocks, and each choice
of half of the blocks is treated as the past. The strategy that was best in the past is then
evaluated in the other half.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from math import comb

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.cosine import cosine_t, mean_p_value
from tradeassay.metrics.intervals import (
    DEFAULT,
    BootstrapConfig,
    choose_block,
    content_seed,
    rate_measure,
    significant,
    student_reach,
)

_LUCKY = 0.2
"""Two-sided p-value below which an agent with a positive gap counts as a winner."""
_MANY = 20


def lucky_share(gaps: Sequence[Floats]) -> Measure:
    """Estimate the share of a table's winners without alpha (Barras, Scaillet and Wermers 2010).

    ``gaps`` are one series per agent of returns minus the benchmark's. The p-values of agents
    without alpha are uniformly distributed: twice the share above a half estimates the share of
    such agents (Storey 2002), and half of :data:`_LUCKY` of them win by luck. The result is an
    estimate, not a test. Similar agents are counted separately, weak alphas are treated as none,
    and a table of a few agents is too small.
    """
    moving = [gap for gap in gaps if gap.size >= _MANY and np.ptp(gap) > 0.0]
    if len(moving) < _MANY:
        return not_scored(f"fewer than {_MANY} agents: how many were lucky cannot be estimated")
    p_values = np.array([float(mean_p_value(gap)) for gap in moving])
    winners = int(((p_values < _LUCKY) & (np.array([gap.mean() for gap in moving]) > 0.0)).sum())
    if not winners:
        return not_scored("no agent leads by more than luck would give to one in ten")
    flat = rate_measure(int((p_values > 0.5).sum()), p_values.size, nothing="", level=0.95)
    value, low, high = (
        significant(
            min(1.0, min(1.0, 2.0 * (share or 0.0)) * p_values.size * _LUCKY / 2.0 / winners)
        )
        for share in (flat.value, flat.low, flat.high)
    )
    return Measure(
        value=value,
        low=low,
        high=high,
        n=p_values.size,
        note=f"{winners} ahead; an estimate, not a test",
    )


class Superior(msgspec.Struct, frozen=True, kw_only=True):
    """The result of tests for superior performance.

    ``p_value`` tests the hypothesis that no strategy beats the benchmark (consistent version;
    ``lower`` and ``upper`` bound it). ``better`` names the strategies that StepM selects as better.
    The chance of even one false selection is at most 1 - level. If there was no test, they are None
    with a ``reason``.
    """

    p_value: float | None
    lower: float | None
    upper: float | None
    better: tuple[str, ...]
    level: float
    reason: str | None = None


def superior(
    returns: Floats,
    benchmark: Floats,
    names: Sequence[str] | None = None,
    *,
    bootstrap: BootstrapConfig = DEFAULT,
) -> Superior:
    """Test whether any strategy has a higher mean return than the benchmark.

    ``returns`` has shape (n, strategies), ``benchmark`` (n,). Use log growth to compare growth.
    Strategies equal to the benchmark are left out. Raises :class:`UserError` for inconsistent
    shapes or missing numbers.
    """
    table, base = np.asarray(returns, dtype=np.float64), np.asarray(benchmark, dtype=np.float64)
    if table.ndim != 2 or not table.size or not np.isfinite(table).all():
        hint = "give (sessions, strategies)"
        raise UserError(f"{table.shape} returns with gaps, or not two-dimensional", hint=hint)
    if base.shape != table.shape[:1] or not np.isfinite(base).all():
        hint = "give one per session, without gaps"
        raise UserError(f"{base.shape} benchmark returns for {table.shape}", hint=hint)
    count = table.shape[1]
    labels = tuple(str(place) for place in range(count)) if names is None else tuple(names)
    if len(labels) != count or len(set(labels)) != count:
        raise UserError(
            f"{len(labels)} names for {count} strategies", hint="give each its own name"
        )
    gap = table - base[:, None]
    moving = np.flatnonzero(gap.std(axis=0) > 1e-15)
    none = Superior(p_value=None, lower=None, upper=None, better=(), level=bootstrap.level)
    if table.shape[0] < bootstrap.least:
        return msgspec.structs.replace(
            none, reason=f"{table.shape[0]} sessions, at least {bootstrap.least} are needed"
        )
    if not moving.size:
        return msgspec.structs.replace(none, reason="no strategy differs from the benchmark")
    from arch.bootstrap import SPA

    # arch compares losses. A loss is a negative return.
    block = max(choose_block(np.ascontiguousarray(gap[:, k]), bootstrap) for k in moving.tolist())
    seed = content_seed(bootstrap, gap[:, moving]) % 2**32
    drawn = {
        "block_size": max(1, round(block)),
        "reps": bootstrap.draws,
        "bootstrap": "stationary",
        "seed": seed,
    }
    test = SPA(-base, -table[:, moving], **drawn)
    test.compute()
    lower, consistent, upper = (
        significant(float(test.pvalues[version])) for version in ("lower", "consistent", "upper")
    )
    # Romano and Wolf's steps: remove the selected strategies and test the remaining ones again.
    # arch's own loop continues after a later step has removed the last strategy, and then takes the
    # maximum of an empty array.
    selected = {int(place) for place in test.better_models(1.0 - bootstrap.level)}
    step = selected
    while step and len(selected) < moving.size:
        test.subset(np.array([place not in selected for place in range(moving.size)]))
        test.compute()
        step = {int(place) for place in test.better_models(1.0 - bootstrap.level)}
        selected = selected | step
    better = tuple(labels[moving[place]] for place in sorted(selected))
    return Superior(
        p_value=consistent, lower=lower, upper=upper, better=better, level=bootstrap.level
    )


_MOST_TIERS = 6
"""Largest number of separate tiers. All remaining agents form one further tier."""
_WORLDS = 10_000
_CELLS = 2_000_000


def tiers(growth: Floats, *, level: float = 0.95) -> list[list[int]]:
    """Return the columns of ``growth`` in statistical tiers, best first.

    ``growth`` (n, agents) is log growth by session. No agent in a tier differs significantly from
    the best agent of the tier. If all agents are equal, the chance of more than one tier is 1 -
    ``level`` for the whole table. The differences from the best are scaled by their cosine errors.
    The largest of them is compared with its distribution for the same number of agents that only
    guess. Two agents are compared by the same test as any two means. Equal columns share a tier.
    """
    left = sorted(range(growth.shape[1]), key=lambda place: -float(growth[:, place].sum()))
    columns_by_tier: list[list[int]] = []
    while left:
        best, alike = left[0], left
        if len(left) > 1 and len(columns_by_tier) < _MOST_TIERS - 1:
            gaps = (growth[:, [best]] - growth[:, left]).T
            t, freedom = cosine_t(gaps)
            # A constant gap has no error: it is either zero or certain.
            t = np.where(np.isnan(t), np.where(np.abs(gaps).max(axis=1) > 1e-12, np.inf, 0.0), t)
            reach = _largest_of_luck(len(left), freedom, level)
            alike = [place for place, lead in zip(left, t, strict=True) if lead <= reach]
        columns_by_tier.append(alike)
        left = [place for place in left if place not in alike]
    return columns_by_tier


@lru_cache(maxsize=256)
def _largest_of_luck(agents: int, freedom: int, level: float) -> float:
    """Return the ``level`` quantile of the largest lead, in t, of the best guessing agent.

    Under the hypothesis that all agents guess, the mean and the cosine transforms of an agent's
    growth are independent normal numbers of the same variance. Growth that all agents share
    cancels.
    """
    if agents == 2:
        return student_reach(freedom, level)
    rng = np.random.Generator(np.random.PCG64(agents * 1_000 + freedom))
    largest: list[Floats] = []
    rows = max(1, _CELLS // (agents * (freedom + 1)))
    for first in range(0, _WORLDS, rows):
        drawn = rng.standard_normal((min(rows, _WORLDS - first), freedom + 1, agents))
        best = drawn[:, 0].argmax(axis=1)[:, None, None]
        gap = np.take_along_axis(drawn, best, axis=2) - drawn
        error = np.sqrt((gap[:, 1:] ** 2).mean(axis=1))
        largest.append((gap[:, 0] / np.where(error > 0, error, np.inf)).max(axis=1))
    return float(np.quantile(np.concatenate(largest), level))


_SPLITS = 16


class Overfitting(msgspec.Struct, frozen=True):
    """Measures of backtest overfitting.

    ``probability`` is the frequency with which the best strategy of the past was below the median
    of the future. Pure noise gives 0.5. With an odd number of strategies the best one may be the
    median itself. This counts as a half. Counted as one, as is often done, noise among three
    strategies would give 2 / 3.

    ``loss`` is the frequency with which the best strategy lost money. ``slope`` is the gain in the
    future Sharpe ratio per unit of the past one, over all splits (None if the past ratios never
    varied). ``logits`` has the log odds of the rank for each split, for a chart. ``best`` counts
    how often each strategy was the best of the past.
    """

    probability: Measure
    loss: Measure
    slope: float | None
    logits: Floats
    best: Floats


def overfitting(returns: Floats, *, splits: int = _SPLITS) -> Overfitting:
    """Return how overfitted the choice of the best of several strategies by Sharpe ratio is.

    ``returns`` has shape (n, strategies). ``splits`` is even. Leftover sessions at the start are
    not used. There is no value for fewer than two strategies, or for blocks of fewer than two
    sessions. The splits share their sessions and are not independent, and resampled sessions would
    be in both halves. So there is no interval. Raises :class:`UserError` for a wrong shape or
    number of splits.
    """
    table = np.asarray(returns, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        hint = "give (sessions, strategies)"
        raise UserError(f"{table.shape} returns with gaps, or not two-dimensional", hint=hint)
    if splits < 2 or splits % 2 or splits > 20:
        raise UserError(f"{splits} splits", hint="choose an even number from 2 to 20")
    n, count = table.shape
    size = n // splits
    if count < 2 or size < 2:
        why = not_scored(
            "fewer than two strategies"
            if count < 2
            else f"{n} sessions are too few for {splits} blocks"
        )
        return Overfitting(why, why, None, np.empty(0), np.zeros(count))
    past, future = _halves(table[n - size * splits :].reshape(splits, size, count))
    best = np.argmax(past, axis=1)
    rows = np.arange(best.size)
    ahead = future[rows, best]
    rank = (future < ahead[:, None]).sum(axis=1) + 0.5 * (
        (future == ahead[:, None]).sum(axis=1) + 1.0
    )
    odds = rank / (count + 1.0)
    behind_half = float((odds < 0.5).mean() + 0.5 * (odds == 0.5).mean())
    logits = np.log(odds / (1.0 - odds))
    note = (
        f"over {best.size} ways to halve {splits} blocks; they share sessions, so there is no "
        "interval"
    )
    behind = past[rows, best]
    varied = float(behind.var())
    slope = (
        float(((behind - behind.mean()) * (ahead - ahead.mean())).mean() / varied)
        if varied > 0
        else None
    )
    return Overfitting(
        probability=Measure(value=significant(behind_half), n=n, note=note),
        loss=Measure(value=significant(float((ahead < 0).mean())), n=n, note=note),
        slope=None if slope is None else significant(slope),
        logits=logits,
        best=np.bincount(best, minlength=count).astype(np.float64),
    )


def _halves(blocks: Floats) -> tuple[Floats, Floats]:
    """Return the Sharpe ratios per period of every half and its complement.

    Both have shape (splits, strategies). Sums per block are enough to compute a half's mean and
    variance.
    """
    splits, size, _ = blocks.shape
    chosen = np.zeros((comb(splits, splits // 2), splits))
    for row, half in enumerate(combinations(range(splits), splits // 2)):
        chosen[row, list(half)] = 1.0
    centre = blocks.mean(axis=(0, 1))
    sums = (blocks - centre).sum(axis=1)
    squares = ((blocks - centre) ** 2).sum(axis=1)
    many = size * splits // 2
    return (
        _ratio(chosen @ sums, chosen @ squares, many, centre),
        _ratio((1.0 - chosen) @ sums, (1.0 - chosen) @ squares, many, centre),
    )


def _ratio(total: Floats, squares: Floats, n: int, centre: Floats) -> Floats:
    mean = total / n
    variance = np.maximum(squares - n * mean * mean, 0.0) / (n - 1)
    # A constant strategy has no Sharpe ratio. Its ratio is set to 0, so that it is not the best.
    safe = np.sqrt(np.where(variance > 1e-30, variance, np.inf))
    return np.asarray((mean + centre) / safe)
