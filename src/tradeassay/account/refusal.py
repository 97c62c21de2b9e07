"""Why an order is not carried out, as the policies say it to the exchange."""

from __future__ import annotations

from typing import NamedTuple

from tradeassay.core.events import RejectReason


class Refusal(NamedTuple):
    """A counted reason and a sentence for the reader of the log."""

    reason: RejectReason
    detail: str


WAITS: frozenset[RejectReason] = frozenset(
    {"suspended", "no_price", "limit_up", "limit_down", "no_volume", "t_plus_1"}
)
"""Reasons that another day may cure: a good-till-cancelled order rests on them, any other is rejected."""
