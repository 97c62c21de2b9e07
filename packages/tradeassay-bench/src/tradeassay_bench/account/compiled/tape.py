"""Store a market as arrays: every input of a fill, by session and name."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import UNSET

from tradeassay.core.arrays import Bools, Floats
from tradeassay.core.errors import UserError
from tradeassay_bench.account.commission import Fees
from tradeassay_bench.account.limits import AT_LIMIT, BoardLimits
from tradeassay_bench.account.session import OpenOrClose
from tradeassay_bench.account.venue import Venue
from tradeassay_bench.core.view import CorporateAction, Instrument, SessionBars

FILL, MARK, MEMBER, BUYABLE, SELLABLE, ROOM, LENDABLE, DIVIDEND, SPLIT, GONE = range(10)
"""Fields of :attr:`Tape.grid` per session and name.

``FILL`` and ``MARK`` are the prices of fills and marks (NaN without a price). ``MEMBER`` is 1 if
the universe allows opening a position. ``BUYABLE`` and ``SELLABLE`` are 1 if the market allows a
purchase or a sale. ``ROOM`` is the largest number of units that one account may trade, ``LENDABLE``
the largest short position. ``DIVIDEND`` is the dividend per share. ``SPLIT`` is the number of new
shares per old share (1 without a split). ``GONE`` is 1 if the name has left the exchange.
"""
LOT, STEP, MULTIPLIER, FUND = range(4)
"""Fields of :attr:`Tape.facts` per name: lot, smallest step, multiplier, and 1 for an index
fund.
"""


class Tape(NamedTuple):
    """One window of one market at one venue.

    ``grid`` has shape (sessions, names, 10), ``facts`` shape (names, 4). ``eventful`` has shape
    (sessions,) and marks sessions with corporate actions before the open. There are few large
    arrays, because the compile time grows with their number.
    """

    grid: Floats
    facts: Floats
    eventful: Bools


class TapeRules(NamedTuple):
    """The costs of a trade and the limits of an account, as numbers.

    Rates are fractions per trade or per session. ``max_weight`` and ``max_positions`` are infinite
    if there is no limit. The margin fields are unused in a cash account.
    """

    buy_bps: float
    sell_bps: float
    tax_bps: float
    minimum: float
    minimum_covers_tax: bool
    per_unit: float
    slip_bps: float
    min_value: float
    max_weight: float
    max_positions: float
    margin: bool
    initial: float
    maintenance_long: float
    maintenance_short: float
    borrow: float
    interest: float


def rules_of(venue: Venue, first: str, last: str) -> TapeRules:
    """Return a venue's rules between two ISO days, as numbers.

    Raises :class:`UserError` if fees or taxes changed between them.
    """
    margin, own = venue.margin, venue.concentration
    fees = _fees_between(venue, first, last)
    return TapeRules(
        buy_bps=float(fees.buy_bps + (0.0 if fees.buy_tax_bps is UNSET else fees.buy_tax_bps)),
        sell_bps=float(fees.sell_bps),
        tax_bps=float(fees.sell_tax_bps),
        minimum=float(fees.minimum),
        minimum_covers_tax=bool(fees.minimum_covers_tax),
        per_unit=float(fees.per_unit),
        slip_bps=float(venue.slippage.bps),
        min_value=float(venue.lots.min_value),
        max_weight=np.inf if own.max_weight is None else float(own.max_weight),
        max_positions=np.inf if own.max_positions is None else float(own.max_positions),
        margin=margin is not None,
        initial=0.0 if margin is None else float(margin.initial),
        maintenance_long=0.0 if margin is None else float(margin.maintenance_long),
        maintenance_short=0.0 if margin is None else float(margin.maintenance_short),
        borrow=venue.shorting.borrow_per_year / venue.periods_per_year,
        interest=0.0 if margin is None else margin.interest_per_year / venue.periods_per_year,
    )


def _fees_between(venue: Venue, first: str, last: str) -> Fees:
    """Return the fees that apply from ``first`` to ``last``. Raises :class:`UserError` if they
    changed.
    """
    start, end = venue.era(first), venue.era(last)
    if start is None or end is None:
        return venue.fees
    if start.fees != end.fees:
        hint = "a luck baseline uses one set of costs: choose a window before or after the change"
        raise UserError(
            f"the taxes of venue '{venue.id}' changed between {first} and {last}", hint=hint
        )
    return start.fees


def blank_tape(sessions: int, instruments: Sequence[Instrument], venue: Venue) -> Tape:
    """Return a tape without prices.

    Raises :class:`UserError` for futures, which no account can hold.
    """
    for instrument in instruments:
        if instrument.kind == "future":
            hint = "random portfolios contain only stocks, funds and coins"
            raise UserError(
                f"a luck baseline does not support futures ({instrument.symbol})", hint=hint
            )
    grid = np.zeros((sessions, len(instruments), GONE + 1))
    grid[:, :, [FILL, MARK]] = np.nan
    grid[:, :, ROOM] = np.inf
    grid[:, :, LENDABLE] = np.inf if venue.shorting.allowed else 0.0
    grid[:, :, SPLIT] = 1.0
    lots = venue.lots
    facts = [
        (lots.lot_of(each), lots.step_of(each), each.multiplier, float(each.kind == "index"))
        for each in instruments
    ]
    return Tape(grid, np.array(facts, dtype=np.float64), np.zeros(sessions, dtype=np.bool_))


def write_actions(
    tape: Tape,
    t: int,
    actions: Sequence[CorporateAction],
    gone: Iterable[str],
    columns: dict[str, int],
) -> None:
    """Write the corporate actions before a session's open.

    ``gone`` contains the symbols that have left the exchange. Raises :class:`UserError` for two
    splits of a name on one day, because rounding depends on their order.
    """
    row = tape.grid[t]
    row[[columns[symbol] for symbol in gone], GONE] = 1.0
    for action in actions:
        column = columns[action.symbol]
        if action.kind == "dividend":
            row[column, DIVIDEND] += action.value
        elif row[column, SPLIT] != 1.0:
            raise UserError(
                f"two splits of {action.symbol} in one session", hint="fix the data set"
            )
        else:
            row[column, SPLIT] = action.value
    # Holders of a delisted name are paid out in the first session after its last one, and only
    # then.
    newly_gone = row[:, GONE] if t == 0 else row[:, GONE] - tape.grid[t - 1, :, GONE]
    tape.eventful[t] = bool(actions) or bool(newly_gone.any())


def write_prices(
    tape: Tape, t: int, bars: SessionBars, venue: Venue, *, fill: OpenOrClose, mark: OpenOrClose
) -> None:
    """Write one session's prices and trading permissions. Unlisted columns stay empty."""
    rows = tape.grid[t, : len(bars.symbols)]
    filled = bars.open if fill == "open" else bars.close
    marked = bars.open if mark == "open" else bars.close
    trades = bars.trading & (filled > 0.0)
    rows[:, FILL] = np.where(trades, filled, np.nan)
    rows[:, MARK] = np.where(bars.trading & (marked > 0.0), marked, np.nan)
    up, down = _at_limit(bars, filled, venue)
    open_to_all = trades & (rows[:, GONE] == 0.0)
    rows[:, BUYABLE] = open_to_all & ~up
    rows[:, SELLABLE] = open_to_all & ~down
    share, lending = venue.participation, venue.shorting
    counted = ~np.isnan(bars.volume)
    if share.max_share is not None:
        bound = counted & (share.index_funds | (tape.facts[: len(rows), FUND] == 0.0))
        rows[:, ROOM] = np.where(bound, bars.volume * share.max_share, np.inf)
    if lending.allowed and lending.max_volume_share is not None:
        rows[:, LENDABLE] = np.where(counted, bars.volume * lending.max_volume_share, np.inf)
    for column, symbol in enumerate(bars.symbols):
        if symbol in lending.unavailable:
            rows[column, LENDABLE] = 0.0


def _at_limit(bars: SessionBars, fill: Floats, venue: Venue) -> tuple[Bools, Bools]:
    """Return two masks: the names at their upper and the names at their lower price limit."""
    era = venue.era(bars.session)
    limits = venue.price_limits if era is None else era.price_limits
    none_at_limit = np.zeros(len(bars.symbols), dtype=np.bool_)
    if limits is None:
        return none_at_limit, none_at_limit
    price = fill
    if isinstance(limits, BoardLimits):
        bounds = [
            limits.threshold(
                instrument.board, special=bars.is_special(column), age=bars.age(column)
            )
            for column, instrument in enumerate(bars.instruments)
        ]
    else:
        bounds = [limits.threshold(instrument.board) for instrument in bars.instruments]
        price = fill if limits.limit_test == "open" else bars.close
    threshold = np.array([np.inf if bound is None else bound for bound in bounds])
    with np.errstate(invalid="ignore", divide="ignore"):
        change = np.where(bars.prev_close > 0.0, price / bars.prev_close - 1.0, 0.0)
    return change >= threshold - AT_LIMIT, change <= AT_LIMIT - threshold
