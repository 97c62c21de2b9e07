"""What a strategy asked its broker to do, read strictly from the columns a child sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tradeassay.core.order_columns import ACTION_CANCEL, ACTION_SUBMIT, FLOATS, GIVEN, INTEGERS, KINDS
from tradeassay.core.view import Floats, Ints

MAX_ACTIONS: Final = 250_000
"""How many orders and cancellations one run may have."""
MAX_SIZE: Final = 1e15
"""Beyond this a size is no longer a number of units that a double can hold."""

_OF_ORDERS: Final = tuple(name for name in (*INTEGERS, *FLOATS) if name not in ("action", "turn", "row", "ref"))
"""What only an order has; a cancellation leaves it at zero."""


class BadOrders(ValueError):
    """The columns are not a record of orders. The text says what is wrong, and quotes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OrderLog:
    """Orders and cancellations in the order in which they were given, one row each.

    ``action``: 0 an order, 1 a cancellation (of ``ref``; its other columns are 0). ``turn``: how many times the
    broker had acted when it came; ``row``: the bar that the strategy saw as the current one (-1 before the first).
    In the ordinary case ``turn`` is ``row + 1``: decided after the bar was over. ``side`` is 1 or -1, ``kind`` a
    place in :data:`KINDS`; ``given`` says which of the prices were named at all. ``parent`` and ``oco`` are refs
    of other orders, 0 for none. ``valid`` is a day number of the framework.
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
        # Cancellations are no orders.
        return int((self.action == ACTION_SUBMIT).sum())

    @property
    def decided(self) -> Ints:
        """The bar after which each action was decided; actions before the first bar count as the first bar's."""
        return np.maximum(self.turn - 1, 0)

    def kinds(self) -> frozenset[str]:
        """Return the kinds of orders that occur; ``bracket`` and ``oco`` for orders that hang together."""
        sent = self.action == ACTION_SUBMIT
        found = {KINDS[kind] for kind in np.unique(self.kind[sent]).tolist()}
        if "trailing-limit" in found:
            found.add("trailing")
        if (self.parent[sent] > 0).any():
            found.add("bracket")
        if (self.oco[sent] > 0).any():
            found.add("oco")
        return frozenset(found)


def order_log(count: int, **columns: NDArray[Any]) -> OrderLog:
    """Return a log of ``count`` actions with the given columns; all others are 0."""
    zeros: dict[str, Any] = {name: np.zeros(count, dtype=np.int64) for name in INTEGERS}
    zeros |= {name: np.zeros(count) for name in FLOATS}
    return OrderLog(**{**zeros, **columns})


EMPTY: Final = order_log(0)
"""No orders at all."""


def read_orders(columns: Mapping[str, NDArray[Any]], rows: int, assets: int) -> OrderLog:
    """Return the record of a run over ``rows`` bars of ``assets`` assets; raises :class:`BadOrders`."""
    taken: dict[str, Any] = {}
    for names, kind in ((INTEGERS, np.int64), (FLOATS, np.float64)):
        for name in names:
            values = columns.get(name)
            if values is None or values.dtype != kind:
                raise BadOrders(f"column '{name}' is missing or of another type")
            taken[name] = values
    log = OrderLog(**taken)
    if any(len(values) != len(log) for values in taken.values()):
        raise BadOrders("columns of different lengths")
    if len(log) > MAX_ACTIONS:
        raise BadOrders(f"{len(log)} orders and cancellations, at most {MAX_ACTIONS} are taken")
    if len(log):
        _check_time(log, rows)
        _check_values(log, assets)
        _check_refs(log)
    return log


def _check_time(log: OrderLog, rows: int) -> None:
    if (log.turn < 0).any() or (log.turn > rows).any() or (np.diff(log.turn) < 0).any():
        raise BadOrders("turns that run back, or beyond the last bar")
    # A strategy sees the bar its broker has just processed, or (with a timer that cheats) already the next one.
    if ((log.row != log.turn - 1) & (log.row != log.turn)).any() or (log.row >= rows).any():
        raise BadOrders("an action on a bar that was not the current one")


def _check_values(log: OrderLog, assets: int) -> None:
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
    """Check that every order has its own ref and names only orders that came before it."""
    known: set[int] = set()
    parts = zip(log.action.tolist(), log.ref.tolist(), log.parent.tolist(), log.oco.tolist(), strict=True)
    for action, ref, parent, oco in parts:
        if action == ACTION_CANCEL:
            if ref not in known:
                raise BadOrders("a cancellation of an order that does not exist")
            continue
        if ref <= 0 or ref in known:
            raise BadOrders("a ref that is used twice, or is none")
        if (parent and parent not in known) or (oco and oco not in known):
            raise BadOrders("an order that hangs on one that does not exist")
        known.add(ref)
