"""What the model itself did on the last days, so that it can be told."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from tradeassay.core.agent import Observation
from tradeassay.core.events import Event, Filled
from tradeassay.core.orders import Decision, Order


class ActionShown(msgspec.Struct, frozen=True, kw_only=True):
    """One decision of the past; ``traded`` is the signed number of shares that really changed hands."""

    symbol: str
    action: str
    target: float
    unit: str
    traded: float


class DayShown(msgspec.Struct, frozen=True, kw_only=True):
    """One past session. ``answered`` False: no usable answer came, and everything was held."""

    session: str
    answered: bool
    actions: tuple[ActionShown, ...]


class History:
    """The last sessions, oldest first."""

    def __init__(self, days: int) -> None:
        self._days: deque[tuple[str, Decision]] = deque(maxlen=days)
        self._traded: deque[dict[str, float]] = deque(maxlen=days)

    def remember(self, observation: Observation, decision: Decision) -> None:
        """Take note of a decided session; what became of it is read from the next observation."""
        self._settle(observation.since_last)
        self._days.append((observation.session, decision))
        self._traded.append({})

    def shown(self, since_last: Iterable[Event]) -> tuple[DayShown, ...]:
        """Return the days as a model is told them; ``since_last`` holds what became of the last one."""
        self._settle(since_last)
        return tuple(
            DayShown(
                session=session,
                answered=decision.status == "ok",
                actions=()
                if decision.status == "failed"
                else tuple(_shown(order, traded) for order in decision.orders),
            )
            for (session, decision), traded in zip(self._days, self._traded, strict=True)
        )

    def _settle(self, events: Iterable[Event]) -> None:
        if not self._traded:
            return
        fills: dict[str, float] = {}
        for event in events:
            if isinstance(event, Filled):
                fills[event.symbol] = fills.get(event.symbol, 0.0) + event.quantity
        self._traded[-1] = fills


def _shown(order: Order, traded: dict[str, float]) -> ActionShown:
    action = "increase" if order.side == "BUY" else "close" if order.amount == 0.0 else "decrease"
    return ActionShown(
        symbol=order.symbol,
        action=action,
        target=round(order.amount, 6),
        unit="shares" if order.unit == "target_shares" else "value",
        traded=round(traded.get(order.symbol, 0.0), 6),
    )
