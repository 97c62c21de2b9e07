"""Define the policies for sales: T+1 locks and short sales."""

from typing import Literal

import msgspec

from tradeassay_bench.account.limits import floor_to
from tradeassay_bench.account.session import OrderTicket, Refusal, SessionState


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """The lock of newly bought shares.

    With ``t_plus`` 1, shares are locked until the session after their purchase. With 0 there is no
    lock. ``on_locked`` selects whether a sale of locked shares is refused or cut to the free
    shares.
    """

    t_plus: Literal[0, 1] = 0
    on_locked: Literal["reject", "trim"] = "reject"

    def gate(self, ticket: OrderTicket, session: SessionState) -> Refusal | None:
        free = session.account.sellable(ticket.symbol)
        if ticket.quantity <= free:
            return None
        held = ticket.held
        if ticket.quantity > held or free == held:
            return None  # A sale beyond the holding is a matter of shorting, not of locks.
        if self.on_locked == "trim" and free > 0.0:
            ticket.trim(free, "t_plus_1")
            return None
        return Refusal(
            "t_plus_1",
            f"{held - free:g} of {held:g} shares were bought today and are locked until tomorrow",
        )


class Shorting(msgspec.Struct, frozen=True, kw_only=True):
    """Short sales.

    ``borrow_per_year`` is charged on the short value, in equal parts per session. ``unavailable``
    contains the symbols that cannot be borrowed. ``max_volume_share`` limits a short position to a
    fraction of the session's volume (None = no limit). If shorting is not ``allowed``, a sale
    beyond the holding is refused or cut to the holding (``on_short_shares``).
    """

    allowed: bool = False
    borrow_per_year: float = 0.0
    unavailable: tuple[str, ...] = ()
    max_volume_share: float | None = None
    on_short_shares: Literal["reject", "trim"] = "reject"

    def gate(self, ticket: OrderTicket, session: SessionState) -> Refusal | None:
        held = ticket.held
        if ticket.quantity <= held:
            return None
        if not self.allowed:
            if held <= 0.0:
                return Refusal(
                    "no_shorting", f"no {ticket.symbol} is held and the venue has no short sales"
                )
            if self.on_short_shares == "trim":
                ticket.trim(held, "insufficient_shares")
                return None
            return Refusal("insufficient_shares", f"{ticket.quantity:g} to sell, {held:g} held")
        if ticket.symbol in self.unavailable:
            return Refusal("no_borrow", f"{ticket.symbol} cannot be borrowed")
        if self.max_volume_share is None:
            return None
        volume: float = session.volume[ticket.column]
        bound = volume * self.max_volume_share
        short = ticket.quantity - held
        if short <= bound or volume != volume:
            return None
        lot = ticket.lot
        fits = floor_to(max(bound + held, 0.0), lot)
        if fits <= 0.0:
            return Refusal(
                "no_borrow",
                f"{bound:g} shares can be borrowed, {max(-held, 0.0):g} are short already",
            )
        ticket.trim(fits, "no_borrow")
        return None
