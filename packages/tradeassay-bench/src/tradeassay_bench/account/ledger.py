"""Apply events one by one and check the accounting identities.

Money is float64. A session's sums have a few dozen terms, so the relative rounding error stays near
1e-15. That is nine orders of magnitude below a cent on a million. Decimals would make the hot loop
about ten times slower without any visible gain. Every sum has a fixed order (positions in the order
in which they were opened), so that a replay is identical to the live account bit by bit.

A broken accounting identity raises an error. Comparisons allow a relative :data:`TOLERANCE`,
because an event's ``cash`` and the expected product may be summed in a different order. The negated
form ``not (x <= y)`` also rejects NaN. The scale of a comparison must be finite, which rejects
infinities on both sides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from math import inf, isfinite
from typing import Any, NoReturn

from tradeassay_bench.account.position import Holding
from tradeassay_bench.core.errors import LedgerError, NotFinite
from tradeassay_bench.core.events import (
    AccountTerms,
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
from tradeassay_bench.core.orders import LARGEST, SMALLEST
from tradeassay_bench.core.view import AccountState, Position

TOLERANCE = 1e-9
"""Largest relative difference between two calculations of the same amount."""


def _finite(label: str, *numbers: float) -> None:
    """Raise :class:`NotFinite` for NaN or infinity. ``label`` names the event."""
    for number in numbers:
        if not isfinite(number):
            hint = "look for an impossible price or size in an earlier event"
            raise NotFinite(f"{label}: {number!r} is not a finite amount", hint=hint)


def _same_money(stated: float, expected: float, scale: float, label: str) -> None:
    """Raise :class:`LedgerError` if two amounts differ by more than :data:`TOLERANCE` of ``scale``.

    Both amounts and ``scale`` must be finite. ``label`` names the event.
    """
    _finite(label, stated, expected, scale)
    if not (abs(stated - expected) <= TOLERANCE * abs(scale)) and stated != expected:
        raise LedgerError(f"{label}: expected {expected!r}, got {stated!r}")


class Ledger:
    """An account that changes only through :meth:`apply`.

    :class:`Marked` ends a session. It unlocks shares locked by T+1 and ages the positions.
    ``cash``, ``holdings`` (in the order in which they were opened) and ``sessions`` (the number of
    completed sessions) are public for reading. These fields are plain attributes, because the
    exchange reads them for every order.
    """

    __slots__ = (
        "_called",
        "_deposit",
        "_margin",
        "_state",
        "_t_plus_1",
        "cash",
        "holdings",
        "sessions",
    )

    def __init__(self, cash: float, *, terms: AccountTerms | None = None) -> None:
        """Open an account with ``cash``.

        Raises :class:`LedgerError` unless ``cash`` is a positive amount.
        """
        if not SMALLEST <= cash <= LARGEST:
            hint = f"deposit more than 0 and at most {LARGEST:.0f}"
            raise LedgerError(f"an account cannot start with {cash!r}", hint=hint)
        self._deposit = Deposited(float(cash), terms or AccountTerms())
        self.cash = float(cash)
        self.holdings: dict[str, Holding] = {}
        self.sessions = 0
        self._margin = self._deposit.terms.margin
        self._t_plus_1 = self._deposit.terms.t_plus_1
        self._called = False
        self._state: AccountState | None = None

    @classmethod
    def replay(cls, records: Iterable[StepRecord]) -> Ledger:
        """Return the account rebuilt from its journal.

        Raises :class:`LedgerError` if an identity does not hold.
        """
        last = deque(cls.steps(records), maxlen=1)
        if not last:
            raise LedgerError(
                "the journal is empty", hint="replay a journal with at least one step"
            )
        return last[0][0]

    @classmethod
    def steps(cls, records: Iterable[StepRecord]) -> Iterator[tuple[Ledger, StepRecord]]:
        """Replay a journal and yield the account after each step.

        Every step yields the same object, so read it before the next step.
        """
        ledger: Ledger | None = None
        for record in records:
            events = record.opening + record.events
            if ledger is None:
                first = events[0] if events else None
                if not isinstance(first, Deposited):
                    hint = "put Ledger.deposit first in the opening of the first step"
                    raise LedgerError("the journal does not begin with a deposit", hint=hint)
                ledger, events = cls(first.cash, terms=first.terms), events[1:]
            for event in events:
                ledger.apply(event)
            yield ledger, record

    @property
    def deposit(self) -> Deposited:
        """Return the deposit that opened this account, the first event of a journal."""
        return self._deposit

    def quantity(self, symbol: str) -> float:
        holding = self.holdings.get(symbol)
        return 0.0 if holding is None else holding.quantity

    def sellable(self, symbol: str) -> float:
        """Return the number of shares of a long position that T+1 does not lock, or 0."""
        holding = self.holdings.get(symbol)
        if holding is None or holding.quantity <= 0.0:
            return 0.0
        return holding.quantity - holding.locked

    def mark(self, symbol: str) -> float:
        """Return the last marking price of a held symbol.

        Raises :class:`LedgerError` if the symbol is not held.
        """
        return self._held(symbol).mark

    def held(self) -> tuple[str, ...]:
        return tuple(self.holdings)

    def nav(self) -> float:
        """Return the account's value: cash plus all positions at their last marks."""
        total = 0.0
        for holding in self.holdings.values():
            total += holding.quantity * holding.mark * holding.multiplier
        return self.cash + total

    def state(self) -> AccountState:
        """Return the account's state as an agent sees it."""
        if self._state is None:
            positions: dict[str, Position] = {}
            sessions = self.sessions
            for symbol, holding in self.holdings.items():
                positions[symbol] = holding.position(symbol, sessions)
            self._state = AccountState(self.cash, self.nav(), self._deposit.cash, positions)
        return self._state

    def apply(self, event: Event) -> None:
        """Apply one event. Raises :class:`LedgerError` if an accounting identity would not hold."""
        self._state = None
        _APPLY[type(event)](self, event)

    def _held(self, symbol: str) -> Holding:
        holding = self.holdings.get(symbol)
        if holding is None:
            raise LedgerError(f"{symbol} is not held")
        return holding

    def _move(self, cash: float) -> None:
        """Add ``cash`` to the balance. Raises :class:`LedgerError` if a cash account would go
        negative.

        The check has no tolerance. Only margin accounts may have a negative balance.
        """
        balance = self.cash + cash
        if not balance >= 0.0 or balance == inf:
            if not isfinite(balance):
                raise NotFinite(f"the balance would become {balance!r}")
            if not self._margin:
                raise LedgerError(f"a cash account would fall to {balance!r}")
        self.cash = balance

    def _filled(self, event: Filled) -> None:
        """Apply a trade. Raises :class:`LedgerError` if its amounts do not agree."""
        # The checks are inline, because this method runs for every fill.
        symbol, quantity, price, multiplier = (
            event.symbol,
            event.quantity,
            event.price,
            event.multiplier,
        )
        cash = event.cash
        value = quantity * price * multiplier
        costs = event.fee + event.tax
        expected = -value - costs
        # If the scale is finite, so are its parts.
        if not (abs(cash - expected) <= TOLERANCE * (abs(value) + abs(costs)) < inf):
            _finite(f"fill of {symbol}", value, costs, cash)
            raise LedgerError(f"fill of {symbol}: expected cash {expected!r}, got {cash!r}")
        if quantity == 0.0:
            raise LedgerError(f"fill of {symbol} has no quantity")
        if not (0.0 < price < inf and 0.0 < event.reference < inf and 0.0 < multiplier < inf):
            raise LedgerError(
                f"fill of {symbol}: price {price!r}, reference price {event.reference!r} or "
                f"multiplier {multiplier!r} is not a positive number"
            )
        holding = self.holdings.get(symbol)
        if holding is not None and holding.multiplier != multiplier:
            raise LedgerError(
                f"the multiplier of the fill of {symbol} differs from the open position's"
            )
        if quantity < 0.0 and not self._margin:
            sellable = 0.0 if holding is None else holding.quantity - holding.locked
            if -quantity > sellable:
                raise LedgerError(f"sale of {-quantity!r} {symbol}: only {sellable!r} sellable")
        balance = self.cash + cash
        if balance >= 0.0 and balance != inf:
            self.cash = balance
        else:
            self._move(cash)
        if holding is None:
            holding = Holding(event.reference, self.sessions, multiplier)
            holding.quantity, holding.cost = quantity, price
            self.holdings[symbol] = holding
        else:
            holding.add(quantity, price, self.sessions)
        if quantity > 0.0 and self._t_plus_1:
            holding.locked += quantity
        if holding.quantity == 0.0:
            del self.holdings[symbol]
        elif not -inf < holding.cost < inf:
            raise NotFinite(f"fill of {symbol}: its average cost would become {holding.cost!r}")

    def _dividend(self, event: DividendPaid) -> None:
        """Apply a dividend and lower the mark.

        A long position receives the dividend, and a short position pays it. NAV does not change,
        because the money moves from the mark to cash.
        """
        holding, what = self._held(event.symbol), f"dividend of {event.symbol}"
        _finite(what, event.per_share)
        _same_money(event.quantity, holding.quantity, holding.quantity, f"{what}, shares")
        expected = event.per_share * event.quantity
        _same_money(event.cash, expected, expected, f"{what}, cash")
        self._move(event.cash)
        holding.mark = max(holding.mark - event.per_share, 0.0)

    def _split(self, event: SplitApplied) -> None:
        """Apply a split. Value and cost do not change, apart from a fraction paid in cash."""
        holding, what = self._held(event.symbol), f"split of {event.symbol}"
        _finite(what, event.ratio, event.quantity)
        if not event.ratio > 0.0:
            raise LedgerError(f"{what} has ratio {event.ratio!r}")
        before = holding.quantity * holding.mark
        after = event.quantity * holding.mark / event.ratio + event.cash
        _same_money(after, before, before, f"{what}, value")
        self._move(event.cash)
        if event.quantity == 0.0:
            del self.holdings[event.symbol]
            return
        holding.quantity = event.quantity
        holding.cost /= event.ratio
        holding.mark /= event.ratio
        _finite(what, holding.cost, holding.mark)

    def _delisted(self, event: Delisted) -> None:
        """Close the whole position at its price."""
        holding, what = self._held(event.symbol), f"delisting of {event.symbol}"
        _finite(what, event.price)
        _same_money(event.quantity, holding.quantity, holding.quantity, f"{what}, quantity")
        value = event.quantity * event.price * holding.multiplier
        _same_money(event.cash, value, value, f"{what}, cash")
        self._move(event.cash)
        del self.holdings[event.symbol]

    def _charged(self, event: BorrowCharged | InterestCharged) -> None:
        if event.cash > 0.0:
            raise LedgerError(f"a charge of {event.cash!r} would credit the account")
        self._move(event.cash)

    def _margin_called(self, event: MarginCalled) -> None:
        if not self._margin:
            raise LedgerError("a cash account cannot receive a margin call")
        _finite("margin call", event.equity, event.required)
        self._called = True

    def _marked(self, event: Marked) -> None:
        """Apply the mark that ends a session, and check NAV and the maintenance margin."""
        marks = event.marks
        if len(marks) != len(self.holdings):
            raise LedgerError(
                f"expected marks for {len(self.holdings)} positions, got {len(marks)}"
            )
        positions = 0.0
        for symbol, holding in self.holdings.items():
            price = marks.get(symbol)
            if price is None:
                raise LedgerError(f"{symbol} is held but was not marked")
            if not -inf < price < inf:
                raise NotFinite(f"{symbol} is marked at {price!r}")
            holding.mark = price
            holding.locked = 0.0
            positions += holding.quantity * price * holding.multiplier
        # Cash + positions = NAV, all three computed by the ledger.
        scale = abs(self.cash) + abs(positions)
        _same_money(event.cash, self.cash, scale, "marked cash")
        _same_money(event.positions, positions, scale, "marked positions")
        _same_money(event.nav, self.cash + positions, scale, "marked NAV")
        if self._margin:
            terms = self._deposit.terms
            required = 0.0
            for holding in self.holdings.values():
                value = holding.quantity * holding.mark * holding.multiplier
                required += (
                    value * terms.maintenance_long
                    if value > 0.0
                    else -value * terms.maintenance_short
                )
            if not self._called and event.nav < required - TOLERANCE * (abs(event.nav) + required):
                raise LedgerError(
                    f"equity {event.nav!r} is below the maintenance margin {required!r} without a "
                    "margin call"
                )
        self._called = False
        self.sessions += 1

    def _recorded(self, event: Event) -> None:
        """Accept an event that changes neither cash nor a position."""

    def _refused(self, event: Event) -> NoReturn:
        raise LedgerError(
            "a journal may have only one deposit, its first event", hint="start another ledger"
        )


_APPLY: dict[type, Callable[[Ledger, Any], None]] = {
    Deposited: Ledger._refused,
    Filled: Ledger._filled,
    DividendPaid: Ledger._dividend,
    SplitApplied: Ledger._split,
    Delisted: Ledger._delisted,
    BorrowCharged: Ledger._charged,
    InterestCharged: Ledger._charged,
    MarginCalled: Ledger._margin_called,
    Marked: Ledger._marked,
    Rejected: Ledger._recorded,
    Trimmed: Ledger._recorded,
    Rested: Ledger._recorded,
    Expired: Ledger._recorded,
}
