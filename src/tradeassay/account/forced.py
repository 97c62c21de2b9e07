"""Trades that the venue makes itself: margin calls and the legs of a roll."""

from __future__ import annotations

from math import ceil

from tradeassay.account.emitting import emit, settle
from tradeassay.account.margin import Margin
from tradeassay.account.session import Session
from tradeassay.account.venue import Venue
from tradeassay.core.events import Event, Filled, MarginCalled

BELOW = 1e-9
"""Equity this far below the requirement, relatively, is still equal to it."""


def trade_at_mark(
    venue: Venue, order_id: str, column: int, quantity: float, session: Session, events: list[Event]
) -> None:
    """Trade a signed quantity at the session's marking price, with slippage and costs, limits aside."""
    account = session.account
    symbol, instrument = session.bars.symbols[column], session.bars.instruments[column]
    buying = quantity > 0.0
    reference: float = session.reference[column]
    price = venue.slippage.price(reference, buying)
    value = abs(quantity) * price * instrument.multiplier
    fee, tax = venue.fees.charge(value, abs(quantity), buying)
    future = instrument.kind == "future"
    cash = (0.0 if future else -value if buying else value) - fee - tax
    if future:
        settle(symbol, price, instrument.multiplier, account, events)
    filled = Filled(
        order_id, symbol, quantity, price, reference, fee, tax, cash, True, instrument.multiplier, future
    )
    emit(filled, account, events)


def required_margin(margin: Margin, session: Session) -> float:
    """Return the maintenance requirement of the account at the session's prices."""
    return sum((margin.required(_value(symbol, session)) for symbol in session.account.held()), 0.0)


def call_margin(venue: Venue, margin: Margin, session: Session, events: list[Event]) -> None:
    """Close positions while equity is below the maintenance requirement.

    The position with the largest requirement goes first, each one only as far as needed, at the marking
    price. A name that does not trade cannot be closed; the call then stays open until it does.
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
        quantity = _enough(venue, margin, column, required - equity, session)
        trade_at_mark(venue, f"call:{session.bars.session}:{symbol}", column, quantity, session, events)


def _enough(venue: Venue, margin: Margin, column: int, shortfall: float, session: Session) -> float:
    """Return the signed trade that closes as much of a position as frees ``shortfall`` of margin."""
    held = session.account.quantity(session.bars.symbols[column])
    instrument = session.bars.instruments[column]
    unit = session.reference[column] * instrument.multiplier
    costs = venue.fees.rate(held < 0.0) + abs(venue.slippage.price(1.0, held < 0.0) - 1.0)
    freed = margin.required(unit if held > 0.0 else -unit) - unit * costs
    lot = venue.lots.lot_of(instrument)
    closing = abs(held)
    if freed > 0.0:
        closing = min(closing, ceil(shortfall / freed / lot) * lot)
    return -closing if held > 0.0 else closing


def _value(symbol: str, session: Session) -> float:
    multiplier = session.bars.instruments[session.columns[symbol]].multiplier
    return session.account.quantity(symbol) * session.price_of(symbol) * multiplier


def _short(equity: float, required: float) -> bool:
    return equity < required - BELOW * (abs(equity) + required)
