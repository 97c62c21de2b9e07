"""Compute accounts that keep a position of -1, 0 or +1 between sessions, by AMA's rules.

A decision sets the target at its price and pays the fee on the part of the position that changes.
The return is booked at the next price. :class:`DailyTarget` has one account per asset,
:class:`SharedTarget` one account over several assets. Both are pure functions of their arguments.
They return a :class:`Booking`, or raise :class:`NotFinite` if it would contain a number that is not
finite.

Bookings are appended and never overwritten. The value of an account is in its last booking.
"""

import math
from collections.abc import Iterable
from math import isfinite
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.core.arrays import Floats
from tradeassay_bench.core.arena import Action
from tradeassay_bench.core.errors import NotFinite

Hold = Literal["keep", "flat"]
"""The effect of HOLD on a position."""


class Booking(msgspec.Struct, frozen=True, kw_only=True):
    """One line of an account's journal: an executed, a settled or a corrected decision.

    ``position`` is the sign of the holding. ``nav_before`` is the account's value before the
    decision, and ``nav`` the value after this booking. ``fee`` is an amount of the account's money.
    ``earned`` is the return of a settled decision on ``nav_before``, net of its fee. ``exposure``
    is the signed money invested in the asset, in an account over several assets.

    A *corrected* line restates the return of a settled decision after its prices were revised. Its
    ``nav_before`` is the account's value just before the correction, ``nav`` the value after it,
    and ``exposure`` the money that is invested in the asset now.
    """

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
    """Return the share of an account that remains after the fee of a change of position.

    ``fee_bp`` is in basis points. A reversal changes the position by 2 and pays twice.
    """
    return 1.0 - abs(after - before) * fee_bp / 10_000.0


def target_growth(
    held: NDArray[np.int64],
    moved: Floats,
    fee_bp: float | Floats,
    before: int | NDArray[np.int64] = 0,
) -> Floats:
    """Return the growth of 1 in each session, shape (..., n): the array form of
    :class:`DailyTarget`.

    ``held`` are the positions and ``moved`` the asset's simple returns while they were held.
    ``fee_bp`` is the fee, or the fee of each session. ``before`` are the positions before the first
    session, shape (..., 1). An account that loses everything is not stopped here: its growth may
    fall below 0.
    """
    changed = np.abs(np.diff(held, prepend=before, axis=-1))
    return np.asarray((1.0 - changed * (fee_bp / 10_000.0)) * (1.0 + held * moved))


class DailyTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of an account in one asset.

    ``fee_bp`` is the fee per side in basis points, paid on the part of the position that changes.
    """

    hold: Hold
    fee_bp: float

    def execute(self, action: Action, held: int, nav: float) -> Booking:
        """Return the booking that sets the new position and pays the fee.

        ``held`` is the position before the decision, and ``nav`` the account's value.
        """
        position = next_position(action, held, self.hold)
        paid = nav * fee_factor(held, position, self.fee_bp)
        return _finite(
            Booking(
                kind="executed",
                position_before=held,
                position=position,
                nav_before=nav,
                fee=nav - paid,
                nav=paid,
            )
        )

    def settle(self, last: Booking, moved: float) -> Booking:
        """Return the booking of an executed decision's return.

        ``last`` is the execution, and ``moved`` the asset's simple return since then.
        """
        # A short cannot lose more than the account: paper trading has no debtors.
        nav = max(last.nav * (1.0 + last.position * moved), 0.0)
        earned = nav / last.nav_before - 1.0 if last.nav_before > 0 else 0.0
        return _finite(msgspec.structs.replace(last, kind="settled", nav=nav, earned=earned), moved)


class SharedTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one account over several assets.

    BUY or SELL requests a share of the account. Money invested in other assets is not available, so
    the sum of all exposures never exceeds the account. HOLD keeps the exposure or closes it. The
    fee is paid on the money traded, including the money that restores the size of a short position.
    """

    hold: Hold
    fee_bp: float

    def execute(
        self, action: Action, share: float, *, value: float, before: float, others: float
    ) -> Booking:
        """Return the booking that sets the asset's new exposure and pays the fee.

        ``share`` is the requested share of the account, and ``value`` the account's value.
        ``before`` is the signed money invested in the asset. ``others`` is the sum of the absolute
        exposures in other assets. The new exposure is scaled by the share that remains after the
        fee.
        """
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
            target = min(share * value, max(value - others, 0.0)) * (
                1.0 if action == "BUY" else -1.0
            )
        fee = min(abs(target - before) * self.fee_bp / 10_000.0, value)
        return target * (value - fee) / value, fee

    def settle(self, last: Booking, value: float, moved: float) -> Booking:
        """Return the booking of an executed decision's return.

        ``last`` is the execution, ``value`` the account's present value, and ``moved`` the asset's
        simple return since the execution.
        """
        exposure = last.exposure or 0.0
        # An account at zero stays at zero: paper trading has no debtors.
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
    """A decision to replay with :func:`replay`.

    ``moved`` is the asset's return after the decision, or None if it is not settled yet. ``fee_bp``
    is the fee on the decision's day, or None for the policy's fee.
    """

    slot: int
    asset: str
    action: Action
    share: float = 1.0
    moved: float | None = None
    fee_bp: float | None = None


Step = tuple[Literal["executed", "settled"], DecisionPlayed]
"""One step of an account: the kind of its booking, and the decision."""


def replay(
    policy: DailyTarget | SharedTarget, steps: Iterable[Step], position: int = 0
) -> list[Booking]:
    """Replay an account from 1 and return its bookings, one for each step.

    After a revision of prices, the same decisions give the account that correct prices would have
    given from the beginning. ``position`` is the position of an account in one asset before its
    first decision.
    """
    value, made = 1.0, list[Booking]()
    held: dict[str, Booking] = {}
    executed: dict[int, Booking] = {}
    for kind, played in steps:
        before = held.get(played.asset)
        if played.fee_bp is not None and played.fee_bp != policy.fee_bp:
            policy = msgspec.structs.replace(policy, fee_bp=played.fee_bp)
        if kind == "executed":
            if isinstance(policy, DailyTarget):
                booking = policy.execute(
                    played.action, position if before is None else before.position, value
                )
            else:
                exposures = {asset: last.exposure or 0.0 for asset, last in held.items()}
                mine = exposures.pop(played.asset, 0.0)
                others = math.fsum(abs(money) for money in exposures.values())
                booking = policy.execute(
                    played.action, played.share, value=value, before=mine, others=others
                )
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
    """Return the booking unchanged.

    Raises :class:`NotFinite` if ``moved`` or a number of the booking is not finite.
    """
    for name in ("nav_before", "fee", "nav", "earned", "exposure_before", "exposure"):
        money = getattr(booking, name)
        if money is not None and not isfinite(money):
            raise NotFinite(
                f"a booking's {name} would be {money!r}", hint="look for an impossible price"
            )
    if not isfinite(moved):
        raise NotFinite(f"a price cannot move by {moved!r}", hint="look for an impossible price")
    return booking


def _sign(money: float) -> int:
    return (money > 0) - (money < 0)
