"""Can a cash account pay for it?"""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.account.lots import DIGITS, floor_to
from tradeassay.account.session import Refusal, Session, Ticket
from tradeassay.core.sums import plain_sum

DUST = 1e-9
"""An order that exceeds the cash by less than this share of its value spends the account to
exactly zero: three shares at 33.33 must be payable with 99.99, whatever the last bit says."""


class Cash(msgspec.Struct, frozen=True, kw_only=True):
    """A cash account never goes below zero; what it cannot pay is refused or cut (``on_short``)."""

    on_short: Literal["reject", "trim"] = "trim"

    def gate(self, ticket: Ticket, session: Session) -> Refusal | None:
        # What :meth:`_pays` does, written out: nearly every order can be paid for.
        quantity, buying = ticket.quantity, ticket.buying
        value = quantity * ticket.price * ticket.multiplier
        fee, tax = session.fees.charge(value, quantity, buying)
        change = (-value if buying else value) - fee - tax
        if session.account.cash + change >= 0.0:
            ticket.fee, ticket.tax, ticket.cash = fee, tax, change
            return None
        return self._cut(ticket, session)

    def _cut(self, ticket: Ticket, session: Session) -> Refusal | None:
        if self._pays(ticket, session):
            return None
        asked, balance = ticket.quantity, session.account.cash
        if ticket.buying and self.on_short == "trim":
            unit = ticket.price * ticket.multiplier
            most = min(session.fees.affordable(balance, unit), asked)
            count = round(floor_to(most, ticket.lot) / ticket.lot)
            # Rounding may have put the count one lot too high, hardly ever more; where one lot in the count is
            # below the last digit of the sum, the steps are larger.
            while count > 0:
                ticket.quantity = floor_to(count * ticket.lot, ticket.lot)
                if self._pays(ticket, session):
                    fits, ticket.quantity = ticket.quantity, asked
                    ticket.trim(fits, "insufficient_cash")
                    return None
                count -= max(1, count >> DIGITS)
            ticket.quantity = asked
        return _short(ticket, session, balance)

    @staticmethod
    def _pays(ticket: Ticket, session: Session) -> bool:
        """Set the ticket's costs and change of cash; say whether the account can pay."""
        quantity, balance = ticket.quantity, session.account.cash
        value = quantity * ticket.price * ticket.multiplier
        fee, tax = session.fees.charge(value, quantity, ticket.buying)
        change = (-value if ticket.buying else value) - fee - tax
        left = balance + change
        if left < 0.0:
            if left < -DUST * value:
                return False
            change = -balance
        ticket.fee, ticket.tax, ticket.cash = fee, tax, change
        return True


def _short(ticket: Ticket, session: Session, balance: float) -> Refusal:
    value = ticket.quantity * ticket.price * ticket.multiplier
    costs = plain_sum(session.fees.charge(value, ticket.quantity, ticket.buying))
    if ticket.buying:
        return Refusal("insufficient_cash", f"costs {value + costs:.2f}, there is {balance:.2f}")
    return Refusal("insufficient_cash", f"costs of {costs:.2f} exceed proceeds {value:.2f} and cash {balance:.2f}")
