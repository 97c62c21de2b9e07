"""How sure is a ranking?

Rank probabilities over redrawn sessions, critical differences over many markets, and ratings from comparisons.

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
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats
from tradeassay.metrics.bootstrap import BootstrapConfig, choose_block, content_seed, resamples
from tradeassay.metrics.intervals import percentile_interval, significant
from tradeassay.metrics.measures import sharpe

DEFAULT = BootstrapConfig()


@dataclass(frozen=True, slots=True)
class RankProbabilities:
    """``probability[agent, rank]``: how often an agent had a rank (0 = best) on redrawn sessions; rows sum to 1.

    ``rank`` is the observed one (ties share the mean), ``expected`` the mean rank over resamples, ``low`` and
    ``high`` the central interval of the rank. Ranks count from 1 in those four. ``beats[a, b]`` is how often a
    was above b.
    """

    names: tuple[str, ...]
    rank: Floats
    expected: Floats
    low: Floats
    high: Floats
    probability: Floats
    beats: Floats
    level: float


class CriticalDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Friedman's test over markets and Nemenyi's critical difference, as data for a picture.

    ``mean_ranks`` by name (1 = best), sorted. ``statistic`` and ``p_value`` are Friedman's,
    ``p_iman_davenport`` the bolder version. Two agents whose mean ranks differ by less than ``difference``
    cannot be told apart; ``groups`` are the largest sets of neighbours without a difference, best first.
    """

    mean_ranks: dict[str, float]
    statistic: float
    p_value: float
    p_iman_davenport: float
    difference: float
    groups: tuple[tuple[str, ...], ...]
    markets: int
    level: float


def rank_probabilities(
    returns: Floats,
    names: Sequence[str],
    *,
    by: Literal["growth", "sharpe"] = "growth",
    bootstrap: BootstrapConfig = DEFAULT,
) -> RankProbabilities:
    """Return how sure each rank is, by redrawing the same sessions for all agents.

    ``returns`` are simple session returns, shape (n, agents), or (n, agents, seeds) to rank by the mean over
    seeds of log growth (or of Sharpe ratios), the seeds being redrawn too. Raises :class:`UserError` for shapes
    that do not fit, gaps, fewer than two agents, or fewer sessions than ``bootstrap.least``.
    """
    table = np.asarray(returns, dtype=np.float64)
    table = table[:, :, None] if table.ndim == 2 else table
    if table.ndim != 3 or table.shape[1] != len(names) or not np.isfinite(table).all():
        raise UserError(
            f"{table.shape} returns of {len(names)} agents", hint="give (sessions, agents) without gaps"
        )
    n, agents, seeds = table.shape
    if agents < 2 or n < bootstrap.least:
        raise UserError(
            f"{agents} agents over {n} sessions cannot be ranked",
            hint=f"give at least two agents and {bootstrap.least} sessions",
        )
    if by == "growth" and not (table > -1.0).all():
        raise UserError("an account lost everything in a session", hint="leave that agent out")
    values = np.log1p(table) if by == "growth" else table
    score = (lambda drawn: drawn.mean(axis=1)) if by == "growth" else _sharpes
    seed = content_seed(bootstrap, table)
    block = max(choose_block(np.ascontiguousarray(values[:, k].mean(axis=1)), bootstrap) for k in range(agents))
    picks = np.random.PCG64(seed ^ 0xA9E).random_raw(bootstrap.draws * agents * seeds) % np.uint64(seeds)
    chosen = picks.astype(np.int64).reshape(bootstrap.draws, agents, seeds)
    drawn, done = np.empty((bootstrap.draws, agents)), 0
    for rows in resamples(n, bootstrap.draws, block, seed):
        for row in rows:
            each = score(values[row][None])[0]
            drawn[done] = np.take_along_axis(each, chosen[done], axis=1).mean(axis=1)
            done += 1
    return _summed_up(tuple(names), score(values[None])[0].mean(axis=1), drawn, bootstrap.level)


def critical_difference(scores: Floats, names: Sequence[str], *, level: float = 0.95) -> CriticalDifference:
    """Return Friedman's test and Nemenyi's critical difference (Demšar 2006).

    ``scores`` has shape (markets, agents), higher is better; markets (windows, data sets) must not share sessions.
    Raises :class:`UserError` for fewer than two of either, gaps, or other shapes.
    """
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(names) or min(table.shape) < 2 or not np.isfinite(table).all():
        raise UserError(
            f"{table.shape} scores of {len(names)} agents",
            hint="give (markets, agents), two of each at least, no gaps",
        )
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
    return CriticalDifference(
        mean_ranks={names[place]: significant(float(mean[place])) for place in order},
        statistic=significant(statistic),
        p_value=significant(float(chi2.sf(statistic, k - 1))),
        p_iman_davenport=significant(float(f.sf(again, k - 1, (k - 1) * (markets - 1)))),
        difference=significant(difference),
        groups=_groups([names[place] for place in order], mean[order], difference),
        markets=markets,
        level=level,
    )


def _sharpes(drawn: Floats) -> Floats:
    return np.nan_to_num(sharpe(np.moveaxis(drawn, 1, -1), 1.0), nan=0.0)


def _summed_up(names: tuple[str, ...], observed: Floats, drawn: Floats, level: float) -> RankProbabilities:
    agents = len(names)
    better, equal = drawn[:, :, None] > drawn[:, None, :], drawn[:, :, None] == drawn[:, None, :]
    low_place, high_place = 1 + better.sum(axis=1), (better | equal).sum(axis=1)
    ranks = (low_place + high_place) / 2.0
    # Among exact ties places are shared out evenly, so that every row and column still sums to one.
    place = np.arange(1, agents + 1)
    inside = (place >= low_place[..., None]) & (place <= high_place[..., None])
    share = (inside / (high_place - low_place + 1)[..., None]).mean(axis=0)
    bounds = [percentile_interval(np.ascontiguousarray(ranks[:, k]), level) for k in range(agents)]
    above, ties = better.mean(axis=0), equal.mean(axis=0)
    first, last = (observed[:, None] > observed).sum(axis=0), (observed[:, None] >= observed).sum(axis=0)
    return RankProbabilities(
        names=names,
        rank=(1 + first + last) / 2.0,
        expected=ranks.mean(axis=0),
        low=np.array([bound[0] if bound else np.nan for bound in bounds]),
        high=np.array([bound[1] if bound else np.nan for bound in bounds]),
        probability=share,
        beats=above + 0.5 * ties * ~np.eye(agents, dtype=np.bool_),
        level=level,
    )


def _groups(names: Sequence[str], ranks: Floats, difference: float) -> tuple[tuple[str, ...], ...]:
    found: list[tuple[str, ...]] = []
    reached = 0
    for first in range(len(names)):
        last = int(np.flatnonzero(ranks - ranks[first] < difference)[-1])
        if last > first and last + 1 > reached:
            found.append(tuple(names[first : last + 1]))
            reached = last + 1
    return tuple(found)


SCALE = 400.0 / np.log(10.0)
CENTRE = 1500.0
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
    """Return the ratings that maximise the likelihood of a matrix of wins (row over column).

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
