"""A market as arrays: all that decides what a trade is filled at, session by session and name by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.view import Bools, Floats, SessionBars
from tradeassay.play.universe import Choice, Universe, most_traded

if TYPE_CHECKING:
    from tradeassay.account import Venue
    from tradeassay.data import Snapshot
    from tradeassay.play import MarketConfig

AT_LIMIT = 1e-9
"""A change this close to a price limit has reached it, as the exchange has it."""

FILL, MARK, MEMBER, BUYABLE, SELLABLE, ROOM, LENDABLE, DIVIDEND, SPLIT, GONE = range(10)
"""What :attr:`Tape.grid` holds of a name in a session.

The price at which orders trade and the one at which positions are marked (NaN where there is none); whether the
universe allows to open a position; whether the market takes a purchase, a sale (0 or 1); the most units one
account may trade, and the most it may be short; the dividend per share, the new shares per old one (1 without a
split); whether the name has left the exchange by now.
"""
LOT, STEP, MULTIPLIER, FUND = range(4)
"""What :attr:`Tape.facts` holds of a name: lot, smallest step, multiplier, whether it is an index fund."""


class Tape(NamedTuple):
    """One window of one market under one venue.

    ``grid`` has shape (sessions, names, 10), ``facts`` (names, 4); ``eventful`` (sessions,) says that something
    happens to holdings before the open. (Few large arrays, because compiling takes time by the array.)
    """

    grid: Floats
    facts: Floats
    eventful: Bools


class NamedTape(NamedTuple):
    """A :class:`Tape` with the names of its rows and columns."""

    tape: Tape
    sessions: tuple[str, ...]
    symbols: tuple[str, ...]


def read_tape(snapshot: Snapshot, config: MarketConfig, venue: Venue) -> NamedTape:
    """Return the market of an episode as arrays; ``venue`` has the episode's own limits already.

    Raises :class:`UserError` when the market has futures, or two splits of a name on one day: fills of the first
    depend on settlements, and rounding after the second on the order of the two.
    """
    rows = snapshot.rows(config.first, config.last)
    last = snapshot.at(rows[-1], "close").session_bars()
    for instrument in last.instruments:
        if instrument.kind == "future":
            raise UserError(
                f"no luck baseline for futures ({instrument.symbol})",
                mend="random portfolios are made of stocks, funds and coins only",
            )
    tape = _blank(len(rows), last, venue)
    universe = Universe(config.universe, most_traded(config.universe, snapshot.at(rows[0], "pre_open")))
    columns = {symbol: column for column, symbol in enumerate(last.symbols)}
    for t, row in enumerate(rows):
        view = snapshot.at(row, _PHASES[config.decide])
        bars = snapshot.at(row, "close").session_bars()
        _happenings(tape, t, snapshot, row, columns)
        _prices(tape, t, bars, config, venue)
        _choice(tape, t, universe.at(view), columns)
    sessions = tuple(str(day) for day in snapshot.sessions[rows.start : rows.stop])
    return NamedTape(tape, sessions, last.symbols)


_PHASES: dict[str, Literal["pre_open", "open", "close"]] = {
    "pre_open": "pre_open",
    "at_open": "open",
    "close": "close",
}


def _blank(sessions: int, last: SessionBars, venue: Venue) -> Tape:
    grid = np.zeros((sessions, len(last.symbols), GONE + 1))
    grid[:, :, [FILL, MARK]] = np.nan
    grid[:, :, ROOM] = np.inf
    grid[:, :, LENDABLE] = np.inf if venue.shorting.allowed else 0.0
    grid[:, :, SPLIT] = 1.0
    lots = venue.lots
    facts = [
        (lots.lot_of(one), lots.step_of(one), one.multiplier, float(one.kind == "index"))
        for one in last.instruments
    ]
    return Tape(grid, np.array(facts, dtype=np.float64), np.zeros(sessions, dtype=np.bool_))


def _happenings(tape: Tape, t: int, snapshot: Snapshot, row: int, columns: dict[str, int]) -> None:
    """Write what happens to holdings before a session's open."""
    before, now = snapshot.at(row, "pre_open"), tape.grid[t]
    now[[columns[symbol] for symbol in before.delisted_now()], GONE] = 1.0
    actions = before.todays_actions()
    for action in actions:
        column = columns[action.symbol]
        if action.kind == "dividend":
            now[column, DIVIDEND] += action.value
        elif now[column, SPLIT] != 1.0:
            raise UserError(f"two splits of {action.symbol} in one session", mend="mend the data set")
        else:
            now[column, SPLIT] = action.value
    # Who holds a name that leaves is paid out in the first session without it, and only then.
    left = now[:, GONE] if t == 0 else now[:, GONE] - tape.grid[t - 1, :, GONE]
    tape.eventful[t] = bool(actions) or bool(left.any())


def _choice(tape: Tape, t: int, choice: Choice, columns: dict[str, int]) -> None:
    tape.grid[t, [columns[symbol] for symbol in choice.buyable], MEMBER] = 1.0


def _prices(tape: Tape, t: int, bars: SessionBars, config: MarketConfig, venue: Venue) -> None:
    """Write one session's prices and what may be traded; columns not listed yet stay empty."""
    now = tape.grid[t, : len(bars.symbols)]
    fill = bars.open if config.fill == "open" else bars.close
    mark = bars.open if config.mark == "open" else bars.close
    trades = bars.trading & (fill > 0.0)
    now[:, FILL] = np.where(trades, fill, np.nan)
    now[:, MARK] = np.where(bars.trading & (mark > 0.0), mark, np.nan)
    up, down = _at_limit(bars, fill, venue)
    open_to_all = trades & (now[:, GONE] == 0.0)
    now[:, BUYABLE] = open_to_all & ~up
    now[:, SELLABLE] = open_to_all & ~down
    share, lending = venue.participation, venue.shorting
    counted = ~np.isnan(bars.volume)
    if share.max_share is not None:
        bound = counted & (share.index_funds | (tape.facts[: len(now), FUND] == 0.0))
        now[:, ROOM] = np.where(bound, bars.volume * share.max_share, np.inf)
    if lending.allowed and lending.max_volume_share is not None:
        now[:, LENDABLE] = np.where(counted, bars.volume * lending.max_volume_share, np.inf)
    for column, symbol in enumerate(bars.symbols):
        if symbol in lending.unavailable:
            now[column, LENDABLE] = 0.0


def _at_limit(bars: SessionBars, fill: Floats, venue: Venue) -> tuple[Bools, Bools]:
    """Return which names are at their upper and at their lower price limit."""
    limits = venue.price_limits
    nobody = np.zeros(len(bars.symbols), dtype=np.bool_)
    if limits is None:
        return nobody, nobody
    bounds = [limits.threshold(one.board) for one in bars.instruments]
    threshold = np.array([np.inf if bound is None else bound for bound in bounds])
    price = fill if limits.limit_test == "open" else bars.close
    with np.errstate(invalid="ignore", divide="ignore"):
        change = np.where(bars.prev_close > 0.0, price / bars.prev_close - 1.0, 0.0)
    return change >= threshold - AT_LIMIT, change <= AT_LIMIT - threshold
