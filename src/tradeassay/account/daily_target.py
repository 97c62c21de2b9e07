"""Accounts that hold a target of -1, 0 or +1 from one session to the next, as AMA's rules have it.

A decision sets the target at its price and pays the fee on the part of the position that changes; at the next
price its return is booked. :class:`DailyTarget` keeps one account per asset, :class:`SharedTarget` one over
several. Both are pure: they return a :class:`Booking`, or raise :class:`NotFinite` where it would hold no finite
number, and change nothing. Bookings are appended and never overwritten; an account is worth what its last booking
says, and :func:`follow` holds a journal to its identities.
"""

from collections.abc import Iterable
from math import isfinite
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.core.arena import Action
from tradeassay.core.errors import NotFinite
from tradeassay.core.measure import plain_sum
from tradeassay.core.view import Floats

Hold = Literal["keep", "flat"]
"""What HOLD does with a position."""


class Booking(msgspec.Struct, frozen=True, kw_only=True):
    """One line of an account's journal: a decision was executed, or what it held was settled at the next price.

    ``position`` is the sign of what is held. ``nav_before`` is the account before the decision, ``nav`` after this
    booking. ``earned`` is what a settled decision made of ``nav_before`` after its fee. ``exposure`` is the signed
    money behind the asset, kept where one account spans several.

    A *corrected* line restates what a settled decision earned after its prices were revised: ``nav_before`` is the
    account just before the correction, ``nav`` after it. ``exposure`` is then what is behind the asset now."""

    kind: Literal["executed", "settled", "corrected"]
    position_before: int
    position: int
    nav_before: float
    fee: float
    nav: float
    earned: float | None = None
    exposure_before: float | None = None
    exposure: float | None = None


def next_position(action: Action, before: int, hold: Hold) -> int:
    """Return the position after an action: 1 long, -1 short, 0 flat."""
    if action == "BUY":
        return 1
    if action == "SELL":
        return -1
    return before if hold == "keep" else 0


def fee_factor(before: int, after: int, fee_bp: float) -> float:
    """Return what is left of 1 after paying for a change of position; a reversal pays for both sides."""
    return 1.0 - abs(after - before) * fee_bp / 10_000.0


def target_growth(
    held: NDArray[np.int64], moved: Floats, fee_bp: float | Floats, before: int | NDArray[np.int64] = 0
) -> Floats:
    """Return the growth of 1 in each session, shape (..., n): the array form of :class:`DailyTarget`. ``held`` are
    the positions, ``moved`` the asset's simple returns while they were held, ``fee_bp`` the fee, or that of each
    session, ``before`` the positions before the first session, shape (..., 1). An account that loses everything is
    not stopped here: its growth may fall below 0."""
    changed = np.abs(np.diff(held, prepend=before, axis=-1))
    return np.asarray((1.0 - changed * (fee_bp / 10_000.0)) * (1.0 + held * moved))


class DailyTarget(msgspec.Struct, frozen=True, kw_only=True):
    """All of an account in one asset. ``fee_bp`` is paid per side on the part of the position that changes."""

    hold: Hold
    fee_bp: float

    def execute(self, action: Action, held: int, nav: float) -> Booking:
        position = next_position(action, held, self.hold)
        paid = nav * fee_factor(held, position, self.fee_bp)
        return _finite(
            Booking(
                kind="executed", position_before=held, position=position, nav_before=nav, fee=nav - paid, nav=paid
            )
        )

    def settle(self, last: Booking, moved: float) -> Booking:
        # A short that loses more than everything ends at nothing: paper trading has no debtors.
        nav = max(last.nav * (1.0 + last.position * moved), 0.0)
        earned = nav / last.nav_before - 1.0 if last.nav_before > 0 else 0.0
        return _finite(msgspec.structs.replace(last, kind="settled", nav=nav, earned=earned), moved)


class SharedTarget(msgspec.Struct, frozen=True, kw_only=True):
    """One account over several assets. A decision to BUY or SELL asks for a share of the account; what other
    assets tie up is not available, so the sum of all exposures never exceeds the account. HOLD leaves the exposure
    as it is, or closes it. The fee is paid on the money that changes hands, including when a short that shrank or
    grew is brought back to size."""

    hold: Hold
    fee_bp: float

    def execute(self, action: Action, share: float, *, value: float, before: float, others: float) -> Booking:
        """Return what a decision does to an account worth ``value``. ``before`` is the signed money behind the
        asset, ``others`` the money that other assets tie up (the sum of absolute exposures). The new exposure is
        scaled by what the fee leaves."""
        exposure, fee = self._trade(action, share, value, before, others)
        return _finite(
            Booking(
                kind="executed",
                position_before=_sign(before),
                position=_sign(exposure),
                nav_before=value,
                fee=fee,
                nav=value - fee,
                exposure_before=before,
                exposure=exposure,
            )
        )

    def _trade(
        self, action: Action, share: float, value: float, before: float, others: float
    ) -> tuple[float, float]:
        if value <= 0:
            return 0.0, 0.0
        if action == "HOLD":
            if self.hold == "keep":
                return before, 0.0
            target = 0.0
        else:
            target = min(share * value, max(value - others, 0.0)) * (1.0 if action == "BUY" else -1.0)
        fee = min(abs(target - before) * self.fee_bp / 10_000.0, value)
        return target * (value - fee) / value, fee

    def settle(self, last: Booking, value: float, moved: float) -> Booking:
        exposure = last.exposure or 0.0
        # An account that is gone stays gone: paper trading has no debtors.
        after = max(value + exposure * moved, 0.0) if value > 0 else 0.0
        gained = after - value - last.fee
        return _finite(
            msgspec.structs.replace(
                last,
                kind="settled",
                nav=after,
                earned=gained / last.nav_before if last.nav_before > 0 else 0.0,
                exposure=exposure * (1.0 + moved) if after > 0 else 0.0,
            ),
            moved,
        )


class DecisionPlayed(msgspec.Struct, frozen=True, kw_only=True):
    """A decision and what its asset did afterwards (None: not settled yet), as :func:`replay` wants them.

    ``fee_bp`` is what it pays where the policy's fee changed in between (None: the policy's)."""

    slot: int
    asset: str
    action: Action
    share: float = 1.0
    moved: float | None = None
    fee_bp: float | None = None


Step = tuple[Literal["executed", "settled"], DecisionPlayed]
"""One move of an account, in the order in which it was booked."""


def replay(policy: DailyTarget | SharedTarget, steps: Iterable[Step], position: int = 0) -> list[Booking]:
    """Play an account again from 1 and return its bookings, one for each step. The same decisions on other prices:
    after a revision this is what the account would be had they been right from the beginning. ``position`` is what
    an account in one asset holds before its first decision."""
    value, made = 1.0, list[Booking]()
    held: dict[str, Booking] = {}
    executed: dict[int, Booking] = {}
    for kind, played in steps:
        before = held.get(played.asset)
        if played.fee_bp is not None and played.fee_bp != policy.fee_bp:
            policy = msgspec.structs.replace(policy, fee_bp=played.fee_bp)
        if kind == "executed":
            if isinstance(policy, DailyTarget):
                booking = policy.execute(played.action, position if before is None else before.position, value)
            else:
                exposures = {asset: last.exposure or 0.0 for asset, last in held.items()}
                mine = exposures.pop(played.asset, 0.0)
                others = plain_sum(abs(money) for money in exposures.values())
                booking = policy.execute(played.action, played.share, value=value, before=mine, others=others)
            executed[played.slot] = booking
        else:
            last, moved = executed[played.slot], played.moved or 0.0
            if isinstance(policy, DailyTarget):
                booking = policy.settle(last, moved)
            else:
                booking = policy.settle(last, value, moved)
        value = booking.nav
        held[played.asset] = booking
        made.append(booking)
    return made


def _finite(booking: Booking, moved: float = 0.0) -> Booking:
    """Return a booking; raises :class:`NotFinite` when the move behind it or a number in it is not finite."""
    for name in ("nav_before", "fee", "nav", "earned", "exposure_before", "exposure"):
        money = getattr(booking, name)
        if money is not None and not isfinite(money):
            raise NotFinite(f"a booking's {name} would be {money!r}", hint="look for an impossible price")
    if not isfinite(moved):
        raise NotFinite(f"a price cannot move by {moved!r}", hint="look for an impossible price")
    return booking


def _sign(money: float) -> int:
    return (money > 0) - (money < 0)
