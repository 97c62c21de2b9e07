"""Audit a journal independently of the exchange, the policies and the ledger.

The audit follows a journal's events and the market data, and reports broken rules. It implements
every rule again, because shared code would share its errors. It reads a venue's numbers and calls
almost none of its methods. The code is written for readability, not speed. ``verify`` checks
recorded runs with it. The tests check the exchange with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from tradeassay_bench.core.events import (
    BorrowCharged,
    Delisted,
    Deposited,
    DividendPaid,
    Event,
    Expired,
    Filled,
    InterestCharged,
    MarginCalled,
    Marked,
    Rejected,
    Rested,
    SplitApplied,
    StepRecord,
    Trimmed,
)
from tradeassay_bench.core.orders import Order, is_price
from tradeassay_bench.core.view import CorporateAction, Instrument, SessionBars

if TYPE_CHECKING:
    from tradeassay_bench.account.venue import Era, Venue

Found = tuple[str, str]
"""The name of a broken rule, and a sentence that describes the violation."""
_BEFORE_OPEN = (Deposited, DividendPaid, SplitApplied, Delisted, Expired)


class AuditFinding(msgspec.Struct, frozen=True):
    """A broken rule: ``check`` is its name, and ``what`` describes the violation in one line."""

    check: str
    what: str


@dataclass(frozen=True)
class AuditDay:
    """The market data and the rules of one session.

    ``members`` contains the symbols that may be bought (None = all). ``max_weight`` and
    ``max_positions`` are the episode's limits, in addition to the venue's. ``decided_at`` is the
    time of the decision.
    """

    venue: Venue
    bars: SessionBars
    actions: Sequence[CorporateAction] = ()
    delisted: Collection[str] = ()
    members: frozenset[str] | None = None
    fill: Literal["open", "close"] = "open"
    mark: Literal["open", "close"] = "close"
    max_weight: float | None = None
    max_positions: int | None = None
    decided_at: int = 0
    _numbers: dict[str, list[float]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @cached_property
    def columns(self) -> dict[str, int]:
        return _columns(self.bars.symbols)

    @cached_property
    def marks(self) -> dict[str, float]:
        """Return the prices at which holdings are valued. Symbols without a price today are left
        out.
        """
        rows = zip(self.bars.symbols, self.numbers(self.mark), self.numbers("trading"), strict=True)
        return {symbol: price for symbol, price, trading in rows if trading and is_price(price)}

    def instrument(self, symbol: str) -> Instrument:
        return self.bars.instruments[self.columns[symbol]]

    def trades(self, symbol: str) -> bool:
        return bool(self.price("trading", symbol))

    def price(self, which: str, symbol: str) -> float:
        return self.numbers(which)[self.columns[symbol]]

    def numbers(self, which: str) -> list[float]:
        """Return one field of the bars as a list of floats."""
        numbers = self._numbers.get(which)
        if numbers is None:
            numbers = getattr(self.bars, which).tolist()
            self._numbers[which] = numbers
        return numbers


@lru_cache(maxsize=64)
def _columns(symbols: tuple[str, ...]) -> dict[str, int]:
    return {symbol: column for column, symbol in enumerate(symbols)}


@dataclass
class _Books:
    """Cash, shares and marks of the account, updated only from the events of the journal.

    ``moved`` is the sum of the absolute values of all cash flows. Tolerances for rounding errors
    scale with it. ``resting`` maps the ids of resting orders to their symbols. ``called`` is True
    if the session has had a margin call.
    """

    cash: float
    moved: float
    shares: dict[str, float] = field(default_factory=dict)
    marks: dict[str, float] = field(default_factory=dict)
    resting: dict[str, str] = field(default_factory=dict)
    called: bool = False

    def hold(self, symbol: str, quantity: float) -> None:
        if quantity == 0:
            self.shares.pop(symbol, None)
            self.marks.pop(symbol, None)
        else:
            self.shares[symbol] = quantity

    def book(self, event: Event) -> None:
        """Apply an event to cash, shares, marks and resting orders."""
        cash = 0.0 if isinstance(event, Marked) else getattr(event, "cash", 0.0)
        self.cash += cash
        self.moved += abs(cash)
        match event:
            case Filled(symbol=symbol):
                self.hold(symbol, self.shares.get(symbol, 0.0) + event.quantity)
                if symbol in self.shares:
                    self.marks.setdefault(symbol, event.reference)
                self.resting.pop(event.order_id, None)
            case Delisted(symbol=symbol):
                self.hold(symbol, 0.0)
            case SplitApplied(symbol=symbol) if symbol in self.shares:
                self.hold(symbol, event.quantity)
                if symbol in self.marks:
                    self.marks[symbol] /= event.ratio
            case DividendPaid(symbol=symbol) if symbol in self.marks:
                self.marks[symbol] = max(self.marks[symbol] - event.per_share, 0.0)
            case Marked():
                self.marks = dict(event.marks)
            case Rested():
                self.resting[event.order_id] = event.symbol
            case Rejected() | Expired():
                self.resting.pop(event.order_id, None)
            case MarginCalled():
                self.called = True


class Auditor:
    """Check one account, session by session.

    ``cash`` is the starting balance for a journal without a deposit.
    """

    def __init__(self, cash: float = 0.0) -> None:
        self._books = _Books(cash=cash, moved=cash)
        self._orders: dict[str, Order] = {}

    def step(
        self, place: int, day: AuditDay, record: StepRecord, deposit: float
    ) -> Iterator[AuditFinding]:
        """Yield the findings about one line of the journal.

        ``place`` is the index of the line, and ``deposit`` is the benchmark's starting capital.
        Call this method for every line in order.
        """
        if record.step != place:
            yield AuditFinding("sessions", f"line {place + 1} is step {record.step}")
        if record.session != day.bars.session:
            yield AuditFinding(
                "sessions", f"session {record.session} is recorded, the data has {day.bars.session}"
            )
        if record.decided_at != day.decided_at:
            yield AuditFinding("sessions", "the time of the decision differs from the benchmark's")
        deposits = [event.cash for event in record.opening if isinstance(event, Deposited)]
        if deposits != ([deposit] if place == 0 else []):
            yield AuditFinding("cash", "the deposit differs from the benchmark's starting capital")
        if any(not isinstance(event, _BEFORE_OPEN) for event in record.opening):
            yield AuditFinding(
                "sessions", "the journal has an event before the open that may not occur there"
            )
        marks = [isinstance(event, Marked) for event in record.events]
        if not marks or not marks[-1] or sum(marks) != 1:
            yield AuditFinding("nav", "the session does not end with one mark")
        yield from self.opening(day, record.opening)
        # A failed decision places no orders.
        placed = record.decision.orders if record.decision.status == "ok" else ()
        new = {f"{record.step}.{number}": order for number, order in enumerate(placed)}
        yield from self.session(day, new, record.events)

    def opening(self, day: AuditDay, events: Sequence[Event]) -> Iterator[AuditFinding]:
        """Return the findings about the events before the open."""
        self._books.called = False
        return self._follow(day, events, _opening(day, self._books, events), None)

    def session(
        self, day: AuditDay, new: Mapping[str, Order], events: Sequence[Event]
    ) -> Iterator[AuditFinding]:
        """Return the findings about one session's orders and events.

        ``new`` maps the ids of the session's orders to the orders.
        """
        self._orders |= new
        fills = _Fills(day, self._books, self._orders, frozenset(new))
        return self._follow(
            day, events, _orders(day, self._books, new, self._orders, events), fills
        )

    def _follow(
        self, day: AuditDay, events: Sequence[Event], first: Iterable[Found], fills: _Fills | None
    ) -> Iterator[AuditFinding]:
        """Check each event against the books, apply the event to them, and return all findings.

        ``first`` contains the findings about the list of events as a whole.
        """
        books, findings = self._books, [*first]
        for event in events:
            if isinstance(event, Filled) and fills is not None:
                findings += fills.check(event)
            elif isinstance(event, Marked):
                findings += _mark(day, books, event)
            else:
                findings += _movement(day, books, event)
            books.book(event)
            if day.venue.margin is None and books.cash < -1e-9 * books.moved:
                text = f"the balance of a cash account fell to {books.cash:.2f}"
                findings.append(("cash", text))
        return (AuditFinding(check, text) for check, text in findings)


def _near(stated: float, expected: float, scale: float | None = None) -> bool:
    """Return whether two finite amounts differ by at most a billionth of ``scale``.

    ``scale`` defaults to the larger of the two amounts.
    """
    if not (isfinite(stated) and isfinite(expected)):
        return False
    size = max(abs(stated), abs(expected)) if scale is None else abs(scale)
    return abs(stated - expected) <= 1e-9 * size or stated == expected


def _opening(day: AuditDay, books: _Books, events: Sequence[Event]) -> Iterator[Found]:
    """Compare the events before the open with the data, and yield the differences.

    Call this function before the events are applied to the books.
    """
    due = {
        (action.kind, action.symbol): action.value
        for action in day.actions
        if books.shares.get(action.symbol)
    }
    leaving = {symbol for symbol in books.shares if symbol in day.delisted}
    for event in events:
        if isinstance(event, DividendPaid):
            value = due.pop(("dividend", event.symbol), None)
            if value is None or value != event.per_share:
                yield (
                    "actions",
                    f"{event.symbol} paid {event.per_share:g} per share, expected {value}",
                )
        elif isinstance(event, SplitApplied):
            value = due.pop(("split", event.symbol), None)
            if value is None or value != event.ratio:
                yield "actions", f"{event.symbol} was split {event.ratio:g}, expected {value}"
            if event.quantity == 0:
                # Less than one step was left and paid in cash. No payout can follow.
                leaving.discard(event.symbol)
        elif isinstance(event, Delisted):
            if event.symbol not in leaving:
                yield "actions", f"{event.symbol} was paid out before it left the exchange"
            leaving.discard(event.symbol)
    for kind, symbol in due:
        yield "actions", f"the {kind} of {symbol} was not applied to the account"
    for symbol in sorted(leaving):
        yield "actions", f"{symbol} has left the exchange and was not paid out"


def _movement(day: AuditDay, books: _Books, event: Event) -> Iterator[Found]:
    """Check the cash flow of an event and yield the differences.

    Call this function before the event is applied to the books.
    """
    if isinstance(event, InterestCharged):
        rate = 0.0 if day.venue.margin is None else day.venue.margin.interest_per_year
        owed = min(books.cash, 0.0) * rate / day.venue.periods_per_year
        if not _near(event.cash, owed):
            yield "cash", f"interest of {event.cash:g}, expected {owed:g}"
        return
    if not isinstance(event, DividendPaid | SplitApplied | Delisted | BorrowCharged):
        return
    symbol, cash = event.symbol, event.cash
    held, mark = books.shares.get(symbol, 0.0), books.marks.get(symbol, 0.0)
    if held == 0.0:
        yield "cash", f"{symbol} has a cash flow but is not held"
    elif isinstance(event, DividendPaid):
        if not _near(event.quantity, held) or not _near(cash, held * event.per_share):
            yield "cash", f"dividend of {symbol}: {cash:g} on {held:g} shares"
    elif isinstance(event, SplitApplied):
        worth = event.quantity * mark / event.ratio + cash
        if not _near(worth, held * mark) or abs(event.quantity - held * event.ratio) >= 1.0:
            yield "cash", f"split of {symbol}: {held:g} shares became {event.quantity:g}"
    elif isinstance(event, Delisted):
        worth = held * event.price * day.instrument(symbol).multiplier
        if not _near(event.quantity, held) or event.price != mark or not _near(cash, worth):
            yield "cash", f"{symbol} was paid out at {event.price:g}, its last mark was {mark:g}"
    else:
        rate = day.venue.shorting.borrow_per_year / day.venue.periods_per_year
        owed = (
            min(held, 0.0)
            * (day.marks.get(symbol) or mark)
            * day.instrument(symbol).multiplier
            * rate
        )
        if not _near(cash, owed):
            yield "cash", f"borrow fee of {symbol}: {cash:g}, expected {owed:g}"


def _orders(
    day: AuditDay,
    books: _Books,
    new: Mapping[str, Order],
    known: Mapping[str, Order],
    events: Iterable[Event],
) -> Iterator[Found]:
    """Yield a finding for every order without an outcome and every outcome without an order.

    ``known`` contains all orders placed so far.
    """
    answered: set[str] = set()
    for event in events:
        if not isinstance(event, Filled | Rejected | Rested | Expired | Trimmed):
            continue
        if isinstance(event, Filled) and event.forced:
            if day.venue.margin is None:
                yield "orders", f"{event.symbol} was traded by force on a cash account"
            continue
        name = event.order_id
        if isinstance(event, Rejected) and not event.detail:
            yield "orders", f"order {name} was rejected without an explanation"
        # A Trimmed event only explains a fill. The fill must exist too.
        if not isinstance(event, Trimmed):
            answered.add(name)
        order = known.get(name)
        if order is None:
            yield "orders", f"{event.symbol}: order {name} was never placed"
            continue
        if order.symbol != event.symbol:
            yield "orders", f"order {name} is for {order.symbol}, not for {event.symbol}"
        if name not in new and name not in books.resting:
            yield "orders", f"order {name} ({event.symbol}) was no longer resting"
        if isinstance(event, Filled):
            yield from _fill_of(day, books, event, order, fresh=name in new)
    for name in sorted(set(new) - answered):
        yield "orders", f"order {name} ({new[name].symbol}) was silently dropped"


def _fill_of(
    day: AuditDay, books: _Books, fill: Filled, order: Order, *, fresh: bool
) -> Iterator[Found]:
    """Yield the differences between a fill and its order.

    ``fresh`` is True if the order was placed in this session.
    """
    buys, name = fill.quantity > 0, fill.order_id
    # In the first versions of the venues an order may rest although its target contradicts its
    # side. It then trades towards its target.
    rested = (
        not fresh and order.unit.startswith("target") and day.venue.resting.held_to_side is not True
    )
    if order.side is not None and buys != (order.side == "BUY") and not rested:
        yield "orders", f"order {name} is a {order.side}, but its fill has the opposite sign"
    if order.unit == "shares" and abs(fill.quantity) > order.amount * (1 + 1e-9) and fresh:
        yield (
            "orders",
            f"order {name} is for {order.amount:g}, but {abs(fill.quantity):g} were filled",
        )
    price = order.limit_price
    if price is not None and (fill.price > price if buys else fill.price < price):
        yield "orders", f"order {name} was filled at {fill.price:g}, beyond its limit {price:g}"
    covers = books.shares.get(fill.symbol, 0.0) < 0
    if fresh and buys and not covers and day.members is not None and fill.symbol not in day.members:
        yield "universe", f"{fill.symbol} was bought but may not be bought on {day.bars.session}"


class _Fills:
    """Check the fills of one session in the order of the journal."""

    def __init__(
        self, day: AuditDay, books: _Books, orders: Mapping[str, Order], new: frozenset[str]
    ) -> None:
        self._day, self._books, self._orders, self._new = day, books, orders, new
        self._at_start = dict(books.shares) if day.venue.settlement.t_plus else {}
        self._sold: dict[str, float] = {}
        self._traded: dict[str, float] = {}
        limits = day.venue.limited(
            max_weight=day.max_weight, max_positions=day.max_positions
        ).concentration
        self._max_weight, self._max_positions = limits.max_weight, limits.max_positions
        self._nav = 0.0 if self._max_weight is None else _value_at_reference(day, books)
        # For a venue with eras, today's rules are those of the last era that has begun.
        eras = () if day.venue.eras is msgspec.UNSET else day.venue.eras
        self._era: Era | None = next(
            (era for era in reversed(eras) if era.start <= day.bars.session), None
        )
        self._era = self._era or (eras[0] if eras else None)

    def check(self, fill: Filled) -> Iterator[Found]:
        """Yield the findings about one fill. Call this method before the fill is applied to the
        books.
        """
        day, symbol = self._day, fill.symbol
        if symbol not in day.columns:
            yield "fills", f"{symbol} was filled before it was listed"
            return
        if not day.trades(symbol):
            yield "suspension", f"{symbol} was filled while it did not trade"
            return
        yield from self._price(fill)
        yield from self._costs(fill)
        held, size = self._books.shares.get(symbol, 0.0), abs(fill.quantity)
        if not fill.forced:
            yield from self._limits(fill)
            reduces, own = held * fill.quantity < 0, day.venue.lots.lot
            lot = day.instrument(symbol).lot if own is None else own
            closes, odd = reduces and _near(size, abs(held)), abs(held) % lot if reduces else 0.0
            if not closes and not _whole(size / lot) and not (odd and _whole((size - odd) / lot)):
                yield "lots", f"{size:g} of {symbol} is not a multiple of {lot:g}"
            yield from self._worth(fill, closes)
            yield from self._volume(fill)
            yield from self._concentration(fill, held)
        if size == 0:
            yield "fills", f"the fill of {symbol} has no quantity"
        if fill.quantity < 0 and day.venue.margin is None:
            sold = self._sold.get(symbol, 0.0) + size
            self._sold[symbol] = sold
            if day.venue.settlement.t_plus and sold > self._at_start.get(symbol, 0.0) * (1 + 1e-9):
                yield "t_plus_1", f"{sold:g} of {symbol} sold, some of it bought the same day"
            if size > held * (1 + 1e-9):
                yield "positions", f"{size:g} of {symbol} sold, {held:g} held"

    def _price(self, fill: Filled) -> Iterator[Found]:
        """Yield findings about a fill's reference price and slippage."""
        day, order, symbol = self._day, self._orders.get(fill.order_id), fill.symbol
        low, high = day.price("low", symbol), day.price("high", symbol)
        if not low <= fill.reference <= high:
            yield "fills", f"{symbol} at {fill.reference:g}, outside its bar {low:g} to {high:g}"
        # A resting order from an earlier session trades when the market opens.
        if fill.forced:
            moment = day.mark
        else:
            moment = day.fill if fill.order_id in self._new else "open"
        exact = day.price(moment, symbol)
        if (
            fill.forced or (order is not None and order.kind == "market")
        ) and fill.reference != exact:
            yield "fills", f"{symbol} at {fill.reference:g}, its {moment} was {exact:g}"
        against = (fill.price - fill.reference) * (1 if fill.quantity > 0 else -1)
        allowed = fill.reference * day.venue.slippage.bps * 1e-4
        if against < 0 and not _near(fill.price, fill.reference):
            yield (
                "fills",
                f"{symbol} at {fill.price:g}, better than its reference {fill.reference:g}",
            )
        limited = order is not None and order.kind == "limit"
        if not _near(against, allowed, fill.reference) and not (limited and 0 <= against < allowed):
            yield "slippage", f"{symbol} paid {against:g} of slippage, expected {allowed:g}"

    def _costs(self, fill: Filled) -> Iterator[Found]:
        """Yield findings about a fill's fee, tax, cash flow and multiplier."""
        symbol, instrument, buys = fill.symbol, self._day.instrument(fill.symbol), fill.quantity > 0
        fees = self._day.venue.fees if self._era is None else self._era.fees
        value = abs(fill.quantity) * fill.price * fill.multiplier
        buy_tax_bps = 0.0 if fees.buy_tax_bps is msgspec.UNSET else fees.buy_tax_bps
        tax = value * (buy_tax_bps if buys else fees.sell_tax_bps) * 1e-4
        fee = (
            value * (fees.buy_bps if buys else fees.sell_bps) * 1e-4
            + abs(fill.quantity) * fees.per_unit
        )
        fee = max(fee, fees.minimum - tax if fees.minimum_covers_tax else fees.minimum)
        if not _near(fill.fee, fee, value) or not _near(fill.tax, tax, value):
            paid = f"{symbol} paid {fill.fee:g} and {fill.tax:g} tax"
            yield "fees", f"{paid}, expected {fee:g} and {tax:g}"
        expected = -fill.quantity * fill.price * fill.multiplier - fill.fee - fill.tax
        if not _near(fill.cash, expected, value + fee):
            yield "cash", f"{symbol} moved {fill.cash:g} of cash, its fill is worth {expected:g}"
        if fill.multiplier != instrument.multiplier:
            yield "fills", f"the multiplier of {symbol} differs from its instrument's"

    def _limits(self, fill: Filled) -> Iterator[Found]:
        """Yield a finding if a fill is at or beyond the daily price limit."""
        day, era = self._day, self._era
        limits = day.venue.price_limits if era is None else era.price_limits
        before = day.price("prev_close", fill.symbol)
        if limits is None or not before > 0:
            return
        tested: float = fill.reference
        # Each board is a field. Its value is a number, or a rule in a venue with eras.
        limit: Any = getattr(limits, day.instrument(fill.symbol).board, None)
        if era is not None:
            rule, bars, column = limit, day.bars, day.columns[fill.symbol]
            first = 0 if bars.first_row is None else int(bars.first_row[column])
            if rule is None or (first > 0 and bars.row - first < rule.free_sessions):
                return
            special = rule.special is not None and bars.special is not None and bars.special[column]
            limit = rule.special if special else rule.limit
        elif getattr(limits, "limit_test", "open") != "open":
            tested = day.price("close", fill.symbol)
        if limit is None:
            return
        change = tested / before - 1
        if (change if fill.quantity > 0 else -change) >= limit - limits.buffer - 1e-9:
            side = "bought" if fill.quantity > 0 else "sold"
            yield "limits", f"{fill.symbol} was {side} at {change:+.2%}, at or beyond its limit"

    def _worth(self, fill: Filled, closes: bool) -> Iterator[Found]:
        """Yield a finding if a fill's value is below the venue's minimum or above the order's
        amount.
        """
        worth = abs(fill.quantity) * fill.reference * fill.multiplier
        least = self._day.venue.lots.min_value
        if not closes and worth < least * (1 - 1e-9):
            yield (
                "lots",
                f"{fill.symbol} was filled for {worth:g}, less than the venue's minimum of "
                f"{least:g}",
            )
        order = self._orders.get(fill.order_id)
        if order is not None and order.unit == "dollars" and fill.order_id in self._new:
            if worth > order.amount * (1 + 1e-6):
                yield (
                    "orders",
                    f"order {fill.order_id} is for {order.amount:g} of money, but {worth:g} was "
                    "filled",
                )

    def _volume(self, fill: Filled) -> Iterator[Found]:
        """Yield a finding if the fills of a name exceed the permitted share of the volume."""
        policy, volume = self._day.venue.participation, self._day.price("volume", fill.symbol)
        traded = self._traded.get(fill.symbol, 0.0) + abs(fill.quantity)
        self._traded[fill.symbol] = traded
        exempt = self._day.instrument(fill.symbol).kind == "index" and not policy.index_funds
        if policy.max_share is None or exempt or volume != volume:
            return
        if traded > volume * policy.max_share * (1 + 1e-9):
            yield (
                "volume",
                f"{traded:g} of {fill.symbol} traded, {volume * policy.max_share:g} is allowed",
            )

    def _concentration(self, fill: Filled, held: float) -> Iterator[Found]:
        count, after = len(self._books.shares), held + fill.quantity
        if abs(after) <= abs(held):
            return
        if self._max_positions is not None and held == 0 and count >= self._max_positions:
            yield "concentration", f"{fill.symbol} is position {count + 1}"
        worth = abs(after) * fill.reference * fill.multiplier
        if self._max_weight is not None and worth > (self._max_weight + 1e-6) * self._nav:
            yield "concentration", f"{fill.symbol} became {worth:g} of an account of {self._nav:g}"


def _whole(count: float) -> bool:
    return count > 0.5 and abs(count - round(count)) <= max(1e-5, 1e-12 * count)


def _value_at_reference(day: AuditDay, books: _Books) -> float:
    """Return the account's value before the first fill, at the reference prices of the orders."""
    total = books.cash
    for symbol, quantity in books.shares.items():
        if symbol not in day.columns:
            continue
        instrument, mark, price = (
            day.instrument(symbol),
            books.marks.get(symbol, 0.0),
            day.price(day.fill, symbol),
        )
        unit_price = price if day.trades(symbol) and is_price(price) else mark
        total += quantity * unit_price * instrument.multiplier
    return total


def _mark(day: AuditDay, books: _Books, event: Marked) -> Iterator[Found]:
    """Yield findings about the mark that ends a session: prices, balance, and the limits on debt.

    A cash account may have no debt. A margin account may be below the maintenance margin only after
    a margin call.
    """
    if event.marks.keys() != books.shares.keys():
        odd = sorted(event.marks.keys() ^ books.shares.keys())
        yield "nav", f"marked and held symbols differ: {', '.join(odd[:3])}"
        return
    worth, required, margin, stale = 0.0, 0.0, day.venue.margin, frozenset(event.stale)
    marks, columns, instruments = day.marks, day.columns, day.bars.instruments
    for symbol, quantity in books.shares.items():
        price, stated, instrument = (
            marks.get(symbol),
            event.marks[symbol],
            instruments[columns[symbol]],
        )
        expected = books.marks.get(symbol) if price is None else price
        if stated != expected:
            yield "nav", f"{symbol} is marked at {stated:g}, expected {expected}"
        if (symbol in stale) != (price is None):
            yield "nav", f"{symbol} is {'not ' if price is None else ''}listed as stale"
        value = quantity * stated * instrument.multiplier
        worth += value
        if margin is not None:
            required += (
                value * margin.maintenance_long if value > 0 else -value * margin.maintenance_short
            )
    scale = abs(books.cash) + abs(worth)
    if not _near(event.cash, books.cash, scale):
        yield "cash", f"the balance is {books.cash:.2f}, the journal states {event.cash:.2f}"
    if not _near(event.positions, worth, scale):
        yield "nav", f"positions are worth {worth:.2f}, the journal states {event.positions:.2f}"
    if not _near(event.nav, books.cash + worth, scale):
        yield (
            "nav",
            f"the account is worth {books.cash + worth:.2f}, the journal states {event.nav:.2f}",
        )
    if margin is None and event.cash < 0:
        yield "cash", f"a cash account ends the session with {event.cash:.2f}"
    if event.nav < required - 1e-9 * (scale + required) and margin is not None and not books.called:
        yield "margin", f"equity {event.nav:.2f} is below the margin {required:.2f} without a call"
