"""Simulate Backtrader's broker on the host: execute orders on bars by the framework's rules.

The rules are those of Backtrader's default broker for shares. Orders are checked against the cash
when they are submitted and again when they are filled. A market order fills at the next open. Short
sales add cash. Children of a bracket wait for their parent and cancel each other. Sums are computed
in the framework's order, so that the account agrees with the framework's to the last bit. None of
this code runs in the child process.
"""

import math
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError
from tradeassay.core.order_columns import ACTION_SUBMIT, day_numbers, end_of_day
from tradeassay_bench.account.backtrader.orders import (
    BadOrders,
    Bar,
    OrderLog,
    OrderState,
    Status,
    make_order,
    order_log,
    price_of,
)
from tradeassay_bench.account.position import BrokerPosition

MAX_STEPS: Final = 5_000_000
"""Maximum number of comparisons of an order with a bar in one run. An honest program cannot reach
this number within its time limit.
"""
_SAME: Final = 4e-9
"""Largest difference at which the targets of two rows count as equal. The value exceeds the
look-ahead check's tolerance for both rows together. Therefore a change that the check cannot detect
never becomes an order.
"""
_DUST: Final = 1e-12
"""Changes of a position below this fraction of the position are treated as rounding errors."""


class Sizing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The size of an order for which the strategy states no size.

    ``fixed``: ``value`` units per order. ``percent``: ``value`` percent of the available cash, at
    the close of the bar on which the strategy decides. An order submitted while a position is open
    is for the whole position. ``own``: the task defines how the strategy calculates its sizes, and
    ``value`` is the size of an order without one.
    """

    kind: Literal["fixed", "percent", "own"]
    value: float = 1.0

    def __post_init__(self) -> None:
        if not self.value > 0:
            raise ValueError(f"a size must be positive, got {self.value:g}")


class BrokerTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The broker's starting cash and commission.

    ``commission`` is a fraction of the traded value. Raises UserError for impossible values.
    """

    cash: float = 10_000.0
    commission: float = 0.001
    sizing: Sizing = Sizing(kind="fixed", value=1.0)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.cash) and self.cash > 0):
            raise UserError(f"expected a starting cash above 0, got {self.cash:g}", hint="set cash")
        if not 0 <= self.commission < 1:
            hint = "write 0.001 for 0.1 % of the traded value"
            raise UserError(
                f"expected a commission from 0 to below 1, got {self.commission:g}",
                hint=hint,
            )


class BarTable(Protocol):
    """Bars of one or more assets on one clock.

    Each asset has ``time``, ``open``, ``high``, ``low`` and ``close``.
    """

    @property
    def feeds(self) -> Mapping[str, Mapping[str, NDArray[Any]]]: ...


class Fill(msgspec.Struct, frozen=True, kw_only=True):
    """One execution.

    ``size`` is signed. ``opened`` and ``closed`` are the parts that opened and closed a position.
    ``pnl`` is the gain of the closed part.
    """

    bar: int
    ref: int
    asset: str
    size: float
    price: float
    opened: float
    closed: float
    commission: float
    pnl: float


class RoundTrip(msgspec.Struct, frozen=True, kw_only=True):
    """One trade from flat to flat, or a trade that is still open (``exit_bar`` None).

    ``size`` is the largest size of the position, with the sign of its entry. ``entry_price`` is the
    average price. ``pnl`` is the realised gain before commission, ``net`` the gain after it.
    """

    asset: str
    entry_bar: int
    exit_bar: int | None
    size: float
    entry_price: float
    exit_price: float | None
    pnl: float
    commission: float
    net: float
    tradeid: int = 0

    @property
    def long(self) -> bool:
        return self.size > 0


@dataclass(slots=True)
class _Running:
    """A trade in progress."""

    size: float = 0.0
    price: float = 0.0
    peak: float = 0.0
    pnl: float = 0.0
    commission: float = 0.0
    entry_bar: int = -1
    exit_bar: int | None = None
    exit_price: float | None = None
    sign: float = 0.0

    def update(self, bar: int, size: float, price: float, commission: float) -> None:
        """Apply a fill, or the part of a fill that opens or closes the trade."""
        self.commission += commission
        old = self.size
        self.size += size
        if not old:
            self.entry_bar = bar
            self.sign = 1.0 if size > 0 else -1.0
        over = bool(old) and not self.size
        self.exit_bar, self.exit_price = (bar, price) if over else (None, None)
        if abs(self.size) > abs(old):
            self.price = (old * self.price + size * price) / self.size
            self.peak = max(self.peak, abs(self.size))
        else:
            self.pnl += -size * (price - self.price)


@dataclass(slots=True)
class TradeBook:
    """Round trips by asset and trade id, built from fills as in the framework."""

    _running: dict[tuple[str, int], _Running] = field(default_factory=dict)
    _started: list[tuple[str, int, _Running]] = field(default_factory=list)

    def add(self, fill: Fill, tradeid: int, closing: float, opening: float) -> None:
        """Add a fill. ``closing`` and ``opening`` are the commissions of its two parts."""
        run = self._running.get((fill.asset, tradeid)) or self._start(fill.asset, tradeid)
        if fill.closed:
            run.update(fill.bar, fill.closed, fill.price, closing)
        if fill.opened:
            if run.exit_bar is not None:
                run = self._start(fill.asset, tradeid)
            run.update(fill.bar, fill.opened, fill.price, opening)

    def _start(self, asset: str, tradeid: int) -> _Running:
        run = _Running()
        self._running[asset, tradeid] = run
        self._started.append((asset, tradeid, run))
        return run

    def trades(self) -> tuple[RoundTrip, ...]:
        return tuple(
            RoundTrip(
                asset=asset,
                entry_bar=run.entry_bar,
                exit_bar=run.exit_bar,
                size=run.sign * run.peak,
                entry_price=run.price,
                exit_price=run.exit_price,
                pnl=run.pnl,
                commission=run.commission,
                net=run.pnl - run.commission,
                tradeid=tradeid,
            )
            for asset, tradeid, run in self._started
            if run.sign
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BrokerReplay:
    """The result of executing the orders.

    ``equity`` is the account's value after each bar. ``statuses`` has one status per order.
    """

    fills: tuple[Fill, ...]
    trades: tuple[RoundTrip, ...]
    equity: Floats
    cash: float
    statuses: tuple[Status, ...]

    @property
    def value(self) -> float:
        return float(self.equity[-1])


def replay(
    log: OrderLog,
    bars: BarTable,
    terms: BrokerTerms,
    turns: int | None = None,
    *,
    steps: int = MAX_STEPS,
) -> BrokerReplay:
    """Execute a validated log of orders and return the result.

    ``turns`` is the number of bars that the strategy processed, if it ended early. Raises
    :class:`BadOrders` for orders that no broker could accept, and if the run needs more than
    ``steps`` comparisons of an order with a bar.
    """
    broker = _Broker(bars, terms, steps)
    turns = broker.rows if turns is None else min(turns, broker.rows)
    turns_of_actions = [*log.turn.tolist(), turns]
    number, bar = 0, 0
    while bar < turns:
        while turns_of_actions[number] == bar and number < len(log):
            broker.take(log, number)
            number += 1
        if broker.busy:
            broker.turn(bar)
            bar += 1
        else:
            bar = max(
                bar + 1, turns_of_actions[number]
            )  # no order is resting: skip to the next submission
    for remaining in range(number, len(log)):
        broker.take(log, remaining)
    return broker.outcome(turns)


def carry_targets(
    targets: Floats, bars: BarTable, terms: BrokerTerms, *, steps: int = MAX_STEPS
) -> tuple[OrderLog, BrokerReplay]:
    """Trade an account to target positions. Return the orders and the result.

    ``targets`` has shape (rows, assets) with values from -1 to 1. A change from the previous row (0
    before the first row) becomes a market order, sized from the account's value at that close.
    Orders that reduce a position are submitted first, so that their cash can be used. Raises
    :class:`BadOrders` if the run needs more than ``steps`` comparisons of an order with a bar.
    """
    broker = _Broker(bars, terms, steps)
    before = np.vstack([np.zeros(targets.shape[1]), targets[:-1]])
    changed = np.abs(targets - before) > _SAME
    sent: list[tuple[int, int, float]] = []
    for row in np.flatnonzero(changed.any(axis=1)).tolist():
        sizes_by_place = broker.sizes_for(
            row, targets[row].tolist(), np.flatnonzero(changed[row]).tolist(), terms.sizing
        )
        for place, size in sizes_by_place:
            sent.append((row, place, size))
            broker.buy_or_sell(len(sent), row, place, size)
        if row + 1 < broker.rows and broker.busy:
            broker.turn(row + 1)
    rows = np.array([row for row, _, _ in sent], dtype=np.int64)
    sizes = np.array([size for _, _, size in sent], dtype=np.float64)
    log = order_log(
        len(sent),
        row=rows,
        turn=rows + 1,
        ref=np.arange(1, len(sent) + 1, dtype=np.int64),
        asset=np.array([place for _, place, _ in sent], dtype=np.int64),
        side=np.where(sizes > 0, 1, -1).astype(np.int64),
        transmit=np.ones(len(sent), dtype=np.int64),
        size=np.abs(sizes),
    )
    return log, broker.outcome(broker.rows)


class _Broker:
    """Simulates one account bar by bar.

    Each turn processes one bar. Orders are submitted between two turns.
    """

    def __init__(self, bars: BarTable, terms: BrokerTerms, most: int) -> None:
        self.labels = tuple(bars.feeds)
        self._feeds = tuple(bars.feeds.values())
        times = day_numbers(self._feeds[0]["time"]).tolist()
        self.rows = len(times)
        self.bars = [
            list(
                map(Bar, times, *(feed[name].tolist() for name in ("open", "high", "low", "close")))
            )
            for feed in self._feeds
        ]
        self.commission = terms.commission
        self.cash = float(terms.cash)
        self.holdings = [BrokerPosition() for _ in self.labels]
        self.states = [(0, self.cash, [BrokerPosition() for _ in self.labels])]
        self.orders: list[OrderState] = []
        self.fills: list[Fill] = []
        self.book = TradeBook()
        self._by_ref: dict[int, OrderState] = {}
        self._pending: deque[OrderState | None] = deque()
        self._submitted: deque[OrderState] = deque()
        self._to_activate: deque[OrderState] = deque()
        self._families: defaultdict[int, deque[OrderState]] = defaultdict(deque)
        self._leaders: dict[int, int] = {}
        self._groups: defaultdict[int, set[int]] = defaultdict(set)
        self._bar = 0
        self._most, self._steps = most, 0
        self._changed = False

    @property
    def busy(self) -> bool:
        return bool(self._pending or self._submitted)

    def take(self, log: OrderLog, number: int) -> None:
        """Apply one row of the log: submit an order or cancel it."""
        if log.action[number] != ACTION_SUBMIT:
            self._cancel(self._by_ref[int(log.ref[number])])
            return
        decision_bar = self.bars[int(log.asset[number])][int(log.row[number])]
        self._submit(make_order(log, number, decision_bar.close, decision_bar.time))

    def buy_or_sell(self, ref: int, row: int, place: int, size: float) -> None:
        """Submit a market order of signed ``size``, decided on the close of ``row``."""
        decision_bar = self.bars[place][row]
        close, end = decision_bar.close, end_of_day(decision_bar.time)
        self._submit(
            OrderState(
                ref=ref,
                asset=place,
                left=size,
                price=close,
                limit=close,
                created=decision_bar.time,
                session_end=end,
            )
        )

    def sizes_for(
        self, row: int, targets: list[float], places: list[int], sizing: Sizing
    ) -> list[tuple[int, float]]:
        """Return the orders (place, signed size) that move assets to their targets.

        ``places`` are the columns of the assets. Reductions are listed first. The account is valued
        at the close of ``row``, after all fills up to it.
        """
        prices = [bars[row].close for bars in self.bars]
        held_value = 0.0
        for holding, price in zip(self.holdings, prices, strict=True):
            held_value += (
                holding.size * price
            )  # in the framework's order: the last digit can change a size
        worth = self.cash + held_value
        orders = []
        for place in places:
            target, price, held = targets[place], prices[place], self.holdings[place].size
            if target == 0.0:
                size = -held
            elif sizing.kind == "own":
                size = float(int((target * worth - held * price) / price))
            else:
                whole = (
                    sizing.value if sizing.kind == "fixed" else sizing.value / 100.0 * worth / price
                )
                size = target * whole - held
                if abs(size) <= _DUST * max(abs(held), abs(target * whole)):
                    size = 0.0
            reduces = held != 0.0 and (size > 0) != (held > 0)
            if size:
                orders.append((not reduces, place, size))
        return [(place, size) for _, place, size in sorted(orders, key=lambda order: order[0])]

    def outcome(self, turns: int) -> BrokerReplay:
        return BrokerReplay(
            fills=tuple(self.fills),
            trades=self.book.trades(),
            equity=self._equity(turns),
            cash=self.cash,
            statuses=tuple(order.status for order in self.orders),
        )

    def _submit(self, order: OrderState) -> None:
        """Register an order, and submit it with its bracket once the bracket is complete."""
        self.orders.append(order)
        self._by_ref[order.ref] = order
        leader = self._leaders[order.oco] if order.oco else order.ref
        self._leaders[order.ref] = leader
        self._groups[leader].add(order.ref)
        if self._is_orphan(order):
            return
        family = self._families[order.parent or order.ref]
        family.append(order)
        if order.transmit:
            self._count(len(family))
            for member in family:
                member.status = "submitted"
                self._submitted.append(member)

    def _is_orphan(self, order: OrderState) -> bool:
        """Reject an order whose parent no longer exists. Return whether the order was rejected."""
        if order.parent and order.parent not in self._families:
            order.status = "rejected"
            return True
        return False

    def turn(self, bar: int) -> None:
        """Process one bar: activate and check orders, then expire or fill the pending ones."""
        self._bar = bar
        while self._to_activate:
            self._to_activate.popleft().active = True
        self._check_submitted()
        self._pending.append(None)
        while (order := self._pending.popleft()) is not None:
            self._count(1)
            if order.expires(self.bars[order.asset][bar].time):
                order.status = "expired"
                self._end_group(order)
                self._end_family(order, whole=True)
            elif not order.active:
                self._pending.append(order)
            else:
                current_bar, was_triggered = self.bars[order.asset][bar], order.triggered
                price = price_of(order, current_bar)
                if price is not None:
                    self._fill(order, price)
                follows = order.kind == "trailing" or (
                    order.kind == "trailing-limit" and not was_triggered
                )
                if follows and order.alive:
                    order.trail(current_bar.close)
                if order.alive:
                    self._pending.append(order)
                elif order.status == "completed":
                    self._end_family(order, whole=False)
        if self._changed:
            self._changed = False
            held = [BrokerPosition(holding.size, holding.price) for holding in self.holdings]
            self.states.append((bar, self.cash, held))

    def _check_submitted(self) -> None:
        """Accept the submitted orders that the cash covers, in sequence.

        Each order is valued at its requested price.
        """
        cash = self.cash
        held: dict[int, BrokerPosition] = {}
        while self._submitted:
            order = self._submitted.popleft()
            if self._is_orphan(order):
                continue
            current = self.holdings[order.asset]
            holding = held.setdefault(order.asset, BrokerPosition(current.size, current.price))
            holding.size, holding.price, opened, closed = holding.after(order.left, order.price)
            for part in (closed, opened):
                if part:
                    cash = cash - part * order.price - abs(part) * self.commission * order.price
            if cash >= 0.0:
                order.last_close = None
                order.status = "accepted"
                self._pending.append(order)
                continue
            order.status = "margin"
            self._end_group(order)
            self._end_family(order, whole=True)

    def _fill(self, order: OrderState, price: float) -> None:
        """Fill an order at a price.

        The part that opens a position is dropped if the cash does not cover it, and the order then
        ends with the status ``margin``.
        """
        holding = self.holdings[order.asset]
        paid = holding.price
        _, _, opened, closed = holding.after(order.left, price)
        pnl = -closed * (price - paid)
        cash, closing, opening = self.cash, 0.0, 0.0
        if closed:
            closing = abs(closed) * self.commission * price
            cash = cash + (-closed * paid + pnl) - closing
            self.cash = cash
        to_open = opened
        if opened:
            opening = abs(opened) * self.commission * price
            cash = cash - opened * price - opening
            if cash < 0.0:
                opened = 0.0
                opening = 0.0
            else:
                self.cash = cash
        if closed + opened:
            # update positions, fills and trades
            size = closed + opened
            holding.size, holding.price, _, _ = holding.after(size, price)
            order.left -= size
            if not order.left:
                order.status = "completed"
            fill = Fill(
                bar=self._bar,
                ref=order.ref,
                asset=self.labels[order.asset],
                size=size,
                price=price,
                opened=opened,
                closed=closed,
                commission=closing + opening,
                pnl=pnl,
            )
            self.fills.append(fill)
            self.book.add(fill, order.tradeid, closing, opening)
            self._changed = True
            self._end_group(order)
        if to_open and not opened:
            order.status = "margin"
            self._end_group(order)
            self._end_family(order, whole=True)

    def _cancel(self, order: OrderState, *, with_family: bool = True) -> None:
        """Cancel a resting order.

        Orders that are finished or not yet accepted are left unchanged.
        """
        self._count(1 + len(self._pending) // 8)
        try:
            self._pending.remove(order)
        except ValueError:
            return
        order.status = "cancelled"
        self._end_group(order)
        if with_family:
            self._end_family(order, whole=True)

    def _end_group(self, order: OrderState) -> None:
        """Cancel the pending orders that the end of ``order`` cancels (one-cancels-other)."""
        leader = self._leaders.get(self._leaders[order.ref])
        refs = self._groups.pop(leader, None) if leader is not None else None
        if not refs:
            return
        self._count(len(self._pending) // 4)
        remaining: deque[OrderState | None] = deque()
        for pending in self._pending:
            if pending is not None and pending.ref in refs:
                pending.status = "cancelled"
            else:
                remaining.append(pending)
        self._pending = remaining

    def _end_family(self, order: OrderState, *, whole: bool) -> None:
        """Update the bracket of a finished order.

        A filled parent activates its children. A filled child, or an end without a fill, cancels
        the whole bracket.
        """
        head = order.parent or order.ref
        family = self._families[head]
        if whole or order.parent:
            while family:
                self._cancel(family.popleft(), with_family=False)
            self._families.pop(head, None)
            return
        if not family:
            raise BadOrders("a bracket whose parent was filled twice")
        family.popleft()
        self._to_activate.extend(family)

    def _count(self, steps: int) -> None:
        """Count comparisons of orders with bars. Raises :class:`BadOrders` above the maximum."""
        self._steps += steps
        if self._steps > self._most:
            raise BadOrders("more open orders over more bars than can be followed")

    def _equity(self, turns: int) -> Floats:
        """Return the account's value after each bar.

        Only prices change between fills, and nothing changes after the last turn.
        """
        closes = [feed["close"] for feed in self._feeds]
        value = np.empty(self.rows)
        ends = [*(bar for bar, _, _ in self.states[1:]), turns]
        for (start, cash, held), stop in zip(self.states, ends, strict=True):
            total = np.zeros(stop - start)
            for holding, close in zip(held, closes, strict=True):
                if not holding.size:
                    continue
                worth = holding.size * close[start:stop]
                won = holding.size * (close[start:stop] - holding.price)
                # The framework subtracts the gain and adds it again, because of leverage. The same
                # steps reproduce its rounding errors.
                total = total + (worth - won) + won if holding.size > 0 else total + worth
            value[start:stop] = cash + total
        value[turns:] = value[turns - 1] if turns else self.states[0][1]
        return value
