"""A second pair of books: follows an exchange's events and complains when a rule was broken.

It knows the venue's rules and the session's bars, keeps its own count of cash and shares in the plainest way,
and shares no code with the ledger.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tradeassay.account import Venue
from tradeassay.core.events import (
    Delisted,
    DividendPaid,
    Event,
    Expired,
    Filled,
    MarginCalled,
    Marked,
    Rejected,
    Rested,
    SplitApplied,
)
from tradeassay.core.orders import Order
from tradeassay.core.view import SessionBars
from tradeassay.testing._failed import CheckFailed

_CLOSE = 1e-9


class Auditor:
    """Checks one account's events, session by session; every method raises :class:`CheckFailed`."""

    def __init__(self, venue: Venue, cash: float, label: str) -> None:
        self.venue = venue
        self.label = label
        self.cash = cash
        self.turnover = cash
        self.shares: dict[str, float] = {}
        self.bought: dict[str, float] = {}
        self.volume: dict[str, float] = {}
        self.waiting: set[str] = set()
        self.called = False

    def opening(self, bars: SessionBars, events: Iterable[Event]) -> None:
        """Check what happened before the open."""
        self.bars = bars
        self.column = {symbol: column for column, symbol in enumerate(bars.symbols)}
        self.bought, self.volume, self.called = {}, {}, False
        for event in events:
            self._book(event)

    def session(self, placed: Collection[tuple[str, Order]], events: Iterable[Event]) -> None:
        """Check the fills of a session, its end, and that every order got an answer."""
        answered: set[str] = set()
        for event in events:
            if isinstance(event, Filled):
                self._fill(event)
            elif isinstance(event, Rejected) and not event.detail:
                self._fail(f"order {event.order_id} was rejected without a word of explanation")
            if isinstance(event, Filled | Rejected | Expired | Rested):
                answered.add(event.order_id)
            self._book(event)
        for order_id, _ in placed:
            if order_id not in answered:
                self._fail(f"order {order_id} vanished without an event")

    def _fail(self, what: str) -> None:
        raise CheckFailed(f"venue '{self.venue.id}', {self.label}, {self.bars.session}: {what}")

    def _fill(self, event: Filled) -> None:
        column = self.column[event.symbol]
        bars = self.bars
        what = f"{event.symbol} x {event.quantity:g} at {event.price:g}"
        if not bars.trading[column]:
            self._fail(f"{what} was filled although the name does not trade")
        if not bars.low[column] <= event.reference <= bars.high[column]:
            self._fail(
                f"{what}: reference {event.reference:g} lies outside [{bars.low[column]}, {bars.high[column]}]"
            )
        slip = abs(event.price / event.reference - 1.0)
        if slip > self.venue.slippage.bps * 1e-4 + _CLOSE:
            self._fail(f"{what} slipped by {slip:.6f}, more than the venue says")
        if (event.price - event.reference) * event.quantity < 0.0:
            self._fail(f"{what} slipped in favour of the trader")
        self._costs(event, what)
        if not event.forced:
            self._limits(event, column, what)
            self._volume(event, column, what)
        if self.venue.margin is None:
            self._holding(event, what)

    def _costs(self, event: Filled, what: str) -> None:
        value = abs(event.quantity) * event.price * event.multiplier
        fee, tax = self.venue.fees.charge(value, abs(event.quantity), event.quantity > 0.0)
        if abs(event.fee - fee) + abs(event.tax - tax) > _CLOSE * (value + 1.0):
            self._fail(f"{what} cost {event.fee + event.tax:g}, the venue's fees are {fee + tax:g}")
        signed = 0.0 if event.margined else event.quantity * event.price * event.multiplier
        if abs(event.cash + signed + event.fee + event.tax) > _CLOSE * (value + 1.0):
            self._fail(f"{what} moved {event.cash!r} of cash, which is not its value and its costs")

    def _limits(self, event: Filled, column: int, what: str) -> None:
        limits = self.venue.price_limits
        previous = float(self.bars.prev_close[column])
        if limits is None or not previous > 0.0:
            return
        threshold = limits.threshold(self.bars.instruments[column].board)
        price = event.reference if limits.limit_test == "open" else float(self.bars.close[column])
        if threshold is None:
            return
        change = price / previous - 1.0
        if (change >= threshold and event.quantity > 0.0) or (change <= -threshold and event.quantity < 0.0):
            self._fail(f"{what} was filled at its price limit ({change:+.2%})")

    def _volume(self, event: Filled, column: int, what: str) -> None:
        taken = self.volume[event.symbol] = self.volume.get(event.symbol, 0.0) + abs(event.quantity)
        policy = self.venue.participation
        if self.bars.instruments[column].kind == "index" and not policy.index_funds:
            return
        share = policy.max_share
        volume = float(self.bars.volume[column])
        if share is not None and taken > share * volume * (1.0 + _CLOSE):
            self._fail(f"{what} brings the account to {taken:g} of a volume of {volume:g}")

    def _holding(self, event: Filled, what: str) -> None:
        """On a cash account: whole lots bought, nothing locked or missing sold."""
        held = self.shares.get(event.symbol, 0.0)
        if event.quantity > 0.0:
            lot = self.venue.lots.lot_of(self.bars.instruments[self.column[event.symbol]])
            count = event.quantity / lot
            if abs(count - round(count)) > 1e-6 + _CLOSE * count:
                self._fail(f"{what} is no multiple of the lot {lot:g}")
            self.bought[event.symbol] = self.bought.get(event.symbol, 0.0) + event.quantity
        elif -event.quantity > held * (1.0 + _CLOSE):
            self._fail(f"{what} sells more than the {held:g} held")
        elif self.venue.settlement.t_plus:
            free = held - self.bought.get(event.symbol, 0.0)
            if -event.quantity > free + _CLOSE:
                self._fail(f"{what} sells shares bought today ({free:g} were free)")

    def _book(self, event: Event) -> None:
        """Carry an event into the second books."""
        moved = getattr(event, "cash", 0.0)
        if isinstance(event, Marked):
            self._mark(event)
            return
        self.cash += moved
        self.turnover += abs(moved)
        if self.venue.margin is None and self.cash < -_CLOSE * self.turnover:
            self._fail(f"cash fell to {self.cash:g}")
        match event:
            case Filled(symbol=symbol, quantity=quantity):
                self._hold(symbol, self.shares.get(symbol, 0.0) + quantity)
            case SplitApplied(symbol=symbol, quantity=quantity):
                self._hold(symbol, quantity)
            case Delisted(symbol=symbol):
                self._hold(symbol, 0.0)
            case DividendPaid(symbol=symbol, per_share=per_share, cash=cash):
                if abs(cash - per_share * self.shares.get(symbol, 0.0)) > _CLOSE * (abs(cash) + 1.0):
                    self._fail(f"dividend of {symbol} pays {cash:g}")
            case MarginCalled():
                self.called = True
            case _:
                pass

    def _hold(self, symbol: str, quantity: float) -> None:
        if abs(quantity) < 1e-9:
            self.shares.pop(symbol, None)
        else:
            self.shares[symbol] = quantity

    def _mark(self, event: Marked) -> None:
        positions = required = 0.0
        if set(event.marks) != set(self.shares):
            self._fail(f"marked {sorted(event.marks)}, held {sorted(self.shares)}")
        for symbol, quantity in self.shares.items():
            instrument = self.bars.instruments[self.column[symbol]]
            value = quantity * event.marks[symbol] * instrument.multiplier
            positions += 0.0 if instrument.kind == "future" else value
            required += 0.0 if self.venue.margin is None else self.venue.margin.required(value)
            fresh = bool(self.bars.trading[self.column[symbol]])
            if fresh == (symbol in event.stale):
                self._fail(
                    f"{symbol} is {'' if fresh else 'not '}trading and is{'' if fresh else ' not'} marked stale"
                )
        slack = _CLOSE * (self.turnover + abs(positions))
        if abs(event.cash - self.cash) > slack:
            self._fail(f"the mark says cash {event.cash!r}, the events add up to {self.cash!r}")
        if abs(event.nav - self.cash - positions) > slack:
            self._fail(f"NAV {event.nav!r} is not cash {self.cash!r} + positions {positions!r}")
        if event.nav < required - slack and not self.called:
            self._fail(f"equity {event.nav:g} is below the margin {required:g} without a call")
