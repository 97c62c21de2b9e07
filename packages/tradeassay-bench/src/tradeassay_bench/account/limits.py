"""Define limits on trades and positions: lots, daily price limits, volume, concentration."""

from math import floor, ulp
from typing import Literal

import msgspec

from tradeassay_bench.account.session import OrderTicket, Refusal, SessionState
from tradeassay_bench.core.view import Board, Instrument

WHOLE = 1e-6
"""Largest distance from a whole number at which a count of lots is rounded to it."""

DIGITS = 50
"""Number of exact binary digits in a count of lots."""


def lots_in(quantity: float, unit: float) -> float:
    """Return a quantity as a number of units.

    Units below 1 use the reciprocal: ``n / 10000`` is the double nearest to the decimal, while ``n
    * 0.0001`` often is not.
    """
    return quantity / unit if unit >= 1.0 else quantity * round(1.0 / unit)


def of_lots(count: float, unit: float) -> float:
    """Return the quantity that is ``count`` whole units."""
    return count * unit if unit >= 1.0 else count / round(1.0 / unit)


def _hair(count: float) -> float:
    """Return the tolerance within which a count of lots is treated as a whole number.

    The tolerance is :data:`WHOLE`, or the last binary digits of a large count.
    """
    return min(max(WHOLE, 4.0 * ulp(count)), 0.25)


def floor_to(quantity: float, unit: float) -> float:
    """Return a magnitude rounded down to a multiple of ``unit``.

    A magnitude that is below a multiple only by a rounding error becomes that multiple.
    """
    count = lots_in(quantity, unit)
    return of_lots(floor(count + _hair(count)), unit)


def is_multiple(quantity: float, unit: float) -> bool:
    """Return whether a magnitude is a whole number of units, at least one."""
    count = lots_in(quantity, unit)
    whole = round(count)
    return whole >= 1 and abs(count - whole) <= _hair(count)


EXACTLY = 1e-12
"""Relative tolerance of the minimum order value, because 1 / 3 * 3 may not be exactly 1."""


class Lots(msgspec.Struct, frozen=True, kw_only=True):
    """Lots and steps.

    Purchases are multiples of ``lot``. ``step`` is the smallest quantity. None for either means the
    instrument's value. Sales are multiples of ``lot`` too, but an odd remainder (holding modulo
    lot) may be sold in full, alone or with whole lots.

    An order in shares that is not a multiple is refused or, with ``on_odd="trim"``, rounded with a
    Trimmed event. An order in money or weight is rounded down to a lot. ``min_value`` is the
    smallest value of an order, also after cuts by other policies. Orders that close a position are
    exempt.
    """

    lot: float | None = 1.0
    step: float | None = 1.0
    on_odd: Literal["reject", "trim"] = "reject"
    min_value: float = 0.0

    def lot_of(self, instrument: Instrument) -> float:
        return instrument.lot if self.lot is None else self.lot

    def step_of(self, instrument: Instrument) -> float:
        return instrument.step if self.step is None else self.step

    def gate(self, ticket: OrderTicket, session: SessionState) -> Refusal | None:
        lot, quantity = ticket.lot, ticket.quantity
        against = -ticket.held if ticket.buying else ticket.held
        if quantity == against:
            return None
        step = min(lot, ticket.instrument.step if self.step is None else self.step)
        if quantity % lot != 0.0:
            refusal = self._whole_lots(ticket, against, lot, step)
            if refusal is not None:
                return refusal
        if abs(ticket.quantity - against) < 0.5 * step:
            # Both are whole steps here, so the difference is a rounding error of a sum (0.1 + 0.2
            # is not 0.3). The order closes the position and leaves no tiny remainder.
            ticket.quantity = against
            return None
        if self.is_too_small(ticket):
            value = ticket.quantity * ticket.reference * ticket.multiplier
            return Refusal(
                "below_minimum",
                f"an order is worth at least {self.min_value:g}, this one {value:.4g}",
            )
        return None

    def is_too_small(self, ticket: OrderTicket) -> bool:
        """Return whether a trade is below the minimum value and does not close its position."""
        if not self.min_value or ticket.quantity == (
            -ticket.held if ticket.buying else ticket.held
        ):
            return False
        value = ticket.quantity * ticket.reference * ticket.multiplier
        return value < self.min_value * (1.0 - EXACTLY)

    def after_cut(self, ticket: OrderTicket) -> Refusal | None:
        """Return a refusal if a policy's cut left less than the minimum order value, or None.

        The refusal has the reason of the cut, because the available volume or cash does not cover
        the smallest order that the venue accepts.
        """
        if not ticket.trims or not self.is_too_small(ticket):
            return None
        reason, asked, left = ticket.trims[-1]
        value = left * ticket.reference * ticket.multiplier
        detail = (
            f"{left:g} of {asked:g} would be worth {value:.4g}; an order is worth at least "
            f"{self.min_value:g}"
        )
        return Refusal(reason, detail)

    def _whole_lots(
        self, ticket: OrderTicket, against: float, lot: float, step: float
    ) -> Refusal | None:
        """Round the ticket's quantity to whole lots. Return a refusal if that is not allowed."""
        quantity = ticket.quantity
        if is_multiple(quantity, lot):
            ticket.quantity = floor_to(quantity, lot)
            return None
        # An odd remainder may be sold in full, alone or with whole lots. Less than half a step is
        # not a remainder but a rounding error of a sum: 1 - 0.7 is not 0.3.
        odd = against - floor_to(against, lot) if 0.0 < quantity < against + 0.5 * step else 0.0
        if odd > 0.5 * step and (
            abs(quantity - odd) <= WHOLE * step or is_multiple(quantity - odd, lot)
        ):
            ticket.quantity = odd + floor_to(quantity - odd, lot)
            return None
        return self._round(ticket, lot)

    def _round(self, ticket: OrderTicket, lot: float) -> Refusal | None:
        """Round the ticket's quantity down to whole lots, or return a refusal."""
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


AT_LIMIT = 1e-9
"""Tolerance of a price limit: 10.95 / 10 - 1 is slightly below 0.095."""


class PriceLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Daily price limits per board, as fractions of the previous close (None = no limit).

    No purchase is filled at or above the upper limit minus ``buffer``, and no sale at or below the
    lower limit plus ``buffer``. ``limit_test`` selects the price that is compared. ``open`` uses
    the price at which the order would trade (the open for a fill at the open). ``close_change``
    uses the session's closing change even for a fill at the open, like Qlib's float
    ``limit_threshold``. That option looks ahead and is for parity runs only.
    """

    main: float | None = 0.10
    chinext: float | None = 0.20
    star: float | None = 0.20
    bse: float | None = 0.30
    none: float | None = None
    buffer: float = 0.005
    limit_test: Literal["open", "close_change"] = "open"

    def threshold(self, board: Board) -> float | None:
        limit: float | None = getattr(self, board)  # the field with the board's name
        return None if limit is None else limit - self.buffer

    def gate(self, ticket: OrderTicket, session: SessionState) -> Refusal | None:
        threshold = self.threshold(ticket.instrument.board)
        if threshold is None:
            return None
        previous: float = session.prev_close[ticket.column]
        if not previous > 0.0:
            return None  # The first session of a listing has no previous close and therefore no
            # limit.
        price = ticket.reference if self.limit_test == "open" else session.close[ticket.column]
        return _refuse_at(price, previous, threshold, buying=ticket.buying)


def _refuse_at(price: float, previous: float, threshold: float, *, buying: bool) -> Refusal | None:
    change = price / previous - 1.0
    if buying:
        if change >= threshold - AT_LIMIT:
            return Refusal(
                "limit_up",
                f"{price:g} is {change:+.2%} from {previous:g}; no BUY from +{threshold:.2%}",
            )
    elif change <= AT_LIMIT - threshold:
        return Refusal(
            "limit_down",
            f"{price:g} is {change:+.2%} from {previous:g}; no SELL from -{threshold:.2%}",
        )
    return None


class BoardRule(msgspec.Struct, frozen=True, kw_only=True):
    """One board's daily price limit, as a fraction of the previous close (None = no limit).

    ``special`` is the limit of names under special treatment (ST). None applies the board's limit
    to them. ``free_sessions`` is the number of sessions after the listing without a limit. A name
    that was possibly listed before the data begins has the normal limit.
    """

    limit: float | None = None
    special: float | None = None
    free_sessions: int = 1


class BoardLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Daily price limits per board, with rules for special treatment and new listings.

    Names without a board have no limit. No purchase is filled at or above the upper limit minus
    ``buffer``, and no sale at or below the lower limit plus ``buffer``. The limit is compared with
    the price at which the order would trade.
    """

    main: BoardRule = BoardRule()
    chinext: BoardRule = BoardRule()
    star: BoardRule = BoardRule()
    bse: BoardRule = BoardRule()
    buffer: float = 0.005

    def threshold(self, board: Board, *, special: bool, age: int) -> float | None:
        rule: BoardRule | None = getattr(self, board, None)  # the field with the board's name
        if rule is None:
            return None
        if 0 <= age < rule.free_sessions:
            return None
        limit = rule.special if special and rule.special is not None else rule.limit
        return None if limit is None else limit - self.buffer

    def gate(self, ticket: OrderTicket, session: SessionState) -> Refusal | None:
        bars, column = session.bars, ticket.column
        board = ticket.instrument.board
        threshold = self.threshold(board, special=bars.is_special(column), age=bars.age(column))
        previous: float = session.prev_close[column]
        if threshold is None or not previous > 0.0:
            return None
        return _refuse_at(ticket.reference, previous, threshold, buying=ticket.buying)


SLACK = 1e-9
"""Tolerance with which limits are compared, so that a trade of exactly the limit is allowed. It is
absolute for weights and relative for volumes.
"""


class Participation(msgspec.Struct, frozen=True, kw_only=True):
    """Limit on the share of the session's volume that all orders in a name may trade together.

    ``max_share`` None means no limit. The limit uses the whole session's volume even for a fill at
    the open, because that volume represents the session's liquidity. The volume can only reduce a
    fill, and no agent sees it before the session is over. The limit is not applied if the volume is
    missing (NaN). Index funds are exempt unless ``index_funds`` is set, because their liquidity is
    that of their members.
    """

    max_share: float | None = None
    index_funds: bool = False

    def gate(self, ticket: OrderTicket, session: SessionState) -> Refusal | None:
        if self.max_share is None or (ticket.instrument.kind == "index" and not self.index_funds):
            return None
        volume: float = session.volume[ticket.column]
        if volume != volume:
            return None
        most = volume * self.max_share
        lot = ticket.lot
        # Without the tolerance a rounding error of the sums could cost a whole lot.
        free = most - session.used.get(ticket.symbol, 0.0) + min(SLACK * most, WHOLE * lot)
        if ticket.quantity <= free:
            return None
        fits = floor_to(free, lot) if free > 0.0 else 0.0
        if fits > free:
            fits = floor_to(max(fits - lot, 0.0), lot)
        if fits <= 0.0:
            return Refusal(
                "no_volume",
                f"{self.max_share:.1%} of {volume:g} traded leaves room for no lot of {lot:g}",
            )
        ticket.trim(fits, "no_volume")
        return None


class Concentration(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on the weight of a position after a trade, and on the number of positions.

    ``max_weight`` is a fraction of NAV. None means no limit. Both limits apply only to orders that
    enlarge a position, so a position whose weight rose with its price is not reduced. ``on_excess``
    selects whether an order beyond the limit is refused or cut to the limit.
    """

    max_weight: float | None = None
    max_positions: int | None = None
    on_excess: Literal["reject", "trim"] = "reject"

    @property
    def binds(self) -> bool:
        return self.max_weight is not None or self.max_positions is not None

    def gate(self, ticket: OrderTicket, session: SessionState) -> Refusal | None:
        held = ticket.held
        after = held + ticket.signed(ticket.quantity)
        if abs(after) <= abs(held):
            return None
        if self.max_positions is not None and held == 0.0:
            count = len(session.account.held())
            if count >= self.max_positions:
                return Refusal(
                    "max_positions", f"{count} positions are held, {self.max_positions} are allowed"
                )
        if self.max_weight is None:
            return None
        unit = ticket.reference * ticket.multiplier
        nav = session.nav
        if abs(after) * unit <= (self.max_weight + SLACK) * nav:
            return None
        if self.on_excess == "trim":
            lot = ticket.lot
            fits = floor_to(max(self.max_weight * nav / unit - ticket.signed(held), 0.0), lot)
            if fits > 0.0:
                ticket.trim(fits, "max_weight")
                return None
        weight = abs(after) * unit / nav if nav > 0.0 else float("inf")
        return Refusal(
            "max_weight",
            f"{ticket.symbol} would be {weight:.2%} of NAV, {self.max_weight:.2%} is allowed",
        )
