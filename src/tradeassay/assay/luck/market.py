"""Where random portfolios trade: an episode's market and rules as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tradeassay.account import Venue, venues
from tradeassay.account.compiled.tape import (
    MEMBER,
    Tape,
    TapeRules,
    blank_tape,
    rules_of,
    write_actions,
    write_prices,
)
from tradeassay.play.universe import Universe, most_traded

if TYPE_CHECKING:
    from tradeassay.data import Snapshot
    from tradeassay.play import MarketConfig


class NamedTape(NamedTuple):
    """A :class:`Tape` with the names of its rows and columns."""

    tape: Tape
    sessions: tuple[str, ...]
    symbols: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LuckGround:
    """Where random portfolios trade: one episode's market, rules and money, as arrays."""

    market: NamedTape
    rules: TapeRules
    cash: float
    periods_per_year: int


def ground_of(snapshot: Snapshot, config: MarketConfig) -> LuckGround:
    """Return an episode's market as arrays; raises :class:`UserError` where random portfolios cannot trade it."""
    venue = venues.get(config.venue).limited(max_weight=config.max_weight, max_positions=config.max_positions)
    market = read_tape(snapshot, config, venue)
    rules = rules_of(venue, market.sessions[0], market.sessions[-1])
    return LuckGround(market, rules, float(config.cash), venue.periods_per_year)


def read_tape(snapshot: Snapshot, config: MarketConfig, venue: Venue) -> NamedTape:
    """Return the market of an episode as arrays; ``venue`` has the episode's own limits already.

    Raises :class:`UserError` when the market has futures, or two splits of a name on one day.
    """
    rows = snapshot.rows(config.first, config.last)
    last = snapshot.at(rows[-1], "close").session_bars()
    tape = blank_tape(len(rows), last.instruments, venue)
    universe = Universe(config.universe, most_traded(config.universe, snapshot.at(rows[0], "pre_open")))
    columns = {symbol: column for column, symbol in enumerate(last.symbols)}
    for t, row in enumerate(rows):
        before = snapshot.at(row, "pre_open")
        seen = snapshot.at(row, "open" if config.decide == "at_open" else config.decide)
        write_actions(tape, t, before.todays_actions(), before.delisted_now(), columns)
        write_prices(tape, t, snapshot.at(row, "close").session_bars(), venue, fill=config.fill, mark=config.mark)
        tape.grid[t, [columns[symbol] for symbol in universe.at(seen).buyable], MEMBER] = 1.0
    sessions = tuple(str(day) for day in snapshot.sessions[rows.start : rows.stop])
    return NamedTape(tape, sessions, last.symbols)
