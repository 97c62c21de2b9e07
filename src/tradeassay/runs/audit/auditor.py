"""The auditor: walks through a journal, session by session, beside the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tradeassay.account import Venue, venues
from tradeassay.core.events import (
    Delisted,
    Deposited,
    DividendPaid,
    Event,
    Expired,
    Filled,
    Marked,
    Rejected,
    Rested,
    Settled,
    SplitApplied,
    StepRecord,
)
from tradeassay.core.orders import Order
from tradeassay.data import Snapshot
from tradeassay.play import MarketConfig, most_traded, parse_universe
from tradeassay.runs.audit.actions import check_movement, check_opening
from tradeassay.runs.audit.day import Account, Day
from tradeassay.runs.audit.fills import FillAuditor
from tradeassay.runs.audit.finding import Finding
from tradeassay.runs.audit.marks import check_mark
from tradeassay.runs.audit.orders import check_orders, placed

_BEFORE_OPEN = (Deposited, DividendPaid, SplitApplied, Delisted, Expired)


def audit(
    records: Sequence[StepRecord], snapshot: Snapshot, config: MarketConfig, *, complete: bool
) -> Iterator[tuple[int | None, Finding]]:
    """Yield (step, finding) for everything in a journal that the data or the rules contradict.

    ``complete`` says that the journal must reach the end of the window.
    """
    rows = snapshot.rows(config.first, config.last)
    if len(records) > len(rows) or (complete and len(records) < len(rows)):
        yield None, Finding("sessions", f"{len(records)} steps are recorded, the window has {len(rows)} sessions")
    auditor = _Auditor(snapshot, config, venues.get(config.venue))
    for place, (row, record) in enumerate(zip(rows, records, strict=False)):
        for finding in auditor.step(place, row, record):
            yield place, finding


class _Auditor:
    """Holds the account between sessions."""

    def __init__(self, snapshot: Snapshot, config: MarketConfig, venue: Venue) -> None:
        self._snapshot = snapshot
        self._config = config
        self._venue = venue
        self._index = parse_universe(config.universe).of
        first = snapshot.rows(config.first, config.last)[0]
        self._kept = most_traded(config.universe, snapshot.at(first, "pre_open"))
        self._account = Account()
        self._orders: dict[str, Order] = {}

    def step(self, place: int, row: int, record: StepRecord) -> Iterator[Finding]:
        """Check one line and carry the account over it."""
        day = self._day(row)
        new = placed(record)
        self._orders |= new
        yield from self._form(place, day, record)
        yield from check_opening(day, self._account, record.opening)
        for event in record.opening:
            yield from self._event(day, event, None)
        fills = FillAuditor(day, self._account, self._orders, frozenset(new))
        yield from check_orders(day, self._account, new, self._orders, record.events)
        for event in record.events:
            yield from self._event(day, event, fills)

    def _form(self, place: int, day: Day, record: StepRecord) -> Iterator[Finding]:
        if record.step != place:
            yield Finding("sessions", f"line {place + 1} is step {record.step}")
        if record.session != day.bars.session:
            yield Finding("sessions", f"it is {record.session}, the data says {day.bars.session}")
        if record.decided_at != day.decided_at:
            yield Finding("sessions", "it was not decided at the moment the benchmark says")
        deposits = [event for event in record.opening if isinstance(event, Deposited)]
        if [deposit.cash for deposit in deposits] != ([self._config.cash] if place == 0 else []):
            yield Finding("cash", "the deposit is not the one the benchmark gives at its start")
        if any(not isinstance(event, _BEFORE_OPEN) for event in record.opening):
            yield Finding("sessions", "something happened before the open that cannot")
        marks = [isinstance(event, Marked) for event in record.events]
        if not marks or not marks[-1] or sum(marks) != 1:
            yield Finding("nav", "the session does not end with one mark")

    def _event(self, day: Day, event: Event, fills: FillAuditor | None) -> Iterator[Finding]:
        if isinstance(event, Filled) and fills is not None:
            yield from fills.check(event)
        elif isinstance(event, Marked):
            yield from check_mark(day, self._account, event)
        else:
            yield from check_movement(day, self._account, event)
        self._apply(event)

    def _apply(self, event: Event) -> None:
        account = self._account
        if not isinstance(event, Marked):
            account.cash += getattr(event, "cash", 0.0)
        if isinstance(event, Filled):
            account.move(event.symbol, event.quantity)
            if event.symbol in account.shares:
                account.marks.setdefault(event.symbol, event.price if event.margined else event.reference)
            account.waiting.pop(event.order_id, None)
        elif isinstance(event, Delisted):
            account.hold(event.symbol, 0.0)
        elif isinstance(event, SplitApplied) and event.symbol in account.shares:
            account.hold(event.symbol, event.quantity)
            if event.symbol in account.marks:
                account.marks[event.symbol] /= event.ratio
        elif isinstance(event, DividendPaid) and event.symbol in account.marks:
            account.marks[event.symbol] = max(account.marks[event.symbol] - event.per_share, 0.0)
        elif isinstance(event, Settled):
            account.marks[event.symbol] = event.price
        elif isinstance(event, Marked):
            account.marks = dict(event.marks)
        elif isinstance(event, Rested):
            account.waiting[event.order_id] = event.symbol
        elif isinstance(event, Rejected | Expired):
            account.waiting.pop(event.order_id, None)

    def _day(self, row: int) -> Day:
        before, whole = self._snapshot.at(row, "pre_open"), self._snapshot.at(row, "close")
        decide = self._config.decide
        seen = before if decide == "pre_open" else whole if decide == "close" else self._snapshot.at(row, "open")
        bars = whole.session_bars()
        gone = frozenset(before.delisted_now())
        stocks = seen.symbols if self._index == "all" else seen.members(self._index)
        if self._kept is not None:
            stocks = tuple(symbol for symbol in stocks if symbol in self._kept)
        funds = (symbol for symbol in seen.symbols if seen.instrument(symbol).kind == "index")
        return Day(
            config=self._config,
            venue=self._venue,
            bars=bars,
            columns={symbol: column for column, symbol in enumerate(bars.symbols)},
            actions=before.todays_actions(),
            delisted=gone,
            members=frozenset((*stocks, *funds)) - gone,
            decided_at=seen.clock,
        )
