"""Apply the events around a session: corporate actions before the open, charges and marks at the
end.

Before the open, dividends, splits and delistings are applied to the account. At the end of the
session borrow fees are charged, margin calls are made, and the account is marked.

Dividends come first and are per share held before a split of the same day. Corporate actions do not
change NAV. A dividend moves money from the mark to cash, a split changes the unit, and a delisting
pays out the mark.
"""

import math
from collections.abc import Collection, Sequence
from math import ceil, floor

from tradeassay_bench.account.ledger import Ledger
from tradeassay_bench.account.limits import Lots
from tradeassay_bench.account.margin import EQUAL, Margin
from tradeassay_bench.account.session import SessionState
from tradeassay_bench.account.venue import Venue
from tradeassay_bench.core.events import (
    BorrowCharged,
    Delisted,
    DividendPaid,
    Event,
    Filled,
    InterestCharged,
    MarginCalled,
    Marked,
    SplitApplied,
)
from tradeassay_bench.core.orders import LARGEST_PRICE, LEAST_PRICE
from tradeassay_bench.core.view import CorporateAction


def emit(event: Event, account: Ledger, events: list[Event]) -> None:
    """Append an event to ``events`` and apply it to the account."""
    events.append(event)
    account.apply(event)


def trade_at_mark(
    venue: Venue,
    order_id: str,
    column: int,
    quantity: float,
    session: SessionState,
    events: list[Event],
) -> None:
    """Trade a signed quantity at the session's marking price, with slippage and costs.

    Limits do not apply.
    """
    account = session.account
    symbol, instrument = session.bars.symbols[column], session.bars.instruments[column]
    buying = quantity > 0.0
    reference: float = session.reference[column]
    price = venue.slippage.price(reference, buying)
    value = abs(quantity) * price * instrument.multiplier
    fee, tax = venue.fees.charge(value, abs(quantity), buying)
    cash = (-value if buying else value) - fee - tax
    filled = Filled(
        order_id,
        symbol,
        quantity,
        price,
        reference,
        fee,
        tax,
        cash,
        True,
        instrument.multiplier,
    )
    emit(filled, account, events)


def required_margin(margin: Margin, session: SessionState) -> float:
    """Return the maintenance margin of all positions at the session's reference prices."""
    return math.fsum(margin.required(_value(symbol, session)) for symbol in session.account.held())


def call_margin(venue: Venue, margin: Margin, session: SessionState, events: list[Event]) -> None:
    """Close positions while equity is below the maintenance requirement.

    The position with the largest requirement is closed first, at the marking price and only as far
    as necessary. A name that does not trade cannot be closed. The margin call then stays open until
    the name trades again.
    """
    equity, required = session.exposure()[0], required_margin(margin, session)
    if not _short(equity, required):
        return
    emit(MarginCalled(equity, required), session.account, events)
    needs = {symbol: margin.required(_value(symbol, session)) for symbol in session.account.held()}
    for symbol in sorted(needs, key=lambda name: -needs[name]):
        column = session.columns[symbol]
        if not session.has_price(column):
            continue
        equity, required = session.exposure()[0], required_margin(margin, session)
        if not _short(equity, required):
            return
        # The signed trade that frees ``shortfall`` of margin from a position.
        shortfall = required - equity
        held = session.account.quantity(session.bars.symbols[column])
        instrument = session.bars.instruments[column]
        unit = session.reference[column] * instrument.multiplier
        costs = venue.fees.rate(held < 0.0) + abs(venue.slippage.price(1.0, held < 0.0) - 1.0)
        freed = margin.required(unit if held > 0.0 else -unit) - unit * costs
        lot = venue.lots.lot_of(instrument)
        closing = abs(held)
        if freed > 0.0:
            closing = min(closing, ceil(shortfall / freed / lot) * lot)
        quantity = -closing if held > 0.0 else closing
        trade_at_mark(
            venue, f"call:{session.bars.session}:{symbol}", column, quantity, session, events
        )


def _value(symbol: str, session: SessionState) -> float:
    """Return the signed value of a holding at the session's reference price."""
    multiplier = session.bars.instruments[session.columns[symbol]].multiplier
    return session.account.quantity(symbol) * session.price_of(symbol) * multiplier


def _short(equity: float, required: float) -> bool:
    """Return whether equity is below a requirement by more than a rounding error."""
    return equity < required - EQUAL * (abs(equity) + required)


def close_positions(venue: Venue, session: SessionState, events: list[Event]) -> None:
    """Append and apply all events at the end of a session. The last event is the mark."""
    if venue.margin is not None:
        charge(venue, venue.margin, session, events)
        call_margin(venue, venue.margin, session, events)
    mark(session, events)


def charge(venue: Venue, margin: Margin, session: SessionState, events: list[Event]) -> None:
    """Charge one session's borrow fees on short positions and interest on borrowed cash."""
    account = session.account
    borrow = venue.shorting.borrow_per_year / venue.periods_per_year
    if borrow > 0.0:
        for symbol in account.held():
            instrument = session.bars.instruments[session.columns[symbol]]
            quantity = account.quantity(symbol)
            if quantity < 0.0:
                fee = quantity * session.price_of(symbol) * instrument.multiplier * borrow
                emit(BorrowCharged(symbol, fee), account, events)
    interest = margin.interest_per_year / venue.periods_per_year
    if account.cash < 0.0 and interest > 0.0:
        emit(InterestCharged(account.cash * interest), account, events)


def mark(session: SessionState, events: list[Event]) -> None:
    """Mark the account. A name without a price keeps its last mark and is listed as stale."""
    account, instruments, columns = session.account, session.bars.instruments, session.columns
    reference, trading = session.reference, session.trading
    marks: dict[str, float] = {}
    stale: list[str] = []
    positions = 0.0
    for symbol, holding in account.holdings.items():
        column = columns[symbol]
        price: float = reference[column]
        if not (trading[column] and LEAST_PRICE <= price <= LARGEST_PRICE):
            price = holding.mark
            stale.append(symbol)
        marks[symbol] = price
        positions += holding.quantity * price * instruments[column].multiplier
    cash = account.cash
    emit(Marked(cash, positions, cash + positions, tuple(stale), marks), account, events)


ROUNDING = 1e-12
"""Relative difference below which two quantities are treated as equal. The value is far below the
ledger's tolerance, and below the rounding of a vendor's split ratio (0.3333333 for a third). A
remainder caused by such a ratio is therefore paid in cash.
"""


def apply_actions(
    actions: Sequence[CorporateAction],
    delisted: Collection[str],
    lots: Lots,
    session: SessionState,
    events: list[Event],
) -> None:
    """Apply dividends, then splits, then delistings, and append their events."""
    account = session.account
    for action in actions:
        if action.kind == "dividend":
            quantity = account.quantity(action.symbol)
            if quantity != 0.0:
                paid = DividendPaid(action.symbol, action.value, quantity, action.value * quantity)
                emit(paid, account, events)
    for action in actions:
        if action.kind == "split" and account.quantity(action.symbol) != 0.0:
            emit(_split(action, lots, session), account, events)
    if delisted:
        for symbol in account.held():
            if symbol in delisted:
                instrument = session.bars.instruments[session.columns[symbol]]
                quantity, price = account.quantity(symbol), account.mark(symbol)
                cash = quantity * price * instrument.multiplier
                emit(Delisted(symbol, quantity, price, cash), account, events)


def _split(action: CorporateAction, lots: Lots, session: SessionState) -> SplitApplied:
    """Return the split of a holding: whole steps, and the cash value of the remainder.

    The number of steps is rounded down. The holder of a long position receives the cash, and a
    short seller pays it.
    """
    symbol, ratio = action.symbol, action.value
    account = session.account
    step = lots.step_of(session.bars.instruments[session.columns[symbol]])
    held, mark = account.quantity(symbol), account.mark(symbol)
    quantity = abs(held) * ratio
    per = round(1.0 / step) if step < 1.0 else 0
    count = quantity * per if per else quantity / step
    steps = floor(count * (1.0 + ROUNDING))
    whole = steps / per if per else steps * step
    if held < 0.0:
        whole = -whole
    if abs(held * ratio - whole) <= 2.0 * ROUNDING * abs(held * ratio):
        return SplitApplied(symbol, ratio, whole, 0.0)
    # Value before minus value after, in the order of the ledger's sum.
    return SplitApplied(symbol, ratio, whole, held * mark - whole * mark / ratio)
