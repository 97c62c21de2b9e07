"""How alike two or more rankings are: Kendall's tau and Spearman's rho, with bootstrap intervals over items."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats


def kendall_tau(x: Floats, y: Floats) -> float:
    """Return tau-b of two score lists over the items both have (NaN is a missing score); NaN when undefined."""
    both = np.isfinite(x) & np.isfinite(y)
    a, b = np.asarray(x)[both], np.asarray(y)[both]
    if a.size < 2:
        return float("nan")
    rows, columns = np.triu_indices(a.size, 1)
    s, t = np.sign(a[rows] - a[columns]), np.sign(b[rows] - b[columns])
    scale = np.sqrt(float(np.abs(s).sum()) * float(np.abs(t).sum()))
    return float((s * t).sum() / scale) if scale > 0 else float("nan")


def spearman_rho(x: Floats, y: Floats) -> float:
    """Return Spearman's rho over the items both have, equals sharing their mean rank; NaN when undefined."""
    both = np.isfinite(x) & np.isfinite(y)
    a, b = _ranks(np.asarray(x)[both]), _ranks(np.asarray(y)[both])
    if a.size < 2:
        return float("nan")
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b / scale) if scale > 0 else float("nan")


def correlation_measure(
    function: Callable[[Floats, Floats], float], x: Floats, y: Floats, *, draws: int = 1000, seed: int = 0
) -> Measure:
    """Return a rank correlation with a percentile interval from resampling items."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    value = function(x, y)
    both = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if not np.isfinite(value):
        return not_scored("fewer than two common items, or scores that do not differ")
    if both.size < 5:
        return Measure(value=value, n=int(both.size), note="fewer than five items: no interval")
    generator = np.random.default_rng(seed)
    rows = both[generator.integers(0, both.size, (draws, both.size))]
    drawn = np.array([function(x[row], y[row]) for row in rows])
    low, high = np.quantile(drawn[np.isfinite(drawn)], (0.025, 0.975))
    return Measure(value=value, low=float(low), high=float(high), n=int(both.size))


def agreement(scores: Floats, *, draws: int = 300, seed: int = 0) -> Measure:
    """Return the mean pairwise tau of reviewers' scores, shape (reviewers, items), with an interval over items."""
    scores = np.asarray(scores, dtype=np.float64)
    value = _mean_tau(scores)
    if not np.isfinite(value):
        return not_scored("fewer than two reviewers with common items")
    items = scores.shape[1]
    if items < 5:
        return Measure(value=value, n=items, note="fewer than five items: no interval")
    generator = np.random.default_rng(seed)
    drawn = np.array([_mean_tau(scores[:, generator.integers(0, items, items)]) for _ in range(draws)])
    low, high = np.quantile(drawn[np.isfinite(drawn)], (0.025, 0.975))
    return Measure(value=value, low=float(low), high=float(high), n=items)


def _mean_tau(scores: Floats) -> float:
    found = [kendall_tau(scores[a], scores[b]) for a, b in combinations(range(scores.shape[0]), 2)]
    known = [tau for tau in found if np.isfinite(tau)]
    return float(np.mean(known)) if known else float("nan")


def _ranks(values: Floats) -> Floats:
    order = np.argsort(values, kind="stable")
    ranks = np.empty(values.size)
    ranks[order] = np.arange(values.size, dtype=np.float64)
    for value in np.unique(values):
        same = values == value
        ranks[same] = ranks[same].mean()
    return ranks
