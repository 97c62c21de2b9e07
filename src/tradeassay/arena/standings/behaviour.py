"""How an entry trades: how long which side, with or against the trend, how often it changes its mind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec
import numpy as np

from tradeassay.arena.standings.series import Line
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.rates import rate_measure


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of sessions with an interval each; ``holding`` is the mean number of sessions a position lasts.

    ``with_trend`` is the share of sessions in the market in which the position had the sign of the last month's
    return; ``style`` says trend or contrarian only when its interval excludes one half.
    """

    entry: str
    sessions: int
    long: Measure
    short: Measure
    flat: Measure
    with_trend: Measure
    right: Measure
    changes: Measure
    holding: Measure
    style: Literal["trend", "contrarian", "neither", "not scored"]


def behaviour(entry: str, lines: Iterable[Line]) -> Behaviour:
    """Return the behaviour of one entry over its lines."""
    found = [line for line in lines if line.entry == entry]
    held = np.concatenate([line.positions for line in found]) if found else np.empty(0, dtype=np.int64)
    trailing = np.concatenate([line.trailing for line in found]) if found else np.empty(0)
    moved = np.concatenate([line.moved for line in found]) if found else np.empty(0)
    n = held.size
    known = (held != 0) & np.isfinite(trailing) & (trailing != 0)
    along = rate_measure(
        int((np.sign(trailing[known]) == held[known]).sum()), int(known.sum()), nothing="never in the market"
    )
    bets = (held != 0) & (moved != 0)
    turns = sum(int((np.diff(line.positions) != 0).sum()) for line in found)
    chances = sum(max(line.positions.size - 1, 0) for line in found)
    return Behaviour(
        entry=entry,
        sessions=n,
        long=rate_measure(int((held > 0).sum()), n, nothing="no settled session"),
        short=rate_measure(int((held < 0).sum()), n, nothing="no settled session"),
        flat=rate_measure(int((held == 0).sum()), n, nothing="no settled session"),
        with_trend=along,
        right=rate_measure(
            int((np.sign(moved[bets]) == held[bets]).sum()), int(bets.sum()), nothing="never in the market"
        ),
        changes=rate_measure(turns, chances, nothing="fewer than two settled sessions"),
        holding=_holding(found),
        style=_style(along),
    )


def first_day(lines: Mapping[tuple[str, str], Line]) -> dict[str, dict[str, str]]:
    """Return what every entry did on each asset's first counted session: asset -> entry -> action."""
    found: dict[str, dict[str, str]] = {}
    opening: dict[str, str] = {}
    for line in lines.values():
        opening[line.asset] = min(opening.get(line.asset, line.sessions[0]), line.sessions[0])
    for line in lines.values():
        if line.sessions[0] == opening[line.asset]:
            found.setdefault(line.asset, {})[line.entry] = line.actions[0]
    return found


def _holding(found: list[Line]) -> Measure:
    spells: list[int] = []
    for line in found:
        edges = np.flatnonzero(np.diff(line.positions)) + 1
        for part in np.split(line.positions, edges):
            if part.size and part[0] != 0:
                spells.append(int(part.size))
    if not spells:
        return not_scored("never in the market")
    return Measure(value=float(np.mean(spells)), n=len(spells), note="the last spell may still be running")


def _style(along: Measure) -> Literal["trend", "contrarian", "neither", "not scored"]:
    if along.value is None or along.low is None or along.high is None:
        return "not scored"
    if along.low > 0.5:
        return "trend"
    return "contrarian" if along.high < 0.5 else "neither"
