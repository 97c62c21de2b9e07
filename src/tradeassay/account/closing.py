"""The end of a session: settle and roll futures, charge what is borrowed, call margin, mark."""

from __future__ import annotations

from tradeassay.account.emitting import emit, settle
from tradeassay.account.forced import call_margin, trade_at_mark
from tradeassay.account.futures import is_over
from tradeassay.account.margin import Margin
from tradeassay.account.session import Session
from tradeassay.account.venue import Venue
from tradeassay.core.events import BorrowCharged, Delisted, Event, InterestCharged, Marked, Rolled


def close_positions(venue: Venue, session: Session, events: list[Event]) -> None:
    """Append and apply everything that ends a session; the last event is the mark."""
    if venue.margin is not None:
        settle_futures(session, events)
        end_contracts(venue, session, events)
        charge(venue, venue.margin, session, events)
        call_margin(venue, venue.margin, session, events)
        settle_futures(session, events)
    mark(session, events)


def settle_futures(session: Session, events: list[Event]) -> None:
    """Mark every held future to the session's price and move the gains in cash."""
    account = session.account
    for symbol in account.held():
        instrument = session.bars.instruments[session.columns[symbol]]
        if instrument.kind == "future":
            settle(symbol, session.price_of(symbol), instrument.multiplier, account, events)


def end_contracts(venue: Venue, session: Session, events: list[Event]) -> None:
    """Roll contracts that near their expiry, and end those that reached it."""
    account, bars, futures = session.account, session.bars, venue.futures
    for symbol in account.held():
        column = session.columns[symbol]
        instrument = bars.instruments[column]
        if instrument.kind != "future":
            continue
        quantity = account.quantity(symbol)
        if futures.must_roll(instrument, bars.session) and session.has_price(column):
            into = futures.next_contract(instrument, session)
            if into is not None:
                order_id = f"roll:{bars.session}:{symbol}"
                trade_at_mark(venue, order_id, column, -quantity, session, events)
                trade_at_mark(venue, order_id, into, quantity, session, events)
                emit(Rolled(symbol, bars.symbols[into], quantity), account, events)
                multiplier = bars.instruments[into].multiplier
                settle(bars.symbols[into], session.reference[into], multiplier, account, events)
                continue
        if is_over(instrument, bars.session):
            emit(Delisted(symbol, quantity, account.mark(symbol), 0.0), account, events)


def charge(venue: Venue, margin: Margin, session: Session, events: list[Event]) -> None:
    """Charge one session's borrow fees on short positions and interest on borrowed cash."""
    account = session.account
    borrow = venue.shorting.borrow_per_year / venue.periods_per_year
    if borrow > 0.0:
        for symbol in account.held():
            instrument = session.bars.instruments[session.columns[symbol]]
            quantity = account.quantity(symbol)
            if quantity < 0.0 and instrument.kind != "future":
                fee = quantity * session.price_of(symbol) * instrument.multiplier * borrow
                emit(BorrowCharged(symbol, fee), account, events)
    interest = margin.interest_per_year / venue.periods_per_year
    if account.cash < 0.0 and interest > 0.0:
        emit(InterestCharged(account.cash * interest), account, events)


def mark(session: Session, events: list[Event]) -> None:
    """Value the account. A name without a price keeps its last mark and is named as stale."""
    account, instruments, columns = session.account, session.bars.instruments, session.columns
    reference, trading = session.reference, session.trading
    marks: dict[str, float] = {}
    stale: list[str] = []
    positions = 0.0
    for symbol in account.held():
        column = columns[symbol]
        price: float = reference[column]
        if not (trading[column] and price > 0.0):
            price = account.mark(symbol)
            stale.append(symbol)
        marks[symbol] = price
        instrument = instruments[column]
        if instrument.kind != "future":
            positions += account.quantity(symbol) * price * instrument.multiplier
    cash = account.cash
    emit(Marked(cash, positions, cash + positions, tuple(stale), marks), account, events)
