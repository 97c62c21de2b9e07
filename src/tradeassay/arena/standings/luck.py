"""What chance alone would have made: random positions with the same habits on the same prices.

A random trader here changes its mind as often as the entries did on average and is long, short and flat as often
as they were, but at random times, and begins with the position of one of them. Its accounts make the band behind
the equity chart, and an entry's percentile among them says how easily luck does as well."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tradeassay.account.daily_target import target_growth
from tradeassay.arena.season import BASELINE
from tradeassay.arena.standings.series import EntrySeries, Lines
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats, Ints
from tradeassay.metrics.intervals import rate_measure

Fee = float | Callable[[str], float]
"""What a change of position costs, in basis points; or that of a session, where it changed."""
DRAWS = 1000
"""Random accounts on an asset."""


def luck_percentiles(lines: Lines, asset: str, fee_bp: Fee) -> dict[str, Measure]:
    found = [line for (entry, a), line in lines.items() if a == asset and entry != BASELINE]
    if not found:
        return {}
    sessions, nav = _random_accounts(found, fee_bp, np.random.default_rng(0))
    ends, percentiles = nav[:, -1], {}
    for line in found:
        last = line.nav[-1]
        below = int((ends < last).sum()) + int((ends == last).sum()) // 2
        percentiles[line.entry] = rate_measure(below, ends.size, nothing="no random account")
        if len(line.sessions) != len(sessions):
            percentiles[line.entry] = not_scored("did not play all sessions of this asset")
    return percentiles


def account_band(lines: Lines, fee_bp: Fee) -> tuple[tuple[str, ...], Floats] | None:
    """Return all days and the 5, 50 and 95 % quantiles of random accounts over them, shape (3, n + 1).

    A random account puts the same money into every asset, as an entry's account does; on one asset it is that
    asset's band. None when nobody but the baseline has a settled session."""
    by_asset: dict[str, list[EntrySeries]] = {}
    for (entry, asset), line in sorted(lines.items()):
        if entry != BASELINE:
            by_asset.setdefault(asset, []).append(line)
    if not by_asset:
        return None
    days = tuple(sorted({day for found in by_asset.values() for line in found for day in line.sessions}))
    total = np.zeros((DRAWS, len(days) + 1))
    for number, found in enumerate(by_asset.values()):
        sessions, nav = _random_accounts(found, fee_bp, np.random.default_rng([0, number]))
        # A closed day leaves an account where it was: each day shows the value after the last session by then.
        total += nav[:, np.concatenate(([0], np.searchsorted(sessions, days, side="right")))]
    return days, np.asarray(np.quantile(total / len(by_asset), (0.05, 0.5, 0.95), axis=0))


def _random_accounts(
    found: list[EntrySeries], fee_bp: Fee, generator: np.random.Generator
) -> tuple[tuple[str, ...], Floats]:
    """Return the sessions of the longest line and random accounts over them, shape (DRAWS, n + 1)."""
    longest = max(found, key=lambda line: len(line.sessions))
    held = np.concatenate([line.positions for line in found])
    share = np.array([(held == side).mean() for side in (-1, 0, 1)])
    pairs = sum(max(line.positions.size - 1, 0) for line in found)
    turns = sum(int((np.diff(line.positions) != 0).sum()) for line in found)
    n = len(longest.sessions)
    paths = _random_positions(n, share, turns / pairs if pairs else 0.0, generator)
    fees = np.array([fee_bp(day) for day in longest.sessions]) if callable(fee_bp) else fee_bp
    starts = np.array([line.before[0] for line in found])
    before: Ints | int = 0
    if starts.any():  # a random account begins with the position of an entry, which it has not paid for either
        before = generator.choice(starts, size=(DRAWS, 1))
    worth = np.cumprod(np.maximum(target_growth(paths, longest.moved, fees, before), 0.0), axis=1)
    return longest.sessions, np.concatenate([np.ones((DRAWS, 1)), worth], axis=1)


def _random_positions(n: int, share: Floats, turn: float, generator: np.random.Generator) -> Ints:
    """Return positions that are drawn anew so often that they change as often as asked, shape (DRAWS, n)."""
    fresh = generator.choice(np.array([-1, 0, 1]), size=(DRAWS, n), p=share / share.sum())
    same = float((share**2).sum())  # a fresh draw may give the old side again
    chance = min(1.0, turn / (1.0 - same)) if same < 1.0 else 0.0
    anew = generator.random((DRAWS, n)) < chance
    anew[:, 0] = True
    latest = np.maximum.accumulate(np.where(anew, np.arange(n), 0), axis=1)
    return np.asarray(np.take_along_axis(fresh, latest, axis=1))
