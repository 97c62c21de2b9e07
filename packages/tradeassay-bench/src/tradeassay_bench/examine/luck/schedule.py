"""Derive the schedule of random portfolios: a market as arrays, and a journal without its names.

A position occupies a *seat* from the session of its opening to the session of its end. A schedule
has the changes of every seat in every session. The name in a seat is drawn at random. Random
portfolios on the schedule of a recorded episode therefore hold the same number of names for the
same time, trade at the same times, and invest the same share of the account.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tradeassay.core.arrays import Bools, Floats, Ints
from tradeassay.core.errors import UserError
from tradeassay_bench.account import Ledger, venues
from tradeassay_bench.account.compiled import tape as tapes
from tradeassay_bench.core.events import Filled, StepRecord
from tradeassay_bench.play.market import MOMENTS, Universe

if TYPE_CHECKING:
    from tradeassay_bench.data import Snapshot
    from tradeassay_bench.play import MarketConfig

NO_NAME = -1
"""The column index for a seat whose name is drawn at random."""


@dataclass(frozen=True, slots=True)
class LuckMarket:
    """The market of random portfolios: an episode's market, rules and cash, as arrays.

    ``sessions`` and ``symbols`` contain the labels of the rows and columns of ``tape``.
    """

    tape: tapes.Tape
    sessions: tuple[str, ...]
    symbols: tuple[str, ...]
    rules: tapes.TapeRules
    cash: float
    periods_per_year: int


def luck_market(snapshot: Snapshot, config: MarketConfig) -> LuckMarket:
    """Return an episode's market as arrays.

    Raises :class:`UserError` if random portfolios cannot trade the market, because it has futures,
    or two splits of a name on one day.
    """
    venue = venues.get(config.venue).limited(
        max_weight=config.max_weight, max_positions=config.max_positions
    )
    rows = snapshot.rows(config.first, config.last)
    last = snapshot.at(rows[-1], "close").session_bars()
    tape = tapes.blank_tape(len(rows), last.instruments, venue)
    universe = Universe(config.universe, snapshot.at(rows[0], "pre_open"))
    columns = {symbol: column for column, symbol in enumerate(last.symbols)}
    for t, row in enumerate(rows):
        before = snapshot.at(row, "pre_open")
        seen = snapshot.at(row, MOMENTS[config.decide])
        tapes.write_actions(tape, t, before.todays_actions(), before.delisted_now(), columns)
        tapes.write_prices(
            tape,
            t,
            snapshot.at(row, "close").session_bars(),
            venue,
            fill=config.fill,
            mark=config.mark,
        )
        tape.grid[t, [columns[symbol] for symbol in universe.at(seen).buyable], tapes.MEMBER] = 1.0
    sessions = tuple(str(day) for day in snapshot.sessions[rows.start : rows.stop])
    rules = tapes.rules_of(venue, sessions[0], sessions[-1])
    return LuckMarket(
        tape, sessions, last.symbols, rules, float(config.cash), venue.periods_per_year
    )


class SeatChanges(NamedTuple):
    """The changes of all seats in all sessions.

    ``first`` (sessions + 1,) is the index of each session's first change. The other arrays except
    for ``gross`` have one entry per change. ``grows`` is true if the seat becomes larger. Then
    ``size`` is the traded value as a share of NAV. Otherwise ``size`` is the share of the holding
    that is sold (1 = all of it). ``sign`` is -1 for a short seat. ``opens`` marks a seat that was
    empty. ``column`` is the column of a name that is not drawn at random (an index fund). ``gross``
    (sessions,) is the total value of the seats after the trades, as a share of NAV.
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
    """The values that random portfolios match, as means over the sessions.

    ``turnover`` is one-way and per session. ``cash`` is a share of NAV. ``names`` is the number of
    names held.
    """

    turnover: float
    cash: float
    names: float


@dataclass(slots=True)
class _Changes:
    """Collect the changes of seats."""

    first: list[int] = field(default_factory=lambda: [0])
    rows: list[tuple[int, bool, bool, float, float, int]] = field(default_factory=list)
    gross: list[float] = field(default_factory=list)
    taken: dict[str, int] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)
    seats: int = 0

    def sit(self, symbol: str) -> int:
        """Assign the lowest free seat to a new position and return it."""
        if not self.free:
            heapq.heappush(self.free, self.seats)
            self.seats += 1
        seat = heapq.heappop(self.free)
        self.taken[symbol] = seat
        return seat

    def note(self, symbol: str, after: float, net: float, unit: float, kept: int) -> None:
        """Record the change in a session of a position that exists at the end of the session.

        ``unit`` is the value of one unit as a share of NAV.
        """
        sign = 1.0 if after > 0.0 else -1.0
        if symbol not in self.taken:
            self.rows.append((self.sit(symbol), True, True, abs(after) * unit, sign, kept))
        elif net * sign > 0.0:
            self.rows.append((self.taken[symbol], True, False, abs(net) * unit, sign, kept))
        elif net != 0.0:
            given_up = abs(net) / (abs(after) + abs(net))
            self.rows.append((self.taken[symbol], False, False, given_up, sign, kept))

    def end_session(self, gross: float, left: Iterable[int]) -> None:
        """End a session. The seats of positions that ended are free from the next session."""
        for seat in left:
            heapq.heappush(self.free, seat)
        self.gross.append(gross)
        self.first.append(len(self.rows))

    def done(self) -> SeatChanges:
        """Return the schedule."""
        seat, grows, opens, size, sign, column = (
            zip(*self.rows, strict=True) if self.rows else ((),) * 6
        )
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


def schedule_of(records: Iterable[StepRecord], market: LuckMarket) -> tuple[SeatChanges, Shape]:
    """Return the schedule of a recorded episode and the values to match.

    Trades of one name in one session are netted. A position that ended without a trade, because its
    name was delisted, is closed. Raises :class:`UserError` if the sessions of the journal and of
    the market differ.
    """
    columns = {symbol: column for column, symbol in enumerate(market.symbols)}
    changes, shape = _Changes(), []
    before: Mapping[str, float] = {}
    start: float | None = None
    for t, (ledger, record) in enumerate(Ledger.steps(records)):
        if t >= len(market.sessions) or record.session != market.sessions[t]:
            hint = "give the episode's own market"
            raise UserError(
                f"session {record.session} of the journal is not a session of the market", hint=hint
            )
        state = ledger.state()
        net: dict[str, float] = {}
        traded = 0.0
        for event in (*record.opening, *record.events):
            if isinstance(event, Filled):
                net[event.symbol] = net.get(event.symbol, 0.0) + event.quantity
                traded += abs(event.quantity * event.price * event.multiplier)
        after = {symbol: position.quantity for symbol, position in state.positions.items()}
        # The values of positions at the session's fill prices, or at their marks if there is no
        # fill.
        worth = {}
        for symbol, position in state.positions.items():
            at = float(market.tape.grid[t, columns[symbol], tapes.FILL])
            unit = (at if at > 0.0 else position.mark) * float(
                market.tape.facts[columns[symbol], tapes.MULTIPLIER]
            )
            worth[symbol] = position.quantity * unit
        value = state.cash + math.fsum(worth.values())
        left = []
        for symbol, quantity in before.items():
            if after.get(symbol, 0.0) * quantity <= 0.0:
                left.append(changes.taken.pop(symbol))
                changes.rows.append(
                    (left[-1], False, False, 1.0, 1.0 if quantity > 0.0 else -1.0, NO_NAME)
                )
        for symbol, quantity in after.items():
            column = columns[symbol]
            kept = column if market.tape.facts[column, tapes.FUND] else NO_NAME
            unit = worth[symbol] / quantity / value if value > 0 else 0.0
            changes.note(symbol, quantity, net.get(symbol, 0.0), unit, kept)
        changes.end_session(math.fsum(map(abs, worth.values())) / value if value > 0 else 0.0, left)
        start = state.initial if start is None else start
        cash = state.cash / state.nav if state.nav > 0 else 0.0
        shape.append((traded / 2.0 / start if start > 0 else 0.0, cash, float(len(after))))
        before, start = after, state.nav
    if len(shape) != len(market.sessions):
        hint = "finish the run first"
        raise UserError(
            f"the journal has {len(shape)} of {len(market.sessions)} sessions", hint=hint
        )
    return changes.done(), Shape(*np.mean(shape, axis=0).tolist())


def even_schedule(sessions: int, *, names: int, turnover: float) -> tuple[SeatChanges, Shape]:
    """Return a schedule for results without known trades: equal seats that are replaced in turn.

    The seats hold the whole account. ``turnover`` is one-way and per session, as a share of NAV.
    All seats are filled in the first session. Raises :class:`UserError` for impossible numbers.
    """
    if names < 1 or not 0.0 <= turnover <= 1.0:
        hint = "give at least one name, and a turnover per session of at most the whole account"
        raise UserError(
            f"no schedule has {names} names and a turnover of {turnover:g} per session", hint=hint
        )
    changes, due, turn = _Changes(), 0.0, 0
    size = 1.0 / names
    for seat in range(names):
        changes.sit(str(seat))
        changes.rows.append((seat, True, True, size, 1.0, NO_NAME))
    changes.end_session(1.0, ())
    for _ in range(1, sessions):
        due += turnover / size
        for _ in range(min(int(due), names)):
            seat, turn, due = turn % names, turn + 1, due - 1.0
            changes.rows.append((seat, False, False, 1.0, 1.0, NO_NAME))
            changes.rows.append((seat, True, True, size, 1.0, NO_NAME))
        changes.end_session(1.0, ())
    # The first session only buys, and one-way turnover is half of the sum of purchases and sales.
    first = 0.5 / sessions
    return changes.done(), Shape(turnover * (sessions - 1) / sessions + first, 0.0, float(names))
