"""Can a cash account pay for it?"""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.execution.lots import floor_to
from tradeassay.execution.refusal import Refusal
from tradeassay.execution.session import Session
from tradeassay.execution.ticket import Ticket

DUST = 1e-9
"""An order that costs more than there is by less than this share of its value spends the account to
exactly zero: three shares at 33.33 must be payable with 99.99, whatever the last bit says."""


class Cash(msgspec.Struct, frozen=True, kw_only=True):
    """A cash account never goes below zero; what it cannot pay is refused or cut (``on_short``)."""

    on_short: Literal["reject", "trim"] = "trim"

    def gate(self, ticket: Ticket, session: Session) -> Refusal | None:
        """Work out costs and the change of cash; refuse or trim what the account cannot pay."""
        balance = session.account.cash
        fees = session.fees
        quantity = ticket.quantity
        value = quantity * ticket.price * ticket.multiplier
        fee, tax = fees.charge(value, quantity, ticket.buying)
        change = (-value if ticket.buying else value) - fee - tax
        left = balance + change
        if left < 0.0:
            if left >= -DUST * value:
                change = -balance
            elif self.on_short == "reject" or not ticket.buying:
                return _short(ticket, value, fee + tax, balance)
            else:
                return self._trim(ticket, session, balance)
        ticket.fee, ticket.tax, ticket.cash = fee, tax, change
        return None

    def _trim(self, ticket: Ticket, session: Session, balance: float) -> Refusal | None:
        """Cut a purchase to the lots that the balance pays for."""
        fees = session.fees
        unit = ticket.price * ticket.multiplier
        lot = ticket.lot
        count = round(floor_to(min(fees.affordable(balance, unit), ticket.quantity), lot) / lot)
        while count > 0:
            quantity = floor_to(count * lot, lot)
            value = quantity * unit
            fee, tax = fees.charge(value, quantity, True)
            change = -value - fee - tax
            if balance + change >= 0.0:
                ticket.trim(quantity, "insufficient_cash")
                ticket.fee, ticket.tax, ticket.cash = fee, tax, change
                return None
            count -= 1
        value = ticket.quantity * unit
        fee, tax = fees.charge(value, ticket.quantity, True)
        return _short(ticket, value, fee + tax, balance)


def _short(ticket: Ticket, value: float, costs: float, balance: float) -> Refusal:
    if ticket.buying:
        return Refusal("insufficient_cash", f"costs {value + costs:.2f}, there is {balance:.2f}")
    return Refusal("insufficient_cash", f"costs of {costs:.2f} exceed proceeds {value:.2f} and cash {balance:.2f}")
