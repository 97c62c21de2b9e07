"""An entry's settled decisions on one asset as arrays, and its trading behaviour."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Literal

import msgspec
import numpy as np
from sqlalchemy import ColumnElement, Connection, func, select

from tradeassay.core.arrays import Floats, Ints
from tradeassay.core.measure import Measure, above, below, not_scored
from tradeassay.metrics import growth
from tradeassay.metrics.intervals import rate_measure
from tradeassay_arena.benchmarks.ama.rules import Kind
from tradeassay_arena.season import Entry, Season
from tradeassay_arena.state.store import Store
from tradeassay_arena.state.tables import bookings, corrections, decisions, rounds


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """A selection of lines; None selects all.

    ``first`` and ``last`` are ISO days, both included.
    """

    entries: tuple[str, ...] | None = None
    architectures: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    assets: tuple[str, ...] | None = None
    first: str | None = None
    last: str | None = None

    def takes(self, entry: Entry) -> bool:
        pairs = (
            (self.entries, entry.id),
            (self.architectures, entry.architecture),
            (self.models, entry.model),
        )
        return all(wanted is None or value in wanted for wanted, value in pairs)


@dataclass(frozen=True, slots=True)
class EntrySeries:
    """One entry on one asset. Every array has one item per settled live session, oldest first.

    ``moved`` is the asset's return after each decision, ``earned`` the entry's return net of fees.
    ``trailing`` is the one-month return in the packet (NaN if missing). ``before`` is the position
    before the decision. ``fees`` are the booked fees, ``prices`` the prices of the decisions.
    ``account`` is the value of an account over all assets before each decision, or None if every
    asset has a separate account. With ``account``, ``earned`` is the asset's contribution to it. A
    round in which the arena asked no entry has the status :data:`UNASKED`.
    """

    entry: str
    asset: str
    kind: Kind
    sessions: tuple[str, ...]
    actions: tuple[str, ...]
    statuses: tuple[str, ...]
    before: Ints
    positions: Ints
    earned: Floats
    moved: Floats
    trailing: Floats
    fees: Floats
    prices: Floats
    tokens: int
    usd: float | None
    account: Floats | None = None

    @property
    def nav(self) -> Floats:
        """The value of 1 over time, starting before the first session."""
        return growth(self.earned)

    def since(self, day: str) -> EntrySeries | None:
        """Return the part that starts on a day, or None if it is empty."""
        start = bisect_left(self.sessions, day)
        if start in (0, len(self.sessions)):
            return self if start == 0 else None
        cut = {
            name: getattr(self, name)[start:]
            for name in ("sessions", "actions", "statuses", *_ARRAYS)
        }
        return replace(self, **cut, account=None if self.account is None else self.account[start:])

    @property
    def worth(self) -> Floats:
        """The account value before each decision, on the newest prices."""
        return self.nav[:-1] if self.account is None else self.account


UNASKED = "unasked"
"""The status of a round that the arena itself missed because it was not running or had no data."""

_ARRAYS = ("before", "positions", "earned", "moved", "trailing", "fees", "prices")
Lines = Mapping[tuple[str, str], EntrySeries]
"""A season's lines by entry and asset."""


def read_lines(store: Store, season: Season, wanted: Filter | None = None) -> Lines:
    """Return a season's lines that pass a filter, by entry and asset. Lines without settled
    sessions are left out.
    """
    wanted = wanted or Filter()
    where: list[ColumnElement[bool]] = (
        [] if wanted.assets is None else [decisions.c.asset.in_(wanted.assets)]
    )
    if wanted.first is not None:
        where.append(decisions.c.session >= wanted.first)
    if wanted.last is not None:
        where.append(decisions.c.session <= wanted.last)
    taken = {entry.id for entry in season.all_entries if wanted.takes(entry)}
    with store.read() as db:
        return {key: line for key, line in _read(db, season, *where).items() if key[0] in taken}


class LineBook:
    """All lines of a season. After the first read, only newly settled rounds are read. Safe to
    share.

    A correction, or a round settled after a later one, causes a full read.
    """

    def __init__(self, store: Store, season: Season) -> None:
        self._store, self._season = store, season
        self._lock = Lock()
        self._lines: dict[tuple[str, str], EntrySeries] = {}
        self._rounds: set[int] = set()
        self._corrected: int | None = None

    def lines(self) -> Lines:
        """Return the present lines. Earlier results do not change."""
        mine = {"season": self._season.id}
        with self._lock, self._store.read() as db:
            corrected = db.execute(select(func.max(corrections.c.id)).filter_by(**mine)).scalar()
            known = set(
                db.execute(select(rounds.c.id).filter_by(**mine, phase="settled")).scalars()
            )
            new = known - self._rounds
            if new or corrected != self._corrected:
                # A few rounds are read by their ids. If there are more, everything is read.
                few = self._rounds and corrected == self._corrected and len(new) <= 400
                longer = (
                    self._longer(_read(db, self._season, decisions.c.round.in_(new)))
                    if few
                    else None
                )
                self._lines = longer or dict(_read(db, self._season))
            self._rounds, self._corrected = known, corrected
            return self._lines

    def _longer(self, parts: Lines) -> dict[tuple[str, str], EntrySeries] | None:
        """Return the lines extended by newer parts, or None if a part does not begin after its
        line.
        """
        made = dict(self._lines)
        for key, part in parts.items():
            line = made.get(key)
            if line is not None and part.sessions[0] <= line.sessions[-1]:
                return None
            made[key] = part if line is None else _joined(line, part)
        return made


def _joined(line: EntrySeries, part: EntrySeries) -> EntrySeries:
    arrays: dict[str, Any] = {
        name: np.concatenate((getattr(line, name), getattr(part, name))) for name in _ARRAYS
    }
    added = ("sessions", "actions", "statuses", "tokens")
    arrays |= {name: getattr(line, name) + getattr(part, name) for name in added}
    if line.account is not None and part.account is not None:
        arrays["account"] = np.concatenate((line.account, part.account))
    usd = None if line.usd is None or part.usd is None else line.usd + part.usd
    return replace(line, usd=usd, **arrays)


_SETTLED = (
    select(
        *decisions.c["entry", "asset", "session", "action", "status"],
        *bookings.c["position_before", "position", "fee"],
        *decisions.c["input_tokens", "output_tokens", "usd", "round", "id"],
        *bookings.c["earned", "nav_before"],
    )
    .join(bookings, (bookings.c.slot == decisions.c.id) & (bookings.c.number == 1))
    .order_by(decisions.c.entry, decisions.c.asset, decisions.c.session)
)


def _read(db: Connection, season: Season, *where: ColumnElement[bool]) -> Lines:
    # Each settled round's return, the trailing return in its packet, and its price.
    asked = select(*rounds.c["id", "base_price", "next_price", "momentum", "price"])
    moves = {
        id: (later / base - 1.0, float("nan") if momentum is None else momentum, price)
        for id, base, later, momentum, price in db.execute(
            asked.filter_by(season=season.id, phase="settled")
        )
    }
    # Returns of corrected decisions on the newest prices, and the account value before them, by
    # slot.
    newest = select(*bookings.c["slot", "earned", "restated_before"]).filter_by(season=season.id)
    newest = newest.where(bookings.c.number > 1).order_by(bookings.c.number)
    restated = {slot: (earned, before) for slot, earned, before in db.execute(newest)}
    query = _SETTLED.where(decisions.c.season == season.id, decisions.c.stage == "live", *where)
    rows = db.execute(query).all()  # faster than reading row by row
    asked_in = {made[11] for made in rows if made[4] != "missed"}
    grouped: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    for made in rows:
        entry, asset, round, id = made[0], made[1], made[11], made[12]
        if round in moves:
            row = (*made[:13], *restated[id]) if id in restated else made
            if round not in asked_in:
                row = (*row[:4], UNASKED, *row[5:])
            grouped.setdefault((entry, asset), []).append(row)
    return {key: _line(season, key, rows, moves) for key, rows in grouped.items()}


def _line(
    season: Season,
    key: tuple[str, str],
    rows: list[tuple[Any, ...]],
    moves: dict[int, tuple[float, float, float]],
) -> EntrySeries:
    (
        _,
        _,
        sessions,
        actions,
        statuses,
        before,
        positions,
        fees,
        read,
        written,
        usd,
        ids,
        _,
        earned,
        account,
    ) = zip(*rows, strict=True)
    moved = np.array([moves[id] for id in ids], dtype=np.float64)
    costs = [None if u is None else float(u) for u in usd]
    return EntrySeries(
        entry=key[0],
        asset=key[1],
        kind=season.asset(key[1]).kind,
        sessions=tuple(sessions),
        actions=tuple(actions),
        statuses=tuple(statuses),
        before=np.array(before, dtype=np.int64),
        positions=np.array(positions, dtype=np.int64),
        earned=np.array(earned, dtype=np.float64),
        moved=moved[:, 0],
        trailing=moved[:, 1],
        fees=np.array(fees, dtype=np.float64),
        prices=moved[:, 2],
        tokens=sum(int(n or 0) for n in (*read, *written)),
        usd=None if any(c is None for c in costs) else math.fsum(c for c in costs if c is not None),
        account=np.array(account, dtype=np.float64) if season.rules.cross_asset else None,
    )


Style = Literal["trend", "contrarian", "neither", "not scored"]


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of sessions, each with an interval. ``holding`` is the mean length of a position in
    sessions.

    ``with_trend`` is the share of sessions in the market with a position in the direction of the
    last month. ``style`` is trend or contrarian only if its interval excludes one half.
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
    style: Style


def behaviour(entry: str, lines: Iterable[EntrySeries]) -> Behaviour:
    found = [line for line in lines if line.entry == entry]
    empty = np.empty(0)
    held, trailing, moved = (
        np.concatenate([empty, *(getattr(line, name) for line in found)])
        for name in ("positions", "trailing", "moved")
    )
    n, nothing = held.size, "no settled session"
    known = (held != 0) & np.isfinite(trailing) & (trailing != 0)
    with_it = int((np.sign(trailing[known]) == held[known]).sum())
    along = rate_measure(with_it, int(known.sum()), nothing="never in the market")
    style: Style = "not scored"
    if along.low is not None and along.high is not None:
        style = "neither"
        if above(along, 0.5):
            style = "trend"
        elif below(along, 0.5):
            style = "contrarian"
    bets = (held != 0) & (moved != 0)
    turns = sum(int((np.diff(line.positions) != 0).sum()) for line in found)
    chances = sum(max(line.positions.size - 1, 0) for line in found)
    right = int((np.sign(moved[bets]) == held[bets]).sum())
    spells: list[int] = []
    for line in found:
        parts = np.split(line.positions, np.flatnonzero(np.diff(line.positions)) + 1)
        spells += [int(part.size) for part in parts if part.size and part[0] != 0]
    holding = not_scored("never in the market")
    if spells:
        holding = Measure(
            value=float(np.mean(spells)), n=len(spells), note="the last spell may still be running"
        )
    return Behaviour(
        entry=entry,
        sessions=n,
        long=rate_measure(int((held > 0).sum()), n, nothing=nothing),
        short=rate_measure(int((held < 0).sum()), n, nothing=nothing),
        flat=rate_measure(int((held == 0).sum()), n, nothing=nothing),
        with_trend=along,
        right=rate_measure(right, int(bets.sum()), nothing="never in the market"),
        changes=rate_measure(turns, chances, nothing="fewer than two settled sessions"),
        holding=holding,
        style=style,
    )


def first_day(lines: Mapping[tuple[str, str], EntrySeries]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    opening: dict[str, str] = {}
    for line in lines.values():
        opening[line.asset] = min(opening.get(line.asset, "~"), line.sessions[0])
    for line in lines.values():
        if line.sessions[0] == opening[line.asset]:
            found.setdefault(line.asset, {})[line.entry] = line.actions[0]
    return found
