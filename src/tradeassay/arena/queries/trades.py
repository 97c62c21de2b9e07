"""An entry's trades: from taking a position to leaving it, with fees, and how many of them paid."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import msgspec

from tradeassay.arena.season import Season
from tradeassay.arena.standings import EntrySeries, Lines
from tradeassay.core.measure import Measure
from tradeassay.metrics.intervals import rate_measure

NEWEST = 60
"""How many trades are listed; the figures count all of them."""


class EntryTrade(msgspec.Struct, frozen=True, kw_only=True):
    """A position from the session it was taken in to the one it was left in (None: it is still held).

    Money is in dollars. ``result`` is what it made after the fees of both its ends.
    """

    asset: str
    side: int
    opened: str
    closed: str | None
    price_in: float
    price_out: float | None
    sessions: int
    fees: float
    result: float


class EntryTrades(msgspec.Struct, frozen=True, kw_only=True):
    """All trades of an entry in settled sessions: the newest, their number, fees, and the share that paid.

    ``value`` is what its accounts are worth, ``start`` what they began with.
    """

    newest: tuple[EntryTrade, ...]
    count: int
    fees: float
    won: Measure
    value: float
    start: float


def entry_trades(season: Season, entry: str, lines: Lines) -> EntryTrades:
    """Return an entry's trades in the sessions that count and are settled, from a season's lines."""
    mine = [line for line in lines.values() if line.entry == entry]
    found = [trade for line in mine for trade in _trades(line, season.cash)]
    found.sort(key=lambda one: (one.closed or "9", one.opened, one.asset), reverse=True)
    closed = [one for one in found if one.closed is not None]
    gained = sum(float((line.earned * line.worth).sum()) for line in mine) * season.cash
    start = season.cash * (1 if season.rules.cross_asset else len(mine) or len(season.assets))
    return EntryTrades(
        newest=tuple(EntryTrade(**asdict(one)) for one in found[:NEWEST]),
        count=len(found),
        fees=sum(float(line.fees.sum()) for line in mine) * season.cash,
        won=rate_measure(sum(one.result > 0 for one in closed), len(closed), nothing="no trade is closed yet"),
        value=start + gained,
        start=start,
    )


@dataclass(slots=True)
class _Growing:
    """A trade while it is put together."""

    asset: str
    side: int
    opened: str
    price_in: float
    closed: str | None = None
    price_out: float | None = None
    sessions: int = 0
    fees: float = 0.0
    result: float = 0.0


def _trades(line: EntrySeries, cash: float) -> list[_Growing]:
    """Return the trades on one asset. A fee that turns a position around is shared by the sides it leaves and
    takes.
    """
    made: list[_Growing] = []
    gains, fees = (line.earned * line.worth * cash).tolist(), (line.fees * cash).tolist()
    rows = zip(line.sessions, line.before.tolist(), line.positions.tolist(), line.prices.tolist(), strict=True)
    for (session, before, after, price), gained, fee in zip(rows, gains, fees, strict=True):
        last = made[-1] if made and made[-1].closed is None else None
        if before and before != after and last is not None:
            left = fee * abs(before) / (abs(before) + abs(after))
            last.closed, last.price_out = session, price
            last.fees, last.result = last.fees + left, last.result - left
            fee, gained, last = fee - left, gained + left, None
        if not after:
            continue
        if before != after or last is None:
            last = _Growing(line.asset, after, session, price)
            made.append(last)
        last.sessions, last.fees, last.result = last.sessions + 1, last.fees + fee, last.result + gained
    return made
