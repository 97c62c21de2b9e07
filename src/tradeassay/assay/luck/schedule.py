"""When somebody traded and how much, with the names taken out.

A position, from the session in which it is opened to the one in which it is gone, sits in a *seat*. A schedule
says what happens to every seat in every session; which name sits in it is left to chance. Random portfolios on
the schedule of a recorded episode therefore hold as many names as it did, for as long, trade when it traded,
and are as much invested.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tradeassay.account import Ledger
from tradeassay.account.compiled.tape import FILL, FUND, MULTIPLIER
from tradeassay.assay.luck.market import NamedTape
from tradeassay.core.account import AccountState
from tradeassay.core.errors import UserError
from tradeassay.core.events import Filled, StepRecord
from tradeassay.core.view import Bools, Floats, Ints

NO_NAME = -1
"""No column: the name is drawn."""


class SeatChanges(NamedTuple):
    """Changes of seats. ``first`` (sessions + 1,) tells where the changes of a session begin; the rest is per
    change.

    ``grows`` says whether the seat becomes larger. ``size`` is then the traded value as a share of NAV, otherwise
    the share of the holding that is given up (1 = all of it). ``sign`` is -1 for short seats. ``opens`` marks a
    seat that was empty, ``column`` a name that is not left to chance (an index fund). ``gross`` (sessions,) is
    what the seats are worth together after the trades, as a share of NAV.
    """

    first: Ints
    seat: Ints
    grows: Bools
    opens: Bools
    size: Floats
    sign: Floats
    column: Ints
    gross: Floats
    seats: int


class Shape(NamedTuple):
    """What random portfolios are matched to: means over the sessions.

    ``turnover`` is one-way and per session, ``cash`` a share of NAV, ``names`` the number of names held.
    """

    turnover: float
    cash: float
    names: float


@dataclass(slots=True)
class _Changes:
    """Changes while they are collected."""

    first: list[int] = field(default_factory=lambda: [0])
    rows: list[tuple[int, bool, bool, float, float, int]] = field(default_factory=list)
    gross: list[float] = field(default_factory=list)
    taken: dict[str, int] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)
    seats: int = 0

    def sit(self, symbol: str) -> int:
        """Give a new position the lowest free seat."""
        if not self.free:
            heapq.heappush(self.free, self.seats)
            self.seats += 1
        seat = self.taken[symbol] = heapq.heappop(self.free)
        return seat

    def end_session(self, gross: float, left: Iterable[int]) -> None:
        """Close a session; its empty seats may be taken from the next one on."""
        for seat in left:
            heapq.heappush(self.free, seat)
        self.gross.append(gross)
        self.first.append(len(self.rows))

    def done(self) -> SeatChanges:
        """Return the schedule."""
        seat, grows, opens, size, sign, column = zip(*self.rows, strict=True) if self.rows else ((),) * 6
        return SeatChanges(
            first=np.array(self.first, dtype=np.int64),
            seat=np.array(seat, dtype=np.int64),
            grows=np.array(grows, dtype=np.bool_),
            opens=np.array(opens, dtype=np.bool_),
            size=np.array(size, dtype=np.float64),
            sign=np.array(sign, dtype=np.float64),
            column=np.array(column, dtype=np.int64),
            gross=np.array(self.gross, dtype=np.float64),
            seats=max(self.seats, 1),
        )


def schedule_of(records: Iterable[StepRecord], market: NamedTape) -> tuple[SeatChanges, Shape]:
    """Return the schedule of a recorded episode and what is to be matched.

    Trades of one name in one session are netted. A position that ended without a trade (its name left the
    exchange) is closed. Raises :class:`UserError` when the journal's sessions are not the market's.
    """
    reading = _Reading(market)
    for ledger, record in Ledger.steps(records):
        reading.session(ledger.state(), record)
    return reading.done()


class _Reading:
    """Takes the names out of a journal, session by session."""

    def __init__(self, market: NamedTape) -> None:
        self._market = market
        self._columns = {symbol: column for column, symbol in enumerate(market.symbols)}
        self._changes = _Changes()
        self._before: Mapping[str, float] = {}
        self._nav: float | None = None
        self._shape: list[tuple[float, float, float]] = []

    def session(self, state: AccountState, record: StepRecord) -> None:
        """Take one session; ``state`` is the account at its end."""
        market, t = self._market, len(self._shape)
        if t >= len(market.sessions) or record.session != market.sessions[t]:
            raise UserError(
                f"session {record.session} of the journal is not the market's",
                hint="give the episode's own market",
            )
        net: dict[str, float] = {}
        traded = 0.0
        for event in (*record.opening, *record.events):
            if isinstance(event, Filled):
                net[event.symbol] = net.get(event.symbol, 0.0) + event.quantity
                traded += abs(event.quantity * event.price * event.multiplier)
        after = {symbol: position.quantity for symbol, position in state.positions.items()}
        worth = {symbol: quantity * self._price(t, symbol, state) for symbol, quantity in after.items()}
        value = state.cash + sum(worth.values())
        changes = self._changes
        left = [
            self._close(symbol) for symbol in self._before if after.get(symbol, 0.0) * self._before[symbol] <= 0.0
        ]
        for symbol, quantity in after.items():
            self._change(
                symbol, quantity, net.get(symbol, 0.0), worth[symbol] / quantity / value if value > 0 else 0.0
            )
        changes.end_session(sum(map(abs, worth.values())) / value if value > 0 else 0.0, left)
        start = state.initial if self._nav is None else self._nav
        cash = state.cash / state.nav if state.nav > 0 else 0.0
        self._shape.append((traded / 2.0 / start if start > 0 else 0.0, cash, float(len(after))))
        self._before, self._nav = after, state.nav

    def done(self) -> tuple[SeatChanges, Shape]:
        """Return the schedule and its shape."""
        have, want = len(self._shape), len(self._market.sessions)
        if have != want:
            raise UserError(f"the journal has {have} of {want} sessions", hint="finish the run first")
        return self._changes.done(), Shape(*np.mean(self._shape, axis=0).tolist())

    def _price(self, t: int, symbol: str, state: AccountState) -> float:
        """Return what one unit is worth at the session's fill price, or at its mark where it has none."""
        tape, column = self._market.tape, self._columns[symbol]
        at = float(tape.grid[t, column, FILL])
        return (at if at > 0.0 else state.positions[symbol].mark) * float(tape.facts[column, MULTIPLIER])

    def _close(self, symbol: str) -> int:
        changes = self._changes
        seat = changes.taken.pop(symbol)
        sign = 1.0 if self._before[symbol] > 0.0 else -1.0
        changes.rows.append((seat, False, False, 1.0, sign, NO_NAME))
        return seat

    def _change(self, symbol: str, after: float, net: float, unit: float) -> None:
        """Note what a session did to a position that is there at its end; ``unit`` is one unit's share of NAV."""
        changes, sign = self._changes, 1.0 if after > 0.0 else -1.0
        column = self._columns[symbol]
        kept = column if self._market.tape.facts[column, FUND] else NO_NAME
        if symbol not in changes.taken:
            changes.rows.append((changes.sit(symbol), True, True, abs(after) * unit, sign, kept))
        elif net * sign > 0.0:
            changes.rows.append((changes.taken[symbol], True, False, abs(net) * unit, sign, kept))
        elif net != 0.0:
            given_up = abs(net) / (abs(after) + abs(net))
            changes.rows.append((changes.taken[symbol], False, False, given_up, sign, kept))


def even_schedule(
    sessions: int, *, names: int, turnover: float, invested: float = 1.0
) -> tuple[SeatChanges, Shape]:
    """Return a schedule for results whose trades are not known: equal seats, replaced in turn.

    ``turnover`` is one-way and per session, as a share of NAV; ``invested`` the share of NAV in the seats. All
    seats are filled in the first session. Raises :class:`UserError` for numbers that cannot be met.
    """
    if names < 1 or not 0.0 < invested <= 1.0 or not 0.0 <= turnover <= invested:
        raise UserError(
            f"no schedule with {names} names, {turnover:g} turnover a session and {invested:g} invested",
            hint="give at least one name, 0 < invested <= 1, and no more turnover than that",
        )
    changes, due, turn = _Changes(), 0.0, 0
    size = invested / names
    for seat in range(names):
        changes.sit(str(seat))
        changes.rows.append((seat, True, True, size, 1.0, NO_NAME))
    changes.end_session(invested, ())
    for _ in range(1, sessions):
        due += turnover / size
        for _ in range(min(int(due), names)):
            seat, turn, due = turn % names, turn + 1, due - 1.0
            changes.rows.append((seat, False, False, 1.0, 1.0, NO_NAME))
            changes.rows.append((seat, True, True, size, 1.0, NO_NAME))
        changes.end_session(invested, ())
    first = invested / 2.0 / sessions
    return changes.done(), Shape(turnover * (sessions - 1) / sessions + first, 1.0 - invested, float(names))
