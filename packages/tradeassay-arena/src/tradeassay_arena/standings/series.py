"""Read each entry's settled decisions on each asset as arrays, and describe how entries trade.

The settled decisions of one entry on one asset are called a *line*.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Literal, NamedTuple

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
    """Conditions on lines. A condition that is None excludes no line.

    ``first`` and ``last`` are ISO days, both included.
    """

    entries: tuple[str, ...] | None = None
    architectures: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    assets: tuple[str, ...] | None = None
    first: str | None = None
    last: str | None = None

    def takes(self, entry: Entry) -> bool:
        """Return whether an entry meets the conditions on entries, architectures and models."""
        pairs = (
            (self.entries, entry.id),
            (self.architectures, entry.architecture),
            (self.models, entry.model),
        )
        return all(wanted is None or value in wanted for wanted, value in pairs)


@dataclass(frozen=True, slots=True)
class EntrySeries:
    """The settled decisions of one entry on one asset, called a line.

    Every array has one item per settled live session, oldest first.

    - ``moved`` is the asset's return after each decision.
    - ``earned`` is the entry's return, net of fees.
    - ``trailing`` is the one-month return in the packet (NaN if missing).
    - ``before`` is the position before each decision, and ``positions`` the position after it.
    - ``fees`` are the booked fees, and ``prices`` the prices of the decisions.
    - ``account`` is the value of an account over all assets before each decision. It is None if
      every asset has a separate account. With ``account``, ``earned`` is the asset's contribution
      to the account's return.
    - ``statuses`` contains :data:`UNASKED` for a round in which the arena asked no entry.
    - ``usd`` is the cost of the models' answers, or None if a cost is unknown.
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
        """The value of an account that starts with 1, before the first session and after each."""
        return growth(self.earned)

    def since(self, day: str) -> EntrySeries | None:
        """Return the line from a day on, or None if there is no later session."""
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
        """The account value before each decision, on corrected prices."""
        return self.nav[:-1] if self.account is None else self.account


UNASKED = "unasked"
"""The status of every slot of a round that the arena itself missed.

The arena was not running, or had no data.
"""

_ARRAYS = ("before", "positions", "earned", "moved", "trailing", "fees", "prices")
Lines = Mapping[tuple[str, str], EntrySeries]
"""A season's lines by entry and asset."""


def read_lines(store: Store, season: Season, wanted: Filter | None = None) -> Lines:
    """Return a season's lines that pass a filter, by entry and asset.

    Entries without a settled session on an asset have no line there.
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
    """A thread-safe cache of all lines of a season.

    After the first read, only newly settled rounds are read. Everything is read again after a
    correction, or if a round was settled later than a round of a later session.
    """

    def __init__(self, store: Store, season: Season) -> None:
        self._store, self._season = store, season
        self._lock = Lock()
        self._lines: dict[tuple[str, str], EntrySeries] = {}
        self._rounds: set[int] = set()
        self._corrected: int | None = None

    def lines(self) -> Lines:
        """Return the present lines. Lines that were returned earlier do not change."""
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
        """Return the lines extended by newer parts.

        Returns None if a part does not begin after the end of its line.
        """
        made = dict(self._lines)
        for key, part in parts.items():
            line = made.get(key)
            if line is not None and part.sessions[0] <= line.sessions[-1]:
                return None
            made[key] = part if line is None else _joined(line, part)
        return made


def _joined(line: EntrySeries, part: EntrySeries) -> EntrySeries:
    """Return a line followed by a newer part of the same line."""
    arrays: dict[str, Any] = {
        name: np.concatenate((getattr(line, name), getattr(part, name))) for name in _ARRAYS
    }
    added = ("sessions", "actions", "statuses", "tokens")
    arrays |= {name: getattr(line, name) + getattr(part, name) for name in added}
    if line.account is not None and part.account is not None:
        arrays["account"] = np.concatenate((line.account, part.account))
    usd = None if line.usd is None or part.usd is None else line.usd + part.usd
    return replace(line, usd=usd, **arrays)


class _SettledSlot(NamedTuple):
    """The columns of a settled decision, in the order of the query ``_SETTLED``."""

    entry: str
    asset: str
    session: str
    action: str
    status: str
    position_before: int
    position: int
    fee: float
    input_tokens: int | None
    output_tokens: int | None
    usd: float | None
    round: int
    id: int
    earned: float
    nav_before: float


class _RoundPrices(NamedTuple):
    """A settled round's return, the trailing return in its packet (NaN if missing), and its
    price.
    """

    moved: float
    trailing: float
    price: float


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
    """Return the lines of the settled live decisions that match the conditions."""
    query = select(*rounds.c["id", "base_price", "next_price", "momentum", "price"])
    prices: dict[int, _RoundPrices] = {}
    for id, base, later, momentum, price in db.execute(
        query.filter_by(season=season.id, phase="settled")
    ):
        trailing = float("nan") if momentum is None else momentum
        prices[id] = _RoundPrices(later / base - 1.0, trailing, price)
    # The returns of corrected decisions on the newest prices, and the account value before them, by
    # slot.
    newest = select(*bookings.c["slot", "earned", "restated_before"]).filter_by(season=season.id)
    newest = newest.where(bookings.c.number > 1).order_by(bookings.c.number)
    restated = {slot: (earned, before) for slot, earned, before in db.execute(newest)}
    settled = _SETTLED.where(decisions.c.season == season.id, decisions.c.stage == "live", *where)
    rows = [_SettledSlot._make(row) for row in db.execute(settled).all()]
    asked_rounds = {row.round for row in rows if row.status != "missed"}
    grouped: dict[tuple[str, str], list[_SettledSlot]] = {}
    for row in rows:
        if row.round not in prices:
            continue
        if row.id in restated:
            earned, before = restated[row.id]
            row = row._replace(earned=earned, nav_before=before)
        if row.round not in asked_rounds:
            row = row._replace(status=UNASKED)
        grouped.setdefault((row.entry, row.asset), []).append(row)
    return {key: _line(season, key, rows, prices) for key, rows in grouped.items()}


def _line(
    season: Season,
    key: tuple[str, str],
    rows: list[_SettledSlot],
    prices: dict[int, _RoundPrices],
) -> EntrySeries:
    """Return the line of an entry on an asset (``key``) from its settled decisions."""
    column = dict(zip(_SettledSlot._fields, zip(*rows, strict=True), strict=True))
    moved, trailing, price = zip(*(prices[row.round] for row in rows), strict=True)
    costs = [None if row.usd is None else float(row.usd) for row in rows]
    account = None
    if season.rules.cross_asset:
        account = np.array(column["nav_before"], dtype=np.float64)
    return EntrySeries(
        entry=key[0],
        asset=key[1],
        kind=season.asset(key[1]).kind,
        sessions=tuple(column["session"]),
        actions=tuple(column["action"]),
        statuses=tuple(column["status"]),
        before=np.array(column["position_before"], dtype=np.int64),
        positions=np.array(column["position"], dtype=np.int64),
        earned=np.array(column["earned"], dtype=np.float64),
        moved=np.array(moved, dtype=np.float64),
        trailing=np.array(trailing, dtype=np.float64),
        fees=np.array(column["fee"], dtype=np.float64),
        prices=np.array(price, dtype=np.float64),
        tokens=sum(int(row.input_tokens or 0) + int(row.output_tokens or 0) for row in rows),
        usd=None if None in costs else math.fsum(cost or 0.0 for cost in costs),
        account=account,
    )


Style = Literal["trend", "contrarian", "neither", "not scored"]


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    """How an entry trades: shares of its sessions, each with an interval.

    - ``long``, ``short`` and ``flat`` are the shares of sessions with that position.
    - ``with_trend`` is the share of sessions in the market in which the position has the direction
      of the last month's return.
    - ``right`` is the share of sessions in the market in which the position has the direction of
      the next return.
    - ``changes`` is the share of sessions after the first in which the position changes.
    - ``holding`` is the mean length of a position, in sessions.
    - ``style`` is ``trend`` or ``contrarian`` only if the interval of ``with_trend`` excludes one
      half.
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
    """Return how an entry trades, over all of its lines."""
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
    """Return each entry's action in each asset's first settled session, by asset and entry.

    Entries that joined later are left out.
    """
    found: dict[str, dict[str, str]] = {}
    opening: dict[str, str] = {}
    for line in lines.values():
        opening[line.asset] = min(opening.get(line.asset, "~"), line.sessions[0])
    for line in lines.values():
        if line.sessions[0] == opening[line.asset]:
            found.setdefault(line.asset, {})[line.entry] = line.actions[0]
    return found
