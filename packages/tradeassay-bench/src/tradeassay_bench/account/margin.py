"""Define the payment policies: margin accounts, borrowed cash, and cash accounts without debt."""

from typing import Literal

import msgspec

from tradeassay_bench.account.limits import DIGITS, floor_to, lots_in, of_lots
from tradeassay_bench.account.session import OrderTicket, Refusal, SessionState

EQUAL = 1e-9
"""Relative tolerance in the comparison of equity with the requirement."""


class Margin(msgspec.Struct, frozen=True, kw_only=True):
    """A margin account.

    An order that enlarges a position is filled only if afterwards equity >= ``initial`` x gross
    exposure, at reference prices and after costs. Reductions are always filled. At the close equity
    must be at least ``maintenance_long`` x longs + ``maintenance_short`` x shorts. Otherwise the
    venue closes positions. Negative cash costs ``interest_per_year``. Positive cash earns nothing.
    """

    initial: float = 0.5
    maintenance_long: float = 0.25
    maintenance_short: float = 0.30
    interest_per_year: float = 0.06
    on_short: Literal["reject", "trim"] = "trim"

    def required(self, value: float) -> float:
        return value * self.maintenance_long if value > 0.0 else -value * self.maintenance_short

    def gate(self, ticket: OrderTicket, session: SessionState) -> Refusal | None:
        self._charge(ticket, session)
        held = ticket.held
        after = held + ticket.signed(ticket.quantity)
        if abs(after) <= abs(held) and after * held >= 0.0:
            return None
        equity, gross = session.exposure()
        if self._carries(ticket, held, equity, gross):
            return None
        if self.on_short == "trim" and self._trim(ticket, session, held, equity, gross):
            return None
        needed = self.initial * (
            gross + (abs(after) - abs(held)) * ticket.reference * ticket.multiplier
        )
        return Refusal("margin", f"needs {needed:.2f} of initial margin, equity is {equity:.2f}")

    def _charge(self, ticket: OrderTicket, session: SessionState) -> None:
        """Set the ticket's fee, tax and cash flow for its current quantity."""
        value = ticket.quantity * ticket.price * ticket.multiplier
        ticket.fee, ticket.tax = session.fees.charge(value, ticket.quantity, ticket.buying)
        costs = ticket.fee + ticket.tax
        ticket.cash = (-value if ticket.buying else value) - costs

    def _carries(self, ticket: OrderTicket, held: float, equity: float, gross: float) -> bool:
        """Return whether equity after the trade and its costs covers the initial margin."""
        unit = ticket.reference * ticket.multiplier
        after = abs(held + ticket.signed(ticket.quantity)) * unit
        slip = ticket.quantity * abs(ticket.price - ticket.reference) * ticket.multiplier
        left = equity - ticket.fee - ticket.tax - slip
        required = self.initial * (gross - abs(held) * unit + after)
        return left >= required - EQUAL * abs(equity)

    def _trim(
        self, ticket: OrderTicket, session: SessionState, held: float, equity: float, gross: float
    ) -> bool:
        """Cut the order to the available margin. Return whether a quantity remains."""
        lot, asked = ticket.lot, ticket.quantity
        closes = abs(held) if held * ticket.signed(1.0) < 0.0 else 0.0
        most = min(closes + self._opens(ticket, session, closes, equity, gross), asked)
        count = round(lots_in(floor_to(most, lot), lot))
        # Rounding may leave the count one lot too high, rarely more (see Cash).
        while count > 0:
            ticket.quantity = of_lots(count, lot)
            self._charge(ticket, session)
            if ticket.quantity <= closes or self._carries(ticket, held, equity, gross):
                fits, ticket.quantity = ticket.quantity, asked
                ticket.trim(fits, "margin")
                return True
            count -= max(1, count >> DIGITS)
        ticket.quantity = asked
        return False

    def _opens(
        self, ticket: OrderTicket, session: SessionState, closes: float, equity: float, gross: float
    ) -> float:
        """Return the number of units that the margin allows beyond the part that closes a position.

        The number solves equity - costs = initial x gross exposure.
        """
        fees, unit = session.fees, ticket.reference * ticket.multiplier
        slip = abs(ticket.price / ticket.reference - 1.0)
        rate = fees.rate(ticket.buying) * ticket.price / ticket.reference + fees.per_unit / unit
        free = equity - self.initial * (gross - closes * unit) - closes * unit * slip
        opens = (free - closes * unit * rate) / (unit * (self.initial + slip + rate))
        if (closes + opens) * unit * rate < fees.minimum:
            opens = (free - fees.minimum) / (unit * (self.initial + slip))
        return max(opens, 0.0)


DUST = 1e-9
"""An order that exceeds the cash by less than this fraction of its value leaves a balance of
exactly zero. For example, 99.99 must pay for three shares at 33.33 despite rounding.
"""


class Cash(msgspec.Struct, frozen=True, kw_only=True):
    """A cash account, whose balance never falls below zero.

    ``on_short`` selects whether an order beyond the balance is refused or cut.
    """

    on_short: Literal["reject", "trim"] = "trim"

    def gate(self, ticket: OrderTicket, session: SessionState) -> Refusal | None:
        # The account can pay for nearly every order, so the code of :meth:`_pays` is repeated
        # inline.
        quantity, buying = ticket.quantity, ticket.buying
        value = quantity * ticket.price * ticket.multiplier
        fee, tax = session.fees.charge(value, quantity, buying)
        change = (-value if buying else value) - fee - tax
        if session.account.cash + change >= 0.0:
            ticket.fee, ticket.tax, ticket.cash = fee, tax, change
            return None
        return self._cut(ticket, session)

    def _cut(self, ticket: OrderTicket, session: SessionState) -> Refusal | None:
        """Cut the order to the available cash, or return a refusal."""
        if self._pays(ticket, session):
            return None
        asked, balance = ticket.quantity, session.account.cash
        if ticket.buying and self.on_short == "trim":
            unit = ticket.price * ticket.multiplier
            most = min(session.fees.affordable(balance, unit), asked)
            count = round(lots_in(floor_to(most, ticket.lot), ticket.lot))
            # Rounding may leave the count one lot too high, rarely more. If one lot is below the
            # last digit of the sum, the steps are larger.
            while count > 0:
                ticket.quantity = of_lots(count, ticket.lot)
                if self._pays(ticket, session):
                    fits, ticket.quantity = ticket.quantity, asked
                    ticket.trim(fits, "insufficient_cash")
                    return None
                count -= max(1, count >> DIGITS)
            ticket.quantity = asked
        value = ticket.quantity * ticket.price * ticket.multiplier
        costs = sum(session.fees.charge(value, ticket.quantity, ticket.buying))
        if ticket.buying:
            return Refusal(
                "insufficient_cash", f"costs {value + costs:.2f}, there is {balance:.2f}"
            )
        return Refusal(
            "insufficient_cash",
            f"costs of {costs:.2f} exceed proceeds {value:.2f} and cash {balance:.2f}",
        )

    @staticmethod
    def _pays(ticket: OrderTicket, session: SessionState) -> bool:
        """Set the ticket's costs and cash flow, and return whether the account can pay for the
        order.
        """
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
