"""Who is ranked, and how sure is a ranking?

One rule for all boards, pages and figures (:func:`unranked`), places, critical differences over many markets, and
ratings from comparisons.

Friedman's statistic is scipy's ``friedmanchisquare`` to 1e-9 (a test checks it), computed here because scipy's
needs at least three agents and a comparison of two is common. Ratings follow Bradley and Terry's model on Elo's
scale: each comparison says how much of a win one side had over the other (1, a half for a tie, 0). Strengths
maximise the likelihood, found by Newton steps. One half win and one half loss against an average opponent are
added to everybody, so that somebody who never lost has a finite rating; the package ``choix`` has neither shares
of a win nor this prior.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.intervals import significant


def tied_ranks(values: Floats) -> Floats:
    """Return the ranks of finite numbers, 1 for the smallest; equal ones share their mean rank. They are those of
    ``scipy.stats.rankdata``, whose module takes longer to import than most commands need."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = np.cumsum(count) - (count - 1) / 2.0
    return ranks[place]


MOST_FAILED = 0.2
"""Share of failed days, rounds or tasks above which nobody is ranked. What counts as failed is said with each
benchmark (docs/reference)."""


def _over_limit(share: float) -> str:
    """Return a share above :data:`MOST_FAILED` in percent, with as many digits as show that it is above."""
    return next(
        text
        for digits in range(18)
        if float((text := f"{share:.{digits}%}")[:-1]) > 100 * MOST_FAILED
    )


def unranked(
    share: float | None, failed: str = "of its sessions had no usable answer"
) -> str | None:
    """Return why a ``share`` of failed days, rounds or tasks keeps an agent from a rank; None where it does not.

    Nobody knows what the agent would have done on those days, so its result says little about it. ``failed`` ends
    the sentence."""
    if share is None or share <= MOST_FAILED:
        return None
    return f"{_over_limit(share)} {failed}"


def places(values: Sequence[float | None]) -> list[int | None]:
    """Return places, 1 for the greatest; equals share the better one, and what has no value has none."""
    known = [value for value in values if value is not None]
    return [
        None if value is None else 1 + sum(other > value for other in known) for value in values
    ]


class CriticalDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Friedman's test over markets and Nemenyi's critical difference, as data for a picture. ``mean_ranks`` by
    name (1 = best), sorted. ``statistic`` and ``p_value`` are Friedman's, ``p_iman_davenport`` the bolder version.
    Two agents whose mean ranks differ by less than ``difference`` cannot be told apart; ``groups`` are the largest
    sets of neighbours without a difference, best first."""

    mean_ranks: dict[str, float]
    statistic: float
    p_value: float
    p_iman_davenport: float
    difference: float
    groups: tuple[tuple[str, ...], ...]
    markets: int
    level: float


def critical_difference(
    scores: Floats, names: Sequence[str], *, level: float = 0.95
) -> CriticalDifference:
    """Return Friedman's test and Nemenyi's critical difference (Demšar 2006). ``scores`` has shape (markets,
    agents), higher is better; markets (windows, data sets) must not share sessions. Raises :class:`UserError` for
    fewer than two of either, gaps, or other shapes."""
    table = np.asarray(scores, dtype=np.float64)
    if (
        table.ndim != 2
        or table.shape[1] != len(names)
        or min(table.shape) < 2
        or not np.isfinite(table).all()
    ):
        hint = "give (markets, agents), two of each at least, no gaps"
        raise UserError(f"{table.shape} scores of {len(names)} agents", hint=hint)
    from scipy.stats import chi2, f, rankdata, studentized_range

    markets, k = table.shape
    ranks = rankdata(-table, axis=1)
    mean = ranks.mean(axis=0)
    # With ties the spread of the ranks is smaller; dividing by it keeps the test honest.
    spread = float(((ranks - (k + 1) / 2.0) ** 2).sum()) / (markets * (k - 1))
    statistic = markets * float(((mean - (k + 1) / 2.0) ** 2).sum()) / spread if spread > 0 else 0.0
    most = markets * (k - 1) - statistic
    again = (markets - 1) * statistic / most if most > 1e-12 else math.inf
    q = float(studentized_range.ppf(level, k, np.inf)) / math.sqrt(2.0)
    difference = q * math.sqrt(k * (k + 1) / (6.0 * markets))
    order = np.argsort(mean, kind="stable")
    groups: list[tuple[str, ...]] = []
    reached = 0
    for first in range(k):
        last = int(np.flatnonzero(mean[order] - mean[order[first]] < difference)[-1])
        if last > first and last + 1 > reached:
            groups.append(tuple(names[place] for place in order[first : last + 1]))
            reached = last + 1
    return CriticalDifference(
        mean_ranks={names[place]: significant(float(mean[place])) for place in order},
        statistic=significant(statistic),
        p_value=significant(float(chi2.sf(statistic, k - 1))),
        p_iman_davenport=significant(float(f.sf(again, k - 1, (k - 1) * (markets - 1)))),
        difference=significant(difference),
        groups=tuple(groups),
        markets=markets,
        level=level,
    )


_SCALE = 400.0 / np.log(10.0)
_CENTRE = 1500.0
_STEPS = 200
_LONGEST = 1.0
"""The longest step, in log odds."""


class Pairing(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison: who met whom, the first one's share of the win, and what it belongs to (resampled whole)."""

    first: str
    second: str
    won: float
    group: str = ""


def ratings(
    comparisons: Sequence[Pairing], *, draws: int = 500, level: float = 0.95, seed: int = 0
) -> dict[str, Measure]:
    """Return everybody's rating (mean 1500) with an interval from resampling groups of comparisons. Not scored
    with fewer than two names. With fewer than five groups no interval is given."""
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
        return {
            name: Measure(value=float(value[n]), n=int(met[n]), note=note)
            for n, name in enumerate(names)
        }
    generator = np.random.default_rng(seed)
    drawn = np.stack(
        [
            _fit(table[generator.integers(0, len(groups), len(groups))].sum(axis=0))
            for _ in range(draws)
        ]
    )
    low, high = np.quantile(drawn, ((1 - level) / 2, (1 + level) / 2), axis=0)
    return {
        name: Measure(
            value=float(value[n]),
            low=float(low[n]),
            high=float(high[n]),
            level=level,
            n=int(met[n]),
        )
        for n, name in enumerate(names)
    }


def _fit(wins: Floats) -> Floats:
    """Return the ratings that maximise the likelihood of a matrix of wins (row over column). The average opponent
    has the strength 1 while it is maximised; ratings are moved to their mean only after that."""
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
    return np.asarray(_CENTRE + _SCALE * (level - level.mean()))
