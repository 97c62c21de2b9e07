"""One order as the host's broker sees it, and the price, if any, at which a bar fills it.

Backtrader's rules without slippage. Each rule gets the order and the bar and returns the price, or None. Orders
with a trigger remember that it was reached; what happens between a bar's four prices is decided as the
framework does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tradeassay.account.backtrader.orders import OrderLog
from tradeassay.core.order_columns import GIVEN, KINDS, end_of_day

Status = Literal["created", "submitted", "accepted", "completed", "cancelled", "expired", "margin", "rejected"]
ALIVE: frozenset[Status] = frozenset({"created", "submitted", "accepted"})
_TRAILING = frozenset({"trailing", "trailing-limit"})


@dataclass(slots=True, eq=False, kw_only=True)
class OrderState:
    """An open order. ``left`` is signed. ``price`` is the trigger (or the limit of a limit order) and moves for
    trailing orders; ``limit`` is the limit behind a trigger.
    """

    ref: int
    asset: int
    left: float
    price: float
    limit: float
    created: float
    session_end: float
    kind: str = "market"
    valid: float | None = None
    trail_amount: float = 0.0
    trail_percent: float = 0.0
    parent: int = 0
    oco: int = 0
    transmit: bool = True
    tradeid: int = 0
    active: bool = True
    status: Status = "created"
    triggered: bool = False
    offset: float = 0.0
    last_close: float | None = None
    buys: bool = field(init=False)

    def __post_init__(self) -> None:
        self.buys = self.left > 0

    @property
    def alive(self) -> bool:
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
        """Return whether it has expired. Market orders never expire."""
        return self.kind != "market" and bool(self.valid) and now > (self.valid or 0.0)


def make_order(log: OrderLog, number: int, close: float, now: float) -> OrderState:
    given = int(log.given[number])

    def named(name: str) -> float | None:
        return float(getattr(log, name)[number]) if given & GIVEN[name] else None

    price, limit = named("price"), named("pricelimit")
    trigger = close if not price and not limit else price
    behind = limit if limit else trigger
    if limit and not trigger:
        trigger = limit
    assert trigger is not None and behind is not None
    side = int(log.side[number])
    kind = KINDS[int(log.kind[number])]
    order = OrderState(
        ref=int(log.ref[number]),
        asset=int(log.asset[number]),
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


class Bar(NamedTuple):
    """One bar of one asset, and its time as a day number."""

    time: float
    open: float
    high: float
    low: float
    close: float


def price_of(order: OrderState, bar: Bar) -> float | None:
    if order.triggered:
        return _limit(order, bar, order.limit)
    return _RULES[order.kind](order, bar)


def _market(order: OrderState, bar: Bar) -> float | None:
    return bar.open if bar.time > order.created else None


def _close(order: OrderState, bar: Bar) -> float | None:
    """At the session's last close. Only the next session's first bar shows that a bar was the last one; the fill
    comes then, at the price that was noted.
    """
    if bar.time > order.created and bar.time >= order.session_end:
        if order.last_close and bar.time > order.session_end:
            return order.last_close
        return bar.close
    order.last_close = bar.close
    return None


def _plain_limit(order: OrderState, bar: Bar) -> float | None:
    return _limit(order, bar, order.price)


def _limit(order: OrderState, bar: Bar, limit: float) -> float | None:
    """At the open when that is as good as the limit or better, else at the limit when the bar touched it."""
    if order.buys:
        return bar.open if limit >= bar.open else limit if limit >= bar.low else None
    return bar.open if limit <= bar.open else limit if limit <= bar.high else None


def _stop(order: OrderState, bar: Bar) -> float | None:
    """At the open when the bar opened beyond the trigger, else at the trigger when the bar touched it."""
    trigger = order.price
    if order.buys:
        return bar.open if bar.open >= trigger else trigger if bar.high >= trigger else None
    return bar.open if bar.open <= trigger else trigger if bar.low <= trigger else None


def _stop_limit(order: OrderState, bar: Bar) -> float | None:
    trigger, limit = order.price, order.limit
    if (bar.open >= trigger) if order.buys else (bar.open <= trigger):
        order.triggered = True
        return _limit(order, bar, limit)
    if not ((bar.high >= trigger) if order.buys else (bar.low <= trigger)):
        return None
    order.triggered = True
    if (limit >= trigger) if order.buys else (limit <= trigger):
        return trigger
    # The limit lies on the near side of the trigger: it was passed again only if the bar closed beyond it.
    if order.buys:
        return limit if bar.open > bar.close and limit >= bar.close else None
    return limit if bar.open <= bar.close and limit <= bar.close else None


_RULES: dict[str, Callable[[OrderState, Bar], float | None]] = {
    "market": _market,
    "close": _close,
    "limit": _plain_limit,
    "stop": _stop,
    "stop-limit": _stop_limit,
    "trailing": _stop,
    "trailing-limit": _stop_limit,
}
