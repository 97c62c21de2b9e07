"""The end of a session: every holding at the bar's price, cash + positions = NAV."""

from __future__ import annotations

from collections.abc import Iterator

from tradeassay.core.events import Marked
from tradeassay.runs.audit.day import Account, Day
from tradeassay.runs.audit.finding import Finding, near


def check_mark(day: Day, account: Account, event: Marked) -> Iterator[Finding]:
    """Recompute the value of the account from the data and compare."""
    if set(event.marks) != set(account.shares):
        odd = sorted(set(event.marks) ^ set(account.shares))
        yield Finding("nav", f"marked and held names differ: {', '.join(odd[:3])}")
        return
    worth = 0.0
    for symbol, quantity in account.shares.items():
        price = day.mark_price(symbol)
        expected = account.marks.get(symbol) if price is None else price
        if event.marks[symbol] != expected:
            yield Finding("nav", f"{symbol} is marked at {event.marks[symbol]:g}, should be {expected}")
        if (symbol in event.stale) != (price is None):
            yield Finding("nav", f"{symbol} is {'not ' if price is None else ''}named as stale")
        instrument = day.instrument(symbol)
        if instrument.kind != "future":
            worth += quantity * event.marks[symbol] * instrument.multiplier
    scale = abs(account.cash) + abs(worth)
    if not near(event.cash, account.cash, scale):
        yield Finding("cash", f"the balance is {account.cash:.2f}, the journal says {event.cash:.2f}")
    if not near(event.positions, worth, scale):
        yield Finding("nav", f"positions are worth {worth:.2f}, the journal says {event.positions:.2f}")
    if not near(event.nav, account.cash + worth, scale):
        yield Finding("nav", f"the account is worth {account.cash + worth:.2f}, the journal says {event.nav:.2f}")
    if day.venue.margin is None and event.cash < 0:
        yield Finding("cash", f"a cash account ends the session with {event.cash:.2f}")
