"""Which of a venue's policies does an order have to pass, and in which order?"""

from __future__ import annotations

from collections.abc import Callable

from tradeassay.account.refusal import Refusal
from tradeassay.account.session import Session
from tradeassay.account.ticket import Ticket
from tradeassay.account.venue import Venue

Gate = Callable[[Ticket, Session], Refusal | None]
"""A policy's question to one order. It may trim the ticket; a refusal ends the order."""


def gates_of(venue: Venue, *, buying: bool) -> tuple[Gate, ...]:
    """Return the questions of a venue in the order they are asked, without those that never bind."""
    gates: list[Gate] = []
    if venue.price_limits is not None:
        gates.append(venue.price_limits.gate)
    gates.append(venue.lots.gate)
    if not buying:
        if venue.settlement.t_plus:
            gates.append(venue.settlement.gate)
        gates.append(venue.shorting.gate)
    if venue.participation.max_share is not None:
        gates.append(venue.participation.gate)
    if venue.concentration.binds:
        gates.append(venue.concentration.gate)
    gates.append(venue.cash.gate if venue.margin is None else venue.margin.gate)
    return tuple(gates)
