"""How large may one position be, and how many may there be?"""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.account.lots import floor_to
from tradeassay.account.refusal import Refusal
from tradeassay.account.session import Session
from tradeassay.account.ticket import Ticket

SLACK = 1e-9
"""Weights are compared with this absolute slack: a target of exactly the limit is allowed."""


class Concentration(msgspec.Struct, frozen=True, kw_only=True):
    """``max_weight`` of NAV per position after the trade, ``max_positions`` held at once; None = no limit.

    Both bind only orders that make a position larger; a position that grew beyond its weight by itself
    is left alone. ``on_excess`` says whether an order beyond the weight is refused or cut to it.
    """

    max_weight: float | None = None
    max_positions: int | None = None
    on_excess: Literal["reject", "trim"] = "reject"

    @property
    def binds(self) -> bool:
        """Whether there is any limit at all."""
        return self.max_weight is not None or self.max_positions is not None

    def gate(self, ticket: Ticket, session: Session) -> Refusal | None:
        """Refuse or trim an order that makes the portfolio too concentrated."""
        held = ticket.held
        after = held + ticket.signed(ticket.quantity)
        if abs(after) <= abs(held):
            return None
        if self.max_positions is not None and held == 0.0:
            count = len(session.account.held())
            if count >= self.max_positions:
                return Refusal("max_positions", f"{count} positions are held, {self.max_positions} are allowed")
        if self.max_weight is None:
            return None
        unit = ticket.reference * ticket.multiplier
        nav = session.nav
        if abs(after) * unit <= (self.max_weight + SLACK) * nav:
            return None
        if self.on_excess == "trim":
            lot = ticket.lot
            fits = floor_to(max(self.max_weight * nav / unit - ticket.signed(held), 0.0), lot)
            if fits > 0.0:
                ticket.trim(fits, "max_weight")
                return None
        weight = abs(after) * unit / nav if nav > 0.0 else float("inf")
        return Refusal(
            "max_weight", f"{ticket.symbol} would be {weight:.2%} of NAV, {self.max_weight:.2%} is allowed"
        )
