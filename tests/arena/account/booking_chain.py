"""The bookings of an account held to each other: each follows from those before it, or is
refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

import msgspec

from tradeassay_arena.daily_target import Booking
from tradeassay_bench.account import TOLERANCE
from tradeassay_bench.core.errors import LedgerError


def follow(bookings: Iterable[tuple[str, Booking]], value: float = 1.0) -> float:
    """Add up one account's bookings, each with its asset, in the order they were made; return
    what it is worth. Raises :class:`LedgerError` when a booking does not follow from those
    before it.
    """
    last: dict[str, Booking] = {}
    for asset, booking in bookings:
        before = last.get(asset)
        if booking.kind == "executed":
            if before is not None and before.kind != "settled":
                raise LedgerError(
                    f"a decision about {asset} is executed before the last one is settled"
                )
            if booking.position_before != (0 if before is None else _position(before)):
                raise LedgerError(
                    f"{asset} starts from another position than the last booking left"
                )
            _same(booking.nav_before, value, f"the account before a decision about {asset}")
            _same(
                booking.nav,
                booking.nav_before - booking.fee,
                f"the account after its fee for {asset}",
            )
        elif booking.kind == "corrected":
            if before is None or before.kind == "executed":
                raise LedgerError(f"a decision about {asset} is corrected before it is settled")
            _same(booking.nav_before, value, f"the account before a correction of {asset}")
        else:
            _settles(asset, booking, before, value)
        value = booking.nav
        # A correction restates an earlier decision; the position that was left is that of the last settlement.
        if booking.kind != "corrected" or before is None:
            last[asset] = booking
        elif booking.exposure is not None:
            last[asset] = msgspec.structs.replace(before, exposure=booking.exposure)
    return value


def _position(booking: Booking) -> int:
    return (
        booking.position
        if booking.exposure is None
        else (booking.exposure > 0) - (booking.exposure < 0)
    )


def _settles(asset: str, booking: Booking, before: Booking | None, value: float) -> None:
    if before is None or before.kind != "executed":
        raise LedgerError(f"a decision about {asset} is settled that was not executed")
    for name in ("position_before", "position", "nav_before", "fee", "exposure_before"):
        if getattr(booking, name) != getattr(before, name):
            raise LedgerError(f"the settlement of {asset} changes its {name}")
    if booking.nav_before > 0:
        shared = booking.exposure is not None
        gained = booking.nav - value - booking.fee if shared else booking.nav - booking.nav_before
        _same(booking.earned or 0.0, gained / booking.nav_before, f"what {asset} earned", scale=1.0)


def _same(stated: float, expected: float, what: str, scale: float = 0.0) -> None:
    if not abs(stated - expected) <= TOLERANCE * max(abs(stated), abs(expected), scale) < inf:
        raise LedgerError(f"{what}: {stated!r} stated, {expected!r} expected")
