"""Test whether raters agree more than by chance.

Krippendorff's alpha allows for missing ratings (*Content Analysis*, 2004, chapter 11). It is 1 -
observed / expected disagreement, computed from the coincidences of ratings within units. A unit
with only one rating has no information about agreement and is left out. 1 is perfect agreement, 0
is agreement by chance, and values below 0 are systematic disagreement. The formula is implemented
here in twenty lines. The package ``krippendorff`` gives the same to 1e-9 but would be a further
dependency of every installation.

Two coefficients measure the similarity of rankings. Kendall's tau is scipy's. Spearman's rho is
computed here, because ``scipy.stats.spearmanr`` differs in the last bit, and rho is part of
recorded scores.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import combinations
from typing import Literal

import numpy as np
import numpy.typing as npt

from tradeassay.core.arrays import Floats, Ints
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.intervals import percentile_interval, significant
from tradeassay.metrics.ranks import tied_ranks

_Level = Literal["nominal", "interval"]
"""``nominal``: all different ratings are equally far apart. ``interval``: ratings are numbers with
distances."""

_Rating = Hashable
_Matrix = npt.NDArray[np.float64]
_NONE = "no unit has two ratings"
_CONFIDENCE = 0.95
_CONSTANT = "all ratings are the same value: there was nothing to disagree about"


def krippendorff_alpha(
    units: Sequence[Mapping[str, _Rating]],
    level: _Level = "nominal",
    *,
    draws: int = 0,
    seed: int = 0,
) -> Measure:
    """Return alpha over ``units``. Each unit maps raters to ratings, and ratings may be missing.

    With ``draws`` the interval is computed from this number of resamples of units.
    """
    judged = [tuple(unit.values()) for unit in units if len(unit) >= 2]
    if not judged:
        return not_scored(_NONE)
    seen = {rating for ratings in judged for rating in ratings}
    values = sorted(
        seen, key=lambda value: (value if isinstance(value, int | float) else 0.0, str(value))
    )
    place = {value: index for index, value in enumerate(values)}
    counts = np.zeros((len(judged), len(values)))
    for row, ratings in enumerate(judged):
        for rating in ratings:
            counts[row, place[rating]] += 1.0
    if len(values) == 1:
        return not_scored(_CONSTANT)
    alpha = _alpha(counts, values, level)
    pairable = int(counts.sum())
    if draws <= 0:
        note = "no interval was asked for"
        return Measure(value=significant(alpha), n=len(judged), level=_CONFIDENCE, note=note)
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(judged), (draws, len(judged)))
    drawn = np.array([_alpha(counts[picked], values, level) for picked in rows])
    bounds = percentile_interval(drawn, _CONFIDENCE)
    low, high = bounds if bounds is not None else (None, None)
    note = f"{pairable} ratings; {draws} resamples of units"
    return Measure(
        value=significant(alpha), low=low, high=high, level=_CONFIDENCE, n=len(judged), note=note
    )


def _alpha(counts: _Matrix, values: Sequence[_Rating], level: _Level) -> float:
    """Return alpha of a table of counts per unit and value, or NaN if only one value occurs."""
    sizes = counts.sum(axis=1)
    weights = 1.0 / (sizes - 1.0)
    together = (counts * weights[:, None]).T @ counts - np.diag(
        (counts * weights[:, None]).sum(axis=0)
    )
    margins = together.sum(axis=0)
    distance = 1.0 - np.eye(len(values))
    if level == "interval":
        numbers = np.array(values, dtype=np.float64)
        distance = (numbers[:, None] - numbers[None, :]) ** 2
    total = margins.sum()
    observed = float((together * distance).sum()) / total
    expected = float((np.outer(margins, margins) * distance).sum()) / (total * (total - 1.0))
    return 1.0 - observed / expected if expected > 0 else float("nan")


def _kendall_tau(x: Floats, y: Floats) -> float:
    """Return tau-b of two score lists over their common items, or NaN if it is undefined.

    NaN is a missing score.
    """
    both = np.isfinite(x) & np.isfinite(y)
    a, b = np.asarray(x)[both], np.asarray(y)[both]
    if a.size < 2 or not (np.ptp(a) > 0 and np.ptp(b) > 0):
        return float("nan")
    from scipy.stats import kendalltau

    return float(kendalltau(a, b).statistic)


def spearman_rho(x: Floats, y: Floats) -> float:
    """Return Spearman's rho over the common items, or NaN if it is undefined.

    Ties get their mean rank.
    """
    both = np.isfinite(x) & np.isfinite(y)
    if int(both.sum()) < 2:
        return float("nan")
    a, b = tied_ranks(np.asarray(x)[both]), tied_ranks(np.asarray(y)[both])
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b / scale) if scale > 0 else float("nan")


def correlation_measure(
    function: Callable[[Floats, Floats], float],
    x: Floats,
    y: Floats,
    *,
    draws: int = 1000,
    seed: int = 0,
) -> Measure:
    """Return a rank correlation with a percentile interval from resampled items."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    value = function(x, y)
    both = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if not np.isfinite(value):
        return not_scored("fewer than two common items, or scores that do not differ")
    return _over_items(
        value, both.size, lambda row: function(x[both[row]], y[both[row]]), draws, seed
    )


def agreement(scores: Floats, *, draws: int = 300, seed: int = 0) -> Measure:
    """Return the mean pairwise tau of reviewers' scores with an interval over items.

    ``scores`` has the shape (reviewers, items).
    """
    scores = np.asarray(scores, dtype=np.float64)
    value = _mean_tau(scores)
    if not np.isfinite(value):
        return not_scored("fewer than two reviewers with common items")
    return _over_items(value, scores.shape[1], lambda row: _mean_tau(scores[:, row]), draws, seed)


def _over_items(
    value: float, items: int, again: Callable[[Ints], float], draws: int, seed: int
) -> Measure:
    """Return a value with a percentile interval. ``again`` computes it for redrawn items."""
    if items < 5:
        return Measure(value=value, n=items, note="fewer than five items: no interval")
    drawn = np.array(
        [again(row) for row in np.random.default_rng(seed).integers(0, items, (draws, items))]
    )
    low, high = np.quantile(drawn[np.isfinite(drawn)], (0.025, 0.975))
    return Measure(value=value, low=float(low), high=float(high), n=items)


def _mean_tau(scores: Floats) -> float:
    taus = [_kendall_tau(scores[a], scores[b]) for a, b in combinations(range(scores.shape[0]), 2)]
    known = [tau for tau in taus if np.isfinite(tau)]
    return float(np.mean(known)) if known else float("nan")
