"""Define venues, which are frozen sets of policies, and the built-in venues.

Any change that could alter a fill gets a new version in the venue's id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

import msgspec

from tradeassay.core.errors import UserError
from tradeassay.core.registry import Registry
from tradeassay_bench.account.commission import BPS, Fees
from tradeassay_bench.account.limits import (
    BoardLimits,
    BoardRule,
    Concentration,
    Lots,
    Participation,
    PriceLimits,
)
from tradeassay_bench.account.margin import Cash, Margin
from tradeassay_bench.account.session import OrderTicket, Refusal, SessionState
from tradeassay_bench.account.settlement import Settlement, Shorting
from tradeassay_bench.account.slippage import Slippage
from tradeassay_bench.core.agent import Rules
from tradeassay_bench.core.events import AccountTerms

Gate = Callable[[OrderTicket, SessionState], Refusal | None]
"""A policy's check of one order. It may reduce the ticket's quantity. A refusal rejects the order.
"""


class Resting(msgspec.Struct, frozen=True, kw_only=True):
    """A venue's treatment of resting orders from earlier sessions.

    ``supersede``: a new order for a symbol cancels (``Expired``) the symbol's resting orders from
    earlier sessions. Agents withdraw orders in this way. Orders of one batch never supersede each
    other.

    ``held_to_side``: a good-till-cancelled target order whose target contradicts its side is
    refused immediately, even if its name cannot be traded now. In the first versions of the venues,
    which do not set this field, such an order rests and later trades towards its target.
    """

    supersede: bool = True
    held_to_side: bool | msgspec.UnsetType = msgspec.UNSET


class Era(msgspec.Struct, frozen=True, kw_only=True):
    """The rules in force from the ISO day ``start`` until the next era begins."""

    start: str
    fees: Fees
    price_limits: BoardLimits | None = None


class ContractRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules for futures contracts, which no account can hold.

    The rules have no effect. This class exists because recorded hashes of venues include it.
    """

    roll: Literal["next"] = "next"
    roll_days: Literal[5] = 5


class Venue(msgspec.Struct, frozen=True, kw_only=True):
    """The rules that turn orders into fills.

    Every number of the rules is a field of one of the policies. ``margin`` None means a cash
    account. ``priority`` is the order of execution within a batch. With ``sells_first``, a decision
    can spend the proceeds of its sales, even if it lists them last. ``as_given`` keeps the given
    order. ``periods_per_year`` is the number of sessions by which annual rates are divided.

    If rules changed over time, ``eras`` (oldest first) replace ``fees`` and ``price_limits``, which
    then contain today's rules. A day before the first era has the rules of the first era.
    """

    id: str
    title: str
    currency: str
    periods_per_year: int = 252
    fees: Fees = Fees()
    slippage: Slippage = Slippage()
    lots: Lots = Lots()
    settlement: Settlement = Settlement()
    price_limits: PriceLimits | None = None
    participation: Participation = Participation()
    concentration: Concentration = Concentration()
    cash: Cash = Cash()
    margin: Margin | None = None
    shorting: Shorting = Shorting()
    futures: ContractRules = ContractRules()
    resting: Resting = Resting()
    priority: Literal["as_given", "sells_first"] = "sells_first"
    eras: tuple[Era, ...] | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        """Raise :class:`UserError` for rules that contradict each other."""
        if self.shorting.allowed and self.margin is None:
            raise UserError(
                f"venue '{self.id}' allows short sales without margin",
                hint="give it a Margin policy",
            )
        if self.settlement.t_plus and self.margin is not None:
            raise UserError(f"venue '{self.id}' has both T+1 and margin", hint="drop one of them")
        if self.eras is not msgspec.UNSET:
            starts = [era.start for era in self.eras]
            if not starts or starts != sorted(set(starts)):
                raise UserError(
                    f"the eras of venue '{self.id}' are not in order", hint="list them oldest first"
                )
            if self.margin is not None:
                raise UserError(
                    f"venue '{self.id}' has both eras and margin", hint="drop one of them"
                )

    def era(self, day: str) -> Era | None:
        """Return the era of an ISO day, or None for a venue without eras."""
        if self.eras is msgspec.UNSET:
            return None
        started = [era for era in self.eras if era.start <= day]
        return started[-1] if started else self.eras[0]

    @property
    def terms(self) -> AccountTerms:
        """Return the rules by which a ledger checks an account at this venue."""
        margin = self.margin
        if margin is None:
            return AccountTerms(t_plus_1=self.settlement.t_plus == 1)
        return AccountTerms(
            margin=True,
            maintenance_long=margin.maintenance_long,
            maintenance_short=margin.maintenance_short,
        )

    def gates(self, *, buying: bool, era: Era | None = None) -> tuple[Gate, ...]:
        """Return the venue's checks of an order, in the order in which they run.

        Checks that can have no effect at this venue are left out.
        """
        gates: list[Gate] = []
        limits = self.price_limits if era is None else era.price_limits
        if limits is not None:
            gates.append(limits.gate)
        gates.append(self.lots.gate)
        if not buying:
            if self.settlement.t_plus:
                gates.append(self.settlement.gate)
            gates.append(self.shorting.gate)
        if self.participation.max_share is not None:
            gates.append(self.participation.gate)
        if self.concentration.binds:
            gates.append(self.concentration.gate)
        gates.append(self.cash.gate if self.margin is None else self.margin.gate)
        return tuple(gates)

    def limited(
        self, *, max_weight: float | None = None, max_positions: int | None = None
    ) -> Venue:
        """Return this venue with concentration limits added.

        None adds no limit. If the venue already has a limit, the stricter one applies.
        """
        own = self.concentration
        concentration = msgspec.structs.replace(
            own,
            max_weight=_stricter(own.max_weight, max_weight),
            max_positions=_stricter(own.max_positions, max_positions),
        )
        return msgspec.structs.replace(self, concentration=concentration)

    def rules(self, *, benchmark_index: str | None = None, day: str | None = None) -> Rules:
        """Return the rules that an agent sees.

        ``day`` is an ISO day. It selects the era of a venue with eras.
        """
        slip = self.slippage.bps * BPS
        era = None if day is None else self.era(day)
        fees = self.fees if era is None else era.fees
        return Rules(
            venue=self.id,
            currency=self.currency,
            long_only=self.margin is None,
            lot=1.0 if self.lots.lot is None else self.lots.lot,
            t_plus_1=self.settlement.t_plus == 1,
            max_weight=self.concentration.max_weight,
            max_positions=self.concentration.max_positions,
            buy_cost=fees.rate(True) + slip,
            sell_cost=fees.rate(False) + slip,
            benchmark_index=benchmark_index,
            periods_per_year=self.periods_per_year,
        )


_N = TypeVar("_N", int, float)


def _stricter(own: _N | None, added: _N | None) -> _N | None:
    """Return the smaller of two limits, where None means no limit."""
    if own is None:
        return added
    if added is None:
        return own
    return min(own, added)


def _registration_error(name: str, item: object) -> str | None:
    """Return the reason why an object cannot be registered as the venue ``name``, or None."""
    if not isinstance(item, Venue):
        return f"expected a Venue, got {item!r:.60}"
    return None if item.id == name else f"its id is '{item.id}'; use one name for both"


venues: Registry[Venue] = Registry("venue", _registration_error)
"""All venues by id. A package can add venues through the entry-point group ``tradeassay.venues``.
"""


_TENTH_OF_VOLUME = Participation(max_share=0.10)

US = Venue(
    id="us-v1",
    title="US stocks, cash account, whole shares",
    currency="USD",
    fees=Fees(buy_bps=1.0, sell_bps=1.0),
    slippage=Slippage(bps=2.0),
    participation=_TENTH_OF_VOLUME,
)
US_FRACTIONAL = msgspec.structs.replace(
    US,
    id="us-fractional-v1",
    title="US stocks, cash account, fractions of 0.0001 share",
    lots=Lots(lot=0.0001, step=0.0001, on_odd="trim"),
)
US_MARGIN = msgspec.structs.replace(
    US,
    id="us-margin-v1",
    title="US stocks, margin account with short sales",
    margin=Margin(),
    shorting=Shorting(allowed=True, borrow_per_year=0.01, max_volume_share=0.10),
)
ASHARE = Venue(
    id="ashare-flat-v1",
    title="China A-shares, cash account, T+1, price limits",
    currency="CNY",
    fees=Fees(buy_bps=5.0, sell_bps=5.0, sell_tax_bps=10.0, minimum=5.0, minimum_covers_tax=True),
    lots=Lots(lot=100.0, step=1.0),
    settlement=Settlement(t_plus=1),
    price_limits=PriceLimits(),
    participation=_TENTH_OF_VOLUME,
)
_STAMP_DUTY = (
    # start, tax on purchases, tax on sales (basis points); sources in docs/reference/venues.md
    ("1992-06-12", 30.0, 30.0),
    ("1997-05-10", 50.0, 50.0),
    ("1998-06-12", 40.0, 40.0),
    ("2001-11-16", 20.0, 20.0),
    ("2005-01-24", 10.0, 10.0),
    ("2007-05-30", 30.0, 30.0),
    ("2008-04-24", 10.0, 10.0),
    ("2008-09-19", 0.0, 10.0),
    ("2023-08-28", 0.0, 5.0),
)
_TEN, _TWENTY = BoardRule(limit=0.10), BoardRule(limit=0.20, free_sessions=5)
_BSE = BoardRule(limit=0.30)
_TEN_ST = BoardRule(limit=0.10, special=0.05)
_FREE, _FREE_ST = (
    BoardRule(limit=0.10, free_sessions=5),
    BoardRule(limit=0.10, special=0.05, free_sessions=5),
)
_LIMITS = (
    ("1992-06-12", None),
    ("1996-12-16", BoardLimits(main=_TEN)),
    ("1998-04-22", BoardLimits(main=_TEN_ST, chinext=_TEN_ST)),
    ("2019-07-22", BoardLimits(main=_TEN_ST, chinext=_TEN_ST, star=_TWENTY)),
    ("2020-08-24", BoardLimits(main=_TEN_ST, chinext=_TWENTY, star=_TWENTY)),
    ("2021-11-15", BoardLimits(main=_TEN_ST, chinext=_TWENTY, star=_TWENTY, bse=_BSE)),
    ("2023-04-10", BoardLimits(main=_FREE_ST, chinext=_TWENTY, star=_TWENTY, bse=_BSE)),
    ("2026-07-06", BoardLimits(main=_FREE, chinext=_TWENTY, star=_TWENTY, bse=_BSE)),
)


def _eras() -> tuple[Era, ...]:
    """Return one era for every day on which a tax or a limit changed."""
    result = []
    for day in sorted({day for day, *_ in _STAMP_DUTY} | {day for day, _ in _LIMITS}):
        buy_tax, sell_tax = [(buy, sell) for start, buy, sell in _STAMP_DUTY if start <= day][-1]
        fees = msgspec.structs.replace(ASHARE.fees, buy_tax_bps=buy_tax, sell_tax_bps=sell_tax)
        limits = [board_limits for start, board_limits in _LIMITS if start <= day][-1]
        result.append(Era(start=day, fees=fees, price_limits=limits))
    return tuple(result)


ASHARE_DATED = msgspec.structs.replace(
    ASHARE,
    id="ashare-v1",
    title="China A-shares, cash account, T+1, price limits and stamp duty of each day",
    fees=msgspec.structs.replace(ASHARE.fees, sell_tax_bps=5.0),
    resting=Resting(held_to_side=True),
    eras=_eras(),
)
CRYPTO = Venue(
    id="crypto-v1",
    title="Crypto spot, cash account",
    currency="USD",
    periods_per_year=365,
    fees=Fees(buy_bps=5.0, sell_bps=5.0),
    lots=Lots(lot=1e-8, step=1e-8, on_odd="trim", min_value=1.0),
    participation=_TENTH_OF_VOLUME,
)
ASHARE_QLIB = Venue(
    id="ashare-qlib-v1",
    title="A-share rules as Qlib's executor has them: limits by the closing change, no volume "
    "limit",
    currency="CNY",
    fees=Fees(buy_bps=5.0, sell_bps=15.0, minimum=5.0),
    lots=Lots(lot=100.0, step=1.0),
    settlement=Settlement(t_plus=1),
    price_limits=PriceLimits(
        chinext=0.10, star=0.10, bse=0.10, none=0.10, limit_test="close_change"
    ),
    priority="as_given",
)

BUILTIN = (US, US_FRACTIONAL, US_MARGIN, ASHARE, ASHARE_DATED, ASHARE_QLIB, CRYPTO)

for _venue in BUILTIN:
    venues.add(_venue.id, _venue)
