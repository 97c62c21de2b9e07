"""When may what was bought be sold again?"""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.account.refusal import Refusal
from tradeassay.account.session import Session
from tradeassay.account.ticket import Ticket


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """``t_plus`` 1: shares bought in a session are locked until the next one. 0: no lock.

    ``on_locked`` says whether a sale that needs locked shares is refused or cut to the free ones.
    """

    t_plus: Literal[0, 1] = 0
    on_locked: Literal["reject", "trim"] = "reject"

    def gate(self, ticket: Ticket, session: Session) -> Refusal | None:
        """Refuse or trim a sale of locked shares."""
        free = session.account.sellable(ticket.symbol)
        if ticket.quantity <= free:
            return None
        held = ticket.held
        if ticket.quantity > held or free == held:
            return None  # more than is held at all: the question of shorting, not of locks
        if self.on_locked == "trim" and free > 0.0:
            ticket.trim(free, "t_plus_1")
            return None
        return Refusal(
            "t_plus_1", f"{held - free:g} of {held:g} shares were bought today and are locked until tomorrow"
        )
