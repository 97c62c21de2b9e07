"""Candle tables: a few bars, orders in, expected events out, as text that can be checked by hand.

A session is one line, ``day | bars | orders | events`` with entries separated by ``;``. These events must follow
and no others; those for which the line has no room stand below it.

- bars: ``A 10 10.5 9.8 10.2 1000`` (open, high, low, close, volume), ``A -`` for a suspended name;
- what happens before the open stands among the bars: ``split A 2``, ``dividend A 0.5``, ``delist A``;
- orders: ``a BUY 100 A``, ``a SELL $500 A``, ``a A to 10%``, ``a A to $500``, ``a A to 30sh``, with ``limit 9.5``,
  ``stop 11``, ``gtc`` behind; ``a BUY A to 10%`` gives a target order a side;
- events: as :func:`render` writes them; the mark is left out unless the line asks for it with ``nav 1000.00``, and
  so are fees of 0.00.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps

import msgspec
import numpy as np

from tradeassay.account import Exchange, Ledger, Venue
from tradeassay.account.audit import AuditDay, Auditor
from tradeassay.core.events import (
    BorrowCharged,
    Delisted,
    DividendPaid,
    Event,
    Expired,
    Filled,
    InterestCharged,
    MarginCalled,
    Marked,
    Rejected,
    Rested,
    Rolled,
    Settled,
    SplitApplied,
    StepRecord,
    Trimmed,
)
from tradeassay.core.orders import Decision, Order
from tradeassay.core.view import Board, CorporateAction, Instrument, SessionBars


def _fill(event: Filled) -> str:
    tax = f" tax {event.tax:.2f}" if event.tax else ""
    forced = " forced" if event.forced else ""
    fee = "" if (shown := f" fee {event.fee:.2f}") == " fee 0.00" else shown
    what = f"fill {event.order_id} {event.symbol} {event.quantity:+g} @{event.price:.8g}"
    return f"{what}{fee}{tax} cash {event.cash:+.2f}{forced}"


def _mark(event: Marked) -> str:
    return f"nav {event.nav:.2f}" + (f" stale {','.join(event.stale)}" if event.stale else "")


_RENDER = {
    Filled: _fill,
    Marked: _mark,
    Rejected: lambda e: f"reject {e.order_id} {e.symbol} {e.reason}",
    Trimmed: lambda e: f"trim {e.order_id} {e.symbol} {e.asked:+g} to {e.filled:+g} {e.reason}",
    Rested: lambda e: f"rest {e.order_id} {e.symbol} {e.quantity:+g}",
    Expired: lambda e: f"expire {e.order_id} {e.symbol}",
    DividendPaid: lambda e: f"dividend {e.symbol} {e.cash:+.2f}",
    SplitApplied: lambda e: f"split {e.symbol} to {e.quantity:+g} cash {e.cash:+.2f}",
    Delisted: lambda e: f"delist {e.symbol} {e.quantity:+g} @{e.price:g} cash {e.cash:+.2f}",
    BorrowCharged: lambda e: f"borrow {e.symbol} {e.cash:+.2f}",
    InterestCharged: lambda e: f"interest {e.cash:+.2f}",
    Settled: lambda e: f"settle {e.symbol} {e.quantity:+g} @{e.price:.8g} cash {e.cash:+.2f}",
    Rolled: lambda e: f"roll {e.symbol} into {e.into} {e.quantity:+g}",
    MarginCalled: lambda e: f"call equity {e.equity:.2f} required {e.required:.2f}",
}


def render(event: Event) -> str:
    """Write an event as the tables do."""
    return _RENDER[type(event)](event)


def parse_order(text: str) -> tuple[str, Order]:
    """Read one order of a table."""
    order_id, *words = text.split()
    fields: dict[str, object] = {}
    if words[0] in ("BUY", "SELL"):
        fields["side"] = words.pop(0)
    while words[-1] == "gtc" or (len(words) > 2 and words[-2] in ("limit", "stop")):
        if words[-1] == "gtc":
            fields["tif"] = words.pop()
        else:
            price, kind = float(words.pop()), words.pop()
            fields["kind"], fields[f"{kind}_price"] = kind, price
    if "to" in words:
        symbol, _, amount = words
        unit = "target_value" if amount[0] == "$" else "target_weight" if amount[-1] == "%" else "target_shares"
        number = float(amount.strip("$%sh")) / (100 if unit == "target_weight" else 1)
    else:
        amount, symbol = words
        unit = "dollars" if amount[0] == "$" else "shares"
        number = float(amount.strip("$"))
    return order_id, Order(symbol=symbol, amount=number, unit=unit, **fields)


@dataclass
class Tape:
    """The sessions of a table, with an exchange and an account that go through them."""

    venue: Venue
    instruments: tuple[Instrument, ...]
    cash: float
    fill: str = "open"
    mark: str = "close"
    decide: str = "pre_open"
    universe: frozenset[str] | None = None
    records: list[StepRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.exchange = Exchange(self.venue)
        self.account = Ledger(self.cash, terms=self.venue.terms)
        self.auditor = Auditor(self.cash)
        self.symbols = tuple(instrument.symbol for instrument in self.instruments)
        self.last = {symbol: np.nan for symbol in self.symbols}

    def session(self, day: str, bars: list[str], orders: list[str]) -> list[Event]:
        """Play one line of a table and return its events, the mark included."""
        rows = {symbol: [np.nan] * 5 for symbol in self.symbols}
        actions: list[CorporateAction] = []
        gone: list[str] = []
        for entry in bars:
            word, *rest = entry.split()
            if word in ("split", "dividend"):
                symbol, value = rest[0], float(rest[1])
                actions.append(CorporateAction(symbol=symbol, kind=word, ex_date=day, known_at=0, value=value))
                self.last[symbol] = self.last[symbol] / value if word == "split" else self.last[symbol] - value
            elif word == "delist":
                gone.append(rest[0])
            elif rest != ["-"]:
                rows[word] = [float(number) for number in rest]
        table = np.array([rows[symbol] for symbol in self.symbols])
        o, h, low, c, v = table.T
        previous = np.array([self.last[symbol] for symbol in self.symbols])
        session = SessionBars(
            day, len(self.records), self.symbols, self.instruments, o, h, low, c, v, v * c, previous, ~np.isnan(c)
        )
        placed = [parse_order(order) for order in orders]
        opening = self.exchange.open_session(session, actions, self.account, delisted=gone)
        events = []
        if self.decide != "pre_open":
            events += self.exchange.work_waiting(session, self.account, until=self.decide)
        events += self.exchange.execute(placed, session, self.account, fill=self.fill, universe=self.universe)
        events += self.exchange.close_session(session, self.account, mark=self.mark)
        for symbol, close in zip(self.symbols, c, strict=True):
            self.last[symbol] = self.last[symbol] if np.isnan(close) else close
        self._journal(day, opening, placed, events)
        self._audit(session, actions, gone, opening, dict(placed), events)
        return opening + events

    def _audit(
        self,
        session: SessionBars,
        actions: list[CorporateAction],
        gone: list[str],
        opening: list[Event],
        placed: dict[str, Order],
        events: list[Event],
    ) -> None:
        own = self.venue.concentration
        day = AuditDay(
            self.venue,
            session,
            actions,
            gone,
            members=self.universe,
            fill=self.fill,
            mark=self.mark,
            max_weight=own.max_weight,
            max_positions=own.max_positions,
        )
        found = [*self.auditor.opening(day, opening), *self.auditor.session(day, placed, events)]
        assert [finding.what for finding in found] == []

    def _journal(
        self, day: str, opening: list[Event], placed: list[tuple[str, Order]], events: list[Event]
    ) -> None:
        first = () if self.records else (self.account.deposit,)
        record = StepRecord(
            step=len(self.records),
            session=day,
            decided_at=0,
            opening=(*first, *opening),
            decision=Decision(orders=tuple(order for _, order in placed)),
            events=tuple(events),
        )
        self.records.append(record)
        assert Ledger.replay(self.records).state() == self.account.state()


def entries(cell: str) -> list[str]:
    """Return the entries of a table's cell."""
    return [entry.strip() for entry in cell.split(";") if entry.strip()]


def sessions(table: str) -> list[tuple[str, list[str], list[str], list[str]]]:
    """Read a table into (day, bars, orders, events) per session; words may stand above it."""
    result: list[tuple[str, list[str], list[str], list[str]]] = []
    lines = table.strip().splitlines()
    while "|" not in lines[0]:
        lines.pop(0)
    for line in lines:
        day, *cells = line.split("|")
        if cells:
            bars, orders, events = (*map(entries, cells), [], [])[:3]
            result.append((day.strip(), bars, orders, events))
        else:
            result[-1][3].extend(entries(line))
    return result


PAIR = (Instrument(symbol="A"), Instrument(symbol="B"))
MAINBOARD = (Instrument(symbol="A", board=Board.MAIN, lot=100.0),)


def plain(**policies: object) -> Venue:
    """Return a venue without costs or limits; tests add the one policy they are about."""
    return msgspec.structs.replace(Venue(id="plain", title="no rules", currency="USD"), **policies)


def play(
    venue: Venue,
    table: str,
    *,
    instruments: tuple[Instrument, ...] = (Instrument(symbol="A"),),
    cash: float = 10_000.0,
    **options: object,
) -> Tape:
    """Play a candle table and compare the events of every session with the expected ones."""
    tape = Tape(venue, instruments, cash, **options)
    for day, bars, orders, wanted in sessions(table):
        shown = [render(event) for event in tape.session(day, bars, orders)]
        if not any(entry.startswith("nav") for entry in wanted):
            shown = [entry for entry in shown if not entry.startswith("nav")]
        assert shown == wanted, f"on {day}"
    return tape


def candles(venue: Venue | None = None, **options: object) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Make a test of a function whose docstring is a candle table, at a plain venue unless one is given."""

    def made(test: Callable[[], None]) -> Callable[[], None]:
        return wraps(test)(lambda: play(venue or plain(), test.__doc__, **options) and None)

    return made
