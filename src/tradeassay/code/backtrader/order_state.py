"""One order as the host's broker sees it: what was asked, and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tradeassay.code.backtrader.clock import end_of_day
from tradeassay.code.backtrader.orders import OrderLog
from tradeassay.code.backtrader.wire import GIVEN, KINDS

Status = Literal["created", "submitted", "accepted", "completed", "cancelled", "expired", "margin", "rejected"]
ALIVE: frozenset[Status] = frozenset({"created", "submitted", "accepted"})
_TRAILING = frozenset({"trailing", "trailing-limit"})


@dataclass(slots=True, eq=False)
class OrderState:
    """An order under way. ``size`` and ``left`` are signed. ``price`` is the trigger (or the limit of a limit
    order) and moves for trailing orders; ``limit`` is the limit behind a trigger.
    """

    number: int
    ref: int
    asset: int
    buys: bool
    left: float
    kind: str
    price: float
    limit: float
    created: float
    session_end: float
    valid: float | None
    trail_amount: float
    trail_percent: float
    parent: int
    oco: int
    transmit: bool
    tradeid: int
    active: bool
    status: Status = "created"
    triggered: bool = False
    offset: float = 0.0
    last_close: float | None = None

    @property
    def alive(self) -> bool:
        """Whether it can still be filled."""
        return self.status in ALIVE

    def trail(self, close: float) -> None:
        """Move the trigger of a trailing order after a bar; it follows the price in one direction only."""
        distance = self.trail_amount or close * self.trail_percent
        moved = close + distance if self.buys else close - distance
        if (moved < self.price) if self.buys else (moved > self.price):
            self.price = moved
            if self.kind == "trailing-limit":
                self.limit = moved - self.offset

    def expires(self, now: float) -> bool:
        """Return whether its time is over. Market orders have no time."""
        return self.kind != "market" and bool(self.valid) and now > (self.valid or 0.0)


def make_order(log: OrderLog, number: int, close: float, now: float) -> OrderState:
    """Return the order in row ``number`` of the log, given at a bar that closed at ``close``."""
    given = int(log.given[number])

    def named(name: str) -> float | None:
        return float(getattr(log, name)[number]) if given & GIVEN[name] else None

    price, limit = named("price"), named("pricelimit")
    trigger = close if not price and not limit else price
    behind = limit if limit else trigger
    if limit and not trigger:
        trigger = limit
    if trigger is None or behind is None:
        trigger = behind = close  # cannot be: one of the two is named, or the close was taken
    side = int(log.side[number])
    kind = KINDS[int(log.kind[number])]
    order = OrderState(
        number=number,
        ref=int(log.ref[number]),
        asset=int(log.asset[number]),
        buys=side > 0,
        left=side * float(log.size[number]),
        kind=kind,
        price=trigger,
        limit=behind,
        created=now,
        session_end=end_of_day(now),
        valid=named("valid"),
        trail_amount=named("trailamount") or 0.0,
        trail_percent=named("trailpercent") or 0.0,
        parent=int(log.parent[number]),
        oco=int(log.oco[number]),
        transmit=bool(log.transmit[number]),
        tradeid=int(log.tradeid[number]),
        active=not log.parent[number],
    )
    if kind in _TRAILING:
        order.offset = trigger - behind
        order.price = float("inf") if side > 0 else float("-inf")
        order.trail(trigger)
    return order
