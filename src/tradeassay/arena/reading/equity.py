"""Accounts over time, as the big chart draws them."""

from __future__ import annotations

import msgspec
import numpy as np

from tradeassay.arena.reading.selection import Lines
from tradeassay.arena.season import BASELINE, Season
from tradeassay.arena.standings import Line, account, account_band
from tradeassay.core.view import Floats
from tradeassay.report.charts import kept, picked

POINTS = 500
"""More points per line than this are thinned out; highs, lows and deepest falls stay."""


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """One account: its return since the start at every day of the chart."""

    entry: str
    label: str
    baseline: bool
    returns: tuple[float | None, ...]


class Band(msgspec.Struct, frozen=True, kw_only=True):
    """Where 90 % of the random accounts lie, and their middle, as returns since the start."""

    low: tuple[float | None, ...]
    middle: tuple[float | None, ...]
    high: tuple[float | None, ...]


class Equity(msgspec.Struct, frozen=True, kw_only=True):
    """The chart. ``days`` begins the day before the first session; ``thinned``: not every session is a point."""

    days: tuple[str, ...]
    curves: tuple[Curve, ...]
    band: Band | None
    sessions: int
    thinned: bool


def equity(season: Season, lines: Lines) -> Equity:
    """Return the accounts of the lines' entries, the best at the end first, and the luck band behind them."""
    by_entry: dict[str, list[Line]] = {}
    for (entry, _), line in lines.items():
        by_entry.setdefault(entry, []).append(line)
    days = sorted({day for line in lines.values() for day in line.sessions})
    if not days:
        return Equity(days=(), curves=(), band=None, sessions=0, thinned=False)
    paths = {entry: _growth(account(found, days)) for entry, found in by_entry.items()}
    places = kept(len(days) + 1, [path.tolist() for path in paths.values()], POINTS)
    axis = [str(np.datetime64(days[0]) - 1), *days]
    order = sorted(paths, key=lambda entry: -float(paths[entry][-1]))
    return Equity(
        days=tuple(axis[place] for place in places),
        curves=tuple(
            Curve(
                entry=entry,
                label=season.entry(entry).shown,
                baseline=entry == BASELINE,
                returns=_returns(paths[entry], places),
            )
            for entry in order
        ),
        band=_band(season, lines, days, places),
        sessions=len(days),
        thinned=len(places) <= len(days),
    )


def _band(season: Season, lines: Lines, days: list[str], places: list[int]) -> Band | None:
    found = account_band(lines, season.money.fee_bp)
    if found is None or list(found[0]) != days:
        return None
    low, middle, high = (_returns(row, places) for row in found[1])
    return Band(low=low, middle=middle, high=high)


def _growth(earned: Floats) -> Floats:
    """Return the value of 1, from before the first day on."""
    return np.asarray(np.concatenate(([1.0], np.cumprod(1.0 + earned))))


def _returns(path: Floats, places: list[int]) -> tuple[float | None, ...]:
    return picked((path - 1.0).tolist(), places)
