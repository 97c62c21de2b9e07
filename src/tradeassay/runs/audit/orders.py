"""Orders: every one has an outcome, every trade has an order, nobody buys what may not be bought."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tradeassay.core.events import Event, Expired, Filled, Rejected, Rested, StepRecord, Trimmed
from tradeassay.core.orders import Order
from tradeassay.runs.audit.day import Account, Day
from tradeassay.runs.audit.finding import Finding


def placed(record: StepRecord) -> dict[str, Order]:
    """Return a decision's orders by the ids they get; a failed decision places none."""
    if record.decision.status != "ok":
        return {}
    return {f"{record.step}.{place}": order for place, order in enumerate(record.decision.orders)}


def check_orders(
    day: Day, account: Account, new: Mapping[str, Order], known: Mapping[str, Order], events: Iterable[Event]
) -> Iterator[Finding]:
    """Yield orders without an outcome, and outcomes without an order. ``known`` holds all orders so far."""
    answered: set[str] = set()
    for event in events:
        if not isinstance(event, Filled | Rejected | Rested | Expired | Trimmed):
            continue
        if isinstance(event, Filled) and event.forced:
            if day.venue.margin is None:
                yield Finding("orders", f"{event.symbol} was traded by force on a cash account")
            continue
        if not isinstance(event, Trimmed):  # which only explains a fill that must be there too
            answered.add(event.order_id)
        order = known.get(event.order_id)
        if order is None:
            yield Finding("orders", f"{event.symbol}: nobody placed order {event.order_id}")
            continue
        if order.symbol != event.symbol:
            yield Finding("orders", f"order {event.order_id} is for {order.symbol}, not for {event.symbol}")
        if event.order_id not in new and event.order_id not in account.waiting:
            yield Finding("orders", f"order {event.order_id} ({event.symbol}) was not waiting any more")
        if isinstance(event, Filled):
            yield from _fill_of(day, account, event, order, fresh=event.order_id in new)
    for missing in sorted(set(new) - answered):
        yield Finding("orders", f"order {missing} ({new[missing].symbol}) was silently dropped")


def _fill_of(day: Day, account: Account, fill: Filled, order: Order, *, fresh: bool) -> Iterator[Finding]:
    buys = fill.quantity > 0
    if order.side is not None and buys != (order.side == "BUY"):
        yield Finding("orders", f"order {fill.order_id} is a {order.side}, its fill goes the other way")
    if order.unit == "shares" and abs(fill.quantity) > order.amount * (1 + 1e-9) and fresh:
        yield Finding(
            "orders", f"order {fill.order_id} asked for {order.amount:g}, {abs(fill.quantity):g} were filled"
        )
    price = order.limit_price
    if price is not None and (fill.price > price if buys else fill.price < price):
        yield Finding("orders", f"order {fill.order_id} was filled at {fill.price:g}, beyond its limit {price:g}")
    covers = account.shares.get(fill.symbol, 0.0) < 0
    if fresh and buys and not covers and fill.symbol not in day.members:
        yield Finding("universe", f"{fill.symbol} was bought and may not be bought on {day.bars.session}")
