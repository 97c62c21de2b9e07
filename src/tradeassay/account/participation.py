"""How much of a session's volume may one account take?"""

from __future__ import annotations

import msgspec

from tradeassay.account.lots import floor_to
from tradeassay.account.refusal import Refusal
from tradeassay.account.session import Session
from tradeassay.account.ticket import Ticket


class Participation(msgspec.Struct, frozen=True, kw_only=True):
    """``max_share`` of the session's actual volume, all orders in a name together; None = no limit.

    The exchange may look at the whole session's volume even for a fill at the open: it stands for the
    liquidity that was there, it only ever makes a fill smaller, and no agent learns of it before the
    session is over. Where the data has no volume (NaN) the limit cannot be applied and is not. Index
    funds are exempt unless ``index_funds`` is set: their depth is that of their members.
    """

    max_share: float | None = None
    index_funds: bool = False

    def gate(self, ticket: Ticket, session: Session) -> Refusal | None:
        """Trim an order to the share of volume still free, or refuse it when there is none."""
        if self.max_share is None or (ticket.instrument.kind == "index" and not self.index_funds):
            return None
        volume: float = session.volume[ticket.column]
        if volume != volume:
            return None
        free = volume * self.max_share - session.used.get(ticket.symbol, 0.0)
        if ticket.quantity <= free:
            return None
        lot = ticket.lot
        fits = floor_to(free, lot) if free > 0.0 else 0.0
        if fits > free:
            fits -= lot
        if fits <= 0.0:
            return Refusal(
                "no_volume", f"{self.max_share:.1%} of {volume:g} traded leaves room for no lot of {lot:g}"
            )
        ticket.trim(fits, "no_volume")
        return None
