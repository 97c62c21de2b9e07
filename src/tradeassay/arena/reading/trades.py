"""An entry's trades: from taking a position to leaving it, with fees, and how many of them paid."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import select

from tradeassay.arena.season import Season
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import rounds, slots
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


def entry_trades(store: Store, season: Season, entry: str) -> EntryTrades:
    """Return an entry's trades in the sessions that count and are settled."""
    columns = (slots.c.asset, slots.c.session, slots.c.position_before, slots.c.position, slots.c.fee)
    query = (
        select(*columns, slots.c.nav_before, slots.c.earned, slots.c.nav, rounds.c.price, rounds.c.next_price)
        .join(rounds, slots.c.round == rounds.c.id)
        .where(slots.c.season == season.id, slots.c.entry == entry, slots.c.stage == "live")
        .where(rounds.c.phase == "settled", slots.c.position.is_not(None))
        .order_by(slots.c.asset, slots.c.session)
    )
    by_asset: dict[str, list[Any]] = {}
    with store.read() as db:
        for row in db.execute(query):
            by_asset.setdefault(row.asset, []).append(row)
    found = [trade for rows in by_asset.values() for trade in _trades(rows, season.cash)]
    found.sort(key=lambda one: (one.closed or "9", one.opened, one.asset), reverse=True)
    closed = [one for one in found if one.closed is not None]
    gained = sum((row.earned or 0.0) * row.nav_before for rows in by_asset.values() for row in rows) * season.cash
    start = season.cash * (1 if season.rules.cross_asset else len(by_asset) or len(season.assets))
    return EntryTrades(
        newest=tuple(found[:NEWEST]),
        count=len(found),
        fees=sum(row.fee for rows in by_asset.values() for row in rows) * season.cash,
        won=rate_measure(sum(one.result > 0 for one in closed), len(closed), nothing="no trade is closed yet"),
        value=start + gained,
        start=start,
    )


def _trades(rows: list[Any], cash: float) -> list[EntryTrade]:
    """Return the trades on one asset. A fee that turns a position around is shared by the sides it leaves and
    takes.
    """
    made: list[EntryTrade] = []
    for row in rows:
        before, after = row.position_before, row.position
        gained = (row.earned or 0.0) * row.nav_before * cash
        fee = row.fee * cash
        left = fee * abs(before) / (abs(before) + abs(after)) if before != after else 0.0
        if before and before != after and made and made[-1].closed is None:
            last = made[-1]
            made[-1] = msgspec.structs.replace(
                last,
                closed=row.session,
                price_out=row.price,
                fees=last.fees + left,
                result=last.result - left,
            )
            fee, gained = fee - left, gained + left
        if not after:
            continue
        if before != after or not made or made[-1].closed is not None:
            made.append(
                EntryTrade(
                    asset=row.asset, side=after, opened=row.session, closed=None, price_in=row.price,
                    price_out=None, sessions=0, fees=0.0, result=0.0,
                )
            )  # fmt: skip
        last = made[-1]
        made[-1] = msgspec.structs.replace(
            last,
            sessions=last.sessions + 1,
            fees=last.fees + fee,
            result=last.result + gained,
        )
    return made
