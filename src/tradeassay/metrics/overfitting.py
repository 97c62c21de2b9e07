"""Probability of backtest overfitting by combinatorially symmetric cross-validation (Bailey et al. 2017).

The sessions are cut into blocks; for every way of taking half of them as the past, the strategy that was best
there is looked up in the other half. If picking the best is worth anything, it ranks high there too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats
from tradeassay.metrics.intervals import significant

SPLITS = 16


@dataclass(frozen=True, slots=True)
class Overfitting:
    """``probability``: how often the best of the past was below the median of the future; 0.5 is what noise gives.

    With an odd number of strategies it may be the median itself, which counts half; counted whole, as is often
    done, noise among three would come to 2 / 3.

    ``loss``: how often it lost money. ``slope``: what a unit of Sharpe ratio in the past was worth in the
    future, over all splits (None when the past never varied). ``logits`` has one number per split: log odds of
    the rank, for a picture. ``best`` counts how often each strategy was picked.
    """

    probability: Measure
    loss: Measure
    slope: float | None
    logits: Floats
    best: Floats


def overfitting(returns: Floats, *, splits: int = SPLITS) -> Overfitting:
    """Return how overfitted picking the best of several strategies by its Sharpe ratio is.

    ``returns`` has shape (n, strategies). ``splits`` is even; sessions left over at the start are not used. No
    value for fewer than two strategies, or blocks of fewer than two sessions. The splits share their sessions
    and are not independent, and resampled sessions would appear in both halves; so there is no interval. Raises
    :class:`UserError` for another shape or number of splits.
    """
    table = np.asarray(returns, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise UserError(
            f"{table.shape} returns with gaps, or not two-dimensional", hint="give (sessions, strategies)"
        )
    if splits < 2 or splits % 2 or splits > 20:
        raise UserError(f"{splits} splits", hint="choose an even number from 2 to 20")
    n, count = table.shape
    size = n // splits
    if count < 2 or size < 2:
        why = not_scored(
            "fewer than two strategies" if count < 2 else f"{n} sessions are too few for {splits} blocks"
        )
        return Overfitting(why, why, None, np.empty(0), np.zeros(count))
    past, future = _halves(table[n - size * splits :].reshape(splits, size, count))
    best = np.argmax(past, axis=1)
    rows = np.arange(best.size)
    ahead = future[rows, best]
    rank = (future < ahead[:, None]).sum(axis=1) + 0.5 * ((future == ahead[:, None]).sum(axis=1) + 1.0)
    odds = rank / (count + 1.0)
    behind_half = float((odds < 0.5).mean() + 0.5 * (odds == 0.5).mean())
    logits = np.log(odds / (1.0 - odds))
    note = f"over {best.size} ways to halve {splits} blocks; they share sessions, so there is no interval"
    behind = past[rows, best]
    varied = float(behind.var())
    slope = float(((behind - behind.mean()) * (ahead - ahead.mean())).mean() / varied) if varied > 0 else None
    return Overfitting(
        probability=Measure(value=significant(behind_half), n=n, note=note),
        loss=Measure(value=significant(float((ahead < 0).mean())), n=n, note=note),
        slope=None if slope is None else significant(slope),
        logits=logits,
        best=np.bincount(best, minlength=count).astype(np.float64),
    )


def _halves(blocks: Floats) -> tuple[Floats, Floats]:
    """Return the Sharpe ratios (one period) of every half and its complement, shape (splits, strategies) each.

    Sums per block are enough: a half's mean and variance are sums of them.
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
    # A strategy that never moves has no ratio; it counts as worth nothing rather than as best.
    safe = np.sqrt(np.where(variance > 1e-30, variance, np.inf))
    return np.asarray((mean + centre) / safe)
