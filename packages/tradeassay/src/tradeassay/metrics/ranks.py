"""Rankings: the rule for ranking an agent, places, critical differences, and ratings.

:func:`unranked` is the single rule for all boards, pages and figures. Critical differences compare
agents over many markets. Ratings come from pairwise comparisons.

Friedman's statistic equals scipy's ``friedmanchisquare`` to 1e-9, which a test checks. It is
computed here because scipy requires at least three agents, and comparisons of two are common.
Ratings follow Bradley and Terry's model on Elo's scale. Each comparison states the share of a win
of one side: 1, a half for a tie, or 0. Strengths maximise the likelihood by Newton steps. One half
win and one half loss against an average opponent are added for every agent, so that an agent
without a loss has a finite rating. The package ``choix`` supports neither shares of a win nor this
prior.
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
    """Return the ranks of finite numbers, 1 for the smallest. Equal numbers share their mean rank.

    The result equals ``scipy.stats.rankdata``, but importing scipy.stats takes longer than most
    commands run.
    """
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = np.cumsum(count) - (count - 1) / 2.0
    return ranks[place]


MOST_FAILED = 0.2
"""Maximum share of failed days, rounds or tasks for a ranked agent.

Each benchmark defines a failure (docs/reference).
"""


def _over_limit(share: float) -> str:
    """Return a share above :data:`MOST_FAILED` in per cent.

    The text has enough digits to differ from the limit.
    """
    return next(
        text
        for digits in range(18)
        if float((text := f"{share:.{digits}%}")[:-1]) > 100 * MOST_FAILED
    )


def unranked(
    share: float | None, failed: str = "of its sessions had no usable answer"
) -> str | None:
    """Return why an agent with this ``share`` of failures is not ranked, or None if it is ranked.

    ``share`` is a share of days, rounds or tasks. The result of an agent with many failures has
    little meaning, because its decisions on the failed days are unknown. ``failed`` is the end of
    the returned sentence.
    """
    if share is None or share <= MOST_FAILED:
        return None
    return f"{_over_limit(share)} {failed}"


def places(values: Sequence[float | None]) -> list[int | None]:
    """Return places, 1 for the greatest value. Equal values share the better place.

    A missing value has the place None.
    """
    known = [value for value in values if value is not None]
    return [
        None if value is None else 1 + sum(other > value for other in known) for value in values
    ]


class CriticalDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Friedman's test over markets and Nemenyi's critical difference, as data for a chart.

    ``mean_ranks`` are sorted and by name (1 = best). ``statistic`` and ``p_value`` are Friedman's.
    ``p_iman_davenport`` is the less conservative version. Two agents do not differ significantly if
    their mean ranks differ by less than ``difference``. ``groups`` are the largest sets of adjacent
    agents without a significant difference, best first.
    """

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
    """Return Friedman's test and Nemenyi's critical difference (Demšar 2006).

    ``scores`` has shape (markets, agents), and higher is better. Markets (windows, data sets) must
    not share sessions. Raises :class:`UserError` for fewer than two markets or agents, missing
    scores, or a wrong shape.
    """
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
    # With ties the variance of the ranks is smaller. Dividing by it corrects the test.
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
"""Longest Newton step, in log odds."""


class Pairing(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison: the two sides, the first side's share of the win, and the group.

    Groups are resampled as a whole.
    """

    first: str
    second: str
    won: float
    group: str = ""


def ratings(
    comparisons: Sequence[Pairing], *, draws: int = 500, level: float = 0.95, seed: int = 0
) -> dict[str, Measure]:
    """Return the rating of every name (mean 1500) with an interval from resampled groups.

    Not scored for fewer than two names. There is no interval for fewer than five groups of
    comparisons.
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
    """Return the ratings that maximise the likelihood of a matrix of wins (row over column).

    The average opponent has the strength 1 during the optimisation. Ratings are centred afterwards.
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
        # Far from the maximum the likelihood is flat, and a full step would overshoot.
        level = level + step * min(1.0, _LONGEST / max(furthest, 1e-300))
        if furthest < 1e-10:
            break
    return np.asarray(_CENTRE + _SCALE * (level - level.mean()))
