"""An entry's settled decisions on one asset, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from sqlalchemy import Connection, select

from tradeassay.arena.season import Entry, Season
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import rounds, slots
from tradeassay.benchmarks.ama.rules import Kind
from tradeassay.core.view import Floats, Ints


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which lines to read; None takes all. ``first``/``last`` are ISO days, both included."""

    entries: tuple[str, ...] | None = None
    architectures: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    assets: tuple[str, ...] | None = None
    first: str | None = None
    last: str | None = None

    def takes(self, entry: Entry) -> bool:
        """Return whether an entry passes."""
        pairs = ((self.entries, entry.id), (self.architectures, entry.architecture), (self.models, entry.model))
        return all(wanted is None or value in wanted for wanted, value in pairs)


@dataclass(frozen=True, slots=True)
class Line:
    """One entry on one asset; every array has one item per settled live session, oldest first.

    ``moved`` is what the asset itself did after each decision, ``earned`` what the entry made of it, fees paid.
    ``trailing`` is the one-month return the agent was shown (NaN where there was none). ``account`` is the value
    before each decision of the one account over all assets, None where every asset has its own; ``earned`` is then
    what the asset added to it.
    """

    entry: str
    asset: str
    kind: Kind
    sessions: tuple[str, ...]
    actions: tuple[str, ...]
    statuses: tuple[str, ...]
    positions: Ints
    earned: Floats
    moved: Floats
    trailing: Floats
    tokens: int
    usd: float | None
    account: Floats | None = None

    @property
    def nav(self) -> Floats:
        """The value of 1, from before the first session on."""
        return np.concatenate(([1.0], np.cumprod(1.0 + self.earned)))


def read_lines(store: Store, season: Season, wanted: Filter | None = None) -> Mapping[tuple[str, str], Line]:
    """Return the lines of a season that pass a filter, by entry and asset; those with nothing settled are out."""
    wanted = wanted or Filter()
    query = (
        select(
            slots.c.entry,
            slots.c.asset,
            slots.c.session,
            slots.c.action,
            slots.c.status,
            slots.c.position,
            slots.c.earned,
            slots.c.input_tokens,
            slots.c.output_tokens,
            slots.c.usd,
            slots.c.round,
            slots.c.nav_before,
        )
        .where(slots.c.season == season.id, slots.c.stage == "live", slots.c.earned.is_not(None))
        .order_by(slots.c.entry, slots.c.asset, slots.c.session)
    )
    for column, values in ((slots.c.entry, wanted.entries), (slots.c.asset, wanted.assets)):
        if values is not None:
            query = query.where(column.in_(values))
    if wanted.first is not None:
        query = query.where(slots.c.session >= wanted.first)
    if wanted.last is not None:
        query = query.where(slots.c.session <= wanted.last)
    taken = {entry.id for entry in season.everyone if wanted.takes(entry)}
    grouped: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    with store.read() as db:
        moves = _moves(db, season.id)
        for row in db.execute(query):
            if row.entry in taken:
                grouped.setdefault((row.entry, row.asset), []).append(tuple(row))
    return {key: _line(season, key, rows, moves) for key, rows in grouped.items()}


def _moves(db: Connection, season: str) -> dict[int, tuple[float, float]]:
    """Return what each settled round's asset did, and the trailing return that was shown in it."""
    query = select(rounds.c.id, rounds.c.base_price, rounds.c.next_price, rounds.c.momentum)
    query = query.where(rounds.c.season == season, rounds.c.phase == "settled")
    return {
        id: (later / base - 1.0, float("nan") if momentum is None else momentum)
        for id, base, later, momentum in db.execute(query)
    }


def _line(
    season: Season, key: tuple[str, str], rows: list[tuple[Any, ...]], moves: dict[int, tuple[float, float]]
) -> Line:
    _, _, sessions, actions, statuses, positions, earned, read, written, usd, ids, before = zip(*rows, strict=True)
    moved = np.array([moves[id] for id in ids], dtype=np.float64)
    costs = [None if u is None else float(u) for u in usd]
    return Line(
        entry=key[0],
        asset=key[1],
        kind=season.asset(key[1]).kind,
        sessions=tuple(sessions),
        actions=tuple(actions),
        statuses=tuple(statuses),
        positions=np.array(positions, dtype=np.int64),
        earned=np.array(earned, dtype=np.float64),
        moved=moved[:, 0],
        trailing=moved[:, 1],
        tokens=sum(int(n or 0) for n in (*read, *written)),
        usd=None if any(c is None for c in costs) else sum(c for c in costs if c is not None),
        account=np.array(before, dtype=np.float64) if season.rules.cross_asset else None,
    )
