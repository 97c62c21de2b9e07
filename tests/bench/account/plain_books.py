"""Accounting in plain loops, written from the pages about venues and money.

It imports nothing that books money.

:class:`PlainBooks` follows a journal's events and works out every sum itself: what a fill costs,
what a dividend, a split, a delisting, a borrow fee and interest move, and what the account is
worth. The numbers of the venues are written down here a second time.
"""

from dataclasses import dataclass
from math import floor
from typing import Any

TOLERANCE = 1e-12


@dataclass(frozen=True)
class Terms:
    """One venue's numbers. Rates are basis points; ``borrow`` and ``interest`` are per year."""

    buy: float
    sell: float
    tax: float = 0.0
    minimum: float = 0.0
    slip: float = 0.0
    step: float = 1.0
    borrow: float = 0.0
    interest: float = 0.0
    sessions: int = 252
    margin: bool = False


TERMS = {
    "us-v1": Terms(1, 1, slip=2),
    "us-fractional-v1": Terms(1, 1, slip=2, step=0.0001),
    "us-margin-v1": Terms(1, 1, slip=2, borrow=0.01, interest=0.06, margin=True),
    "ashare-flat-v1": Terms(5, 5, tax=10, minimum=5),
    "ashare-v1": Terms(5, 5, tax=5, minimum=5),
    "ashare-qlib-v1": Terms(5, 15, minimum=5),
    "crypto-v1": Terms(5, 5, step=1e-8, sessions=365),
}
COVERS_TAX = ("ashare-flat-v1", "ashare-v1")
"""Where the minimum is one for commission and tax together."""


class Differs(AssertionError):
    """The account and these books disagree."""


def same(what: str, stated: float, own: float, scale: float) -> None:
    """Hold two sums to a relative difference of 1e-12 of the money involved."""
    if not abs(stated - own) <= TOLERANCE * max(abs(scale), abs(own), 1.0):
        raise Differs(f"{what}: the account says {stated!r}, plain books {own!r}")


class PlainBooks:
    """One account."""

    def __init__(self, venue: str, cash: float) -> None:
        self.name, self.terms = venue, TERMS[venue]
        self.cash = self.moved = cash
        self.held: dict[str, float] = {}
        self.mark: dict[str, float] = {}
        self.sums = 0
        """How many sums were compared."""

    def follow(
        self, bars: Any, actions: Any, gone: Any, orders: dict[str, Any], events: list[Any]
    ) -> None:
        """Go through one session's events, opening first, and compare every sum."""
        place = {symbol: column for column, symbol in enumerate(bars.symbols)}
        due = {(one.kind, one.symbol): one.value for one in actions if self.held.get(one.symbol)}
        leaving = {symbol for symbol in self.held if symbol in gone}
        for event in events:
            kind, symbol = type(event).__name__, getattr(event, "symbol", "")
            instrument = bars.instruments[place.get(symbol, -1)]
            held, mark, size = (
                self.held.get(symbol, 0.0),
                self.mark.get(symbol, 0.0),
                instrument.multiplier,
            )
            match kind:
                case "Filled":
                    self._filled(instrument, event, orders.get(event.order_id))
                case "DividendPaid":
                    each = due.pop(("dividend", symbol))
                    self._move("dividend", event.cash, each * held, self.moved)
                    self.mark[symbol] = max(mark - each, 0.0)
                case "SplitApplied":
                    self._split(event, due.pop(("split", symbol)), held, mark)
                case "Delisted":
                    leaving.discard(symbol)
                    self._move("payout", event.cash, held * mark * size, self.moved)
                    self._change(symbol, -held)
                case "BorrowCharged":
                    short = min(held, 0.0) * self._worth(bars, place[symbol], symbol)
                    own = short * size * self.terms.borrow / self.terms.sessions
                    self._move("borrow fee", event.cash, own, self.moved)
                case "InterestCharged":
                    own = min(self.cash, 0.0) * self.terms.interest / self.terms.sessions
                    self._move("interest", event.cash, own, self.moved)
                case "Marked":
                    self._marked(bars, place, event)
                case _:
                    assert kind in (
                        "Rejected",
                        "Trimmed",
                        "Rested",
                        "Expired",
                        "MarginCalled",
                    )
        if due or leaving:
            raise Differs(f"never happened: {due} {leaving}")

    def _move(self, what: str, stated: float, own: float, scale: float) -> None:
        same(what, stated, own, scale)
        self.sums += 1
        self.cash += own
        self.moved += abs(own)

    def _change(self, symbol: str, quantity: float) -> None:
        after = self.held.get(symbol, 0.0) + quantity
        if after == 0.0:
            self.held.pop(symbol, None)
            self.mark.pop(symbol, None)
        else:
            self.held[symbol] = after

    def _filled(self, instrument: Any, event: Any, order: Any) -> None:
        terms, buying, size = self.terms, event.quantity > 0, abs(event.quantity)
        slip = event.reference * terms.slip / 10_000
        price = event.reference + (slip if buying else -slip)
        limit = None if order is None or event.forced else order.limit_price
        if limit is not None:
            price = min(price, limit) if buying else max(price, limit)
        same("price", event.price, price, price)
        value = size * price * instrument.multiplier
        tax = 0.0 if buying else value * terms.tax / 10_000
        fee = value * (terms.buy if buying else terms.sell) / 10_000
        covers = self.name in COVERS_TAX
        fee = max(fee + tax, terms.minimum) - tax if covers else max(fee, terms.minimum)
        same("fee", event.fee, fee, value)
        same("tax", event.tax, tax, value)
        own = (-value if buying else value) - fee - tax
        if not terms.margin and -1e-9 * value <= self.cash + own < 0:
            own = -self.cash  # spent to the last cent
        self.mark.setdefault(event.symbol, event.reference)
        self._move(f"fill of {event.symbol}", event.cash, own, value + abs(self.cash))
        self._change(event.symbol, event.quantity)

    def _split(self, event: Any, ratio: float, held: float, mark: float) -> None:
        wished, per = abs(held) * ratio, round(1 / self.terms.step)
        whole = floor(wished * per * (1 + 1e-12)) / per
        signed = whole if held > 0 else -whole
        paid = 0.0 if abs(wished - whole) <= 2e-12 * wished else held * mark - signed * mark / ratio
        self._move("split", event.cash, paid, held * mark)
        same("shares after a split", event.quantity, signed, signed)
        self.mark[event.symbol] = mark / ratio
        self._change(event.symbol, event.quantity - held)
        if event.quantity:
            self.held[event.symbol] = event.quantity

    def _worth(self, bars: Any, column: int, symbol: str) -> float:
        close = float(bars.close[column])
        return close if bars.trading[column] and close > 0 else self.mark[symbol]

    def _marked(self, bars: Any, place: dict[str, int], event: Any) -> None:
        positions = gross = 0.0
        for symbol, quantity in self.held.items():
            column = place[symbol]
            instrument = bars.instruments[column]
            self.mark[symbol] = self._worth(bars, column, symbol)
            value = quantity * self.mark[symbol] * instrument.multiplier
            gross += abs(value)
            positions += value
        scale = self.moved + gross
        same("cash", event.cash, self.cash, scale)
        same("positions", event.positions, positions, scale)
        same("NAV", event.nav, self.cash + positions, scale)
        self.sums += 3
        if set(event.marks) != set(self.held):
            raise Differs(f"marked {sorted(event.marks)}, held {sorted(self.held)}")
