"""Index buy and hold: puts everything into the fund that tracks the benchmark index."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tradeassay.agents.registry import AgentConfig, agents
from tradeassay.agents.rule import Buffer, Rule
from tradeassay.agents.trades import trades_towards
from tradeassay.core.agent import EpisodeInfo, Observation
from tradeassay.core.orders import Decision, Failure


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
        """Return the fund of the benchmark index if one can be told, else the first fund listed."""
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


_HOLDS = Decision(reason="holds")
_NO_FUND = Decision(
    status="failed",
    reason="this market has no index fund to buy",
    failures=(Failure(kind="unsupported", detail="no instrument of kind 'index' is listed"),),
)
