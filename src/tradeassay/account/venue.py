"""A venue: one frozen set of policies, each of which answers one question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

import msgspec

from tradeassay.account.cash import Cash
from tradeassay.account.commission import BPS, Fees
from tradeassay.account.limits import BoardLimits, Concentration, Participation, PriceLimits
from tradeassay.account.lots import Lots
from tradeassay.account.margin import Margin
from tradeassay.account.resting import Resting
from tradeassay.account.session import Refusal, Session, Ticket
from tradeassay.account.settlement import Futures, Settlement, Shorting
from tradeassay.account.slippage import Slippage
from tradeassay.core.account import AccountTerms
from tradeassay.core.agent import Rules
from tradeassay.core.errors import UserError
from tradeassay.core.registry import Registry

Gate = Callable[[Ticket, Session], Refusal | None]
"""A policy's question to one order. It may trim the ticket; a refusal ends the order."""


class Era(msgspec.Struct, frozen=True, kw_only=True):
    """Rules that hold from the ISO day ``start`` on, until the next era begins."""

    start: str
    fees: Fees
    price_limits: BoardLimits | None = None


class Venue(msgspec.Struct, frozen=True, kw_only=True):
    """Where orders become fills. Every number of its rules is a field of one of its policies.

    ``margin`` None means a cash account. ``priority`` orders a batch: ``sells_first`` lets a decision
    spend the proceeds of its own sales whatever the order it lists them in, ``as_given`` does not.
    ``periods_per_year`` is the number of sessions by which yearly rates are divided. Where the rules have changed
    in the course of time, ``eras`` (oldest first) stand in place of ``fees`` and ``price_limits``, which then say
    what holds today; a day before the first era has the rules of the first.
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
    futures: Futures = Futures()
    resting: Resting = Resting()
    priority: Literal["as_given", "sells_first"] = "sells_first"
    eras: tuple[Era, ...] | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        """Raise :class:`UserError` for rules that contradict each other."""
        if self.shorting.allowed and self.margin is None:
            raise UserError(f"venue '{self.id}' allows short sales without margin", hint="give it a Margin policy")
        if self.settlement.t_plus and self.margin is not None:
            raise UserError(f"venue '{self.id}' has both T+1 and margin", hint="drop one of them")
        if self.eras is not msgspec.UNSET:
            starts = [era.start for era in self.eras]
            if not starts or starts != sorted(set(starts)):
                raise UserError(f"the eras of venue '{self.id}' are not in order", hint="list them oldest first")
            if self.margin is not None:
                raise UserError(f"venue '{self.id}' has both eras and margin", hint="drop one of them")

    def era(self, day: str) -> Era | None:
        """Return the era an ISO day lies in; None for a venue whose rules have no dates."""
        if self.eras is msgspec.UNSET:
            return None
        found = self.eras[0]
        for era in self.eras:
            if era.start > day:
                break
            found = era
        return found

    @property
    def terms(self) -> AccountTerms:
        margin = self.margin
        if margin is None:
            return AccountTerms(t_plus_1=self.settlement.t_plus == 1)
        return AccountTerms(
            margin=True, maintenance_long=margin.maintenance_long, maintenance_short=margin.maintenance_short
        )

    def gates(self, *, buying: bool, era: Era | None = None) -> tuple[Gate, ...]:
        """Return the policies' questions in the order they are asked, without those that never bind."""
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

    def limited(self, *, max_weight: float | None = None, max_positions: int | None = None) -> Venue:
        """Return this venue with concentration limits added. None adds none; its own stay, the stricter wins."""
        own = self.concentration
        concentration = msgspec.structs.replace(
            own,
            max_weight=_stricter(own.max_weight, max_weight),
            max_positions=_stricter(own.max_positions, max_positions),
        )
        return msgspec.structs.replace(self, concentration=concentration)

    def rules(self, *, benchmark_index: str | None = None, day: str | None = None) -> Rules:
        """Return what an agent is told about this venue, on an ISO day where its rules have dates."""
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
    return added if own is None else own if added is None else min(own, added)


venues: Registry[Venue] = Registry("venue")
"""All venues by id. A package adds its own through the entry-point group ``tradeassay.venues``."""
