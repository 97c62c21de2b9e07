"""Ratings from comparisons: Bradley and Terry's model on Elo's scale, with bootstrap intervals.

Each comparison says how much of a win one side had over the other (1, a half for a tie, 0). Strengths are the
maximum of the likelihood, found by Newton's steps. One half win and one half loss against an average opponent are
added to everybody, so that somebody who never lost has a finite rating.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats

SCALE = 400.0 / np.log(10.0)
CENTRE = 1500.0
_STEPS = 200
_LONGEST = 1.0
"""The longest step, in log odds."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison: who met whom, the first one's share of the win, and what it belongs to (resampled whole)."""

    first: str
    second: str
    won: float
    group: str = ""


def ratings(
    comparisons: Sequence[Comparison], *, draws: int = 500, level: float = 0.95, seed: int = 0
) -> dict[str, Measure]:
    """Return everybody's rating (mean 1500) with an interval from resampling groups of comparisons.

    Not scored with fewer than two names. With fewer than five groups no interval is given.
    """
    names = sorted({name for c in comparisons for name in (c.first, c.second)})
    if len(names) < 2:
        return {name: not_scored("nobody to be compared with") for name in names}
    place = {name: n for n, name in enumerate(names)}
    groups = sorted({c.group for c in comparisons})
    table = np.zeros((len(groups), len(names), len(names)))
    number = {group: n for n, group in enumerate(groups)}
    for c in comparisons:
        i, j = place[c.first], place[c.second]
        table[number[c.group], i, j] += c.won
        table[number[c.group], j, i] += 1.0 - c.won
    value = _fit(table.sum(axis=0))
    met = (table + table.transpose(0, 2, 1)).sum(axis=(0, 2))
    if len(groups) < 5:
        note = "fewer than five groups of comparisons: no interval"
        return {name: Measure(value=float(value[n]), n=int(met[n]), note=note) for n, name in enumerate(names)}
    generator = np.random.default_rng(seed)
    drawn = np.stack(
        [_fit(table[generator.integers(0, len(groups), len(groups))].sum(axis=0)) for _ in range(draws)]
    )
    low, high = np.quantile(drawn, ((1 - level) / 2, (1 + level) / 2), axis=0)
    return {
        name: Measure(value=float(value[n]), low=float(low[n]), high=float(high[n]), level=level, n=int(met[n]))
        for n, name in enumerate(names)
    }


def _fit(wins: Floats) -> Floats:
    """Return ratings from a matrix of wins (row over column), as they maximise the likelihood.

    The average opponent has the strength 1 while it is maximised; ratings are moved to their mean only after that.
    """
    games = wins + wins.T
    won = wins.sum(axis=1) + 0.5
    level = np.zeros(wins.shape[0])
    for _ in range(_STEPS):
        chance = 0.5 * (1.0 + np.tanh((level[:, None] - level[None, :]) / 2.0))
        average = 0.5 * (1.0 + np.tanh(level / 2.0))
        slope = won - (games * chance).sum(axis=1) - average
        curve = games * chance * (1.0 - chance)
        bend = np.diag(curve.sum(axis=1) + average * (1.0 - average)) - curve
        step = np.linalg.solve(bend, slope)
        furthest = float(np.abs(step).max())
        # Far from the maximum the curve is flat and a whole step would overshoot.
        level = level + step * min(1.0, _LONGEST / max(furthest, 1e-300))
        if furthest < 1e-10:
            break
    return np.asarray(CENTRE + SCALE * (level - level.mean()))
