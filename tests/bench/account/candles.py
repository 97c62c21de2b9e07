"""Candle tables: a few bars, orders in, expected events out, as text that can be checked by hand.

``candles.txt`` holds them by topic (``#``) and name (``##``). A line in braces says how a table is
played (TOML: ``venue`` by id, or the policies in which it differs from a venue without rules or
from the one it is ``like``; ``instruments`` by their names in :data:`INSTRUMENTS`); below a topic
it holds for all of its tables. Words follow. A session is one line, ``day | bars | orders |
events`` with entries separated by ``;``. These events must follow and no others; those for which
the line has no room stand below it.

- bars: ``A 10 10.5 9.8 10.2 1000`` (open, high, low, close, volume), ``A -`` for a suspended name;
- what happens before the open stands among the bars: ``split A 2``, ``dividend A 0.5``, ``delist A``;
- orders: ``a BUY 100 A``, ``a SELL $500 A``, ``a A to 10%``, ``a A to $500``, ``a A to 30sh``, with ``limit 9.5``,
  ``stop 11``, ``gtc`` behind; ``a BUY A to 10%`` gives a target order a side;
- events: as :data:`RENDER` writes them; the mark is left out unless the line asks for it with ``nav 1000.00``, and
  so are fees of 0.00.
"""

import re
import tomllib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tradeassay_bench.account import Exchange, Ledger, Venue, venues
from tradeassay_bench.account.audit import AuditDay, Auditor
from tradeassay_bench.core.events import Event, Filled, StepRecord
from tradeassay_bench.core.orders import Decision, Order
from tradeassay_bench.core.view import Board, CorporateAction, Instrument, SessionBars


def _fill(event: Filled) -> str:
    tax = f" tax {event.tax:.2f}" if event.tax else ""
    forced = " forced" if event.forced else ""
    fee = "" if (shown := f" fee {event.fee:.2f}") == " fee 0.00" else shown
    what = f"fill {event.order_id} {event.symbol} {event.quantity:+g} @{event.price:.8g}"
    return f"{what}{fee}{tax} cash {event.cash:+.2f}{forced}"


RENDER = {
    "Filled": _fill,
    "Marked": lambda e: f"nav {e.nav:.2f}" + (f" stale {','.join(e.stale)}" if e.stale else ""),
    "Rejected": lambda e: f"reject {e.order_id} {e.symbol} {e.reason}",
    "Trimmed": lambda e: f"trim {e.order_id} {e.symbol} {e.asked:+g} to {e.filled:+g} {e.reason}",
    "Rested": lambda e: f"rest {e.order_id} {e.symbol} {e.quantity:+g}",
    "Expired": lambda e: f"expire {e.order_id} {e.symbol}",
    "DividendPaid": lambda e: f"dividend {e.symbol} {e.cash:+.2f}",
    "SplitApplied": lambda e: f"split {e.symbol} to {e.quantity:+g} cash {e.cash:+.2f}",
    "Delisted": lambda e: f"delist {e.symbol} {e.quantity:+g} @{e.price:g} cash {e.cash:+.2f}",
    "BorrowCharged": lambda e: f"borrow {e.symbol} {e.cash:+.2f}",
    "InterestCharged": lambda e: f"interest {e.cash:+.2f}",
    "MarginCalled": lambda e: f"call equity {e.equity:.2f} required {e.required:.2f}",
}
INSTRUMENTS = {
    **{name: Instrument(symbol=name) for name in "AB"},
    "A fund": Instrument(symbol="A", kind="index"),
    "A main": Instrument(symbol="A", board=Board.MAIN, lot=100.0),
    **{
        f"A {board}": Instrument(symbol="A", board=board)
        for board in (Board.CHINEXT, Board.STAR, Board.BSE)
    },
    "F1": Instrument(symbol="F1", kind="future", multiplier=10.0, expiry="2024-01-12", root="F"),
}


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
        unit = (
            "target_value"
            if amount[0] == "$"
            else "target_weight"
            if amount[-1] == "%"
            else "target_shares"
        )
        number = float(amount.strip("$%sh")) / (100 if unit == "target_weight" else 1)
    else:
        amount, symbol = words
        unit = "dollars" if amount[0] == "$" else "shares"
        number = float(amount.strip("$"))
    return order_id, Order(symbol=symbol, amount=number, unit=unit, **fields)


@dataclass
class Tape:
    """The sessions of a table, with an exchange, an account and an auditor that go through them."""

    venue: Venue
    instruments: tuple[Instrument, ...]
    cash: float
    fill: str = "open"
    decide: str = "pre_open"
    universe: Collection[str] | None = None
    records: list[StepRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.exchange = Exchange(self.venue)
        self.account = Ledger(self.cash, terms=self.venue.terms)
        self.auditor = Auditor(self.cash)
        self.symbols = tuple(instrument.symbol for instrument in self.instruments)
        self.last = {symbol: np.nan for symbol in self.symbols}

    def session(self, day: str, bars: Sequence[str], orders: Sequence[str] = ()) -> list[Event]:
        """Play one line of a table and return its events, the mark included; audited, and
        replayed so far.
        """
        rows = {symbol: [np.nan] * 5 for symbol in self.symbols}
        actions: list[CorporateAction] = []
        gone: list[str] = []
        for entry in bars:
            word, *rest = entry.split()
            if word in ("split", "dividend"):
                symbol, value = rest[0], float(rest[1])
                actions.append(
                    CorporateAction(symbol=symbol, kind=word, ex_date=day, known_at=0, value=value)
                )
                self.last[symbol] = (
                    self.last[symbol] / value if word == "split" else self.last[symbol] - value
                )
            elif word == "delist":
                gone.append(rest[0])
            elif rest != ["-"]:
                rows[word] = [float(number) for number in rest]
        o, h, low, c, v = np.array([rows[symbol] for symbol in self.symbols]).T
        previous = np.array([self.last[symbol] for symbol in self.symbols])
        session = SessionBars(
            day,
            len(self.records),
            self.symbols,
            self.instruments,
            o,
            h,
            low,
            c,
            v,
            v * c,
            previous,
            ~np.isnan(c),
        )
        self.bars = session
        placed = [parse_order(order) for order in orders]
        opening = self.exchange.open_session(session, actions, self.account, delisted=gone)
        events = []
        if self.decide != "pre_open":
            events += self.exchange.execute_resting(session, self.account, until=self.decide)
        events += self.exchange.execute(
            placed, session, self.account, fill=self.fill, universe=self.universe
        )
        events += self.exchange.close_session(session, self.account)
        for symbol, close in zip(self.symbols, c, strict=True):
            self.last[symbol] = self.last[symbol] if np.isnan(close) else close
        first = () if self.records else (self.account.deposit,)
        decision = Decision(orders=tuple(order for _, order in placed))
        record = StepRecord(
            step=len(self.records),
            session=day,
            decided_at=0,
            opening=(*first, *opening),
            decision=decision,
            events=tuple(events),
        )
        self.records.append(record)
        assert Ledger.replay(self.records).state() == self.account.state()
        known = AuditDay(self.venue, session, actions, gone, members=self.universe, fill=self.fill)
        found = [
            *self.auditor.opening(known, opening),
            *self.auditor.session(known, dict(placed), events),
        ]
        assert [finding.what for finding in found] == []
        return opening + events


PLAIN = Venue(id="plain", title="no rules", currency="USD")


def plain(**policies: object) -> Venue:
    """Return a venue without costs or limits; tests add the one policy they are about."""
    return msgspec.structs.replace(PLAIN, **policies)


def play(
    table: str,
    *,
    venue: Venue | str | dict[str, Any] = PLAIN,
    instruments: Sequence[str] = ("A",),
    cash: float = 10_000.0,
    **options: Any,
) -> Tape:
    """Play a candle table and compare the events of every session with the expected ones."""
    if isinstance(venue, str):
        venue = venues.get(venue)
    elif isinstance(venue, dict):
        like = venues.get(venue["like"]) if "like" in venue else PLAIN
        venue = msgspec.convert(msgspec.to_builtins(like) | venue, Venue)
    tape = Tape(venue, tuple(INSTRUMENTS[name] for name in instruments), cash, **options)
    sessions: list[list[str]] = []
    for line in table.strip().splitlines():
        if line.startswith(" "):
            sessions[-1][3] += f";{line}"
        else:
            sessions.append([*line.split("|"), "", "", ""][:4])
    for day, *cells in sessions:
        bars, orders, wanted = [
            [one.strip() for one in cell.split(";") if one.strip()] for cell in cells
        ]
        day = day.strip()
        shown = [RENDER[type(event).__name__](event) for event in tape.session(day, bars, orders)]
        if not any(entry.startswith("nav") for entry in wanted):
            shown = [entry for entry in shown if not entry.startswith("nav")]
        assert shown == wanted, f"on {day}"
    return tape


def tables() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield every table of ``candles.txt``: its name, the table, and how it is played."""

    def settings(lines: list[str]) -> dict[str, Any]:
        given = lines.pop(0) if lines and lines[0].startswith("{") else "{}"
        return tomllib.loads(f"settings = {given}")["settings"]

    text = Path(__file__).with_name("candles.txt").read_text(encoding="utf-8")
    for topic in re.split(r"(?m)^# ", text)[1:]:
        head, *entries = topic.split("\n## ")
        title, *rest = head.splitlines()
        common = settings(rest)
        for entry in entries:
            name, *lines = entry.strip().splitlines()
            how = {**common, **settings(lines)}
            if isinstance(how.get("venue"), dict):
                how["venue"] = {**common.get("venue", {}), **how["venue"]}
            rows = [line for line in lines if re.match(r" |\d{4}-\d\d-\d\d \|", line)]
            yield f"{title}: {name}", "\n".join(rows), how
