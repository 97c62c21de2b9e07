"""Orders that wait: the book of good-till-cancelled orders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tradeassay.core.events import Event, Expired, Filled, Rejected, Rested
from tradeassay.core.orders import Order


class Resting(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of orders left over from earlier sessions.

    ``supersede``: a new order for a symbol ends (``Expired``) whatever still rests for it from earlier sessions;
    that is how an agent takes an order back. Orders of one batch never supersede each other.

    ``held_to_side``: a good-till-cancelled target order whose name has no market, and whose target contradicts the
    side it states, is refused at once. Where it is not set, in the first versions of the venues, such an order
    waits and later trades as its target says."""

    supersede: bool = True
    held_to_side: bool | msgspec.UnsetType = msgspec.UNSET


class RestingOrder(msgspec.Struct, frozen=True):
    """One order on the book: its signed remainder, and whether its stop price was already reached."""

    id: str
    order: Order
    quantity: float
    triggered: bool = False


class RestingBook:
    """The waiting orders, oldest first."""

    __slots__ = ("orders",)

    def __init__(self) -> None:
        self.orders: dict[str, RestingOrder] = {}

    def __iter__(self) -> Iterator[RestingOrder]:
        # A copy: orders come and go during iteration.
        return iter(tuple(self.orders.values()))

    def rest(self, waiting: RestingOrder) -> None:
        """Put an order at the end of the queue; one that was partly filled has lost its old place."""
        self.orders.pop(waiting.id, None)
        self.orders[waiting.id] = waiting

    def drop(self, order_id: str) -> None:
        self.orders.pop(order_id, None)

    def rebuild(self, placed: Iterable[tuple[str, Order]], events: Iterable[Event]) -> None:
        """Restore the book from everything that was ever placed and a journal's events."""
        orders = dict(placed)
        self.orders.clear()
        filled: set[str] = set()
        for event in events:
            match event:
                case Rested(order_id=order_id, quantity=quantity):
                    order = orders[order_id]
                    triggered = order_id in filled and order.kind == "stop"
                    self.rest(RestingOrder(order_id, order, quantity, triggered))
                case Filled(order_id=order_id):
                    # A Rested event follows if anything is left of the order.
                    filled.add(order_id)
                    self.drop(order_id)
                case Rejected(order_id=order_id) | Expired(order_id=order_id):
                    self.drop(order_id)
                case _:
                    pass
