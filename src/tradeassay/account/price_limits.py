"""Is the price at its daily limit, so that nobody takes the other side?"""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.account.refusal import Refusal
from tradeassay.account.session import Session
from tradeassay.account.ticket import Ticket
from tradeassay.core.instruments import Board

AT_LIMIT = 1e-9
"""A change this close to the threshold counts as reaching it: 10.95 / 10 - 1 is a hair below 0.095."""


# Looking a member up on an enum class is slow, and this is asked for every order.
_MAIN, _CHINEXT, _STAR, _NONE = Board.MAIN, Board.CHINEXT, Board.STAR, Board.NONE


class PriceLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Daily price limits per board, as fractions of the previous close; None = the board has none.

    At or beyond (limit - ``buffer``) no BUY on the way up and no SELL on the way down is filled.
    ``limit_test`` names the price that is compared: ``open`` takes the price at which the order would
    trade (the open for a fill at the open); ``close_change`` takes the session's closing change even
    for a fill at the open, as Qlib's float ``limit_threshold`` does. The latter looks ahead and is for
    parity runs only.
    """

    main: float | None = 0.10
    chinext: float | None = 0.20
    star: float | None = 0.20
    bse: float | None = 0.30
    none: float | None = None
    buffer: float = 0.005
    limit_test: Literal["open", "close_change"] = "open"

    def threshold(self, board: Board) -> float | None:
        """Return the change at which a board's names stop trading, or None."""
        if board is _MAIN:
            limit = self.main
        elif board is _NONE:
            limit = self.none
        elif board is _CHINEXT:
            limit = self.chinext
        elif board is _STAR:
            limit = self.star
        else:
            limit = self.bse
        return None if limit is None else limit - self.buffer

    def gate(self, ticket: Ticket, session: Session) -> Refusal | None:
        """Refuse a buy at limit-up and a sale at limit-down."""
        threshold = self.threshold(ticket.instrument.board)
        if threshold is None:
            return None
        previous: float = session.prev_close[ticket.column]
        if not previous > 0.0:
            return None  # the first session of a listing has no previous close, hence no limit
        price = ticket.reference if self.limit_test == "open" else session.close[ticket.column]
        change = price / previous - 1.0
        if ticket.buying:
            if change >= threshold - AT_LIMIT:
                return Refusal(
                    "limit_up", f"{price:g} is {change:+.2%} from {previous:g}; no BUY from +{threshold:.2%}"
                )
        elif change <= AT_LIMIT - threshold:
            return Refusal(
                "limit_down", f"{price:g} is {change:+.2%} from {previous:g}; no SELL from -{threshold:.2%}"
            )
        return None
