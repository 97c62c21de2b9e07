"""Validate a strategy's orders from the columns of the child process, and apply fill rules."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tradeassay.core.arrays import Floats, Ints
from tradeassay.core.order_columns import (
    ACTION_CANCEL,
    ACTION_SUBMIT,
    FLOATS,
    GIVEN,
    INTEGERS,
    KINDS,
    end_of_day,
)

MAX_ACTIONS: Final = 250_000
"""Maximum number of orders and cancellations in one run."""
MAX_SIZE: Final = 1e15
"""The largest size of an order. Above it, float64 cannot represent every whole number."""

_OF_ORDERS: Final = tuple(
    name for name in (*INTEGERS, *FLOATS) if name not in ("action", "turn", "row", "ref")
)
"""Columns that apply to orders only. A cancellation has zeros in these columns."""


class BadOrders(ValueError):
    """Columns that do not form a valid record of orders.

    The message describes the error and quotes none of the values.
    """


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OrderLog:
    """Orders and cancellations in order of submission, one row each.

    ``action`` is 0 for an order and 1 for a cancellation of ``ref``, whose remaining columns are 0.
    ``turn`` is the number of bars that the broker had processed at submission. ``row`` is the
    strategy's current bar (-1 before the first). Usually ``turn`` is ``row + 1``, because
    strategies decide after the close of a bar. ``side`` is 1 or -1, ``kind`` an index in
    :data:`KINDS`. ``given`` marks the prices that the strategy set. ``parent`` and ``oco`` are refs
    of related orders, or 0. ``valid`` is a day number of the framework.
    """

    action: Ints
    turn: Ints
    row: Ints
    ref: Ints
    asset: Ints
    side: Ints
    kind: Ints
    given: Ints
    parent: Ints
    oco: Ints
    transmit: Ints
    tradeid: Ints
    size: Floats
    price: Floats
    pricelimit: Floats
    trailamount: Floats
    trailpercent: Floats
    valid: Floats

    def __len__(self) -> int:
        return len(self.action)

    @property
    def orders(self) -> int:
        # Cancellations have no order kind.
        return int((self.action == ACTION_SUBMIT).sum())

    @property
    def decided(self) -> Ints:
        """Return the bar after which each action was decided.

        Actions before the first bar are assigned to the first bar.
        """
        return np.maximum(self.turn - 1, 0)

    def kinds(self) -> frozenset[str]:
        """Return the kinds of orders in the log.

        Related orders add ``bracket`` or ``oco``.
        """
        sent = self.action == ACTION_SUBMIT
        names = {KINDS[kind] for kind in np.unique(self.kind[sent]).tolist()}
        if "trailing-limit" in names:
            names.add("trailing")
        if (self.parent[sent] > 0).any():
            names.add("bracket")
        if (self.oco[sent] > 0).any():
            names.add("oco")
        return frozenset(names)


def order_log(count: int, **columns: NDArray[Any]) -> OrderLog:
    """Return a log of ``count`` actions with the given columns. Missing columns are 0."""
    zeros: dict[str, Any] = {name: np.zeros(count, dtype=np.int64) for name in INTEGERS}
    zeros |= {name: np.zeros(count) for name in FLOATS}
    return OrderLog(**{**zeros, **columns})


EMPTY: Final = order_log(0)
"""A log without orders."""


def read_orders(columns: Mapping[str, NDArray[Any]], rows: int, assets: int) -> OrderLog:
    """Return the validated order log of a run over ``rows`` bars of ``assets`` assets.

    Raises :class:`BadOrders` if the columns do not form a valid log.
    """
    arrays: dict[str, Any] = {}
    for names, kind in ((INTEGERS, np.int64), (FLOATS, np.float64)):
        for name in names:
            values = columns.get(name)
            if values is None or values.dtype != kind:
                raise BadOrders(f"column '{name}' is missing or of another type")
            arrays[name] = values
    log = OrderLog(**arrays)
    if any(len(values) != len(log) for values in arrays.values()):
        raise BadOrders("columns of different lengths")
    if len(log) > MAX_ACTIONS:
        raise BadOrders(f"{len(log)} orders and cancellations, at most {MAX_ACTIONS} are taken")
    if len(log):
        if (log.turn < 0).any() or (log.turn > rows).any() or (np.diff(log.turn) < 0).any():
            raise BadOrders("turns that run back, or beyond the last bar")
        # A strategy's current bar is the last one its broker has processed or, with a timer that
        # looks ahead ("cheats" in Backtrader), the next bar.
        if ((log.row != log.turn - 1) & (log.row != log.turn)).any() or (log.row >= rows).any():
            raise BadOrders("an action on a bar that was not the current one")
        _check_values(log, assets)
        _check_refs(log)
    return log


def _check_values(log: OrderLog, assets: int) -> None:
    """Raise :class:`BadOrders` for values that no order or cancellation can have."""
    if not np.isin(log.action, (ACTION_SUBMIT, ACTION_CANCEL)).all():
        raise BadOrders("an action that is neither an order nor a cancellation")
    sent = log.action == ACTION_SUBMIT
    for name in _OF_ORDERS:
        if (getattr(log, name)[~sent] != 0).any():
            raise BadOrders("a cancellation that says more than which order it ends")
    size = log.size[sent]
    if not (np.isfinite(size) & (size > 0) & (size <= MAX_SIZE)).all():
        raise BadOrders("an order without a size, or with an impossible one")
    checks = (
        ("asset", 0, assets - 1),
        ("kind", 0, len(KINDS) - 1),
        ("given", 0, sum(GIVEN.values())),
        ("transmit", 0, 1),
    )
    for name, low, high in checks:
        values = getattr(log, name)[sent]
        if (values < low).any() or (values > high).any():
            raise BadOrders(f"an order whose '{name}' does not exist")
    if not np.isin(log.side[sent], (-1, 1)).all():
        raise BadOrders("an order that neither buys nor sells")


def _check_refs(log: OrderLog) -> None:
    """Check that refs are unique and that every order refers only to earlier orders."""
    refs: set[int] = set()
    parts = zip(
        log.action.tolist(), log.ref.tolist(), log.parent.tolist(), log.oco.tolist(), strict=True
    )
    for action, ref, parent, oco in parts:
        if action == ACTION_CANCEL:
            if ref not in refs:
                raise BadOrders("a cancellation of an order that does not exist")
            continue
        if ref <= 0 or ref in refs:
            raise BadOrders("a ref that is used twice, or is none")
        if (parent and parent not in refs) or (oco and oco not in refs):
            raise BadOrders("an order that hangs on one that does not exist")
        refs.add(ref)


Status = Literal[
    "created", "submitted", "accepted", "completed", "cancelled", "expired", "margin", "rejected"
]
ALIVE: frozenset[Status] = frozenset({"created", "submitted", "accepted"})
_TRAILING = frozenset({"trailing", "trailing-limit"})


@dataclass(slots=True, eq=False, kw_only=True)
class OrderState:
    """An open order.

    ``left`` is the signed remainder. ``price`` is the trigger, or the limit of a limit order. It
    moves for trailing orders. ``limit`` is the limit price that applies after the trigger.
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
        """Move the trigger of a trailing order after a bar.

        The trigger follows the price in one direction only.
        """
        distance = self.trail_amount or close * self.trail_percent
        moved = close + distance if self.buys else close - distance
        if (moved < self.price) if self.buys else (moved > self.price):
            self.price = moved
            if self.kind == "trailing-limit":
                self.limit = moved - self.offset

    def expires(self, now: float) -> bool:
        """Return whether the order has expired. Market orders never expire."""
        return self.kind != "market" and bool(self.valid) and now > (self.valid or 0.0)


def make_order(log: OrderLog, number: int, close: float, now: float) -> OrderState:
    """Return the order in row ``number`` of a log.

    ``close`` and ``now`` are the close and the time of the bar on which the strategy decided.
    """
    flags = int(log.given[number])

    def named(name: str) -> float | None:
        return float(getattr(log, name)[number]) if flags & GIVEN[name] else None

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
    """One bar of one asset, with its time as a day number."""

    time: float
    open: float
    high: float
    low: float
    close: float


def price_of(order: OrderState, bar: Bar) -> float | None:
    """Return the price at which an order fills on a bar, or None."""
    if order.triggered:
        return _limit(order, bar, order.limit)
    return _RULES[order.kind](order, bar)


def _close(order: OrderState, bar: Bar) -> float | None:
    """Return the fill price of a close order: the session's last close.

    Only the first bar of the next session shows that the previous bar was the last. The order then
    fills at the stored close.
    """
    if bar.time > order.created and bar.time >= order.session_end:
        if order.last_close and bar.time > order.session_end:
            return order.last_close
        return bar.close
    order.last_close = bar.close
    return None


def _limit(order: OrderState, bar: Bar, limit: float) -> float | None:
    """Return the fill price of a limit order, or None.

    The order fills at the open if that is at the limit or better. Otherwise it fills at the limit
    if the bar touched it.
    """
    if order.buys:
        if limit >= bar.open:
            return bar.open
        return limit if limit >= bar.low else None
    if limit <= bar.open:
        return bar.open
    return limit if limit <= bar.high else None


def _stop(order: OrderState, bar: Bar) -> float | None:
    """Return the fill price of a stop order, or None.

    The order fills at the open if the bar opened beyond the trigger. Otherwise it fills at the
    trigger if the bar touched it.
    """
    trigger = order.price
    if order.buys:
        if bar.open >= trigger:
            return bar.open
        return trigger if bar.high >= trigger else None
    if bar.open <= trigger:
        return bar.open
    return trigger if bar.low <= trigger else None


def _stop_limit(order: OrderState, bar: Bar) -> float | None:
    """Return the fill price of a stop-limit order, or None. Mark the order once it is triggered."""
    trigger, limit = order.price, order.limit
    if (bar.open >= trigger) if order.buys else (bar.open <= trigger):
        order.triggered = True
        return _limit(order, bar, limit)
    if not ((bar.high >= trigger) if order.buys else (bar.low <= trigger)):
        return None
    order.triggered = True
    if (limit >= trigger) if order.buys else (limit <= trigger):
        return trigger
    # The limit is on the near side of the trigger. The price has crossed it again only if the bar
    # closed beyond it.
    if order.buys:
        return limit if bar.open > bar.close and limit >= bar.close else None
    return limit if bar.open <= bar.close and limit <= bar.close else None


_RULES: dict[str, Callable[[OrderState, Bar], float | None]] = {
    "market": lambda order, bar: bar.open if bar.time > order.created else None,
    "close": _close,
    "limit": lambda order, bar: _limit(order, bar, order.price),
    "stop": _stop,
    "stop-limit": _stop_limit,
    "trailing": _stop,
    "trailing-limit": _stop_limit,
}
