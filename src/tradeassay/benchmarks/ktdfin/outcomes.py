"""What became of the names that were ordered: the next-period return that a confidence is judged by."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from tradeassay.core.badges import Convention
from tradeassay.core.errors import DataError
from tradeassay.core.events import StepRecord
from tradeassay.core.orders import Side

if TYPE_CHECKING:
    from tradeassay.data import Snapshot


class OrderOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """An order with a confidence, and the return of its name from the open that fills it to the next one.

    The next open is the first moment at which T+1 lets a purchase be undone. Dividends count. ``next_return`` is
    None where one of the two opens does not exist.
    """

    step: int
    symbol: str
    side: Side
    confidence: float
    next_return: float | None

    def right(self, convention: Convention) -> bool | None:
        """Whether it was right: ``paper`` asks for a gain whatever the side, ``sound`` for the order's side."""
        if self.next_return is None:
            return None
        if convention == "sound" and self.side == "SELL":
            return self.next_return < 0
        return self.next_return > 0


def order_outcomes(records: Iterable[StepRecord], snapshot: Snapshot) -> tuple[OrderOutcome, ...]:
    """Return the outcome of every order that states a side and a confidence, filled or not."""
    found: list[OrderOutcome] = []
    for record in records:
        decision = record.decision
        if decision.status != "ok" or not decision.orders:
            continue
        row = snapshot.rows(record.session, record.session).start
        for order in decision.orders:
            if order.side is not None and order.confidence is not None:
                found.append(
                    OrderOutcome(
                        step=record.step,
                        symbol=order.symbol,
                        side=order.side,
                        confidence=order.confidence,
                        next_return=_next_return(snapshot, row, order.symbol),
                    )
                )
    return tuple(found)


def _next_return(snapshot: Snapshot, row: int, symbol: str) -> float | None:
    if row + 1 >= len(snapshot.sessions):
        return None
    view = snapshot.at(row + 1, "close")
    try:
        column = view.column(symbol)
    except DataError:
        return None
    before, after = view.bars("open", 2, adjust="total")[:, column].tolist()
    change = after / before - 1.0 if before else math.nan
    return change if math.isfinite(change) else None
