"""The host's own broker: carries out a record of orders on the bars, by Backtrader's rules.

The rules are those of the framework's default broker: orders are checked against the cash when the broker gets
them and again when they are filled; a market order fills at the next open; short sales bring cash; children of a
bracket wait for their parent and end each other. None of this runs in the child.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tradeassay.code.backtrader.account import BrokerPosition, BrokerTerms, Fill, RoundTrip, TradeBook
from tradeassay.code.backtrader.matching import Bar, OrderState, Status, make_order, price_of
from tradeassay.code.backtrader.orders import BadOrders, OrderLog
from tradeassay.code.bars import TaskBars
from tradeassay.code.harness.wire import ACTION_SUBMIT, day_numbers

MAX_STEPS: Final = 5_000_000
"""How many times orders may be matched against bars in one run. More than honest code can do in its own time."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BrokerReplay:
    """The outcome of the orders. ``equity`` is the account's value after each bar, ``statuses`` one per order."""

    fills: tuple[Fill, ...]
    trades: tuple[RoundTrip, ...]
    equity: Floats
    cash: float
    statuses: tuple[Status, ...]

    @property
    def value(self) -> float:
        """The account's value after the last bar."""
        return float(self.equity[-1])


def replay(
    log: OrderLog, bars: TaskBars, terms: BrokerTerms, turns: int | None = None, *, steps: int = MAX_STEPS
) -> BrokerReplay:
    """Carry out a checked record of orders; ``turns`` is the number of bars the strategy ran, if it ended early.

    Raises :class:`BadOrders` for orders that no broker could have taken, or that take more than ``steps`` matches
    of an order with a bar to follow.
    """
    broker = _Broker(log, bars, terms, steps)
    turns = bars.rows if turns is None else min(turns, bars.rows)
    broker.run(turns)
    return BrokerReplay(
        fills=tuple(broker.fills),
        trades=broker.book.trades(),
        equity=_equity(broker.states, bars, turns),
        cash=broker.cash,
        statuses=tuple(order.status for order in broker.orders),
    )


class _Broker:
    def __init__(self, log: OrderLog, bars: TaskBars, terms: BrokerTerms, most: int) -> None:
        self.log = log
        self._most = most
        self.labels = bars.assets
        times = day_numbers(bars.times).tolist()
        self.bars = [
            list(map(Bar, times, *(feed[name].tolist() for name in ("open", "high", "low", "close"))))
            for feed in bars.feeds.values()
        ]
        self.commission = terms.commission
        self.cash = float(terms.cash)
        self.holdings = [BrokerPosition() for _ in self.labels]
        self.states: list[tuple[int, float, list[BrokerPosition]]] = [
            (0, self.cash, [BrokerPosition() for _ in self.labels])
        ]
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
        self._steps = 0
        self._changed = False

    def run(self, turns: int) -> None:
        """Go through the bars; where no order is waiting, skip to the next one."""
        given = [*self.log.turn.tolist(), turns]
        number, bar = 0, 0
        while bar < turns:
            while given[number] == bar and number < len(self.log):
                self._take(number)
                number += 1
            if self._pending or self._submitted:
                self._turn(bar)
                bar += 1
            else:
                bar = max(bar + 1, given[number])
        for late in range(number, len(self.log)):
            self._take(late)

    def _take(self, number: int) -> None:
        """Take one order or cancellation."""
        if self.log.action[number] != ACTION_SUBMIT:
            self._cancel(self._by_ref[int(self.log.ref[number])])
            return
        seen = self.bars[int(self.log.asset[number])][int(self.log.row[number])]
        order = make_order(self.log, number, seen.close, seen.time)
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
            for each in family:
                each.status = "submitted"
                self._submitted.append(each)

    def _is_orphan(self, order: OrderState) -> bool:
        """Return whether its parent is gone; it is then rejected."""
        if order.parent and order.parent not in self._families:
            order.status = "rejected"
            return True
        return False

    def _turn(self, bar: int) -> None:
        """Process one bar."""
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
                self._try(order)
                if order.alive:
                    self._pending.append(order)
                elif order.status == "completed":
                    self._end_family(order, whole=False)
        if self._changed:
            self._changed = False
            held = [BrokerPosition(holding.size, holding.price) for holding in self.holdings]
            self.states.append((bar, self.cash, held))

    def _check_submitted(self) -> None:
        """Accept what the cash would pay for if all of it were filled in turn at the requested prices."""
        cash = self.cash
        held: dict[int, BrokerPosition] = {}
        while self._submitted:
            order = self._submitted.popleft()
            if self._is_orphan(order):
                continue
            now = self.holdings[order.asset]
            holding = held.setdefault(order.asset, BrokerPosition(now.size, now.price))
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

    def _try(self, order: OrderState) -> None:
        bar = self.bars[order.asset][self._bar]
        was_triggered = order.triggered
        price = price_of(order, bar)
        if price is not None:
            self._fill(order, price)
        follows = order.kind == "trailing" or (order.kind == "trailing-limit" and not was_triggered)
        if follows and order.alive:
            order.trail(bar.close)

    def _fill(self, order: OrderState, price: float) -> None:
        holding = self.holdings[order.asset]
        paid = holding.price
        _, _, opened, closed = holding.after(order.left, price)
        pnl = -closed * (price - paid)
        cash, closing, opening = self.cash, 0.0, 0.0
        if closed:
            closing = abs(closed) * self.commission * price
            cash = self.cash = cash + (-closed * paid + pnl) - closing
        wanted = opened
        if opened:
            opening = abs(opened) * self.commission * price
            cash = cash - opened * price - opening
            if cash < 0.0:
                opened = opening = 0.0
            else:
                self.cash = cash
        if closed + opened:
            self._book(order, price, (opened, opening), (closed, closing), pnl)
        if wanted and not opened:
            order.status = "margin"
            self._end_group(order)
            self._end_family(order, whole=True)

    def _book(
        self,
        order: OrderState,
        price: float,
        opened: tuple[float, float],
        closed: tuple[float, float],
        pnl: float,
    ) -> None:
        """Write an execution into positions, fills and trades; parts are (size, commission)."""
        holding = self.holdings[order.asset]
        size = closed[0] + opened[0]
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
            opened=opened[0],
            closed=closed[0],
            commission=closed[1] + opened[1],
            pnl=pnl,
        )
        self.fills.append(fill)
        self.book.add(fill, order.tradeid, closed[1], opened[1])
        self._changed = True
        self._end_group(order)

    def _cancel(self, order: OrderState, *, with_family: bool = True) -> None:
        """Cancel a waiting order; one that the broker has not looked at yet, or that is done, stays."""
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
        """End the other orders of an OCO group."""
        leader = self._leaders.get(self._leaders[order.ref])
        refs = self._groups.pop(leader, None) if leader is not None else None
        if not refs:
            return
        self._count(len(self._pending) // 4)
        kept: deque[OrderState | None] = deque()
        for each in self._pending:
            if each is not None and each.ref in refs:
                each.status = "cancelled"
            else:
                kept.append(each)
        self._pending = kept

    def _end_family(self, order: OrderState, *, whole: bool) -> None:
        """A filled parent wakes its children; a filled child, or an end without a fill, ends the whole bracket."""
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
        self._steps += steps
        if self._steps > self._most:
            raise BadOrders("more open orders over more bars than can be followed")


def _equity(states: list[tuple[int, float, list[BrokerPosition]]], bars: TaskBars, turns: int) -> Floats:
    """Return the account's value after each bar; only prices move between fills, and nothing after the end."""
    closes = [feed["close"] for feed in bars.feeds.values()]
    value = np.empty(bars.rows)
    ends = [*(bar for bar, _, _ in states[1:]), turns]
    for (start, cash, held), stop in zip(states, ends, strict=True):
        total = np.zeros(stop - start)
        for holding, close in zip(held, closes, strict=True):
            if not holding.size:
                continue
            worth = holding.size * close[start:stop]
            won = holding.size * (close[start:stop] - holding.price)
            # The framework subtracts the gain and adds it back, for leverage; its rounding is reproduced here.
            total = total + (worth - won) + won if holding.size > 0 else total + worth
        value[start:stop] = cash + total
    value[turns:] = value[turns - 1] if turns else states[0][1]
    return value
