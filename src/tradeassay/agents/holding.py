"""Rules that hold: cash, the index fund, everything equally, every sector equally."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from tradeassay.agents.momentum import momentum
from tradeassay.agents.registry import AgentConfig, agents
from tradeassay.agents.rule import Abstain, Buffer, PortfolioConfig, Rebalancer, Rule, buyable, trades_towards
from tradeassay.core.agent import EpisodeInfo, Observation
from tradeassay.core.orders import Decision, Failure


class CashConfig(AgentConfig, frozen=True, kw_only=True):
    """There is nothing to set."""


@agents.register("cash")
class KeepsCash(Rule[CashConfig]):
    """Keeps everything in cash."""

    summary: ClassVar[str] = "keeps everything in cash and never trades"
    Config: ClassVar[type[AgentConfig]] = CashConfig

    def decide(self, observation: Observation) -> Decision:
        """Do nothing."""
        return _STAYS


_STAYS = Decision(reason="stays in cash")


SESSIONS = 60
"""Sessions over which traded amounts are averaged when not every name can be held."""


class EqualWeightConfig(AgentConfig, frozen=True, kw_only=True):
    """How much stays in cash on the day of the purchase."""

    buffer: Buffer = 0.005


@agents.register("equal-weight")
class EqualWeight(Rule[EqualWeightConfig]):
    """Buys the same amount of every name that trades on the first session, then never trades again.

    Where only so many positions are allowed, it buys those names that were traded most over the last 60 sessions:
    a baseline that left most of the money idle would be beaten by anything in a rising market.
    Dividends and payouts stay in cash. Should the account come to hold nothing (every order of the first
    session was refused, or every holding left the exchange), it buys once more.
    """

    summary: ClassVar[str] = "buys the whole universe in equal amounts once, then holds"
    Config: ClassVar[type[AgentConfig]] = EqualWeightConfig

    def decide(self, observation: Observation) -> Decision:
        """Buy once, then hold."""
        if observation.account.positions:
            return _HOLDS
        can = buyable(observation)
        names = [symbol for symbol, ok in zip(observation.universe, can.tolist(), strict=True) if ok]
        most = observation.rules.max_positions
        if most is not None and len(names) > most:
            names = most_traded(observation, names, most)
        if not names:
            return Decision(reason="no name of the universe has a price yet")
        targets = dict.fromkeys(names, 1.0 / len(names))
        orders = trades_towards(observation, targets, buffer=self.config.buffer, band=0.0)
        if not orders:
            return Decision(reason="the account cannot pay for one lot of any name")
        return Decision(orders=orders, reason=f"buys equal amounts of {len(names)} names")


def most_traded(observation: Observation, names: list[str], count: int) -> list[str]:
    """Return the ``count`` names with the highest mean traded amount, in the order given; ties go to the first."""
    amounts = observation.view.bars("amount", SESSIONS)
    if not len(amounts):
        return names[:count]
    columns = [observation.view.column(name) for name in names]
    means = np.nan_to_num(amounts[:, columns]).sum(axis=0)
    chosen = set(np.argsort(-means, kind="stable")[:count].tolist())
    return [name for place, name in enumerate(names) if place in chosen]


_HOLDS = Decision(reason="holds")


class SectorEqualConfig(PortfolioConfig, frozen=True, kw_only=True):
    """How often the sectors are brought back to equal weights, and which of them are held."""

    every: Annotated[int, Meta(ge=1, description="sessions from one rebalancing to the next")] = 63
    best: Annotated[int, Meta(ge=0, description="hold only this many sectors, those that rose most (0: all)")] = 0
    lookback: Annotated[int, Meta(ge=2, description="with best: sessions over which a sector has risen")] = 63


@agents.register("sector-equal")
class SectorEqual(Rebalancer[SectorEqualConfig]):
    """Splits the money equally between sectors, then equally between the names of a sector.

    Names without a sector form a group of their own. Where no sector is known at all, that group is everything,
    and the rule is an equal-weight portfolio that is rebalanced. With ``best`` it rotates: only the sectors whose
    names rose most, on average, are held.
    """

    summary: ClassVar[str] = "equal money for every sector, rebalanced each quarter"
    Config: ClassVar[type[AgentConfig]] = SectorEqualConfig

    def targets(self, observation: Observation) -> Mapping[str, float] | Abstain:
        """Return 1 / (sectors x names in the sector) for every name that trades."""
        groups: dict[str | None, list[str]] = {}
        for symbol, ok in zip(observation.universe, buyable(observation).tolist(), strict=True):
            if ok:
                groups.setdefault(observation.view.instrument(symbol).sector, []).append(symbol)
        if not groups:
            return Abstain("no name of the universe has a price yet")
        if self.config.best:
            scores = momentum(observation, self.config.lookback, 1)
            if isinstance(scores, Abstain):
                return scores
            rose = dict(zip(observation.universe, scores.tolist(), strict=True))
            means = {name: np.nanmean([rose[one] for one in these] or [np.nan]) for name, these in groups.items()}
            ranked = sorted((name for name in groups if means[name] == means[name]), key=lambda one: -means[one])
            groups = {name: groups[name] for name in ranked[: self.config.best]}
        return {symbol: 1.0 / (len(groups) * len(names)) for names in groups.values() for symbol in names}


class IndexHoldConfig(AgentConfig, frozen=True, kw_only=True):
    """How much stays in cash on the day of the purchase."""

    buffer: Buffer = 0.005


@agents.register("index-hold")
class IndexHold(Rule[IndexHoldConfig]):
    """Buys the index fund once and holds it. Fails, every session, in a market that has no such fund."""

    summary: ClassVar[str] = "buys the index fund once, then holds (fails where there is none)"
    Config: ClassVar[type[AgentConfig]] = IndexHoldConfig

    def __init__(self, config: IndexHoldConfig) -> None:
        super().__init__(config)
        self._searched = 0
        self._funds: list[str] = []

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        """Forget the funds of an earlier market."""
        super().begin(info, rng)
        self._searched = 0
        self._funds = []

    def decide(self, observation: Observation) -> Decision:
        """Buy the fund once, then hold."""
        if observation.account.positions:
            return _HOLDS
        fund = self._fund(observation)
        if fund is None:
            return _NO_FUND
        orders = trades_towards(observation, {fund: 1.0}, buffer=self.config.buffer, band=0.0)
        if not orders:
            return Decision(reason=f"{fund} cannot be bought yet: no price, no trading, or too little cash")
        return Decision(orders=orders, reason=f"buys {fund}")

    def _fund(self, observation: Observation) -> str | None:
        """Return the fund of the benchmark index if it can be identified, else the first fund listed."""
        view = observation.view
        symbols = view.symbols
        # Columns are only ever appended, so only new listings need to be looked at.
        self._funds += [name for name in symbols[self._searched :] if view.instrument(name).kind == "index"]
        self._searched = len(symbols)
        index = observation.rules.benchmark_index
        if index is not None:
            for fund in self._funds:
                if view.instrument(fund).tracks(index):
                    return fund
        return self._funds[0] if self._funds else None


_NO_FUND = Decision(
    status="failed",
    reason="this market has no index fund to buy",
    failures=(Failure(kind="unsupported", detail="no instrument of kind 'index' is listed"),),
)
