"""Corporate actions and other movements of money: what the data says must happen does, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tradeassay.core.events import (
    BorrowCharged,
    Delisted,
    DividendPaid,
    Event,
    InterestCharged,
    Settled,
    SplitApplied,
)
from tradeassay.runs.audit.day import Account, Day
from tradeassay.runs.audit.finding import Finding, near


def check_opening(day: Day, account: Account, events: Sequence[Event]) -> Iterator[Finding]:
    """Compare what happened before the open with the data; the account must stand before it."""
    due = {
        (action.kind, action.symbol): action.value for action in day.actions if account.shares.get(action.symbol)
    }
    leaving = {symbol for symbol in account.shares if symbol in day.delisted}
    for event in events:
        if isinstance(event, DividendPaid):
            value = due.pop(("dividend", event.symbol), None)
            if value is None or value != event.per_share:
                yield Finding(
                    "actions", f"{event.symbol} paid {event.per_share:g} per share, the data says {value}"
                )
        elif isinstance(event, SplitApplied):
            value = due.pop(("split", event.symbol), None)
            if value is None or value != event.ratio:
                yield Finding("actions", f"{event.symbol} was split {event.ratio:g}, the data says {value}")
        elif isinstance(event, Delisted):
            if event.symbol not in leaving:
                yield Finding("actions", f"{event.symbol} was paid out and has not left the exchange")
            leaving.discard(event.symbol)
    for kind, symbol in due:
        yield Finding("actions", f"the {kind} of {symbol} did not reach the account")
    for symbol in sorted(leaving):
        yield Finding("actions", f"{symbol} has left the exchange and was not paid out")


def check_movement(day: Day, account: Account, event: Event) -> Iterator[Finding]:
    """Check the sum that an event moves; the account must stand before it."""
    if isinstance(event, InterestCharged):
        yield from _interest(day, account, event)
    elif isinstance(event, DividendPaid | SplitApplied | Delisted | Settled | BorrowCharged):
        held, mark = account.shares.get(event.symbol, 0.0), account.marks.get(event.symbol, 0.0)
        if held == 0.0:
            yield Finding("cash", f"{event.symbol} moved money and is not held")
        elif isinstance(event, DividendPaid):
            if not near(event.quantity, held) or not near(event.cash, held * event.per_share):
                yield Finding("cash", f"dividend of {event.symbol}: {event.cash:g} on {held:g} shares")
        elif isinstance(event, SplitApplied):
            yield from _split(event, held, mark)
        elif isinstance(event, Delisted):
            yield from _payout(day, event, held, mark)
        elif isinstance(event, Settled):
            yield from _settlement(day, event, held, mark)
        else:
            yield from _borrow(day, event, held, mark)


def _split(event: SplitApplied, held: float, mark: float) -> Iterator[Finding]:
    worth = event.quantity * mark / event.ratio + event.cash
    if not near(worth, held * mark) or abs(event.quantity - held * event.ratio) >= 1.0:
        yield Finding("cash", f"split of {event.symbol}: {held:g} shares became {event.quantity:g}")


def _payout(day: Day, event: Delisted, held: float, mark: float) -> Iterator[Finding]:
    instrument = day.instrument(event.symbol)
    worth = 0.0 if instrument.kind == "future" else held * event.price * instrument.multiplier
    if not near(event.quantity, held) or event.price != mark or not near(event.cash, worth):
        yield Finding("cash", f"{event.symbol} was paid out at {event.price:g}, its last mark was {mark:g}")


def _settlement(day: Day, event: Settled, held: float, mark: float) -> Iterator[Finding]:
    size = held * day.instrument(event.symbol).multiplier
    if not near(event.cash, size * (event.price - mark), size * mark):
        yield Finding("cash", f"settlement of {event.symbol}: {event.cash:g} for {mark:g} to {event.price:g}")


def _borrow(day: Day, event: BorrowCharged, held: float, mark: float) -> Iterator[Finding]:
    price = day.mark_price(event.symbol) or mark
    rate = day.venue.shorting.borrow_per_year / day.venue.periods_per_year
    owed = min(held, 0.0) * price * day.instrument(event.symbol).multiplier * rate
    if not near(event.cash, owed):
        yield Finding("cash", f"borrow fee of {event.symbol}: {event.cash:g}, the venue takes {owed:g}")


def _interest(day: Day, account: Account, event: InterestCharged) -> Iterator[Finding]:
    rate = 0.0 if day.venue.margin is None else day.venue.margin.interest_per_year
    owed = min(account.cash, 0.0) * rate / day.venue.periods_per_year
    if not near(event.cash, owed):
        yield Finding("cash", f"interest of {event.cash:g}, the venue takes {owed:g}")
