"""Where a streaming strategy says what it wants. The host executes it; nothing is filled here."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from tradeassay.code.leak.trace import Trace

KINDS: Final = ("target", "market", "limit", "stop", "cancel")


class Decision(NamedTuple):
    """One thing decided on the close of bar ``row``.

    ``target``: hold this position (or weight, as the task says) from the next bar on. ``market``, ``limit`` and
    ``stop``: an order of signed ``quantity``, with ``price`` for the last two. ``cancel``: take back all open
    orders of the feed.
    """

    row: int
    feed: str
    kind: str
    quantity: float
    price: float


class Desk:
    """Takes the decisions of one bar after the other. ``row`` is the number of the bar at hand."""

    __slots__ = ("_first", "decisions", "row")

    def __init__(self, first_feed: str = "") -> None:
        self.row = 0
        self.decisions: list[Decision] = []
        self._first = first_feed

    def target(self, position: float, feed: str | None = None) -> None:
        """Hold ``position`` from the next bar on; the first feed's unless another is named."""
        self._add("target", position, math.nan, feed)

    def order(
        self,
        quantity: float,
        feed: str | None = None,
        *,
        limit: float | None = None,
        stop: float | None = None,
    ) -> None:
        """Send a market, limit or stop order; positive quantities buy. Raises ValueError for both prices."""
        if limit is not None and stop is not None:
            raise ValueError("an order has a limit or a stop, not both")
        if limit is not None:
            self._add("limit", quantity, limit, feed)
        elif stop is not None:
            self._add("stop", quantity, stop, feed)
        else:
            self._add("market", quantity, math.nan, feed)

    def cancel(self, feed: str | None = None) -> None:
        """Take back all open orders of a feed."""
        self._add("cancel", 0.0, math.nan, feed)

    def _add(self, kind: str, quantity: float, price: float, feed: str | None) -> None:
        name = self._first if feed is None else feed
        self.decisions.append(Decision(self.row, name, kind, float(quantity), float(price)))


def trace_of(decisions: list[Decision], *, cpu_s: float | None = None) -> Trace:
    """Return decisions as the trace that all checks compare."""
    rows, feeds, kinds, quantities, prices = zip(*decisions, strict=True) if decisions else ((),) * 5
    return Trace(
        rows=np.asarray(rows, dtype=np.int64),
        fields={
            "feed": np.asarray(feeds, dtype=object),
            "kind": np.asarray(kinds, dtype=object),
            "quantity": np.asarray(quantities, dtype=np.float64),
            "price": np.asarray(prices, dtype=np.float64),
        },
        cpu_s=cpu_s,
    )
