"""Which quantities exist? Buying lots, smallest steps, and odd remainders."""

from __future__ import annotations

from math import floor
from typing import Literal

import msgspec

from tradeassay.account.session import Refusal, Session, Ticket
from tradeassay.core.instruments import Instrument

WHOLE = 1e-6
"""How far a count of lots may be from a whole number and still be that number."""

DIGITS = 50
"""Binary digits of a count of lots that arithmetic can be trusted with."""


def floor_to(quantity: float, unit: float) -> float:
    """Round a magnitude down to a multiple of ``unit``; a hair below a multiple counts as the multiple.

    Units below one are handled by their reciprocal: ``n / 10000`` is the double nearest to the decimal,
    ``n * 0.0001`` often is not.
    """
    if unit >= 1.0:
        return floor(quantity / unit + WHOLE) * unit
    per = round(1.0 / unit)
    return floor(quantity * per + WHOLE) / per


def is_multiple(quantity: float, unit: float) -> bool:
    """Say whether a magnitude is a whole number of units, at least one."""
    count = quantity / unit if unit >= 1.0 else quantity * round(1.0 / unit)
    whole = round(count)
    return whole >= 1 and abs(count - whole) <= WHOLE


class Lots(msgspec.Struct, frozen=True, kw_only=True):
    """Lots and steps.

    ``lot`` is the multiple in which one buys, ``step`` the smallest quantity that exists (None = the
    instrument's own). One sells in lots too, except that an odd remainder (held modulo lot) may be
    sold in full, alone or with whole lots.

    An order in shares that is not a multiple is refused or, with ``on_odd="trim"``, cut with an event. An
    order in money or weight is rounded down to a lot: that is how it is turned into shares.
    ``min_value`` is the least value of an order; closing a position is exempt.
    """

    lot: float | None = 1.0
    step: float | None = 1.0
    on_odd: Literal["reject", "trim"] = "reject"
    min_value: float = 0.0

    def lot_of(self, instrument: Instrument) -> float:
        return instrument.lot if self.lot is None else self.lot

    def step_of(self, instrument: Instrument) -> float:
        return instrument.step if self.step is None else self.step

    def gate(self, ticket: Ticket, session: Session) -> Refusal | None:
        lot = ticket.lot
        quantity = ticket.quantity
        against = -ticket.held if ticket.buying else ticket.held
        step = ticket.instrument.step if self.step is None else self.step
        if against > 0.0 and abs(quantity - against) < 0.5 * step:
            # An order that leaves less than half a step closes the position: no dust is left behind.
            ticket.quantity = against
            return None
        if quantity % lot != 0.0:
            if is_multiple(quantity, lot):
                ticket.quantity = floor_to(quantity, lot)
            elif not self._sells_odd_rest(quantity, against, lot):
                refusal = self._round(ticket, lot)
                if refusal is not None:
                    return refusal
        if self.min_value and ticket.quantity * ticket.reference * ticket.multiplier < self.min_value:
            value = ticket.quantity * ticket.reference * ticket.multiplier
            return Refusal("below_minimum", f"an order is worth at least {self.min_value:g}, this one {value:.4g}")
        return None

    @staticmethod
    def _sells_odd_rest(quantity: float, against: float, lot: float) -> bool:
        if against <= 0.0 or quantity > against:
            return False
        odd = against - floor_to(against, lot)
        # Below this it is no remainder but the rounding of a sum: 1 - 0.7 is not 0.3.
        return odd > WHOLE * lot and (quantity == odd or is_multiple(quantity - odd, lot))

    def _round(self, ticket: Ticket, lot: float) -> Refusal | None:
        rounded = floor_to(ticket.quantity, lot)
        if ticket.explicit and self.on_odd == "reject":
            near = f"{rounded:g} or {rounded + lot:g}" if rounded > 0.0 else f"at least {lot:g}"
            return Refusal("lot", f"{ticket.quantity:g} is no multiple of {lot:g}: try {near}")
        if rounded <= 0.0:
            return Refusal("lot", f"{ticket.quantity:.6g} is less than one lot of {lot:g}")
        if ticket.explicit:
            ticket.trim(rounded, "lot")
        else:
            ticket.quantity = rounded
        return None
