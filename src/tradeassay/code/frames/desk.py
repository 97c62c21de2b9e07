"""From targets to orders: what a desk would send that is told its targets at each close.

An order is given on a row whose target differs from the row before (before the first row it is 0), as a market
order that fills at the next open. Sizes follow from the task's terms and the account at that close:

- ``fixed``: target x value units;
- ``percent``: target x value per cent of the account's worth, over the close; parts of a unit are bought too;
- ``own``: the target is a share of the account's worth; orders are for whole units, as target-percent orders are.

A target of 0 closes the position. Several assets: orders that reduce come first, so that their cash can be used.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tradeassay.code.backtrader import BrokerTerms, OrderLog
from tradeassay.code.backtrader.account import Holding
from tradeassay.code.backtrader.wire import ACTION_SUBMIT, FLOATS, INTEGERS
from tradeassay.code.bars import TaskBars
from tradeassay.core.view import Floats

_DUST: Final = 1e-12
"""A change of position, relative to the position, that is rounding and no order."""

Order = tuple[int, int, float]
"""The row of the decision, the asset's place, the signed size."""


def orders_for(targets: Floats, bars: TaskBars, terms: BrokerTerms) -> OrderLog:
    """Return the orders that take an account through ``targets`` (rows, assets)."""
    opens = np.column_stack([feed["open"] for feed in bars.feeds.values()])
    closes = np.column_stack([feed["close"] for feed in bars.feeds.values()])
    desk = _Desk(terms, [Holding() for _ in bars.feeds])
    before = np.vstack([np.zeros(targets.shape[1]), targets[:-1]])
    changed = targets != before
    sent: list[Order] = []
    waiting: list[Order] = []
    for row in np.flatnonzero(changed.any(axis=1)).tolist():
        if waiting:
            desk.fill(waiting, closes[waiting[0][0]].tolist(), opens[waiting[0][0] + 1].tolist())
        prices = closes[row].tolist()
        waiting = [
            (row, place, size)
            for place, size in desk.wanted(targets[row].tolist(), np.flatnonzero(changed[row]).tolist(), prices)
        ]
        sent += waiting
    return _log(sent)


@dataclass(slots=True)
class _Desk:
    """An account that deals at the open what was decided at the close before. The broker's replay, which counts,
    keeps the same account; here it is needed to know how much a share of it is.
    """

    terms: BrokerTerms
    holdings: list[Holding]
    cash: float = field(init=False)

    def __post_init__(self) -> None:
        self.cash = float(self.terms.cash)

    def wanted(self, targets: list[float], places: list[int], prices: list[float]) -> list[tuple[int, float]]:
        """Return the orders (place, signed size) for the assets in ``places``, reductions first."""
        worth = self.cash + sum(held.size * price for held, price in zip(self.holdings, prices, strict=True))
        orders = [(place, self._order(place, targets[place], worth, prices[place])) for place in places]
        return sorted((order for order in orders if order[1]), key=lambda order: not self._reduces(*order))

    def _order(self, place: int, target: float, worth: float, price: float) -> float:
        held = self.holdings[place].size
        sizing = self.terms.sizing
        if target == 0.0:
            return -held
        if sizing.kind == "own":
            return float(int((target * worth - held * price) / price))
        whole = sizing.value if sizing.kind == "fixed" else sizing.value / 100.0 * worth / price
        size = target * whole - held
        return size if abs(size) > _DUST * max(abs(held), abs(target * whole)) else 0.0

    def _reduces(self, place: int, size: float) -> bool:
        held = self.holdings[place].size
        return held != 0.0 and (size > 0) != (held > 0)

    def fill(self, orders: list[Order], closes: list[float], opens: list[float]) -> None:
        """Deal orders at the open, where the cash allows it: by the closes when they come in, and by the opens."""
        for _, place, size in self._accepted(orders, closes):
            self._deal(place, size, opens[place])

    def _accepted(self, orders: list[Order], closes: list[float]) -> list[Order]:
        cash = self.cash
        held = [Holding(each.size, each.price) for each in self.holdings]
        taken = []
        for order in orders:
            _, place, size = order
            price = closes[place]
            holding = held[place]
            holding.size, holding.price, opened, closed = holding.after(size, price)
            for part in (closed, opened):
                if part:
                    cash = cash - part * price - abs(part) * self.terms.commission * price
            if cash >= 0.0:
                taken.append(order)
        return taken

    def _deal(self, place: int, size: float, price: float) -> None:
        holding = self.holdings[place]
        _, _, opened, closed = holding.after(size, price)
        if closed:
            self.cash = self.cash - closed * price - abs(closed) * self.terms.commission * price
        left = self.cash - opened * price - abs(opened) * self.terms.commission * price
        if opened and left < 0.0:
            opened = 0.0
        elif opened:
            self.cash = left
        if closed + opened:
            holding.size, holding.price, _, _ = holding.after(closed + opened, price)


def _log(sent: list[Order]) -> OrderLog:
    count = len(sent)
    columns: dict[str, Any] = {name: np.zeros(count, dtype=np.int64) for name in INTEGERS}
    columns |= {name: np.zeros(count) for name in FLOATS}
    sizes = np.array([size for _, _, size in sent], dtype=np.float64)
    rows = np.array([row for row, _, _ in sent], dtype=np.int64)
    columns |= {
        "action": np.full(count, ACTION_SUBMIT, dtype=np.int64),
        "row": rows,
        "turn": rows + 1,
        "ref": np.arange(1, count + 1, dtype=np.int64),
        "asset": np.array([place for _, place, _ in sent], dtype=np.int64),
        "side": np.where(sizes > 0, 1, -1).astype(np.int64),
        "transmit": np.ones(count, dtype=np.int64),
        "size": np.abs(sizes),
    }
    return OrderLog(**columns)
