"""An entry's settled decisions on one asset as arrays, and what they say about how it trades."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np
from sqlalchemy import Connection, select

from tradeassay.arena.season import Entry, Season
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import bookings, decisions, rounds
from tradeassay.benchmarks.ama.rules import Kind
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats, Ints
from tradeassay.metrics import growth
from tradeassay.metrics.intervals import rate_measure


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
class EntrySeries:
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
        """The value of 1 over time, starting before the first session."""
        return growth(self.earned)


def read_lines(
    store: Store, season: Season, wanted: Filter | None = None
) -> Mapping[tuple[str, str], EntrySeries]:
    """Return a season's lines that pass a filter, by entry and asset; those with nothing settled are left out."""
    wanted = wanted or Filter()
    settled = bookings.c.number == 1
    query = (
        select(
            decisions.c.entry,
            decisions.c.asset,
            decisions.c.session,
            decisions.c.action,
            decisions.c.status,
            bookings.c.position,
            bookings.c.earned,
            decisions.c.input_tokens,
            decisions.c.output_tokens,
            decisions.c.usd,
            decisions.c.round,
            bookings.c.nav_before,
            decisions.c.id,
        )
        .join(bookings, (bookings.c.slot == decisions.c.id) & settled)
        .where(decisions.c.season == season.id, decisions.c.stage == "live")
        .order_by(decisions.c.entry, decisions.c.asset, decisions.c.session)
    )
    for column, values in ((decisions.c.entry, wanted.entries), (decisions.c.asset, wanted.assets)):
        if values is not None:
            query = query.where(column.in_(values))
    if wanted.first is not None:
        query = query.where(decisions.c.session >= wanted.first)
    if wanted.last is not None:
        query = query.where(decisions.c.session <= wanted.last)
    taken = {entry.id for entry in season.everyone if wanted.takes(entry)}
    grouped: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    with store.read() as db:
        moves = _moves(db, season.id)
        restated = _restated(db, season.id)
        found: list[tuple[Any, ...]] = list(db.execute(query).all())  # one by one they take longer
        for made in found:
            entry, asset, id = made[0], made[1], made[-1]
            if entry in taken:
                if id in restated:
                    earned, before = restated[id]
                    made = (*made[:6], earned, *made[7:11], before, id)
                grouped.setdefault((entry, asset), []).append(made)
    return {key: _line(season, key, rows, moves) for key, rows in grouped.items()}


def _restated(db: Connection, season: str) -> dict[int, tuple[float, float]]:
    """Return what corrected decisions earned on the newest prices, and the account before them, by slot."""
    query = select(bookings.c.slot, bookings.c.earned, bookings.c.restated_before)
    query = query.where(bookings.c.season == season, bookings.c.number > 1).order_by(bookings.c.number)
    return {slot: (earned, before) for slot, earned, before in db.execute(query)}


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
) -> EntrySeries:
    _, _, sessions, actions, statuses, positions, earned, read, written, usd, ids, before, _ = zip(
        *rows, strict=True
    )
    moved = np.array([moves[id] for id in ids], dtype=np.float64)
    costs = [None if u is None else float(u) for u in usd]
    return EntrySeries(
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


def behaviour(entry: str, lines: Iterable[EntrySeries]) -> Behaviour:
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


def first_day(lines: Mapping[tuple[str, str], EntrySeries]) -> dict[str, dict[str, str]]:
    """Return what every entry did on each asset's first counted session: asset -> entry -> action."""
    found: dict[str, dict[str, str]] = {}
    opening: dict[str, str] = {}
    for line in lines.values():
        opening[line.asset] = min(opening.get(line.asset, line.sessions[0]), line.sessions[0])
    for line in lines.values():
        if line.sessions[0] == opening[line.asset]:
            found.setdefault(line.asset, {})[line.entry] = line.actions[0]
    return found


def _holding(found: list[EntrySeries]) -> Measure:
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
