"""Many results judged at once: lucky winners, the best of many, and tiers of those that cannot be told apart.

Hansen's test for superior predictive ability (2005) is that of the package ``arch``. Resamples are seeded by the
numbers themselves. The probability of backtest overfitting is that of combinatorially symmetric cross-validation
(Bailey et al. 2017): the sessions are cut into blocks, and for every way of taking half of them as the past the
strategy that was best there is looked up in the other half.
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
"""Two-sided p-value below which somebody counts as a winner when the share of the lucky is estimated."""
_MANY = 20


def lucky_share(gaps: Sequence[Floats]) -> Measure:
    """Estimate which share of the winners of a table has no alpha (Barras, Scaillet and Wermers 2010). ``gaps`` are
    returns beyond what they are compared with, a series each. Of those without an alpha the p-values spread evenly:
    twice the share above a half estimates how many they are (Storey 2002), and half of :data:`_LUCKY` of them win
    by luck. It is an estimate, no test: agents that do alike count as many, weak alphas count as none, and a table
    of a few says nothing."""
    moving = [gap for gap in gaps if gap.size >= _MANY and np.ptp(gap) > 0.0]
    if len(moving) < _MANY:
        return not_scored(f"fewer than {_MANY} agents: how many were lucky cannot be estimated")
    p_values = np.array([float(mean_p_value(gap)) for gap in moving])
    winners = int(((p_values < _LUCKY) & (np.array([gap.mean() for gap in moving]) > 0.0)).sum())
    if not winners:
        return not_scored("nobody is ahead by more than one in ten would be by luck")
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
        note=f"{winners} ahead; an estimate, no test",
    )


class Superior(msgspec.Struct, frozen=True, kw_only=True):
    """``p_value``: of the hypothesis that none beats the benchmark (consistent; ``lower`` and ``upper`` bound it).
    ``better`` names the strategies that StepM finds better, with a chance of at most 1 - level of even one false
    alarm. None and a ``reason`` where nothing could be tested."""

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
    """Test whether any strategy has a higher mean return than the benchmark. ``returns`` has shape (n,
    strategies), ``benchmark`` (n,). Give log growth to compare growth. Strategies that equal the benchmark are
    left out. Raises :class:`UserError` for shapes that do not fit or missing numbers."""
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

    # arch compares losses: a return is a negative loss.
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
        significant(float(test.pvalues[one])) for one in ("lower", "consistent", "upper")
    )
    # Romano and Wolf's steps: whoever is found better is taken out, and the rest tested again. arch's own loop
    # goes on when a later step has taken out the last one, and ends in the largest of an empty array.
    found = {int(place) for place in test.better_models(1.0 - bootstrap.level)}
    step = found
    while step and len(found) < moving.size:
        test.subset(np.array([place not in found for place in range(moving.size)]))
        test.compute()
        step = {int(place) for place in test.better_models(1.0 - bootstrap.level)}
        found = found | step
    better = tuple(labels[moving[place]] for place in sorted(found))
    return Superior(
        p_value=consistent, lower=lower, upper=upper, better=better, level=bootstrap.level
    )


_MOST_TIERS = 6
"""Tiers that are told apart; what is left after them is the last one."""
_WORLDS = 10_000
_CELLS = 2_000_000


def tiers(growth: Floats, *, level: float = 0.95) -> list[list[int]]:
    """Return the columns of ``growth`` (n, agents), log growth by session, in tiers, best first. Nobody in a tier
    can be told apart from its best one. The chance that agents which do not differ fall into more than one tier is
    1 - ``level`` for the whole table: the differences from the best are measured by their cosine errors, and the
    largest of them is compared with what it is among as many agents that only guess. Two agents are told apart by
    the test that every other difference of two means goes by. Equal columns stay together."""
    left = sorted(range(growth.shape[1]), key=lambda place: -float(growth[:, place].sum()))
    found: list[list[int]] = []
    while left:
        best, alike = left[0], left
        if len(left) > 1 and len(found) < _MOST_TIERS - 1:
            gaps = (growth[:, [best]] - growth[:, left]).T
            t, freedom = cosine_t(gaps)
            # A gap that never moves has no error: nothing, or certain.
            t = np.where(np.isnan(t), np.where(np.abs(gaps).max(axis=1) > 1e-12, np.inf, 0.0), t)
            reach = _largest_of_luck(len(left), freedom, level)
            alike = [place for place, one in zip(left, t, strict=True) if one <= reach]
        found.append(alike)
        left = [place for place in left if place not in alike]
    return found


@lru_cache(maxsize=256)
def _largest_of_luck(agents: int, freedom: int, level: float) -> float:
    """Return the ``level`` quantile of the largest t by which the best of agents that only guess leads another.
    Under that hypothesis the mean and the cosine transforms of what an agent earns are independent normal numbers
    of one size, and what all agents share cancels."""
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
    """``probability``: how often the best of the past was below the median of the future; 0.5 is what noise gives.

    With an odd number of strategies it may be the median itself, which counts half; counted whole, as is often
    done, noise among three would come to 2 / 3.

    ``loss``: how often it lost money. ``slope``: what a unit of Sharpe ratio in the past was worth in the
    future, over all splits (None when the past never varied). ``logits`` has one number per split: log odds of
    the rank, for a picture. ``best`` counts how often each strategy was picked."""

    probability: Measure
    loss: Measure
    slope: float | None
    logits: Floats
    best: Floats


def overfitting(returns: Floats, *, splits: int = _SPLITS) -> Overfitting:
    """Return how overfitted picking the best of several strategies by its Sharpe ratio is. ``returns`` has shape
    (n, strategies). ``splits`` is even; sessions left over at the start are not used. No value for fewer than two
    strategies, or blocks of fewer than two sessions. The splits share their sessions and are not independent, and
    resampled sessions would appear in both halves; so there is no interval. Raises :class:`UserError` for another
    shape or number of splits."""
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
    note = f"over {best.size} ways to halve {splits} blocks; they share sessions, so there is no interval"
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
    """Return the Sharpe ratios (one period) of every half and its complement, shape (splits, strategies) each.
    Sums per block are enough: a half's mean and variance are sums of them."""
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
    # A strategy that never moves has no ratio; it counts as worth nothing rather than as best.
    safe = np.sqrt(np.where(variance > 1e-30, variance, np.inf))
    return np.asarray((mean + centre) / safe)
