"""A second opinion on a journal: plain code that shares nothing with the exchange, the policies and the ledger.

It follows a journal's events beside the bars and reports what does not hold. It is written to be read, not to be
fast, and repeats every rule in its own words: it could not check code it shared with what it checks. It reads a
venue's numbers and calls nothing on it. ``verify`` checks recorded runs with it, ``check_exchange`` the
exchange itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from tradeassay.core.events import (
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
    Settled,
    SplitApplied,
    StepRecord,
    Trimmed,
)
from tradeassay.core.orders import Order, is_price
from tradeassay.core.view import CorporateAction, Instrument, SessionBars

if TYPE_CHECKING:
    from tradeassay.account.venue import Era, Venue

Found = tuple[str, str]
"""The rule that does not hold, and what breaks it."""
_BEFORE_OPEN = (Deposited, DividendPaid, SplitApplied, Delisted, Expired)


class AuditFinding(msgspec.Struct, frozen=True):
    """Something that does not hold: ``check`` names the rule, ``what`` says in one line what breaks it."""

    check: str
    what: str


@dataclass(frozen=True)
class AuditDay:
    """What the data says about a session, and the rules it is played under. ``members`` names what may be bought
    (None: everything); ``max_weight`` and ``max_positions`` are the episode's own limits. ``decided_at`` is the
    instant of the decision."""

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

    @cached_property
    def columns(self) -> dict[str, int]:
        return _columns(self.bars.symbols)

    @cached_property
    def _numbers(self) -> dict[str, list[float]]:
        """Fields of the bars as plain numbers, as far as they were asked for."""
        return {}

    @cached_property
    def _trading(self) -> list[bool]:
        found: list[bool] = self.bars.trading.tolist()
        return found

    @cached_property
    def marks(self) -> dict[str, float]:
        """The prices at which holdings are valued; what has none today is left out."""
        rows = zip(self.bars.symbols, self.field(self.mark), self._trading, strict=True)
        return {symbol: price for symbol, price, trading in rows if trading and is_price(price)}

    def instrument(self, symbol: str) -> Instrument:
        return self.bars.instruments[self.columns[symbol]]

    def trades(self, symbol: str) -> bool:
        return self._trading[self.columns[symbol]]

    def price(self, which: str, symbol: str) -> float:
        return self.field(which)[self.columns[symbol]]

    def field(self, which: str) -> list[float]:
        numbers = self._numbers.get(which)
        if numbers is None:
            numbers = self._numbers[which] = getattr(self.bars, which).tolist()
        return numbers


@lru_cache(maxsize=64)
def _columns(symbols: tuple[str, ...]) -> dict[str, int]:
    return {symbol: column for column, symbol in enumerate(symbols)}


@dataclass
class _Books:
    """Cash, shares and marks, changed by nothing but the journal's own events."""

    cash: float = 0.0
    moved: float = 0.0
    """All money that ever went in or out: the scale rounding is measured by."""
    shares: dict[str, float] = field(default_factory=dict)
    marks: dict[str, float] = field(default_factory=dict)
    waiting: dict[str, str] = field(default_factory=dict)
    """Resting orders, id to symbol."""
    called: bool = False

    def hold(self, symbol: str, quantity: float) -> None:
        if quantity == 0:
            self.shares.pop(symbol, None)
            self.marks.pop(symbol, None)
        else:
            self.shares[symbol] = quantity

    def book(self, event: Event) -> None:
        if not isinstance(event, Marked):
            cash = getattr(event, "cash", 0.0)
            self.cash += cash
            self.moved += abs(cash)
        if isinstance(event, Filled):
            self.hold(event.symbol, self.shares.get(event.symbol, 0.0) + event.quantity)
            if event.symbol in self.shares:
                self.marks.setdefault(event.symbol, event.price if event.margined else event.reference)
            self.waiting.pop(event.order_id, None)
        elif isinstance(event, Delisted):
            self.hold(event.symbol, 0.0)
        elif isinstance(event, SplitApplied) and event.symbol in self.shares:
            self.hold(event.symbol, event.quantity)
            if event.symbol in self.marks:
                self.marks[event.symbol] /= event.ratio
        elif isinstance(event, DividendPaid) and event.symbol in self.marks:
            self.marks[event.symbol] = max(self.marks[event.symbol] - event.per_share, 0.0)
        elif isinstance(event, Settled):
            self.marks[event.symbol] = event.price
        elif isinstance(event, Marked):
            self.marks = dict(event.marks)
        else:
            self._note(event)

    def _note(self, event: Event) -> None:
        if isinstance(event, Rested):
            self.waiting[event.order_id] = event.symbol
        elif isinstance(event, Rejected | Expired):
            self.waiting.pop(event.order_id, None)
        elif isinstance(event, MarginCalled):
            self.called = True


class Auditor:
    """Follows one account, session by session; ``cash`` is what it starts with where no deposit is journalled."""

    def __init__(self, cash: float = 0.0) -> None:
        self._books = _Books(cash=cash, moved=cash)
        self._orders: dict[str, Order] = {}

    def step(self, place: int, day: AuditDay, record: StepRecord, deposit: float) -> Iterator[AuditFinding]:
        if record.step != place:
            yield AuditFinding("sessions", f"line {place + 1} is step {record.step}")
        if record.session != day.bars.session:
            yield AuditFinding("sessions", f"it is {record.session}, the data says {day.bars.session}")
        if record.decided_at != day.decided_at:
            yield AuditFinding("sessions", "it was not decided at the moment the benchmark says")
        deposits = [event.cash for event in record.opening if isinstance(event, Deposited)]
        if deposits != ([deposit] if place == 0 else []):
            yield AuditFinding("cash", "the deposit is not the one the benchmark gives at its start")
        if any(not isinstance(event, _BEFORE_OPEN) for event in record.opening):
            yield AuditFinding("sessions", "something happened before the open that cannot")
        marks = [isinstance(event, Marked) for event in record.events]
        if not marks or not marks[-1] or sum(marks) != 1:
            yield AuditFinding("nav", "the session does not end with one mark")
        yield from self.opening(day, record.opening)
        yield from self.session(day, _placed(record), record.events)

    def opening(self, day: AuditDay, events: Sequence[Event]) -> Iterator[AuditFinding]:
        self._books.called = False
        found = [*_opening(day, self._books, events)]
        for event in events:
            found += self._event(day, event, None)
        yield from (AuditFinding(*one) for one in found)

    def session(self, day: AuditDay, new: Mapping[str, Order], events: Sequence[Event]) -> Iterator[AuditFinding]:
        self._orders |= new
        fills = _Fills(day, self._books, self._orders, frozenset(new))
        found = [*_orders(day, self._books, new, self._orders, events)]
        for event in events:
            found += self._event(day, event, fills)
        yield from (AuditFinding(*one) for one in found)

    def _event(self, day: AuditDay, event: Event, fills: _Fills | None) -> Iterator[Found]:
        books = self._books
        if isinstance(event, Filled) and fills is not None:
            yield from fills.check(event)
        elif isinstance(event, Marked):
            yield from _mark(day, books, event)
        else:
            yield from _movement(day, books, event)
        books.book(event)
        if day.venue.margin is None and books.cash < -1e-9 * books.moved:
            yield "cash", f"the balance of a cash account fell to {books.cash:.2f}"


def _near(one: float, other: float, scale: float | None = None) -> bool:
    """Return whether two finite sums of money agree to a billionth of ``scale`` (default: their size)."""
    if not (isfinite(one) and isfinite(other)):
        return False
    size = max(abs(one), abs(other)) if scale is None else abs(scale)
    return abs(one - other) <= 1e-9 * size or one == other


def _placed(record: StepRecord) -> dict[str, Order]:
    """Return a decision's orders by the ids they get; a failed decision places none."""
    if record.decision.status != "ok":
        return {}
    return {f"{record.step}.{place}": order for place, order in enumerate(record.decision.orders)}


def _opening(day: AuditDay, books: _Books, events: Sequence[Event]) -> Iterator[Found]:
    """Compare what happened before the open with the data; the books must not include it yet."""
    due = {(action.kind, action.symbol): action.value for action in day.actions if books.shares.get(action.symbol)}
    leaving = {symbol for symbol in books.shares if symbol in day.delisted}
    for event in events:
        if isinstance(event, DividendPaid):
            value = due.pop(("dividend", event.symbol), None)
            if value is None or value != event.per_share:
                yield "actions", f"{event.symbol} paid {event.per_share:g} per share, the data says {value}"
        elif isinstance(event, SplitApplied):
            value = due.pop(("split", event.symbol), None)
            if value is None or value != event.ratio:
                yield "actions", f"{event.symbol} was split {event.ratio:g}, the data says {value}"
            if event.quantity == 0:  # less than one step was left and paid in cash: nothing remains to be paid out
                leaving.discard(event.symbol)
        elif isinstance(event, Delisted):
            if event.symbol not in leaving:
                yield "actions", f"{event.symbol} was paid out and has not left the exchange"
            leaving.discard(event.symbol)
    for kind, symbol in due:
        yield "actions", f"the {kind} of {symbol} did not reach the account"
    for symbol in sorted(leaving):
        yield "actions", f"{symbol} has left the exchange and was not paid out"


def _movement(day: AuditDay, books: _Books, event: Event) -> Iterator[Found]:
    """Check the sum that an event moves; the books must not include it yet."""
    if isinstance(event, InterestCharged):
        yield from _interest(day, books, event)
    elif isinstance(event, DividendPaid | SplitApplied | Delisted | Settled | BorrowCharged):
        held, mark = books.shares.get(event.symbol, 0.0), books.marks.get(event.symbol, 0.0)
        if held == 0.0:
            yield "cash", f"{event.symbol} moved money and is not held"
        elif isinstance(event, DividendPaid):
            if not _near(event.quantity, held) or not _near(event.cash, held * event.per_share):
                yield "cash", f"dividend of {event.symbol}: {event.cash:g} on {held:g} shares"
        elif isinstance(event, SplitApplied):
            worth = event.quantity * mark / event.ratio + event.cash
            if not _near(worth, held * mark) or abs(event.quantity - held * event.ratio) >= 1.0:
                yield "cash", f"split of {event.symbol}: {held:g} shares became {event.quantity:g}"
        elif isinstance(event, Delisted):
            yield from _payout(day, event, held, mark)
        elif isinstance(event, Settled):
            size = held * day.instrument(event.symbol).multiplier
            if not _near(event.cash, size * (event.price - mark), size * mark):
                yield "cash", f"settlement of {event.symbol}: {event.cash:g} for {mark:g} to {event.price:g}"
        else:
            price = day.marks.get(event.symbol) or mark
            rate = day.venue.shorting.borrow_per_year / day.venue.periods_per_year
            owed = min(held, 0.0) * price * day.instrument(event.symbol).multiplier * rate
            if not _near(event.cash, owed):
                yield "cash", f"borrow fee of {event.symbol}: {event.cash:g}, the venue takes {owed:g}"


def _payout(day: AuditDay, event: Delisted, held: float, mark: float) -> Iterator[Found]:
    instrument = day.instrument(event.symbol)
    worth = 0.0 if instrument.kind == "future" else held * event.price * instrument.multiplier
    if not _near(event.quantity, held) or event.price != mark or not _near(event.cash, worth):
        yield "cash", f"{event.symbol} was paid out at {event.price:g}, its last mark was {mark:g}"


def _interest(day: AuditDay, books: _Books, event: InterestCharged) -> Iterator[Found]:
    rate = 0.0 if day.venue.margin is None else day.venue.margin.interest_per_year
    owed = min(books.cash, 0.0) * rate / day.venue.periods_per_year
    if not _near(event.cash, owed):
        yield "cash", f"interest of {event.cash:g}, the venue takes {owed:g}"


def _orders(
    day: AuditDay, books: _Books, new: Mapping[str, Order], known: Mapping[str, Order], events: Iterable[Event]
) -> Iterator[Found]:
    """Yield orders without an outcome, and outcomes without an order. ``known`` holds all orders so far."""
    answered: set[str] = set()
    for event in events:
        if not isinstance(event, Filled | Rejected | Rested | Expired | Trimmed):
            continue
        if isinstance(event, Filled) and event.forced:
            if day.venue.margin is None:
                yield "orders", f"{event.symbol} was traded by force on a cash account"
            continue
        if isinstance(event, Rejected) and not event.detail:
            yield "orders", f"order {event.order_id} was rejected without a word of explanation"
        if not isinstance(event, Trimmed):  # it only explains a fill, which must be there too
            answered.add(event.order_id)
        order = known.get(event.order_id)
        if order is None:
            yield "orders", f"{event.symbol}: order {event.order_id} was never placed"
            continue
        if order.symbol != event.symbol:
            yield "orders", f"order {event.order_id} is for {order.symbol}, not for {event.symbol}"
        if event.order_id not in new and event.order_id not in books.waiting:
            yield "orders", f"order {event.order_id} ({event.symbol}) was not waiting any more"
        if isinstance(event, Filled):
            yield from _fill_of(day, books, event, order, fresh=event.order_id in new)
    for missing in sorted(set(new) - answered):
        yield "orders", f"order {missing} ({new[missing].symbol}) was silently dropped"


def _fill_of(day: AuditDay, books: _Books, fill: Filled, order: Order, *, fresh: bool) -> Iterator[Found]:
    buys = fill.quantity > 0
    # In first versions of venues a target that contradicts its own side may wait, and trades as the target says.
    waited = not fresh and order.unit.startswith("target") and day.venue.resting.held_to_side is not True
    if order.side is not None and buys != (order.side == "BUY") and not waited:
        yield "orders", f"order {fill.order_id} is a {order.side}, its fill goes the other way"
    if order.unit == "shares" and abs(fill.quantity) > order.amount * (1 + 1e-9) and fresh:
        yield "orders", f"order {fill.order_id} asked for {order.amount:g}, {abs(fill.quantity):g} were filled"
    price = order.limit_price
    if price is not None and (fill.price > price if buys else fill.price < price):
        yield "orders", f"order {fill.order_id} was filled at {fill.price:g}, beyond its limit {price:g}"
    covers = books.shares.get(fill.symbol, 0.0) < 0
    if fresh and buys and not covers and day.members is not None and fill.symbol not in day.members:
        yield "universe", f"{fill.symbol} was bought and may not be bought on {day.bars.session}"


class _Fills:
    """Checks the fills of one session, one after the other."""

    def __init__(self, day: AuditDay, books: _Books, orders: Mapping[str, Order], new: frozenset[str]) -> None:
        self._day = day
        self._books = books
        self._orders = orders
        self._new = new
        self._at_start = dict(books.shares) if day.venue.settlement.t_plus else {}
        self._sold: dict[str, float] = {}
        self._traded: dict[str, float] = {}
        self._nav = 0.0 if day.max_weight is None else _value_at_reference(day, books)

    def check(self, fill: Filled) -> Iterator[Found]:
        day = self._day
        if fill.symbol not in day.columns:
            yield "fills", f"{fill.symbol} was filled but is not listed by then"
            return
        if not day.trades(fill.symbol):
            yield "suspension", f"{fill.symbol} was filled while it did not trade"
            return
        yield from self._price(fill)
        yield from self._costs(fill)
        if not fill.forced:
            yield from self._limits(fill)
            lots, held = self._day.venue.lots, self._books.shares.get(fill.symbol, 0.0)
            instrument = self._day.instrument(fill.symbol)
            lot = instrument.lot if lots.lot is None else lots.lot
            size = abs(fill.quantity)
            closes = held * fill.quantity < 0 and _near(size, abs(held))
            rest = abs(held) % lot if held * fill.quantity < 0 else 0.0
            if not closes and not _whole(size / lot) and not (rest and _whole((size - rest) / lot)):
                yield "lots", f"{size:g} of {fill.symbol} is not a multiple of {lot:g}"
            yield from self._volume(fill)
            yield from self._concentration(fill)
        yield from self._holding(fill)

    def _price(self, fill: Filled) -> Iterator[Found]:
        day, order = self._day, self._orders.get(fill.order_id)
        low, high = day.price("low", fill.symbol), day.price("high", fill.symbol)
        if not low <= fill.reference <= high:
            yield "fills", f"{fill.symbol} at {fill.reference:g}, outside its bar {low:g} to {high:g}"
        # An order that waited since an earlier session is there when the market opens.
        moment = day.mark if fill.forced else day.fill if fill.order_id in self._new else "open"
        exact = day.price(moment, fill.symbol)
        if (fill.forced or (order is not None and order.kind == "market")) and fill.reference != exact:
            yield "fills", f"{fill.symbol} at {fill.reference:g}, its {moment} was {exact:g}"
        against = (fill.price - fill.reference) * (1 if fill.quantity > 0 else -1)
        allowed = fill.reference * day.venue.slippage.bps * 1e-4
        if against < 0 and not _near(fill.price, fill.reference):
            yield "fills", f"{fill.symbol} at {fill.price:g}, better than its reference {fill.reference:g}"
        limited = order is not None and order.kind == "limit"
        if not _near(against, allowed, fill.reference) and not (limited and 0 <= against < allowed):
            yield "slippage", f"{fill.symbol} paid {against:g} of slippage, the venue takes {allowed:g}"

    def _costs(self, fill: Filled) -> Iterator[Found]:
        era = _era_of(self._day)
        fees = self._day.venue.fees if era is None else era.fees
        value = abs(fill.quantity) * fill.price * fill.multiplier
        rate = fees.buy_bps if fill.quantity > 0 else fees.sell_bps
        bought = 0.0 if fees.buy_tax_bps is msgspec.UNSET else fees.buy_tax_bps
        tax = value * (bought if fill.quantity > 0 else fees.sell_tax_bps) * 1e-4
        fee = value * rate * 1e-4 + abs(fill.quantity) * fees.per_unit
        fee = max(fee, fees.minimum - tax if fees.minimum_covers_tax else fees.minimum)
        if not _near(fill.fee, fee, value) or not _near(fill.tax, tax, value):
            yield (
                "fees",
                f"{fill.symbol} paid {fill.fee:g} and {fill.tax:g} tax, the venue takes {fee:g} and {tax:g}",
            )
        future = self._day.instrument(fill.symbol).kind == "future"
        expected = (0.0 if future else -fill.quantity * fill.price * fill.multiplier) - fill.fee - fill.tax
        if not _near(fill.cash, expected, value + fee):
            yield "cash", f"{fill.symbol} moved {fill.cash:g} of cash, its fill is worth {expected:g}"
        if fill.multiplier != self._day.instrument(fill.symbol).multiplier or fill.margined != future:
            yield "fills", f"{fill.symbol} has other contract terms than its instrument"

    def _limits(self, fill: Filled) -> Iterator[Found]:
        day, era = self._day, _era_of(self._day)
        limits = day.venue.price_limits if era is None else era.price_limits
        board, before = day.instrument(fill.symbol).board, day.price("prev_close", fill.symbol)
        if limits is None or not before > 0:
            return
        tested: float = fill.reference
        limit: Any = getattr(limits, board, None)  # boards are fields; dated rules say more than a number
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

    def _volume(self, fill: Filled) -> Iterator[Found]:
        policy, volume = self._day.venue.participation, self._day.price("volume", fill.symbol)
        taken = self._traded.get(fill.symbol, 0.0) + abs(fill.quantity)
        self._traded[fill.symbol] = taken
        exempt = self._day.instrument(fill.symbol).kind == "index" and not policy.index_funds
        if policy.max_share is None or exempt or volume != volume:
            return
        if taken > volume * policy.max_share * (1 + 1e-9):
            yield "volume", f"{taken:g} of {fill.symbol} traded, {volume * policy.max_share:g} is allowed"

    def _concentration(self, fill: Filled) -> Iterator[Found]:
        day, held = self._day, self._books.shares.get(fill.symbol, 0.0)
        after = held + fill.quantity
        if abs(after) <= abs(held):
            return
        if day.max_positions is not None and held == 0 and len(self._books.shares) >= day.max_positions:
            yield "concentration", f"{fill.symbol} is position {len(self._books.shares) + 1}"
        worth = abs(after) * fill.reference * fill.multiplier
        if day.max_weight is not None and worth > (day.max_weight + 1e-6) * self._nav:
            yield "concentration", f"{fill.symbol} became {worth:g} of an account of {self._nav:g}"

    def _holding(self, fill: Filled) -> Iterator[Found]:
        if fill.quantity == 0:
            yield "fills", f"{fill.symbol} has a fill of nothing"
        if fill.quantity >= 0 or self._day.venue.margin is not None:
            return
        sold = self._sold.get(fill.symbol, 0.0) - fill.quantity
        self._sold[fill.symbol] = sold
        if self._day.venue.settlement.t_plus and sold > self._at_start.get(fill.symbol, 0.0) * (1 + 1e-9):
            yield "t_plus_1", f"{sold:g} of {fill.symbol} sold, some of it bought the same day"
        held = self._books.shares.get(fill.symbol, 0.0)
        if -fill.quantity > held * (1 + 1e-9):
            yield "positions", f"{-fill.quantity:g} of {fill.symbol} sold, {held:g} held"


def _era_of(day: AuditDay) -> Era | None:
    """The rules that held on a day, of a venue whose rules have dates: the last era that had begun."""
    eras = day.venue.eras
    if eras is msgspec.UNSET:
        return None
    begun = [era for era in eras if era.start <= day.bars.session]
    return begun[-1] if begun else eras[0]


def _whole(count: float) -> bool:
    return count > 0.5 and abs(count - round(count)) <= max(1e-5, 1e-12 * count)


def _value_at_reference(day: AuditDay, books: _Books) -> float:
    """The account's value before the first fill, at the prices orders are filled at."""
    total = books.cash
    for symbol, quantity in books.shares.items():
        if symbol not in day.columns:
            continue
        instrument = day.instrument(symbol)
        price = day.price(day.fill, symbol)
        worth = price if day.trades(symbol) and is_price(price) else books.marks.get(symbol, 0.0)
        if instrument.kind == "future":
            worth -= books.marks.get(symbol, 0.0)
        total += quantity * worth * instrument.multiplier
    return total


def _mark(day: AuditDay, books: _Books, event: Marked) -> Iterator[Found]:
    if event.marks.keys() != books.shares.keys():
        odd = sorted(event.marks.keys() ^ books.shares.keys())
        yield "nav", f"marked and held names differ: {', '.join(odd[:3])}"
        return
    worth, prices, stale = 0.0, day.marks, frozenset(event.stale)
    columns, instruments = day.columns, day.bars.instruments
    for symbol, quantity in books.shares.items():
        price, stated = prices.get(symbol), event.marks[symbol]
        expected = books.marks.get(symbol) if price is None else price
        if stated != expected:
            yield "nav", f"{symbol} is marked at {stated:g}, should be {expected}"
        if (symbol in stale) != (price is None):
            yield "nav", f"{symbol} is {'not ' if price is None else ''}named as stale"
        instrument = instruments[columns[symbol]]
        if instrument.kind != "future":
            worth += quantity * stated * instrument.multiplier
    scale = abs(books.cash) + abs(worth)
    if not _near(event.cash, books.cash, scale):
        yield "cash", f"the balance is {books.cash:.2f}, the journal says {event.cash:.2f}"
    if not _near(event.positions, worth, scale):
        yield "nav", f"positions are worth {worth:.2f}, the journal says {event.positions:.2f}"
    if not _near(event.nav, books.cash + worth, scale):
        yield "nav", f"the account is worth {books.cash + worth:.2f}, the journal says {event.nav:.2f}"
    yield from _covered(day, books, event, scale)


def _covered(day: AuditDay, books: _Books, event: Marked, scale: float) -> Iterator[Found]:
    """Nobody owes what the account does not allow: no debt on a cash account, no uncalled loan on a margin one."""
    margin = day.venue.margin
    if margin is None:
        if event.cash < 0:
            yield "cash", f"a cash account ends the session with {event.cash:.2f}"
        return
    required = 0.0
    for symbol, quantity in books.shares.items():
        worth = quantity * event.marks[symbol] * day.instrument(symbol).multiplier
        required += worth * margin.maintenance_long if worth > 0 else -worth * margin.maintenance_short
    if event.nav < required - 1e-9 * (scale + required) and not books.called:
        yield "margin", f"equity {event.nav:.2f} is below the margin {required:.2f} without a call"
