"""How hard the gates look."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tradeassay.code.leak.report import LeakConfig
from tradeassay.code.submission_run import CAPITAL, LIMITS
from tradeassay.core.errors import UserError
from tradeassay.sandbox.job import Limits

Share = Annotated[float, msgspec.Meta(gt=0, le=1)]


class GateConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a gate run. The first of ``seeds`` is the scored run's.

    ``completeness`` is the share of required cells, and of traceable trades, that the audit asks for;
    ``tolerance`` is how far a claimed price, position or P&L may be from the host's, relative to the price or to
    the capital.
    ``agreement`` is how far a traded share of equity may be from the frozen semantics' on a micro-scenario.
    ``every_bar`` replays the micro-scenarios bar by bar. On more than ``long_rows`` bars the leak gate may spend
    ``long_runs`` times the length beside the scored run, on short prefixes first: a year of minutes costs the
    code seconds for every whole run.
    """

    capital: float = CAPITAL
    seeds: tuple[int, ...] = (42, 123, 2024)
    limits: Limits = LIMITS
    leak: LeakConfig = LeakConfig()
    completeness: Share = 0.95
    tolerance: float = 1e-6
    agreement: float = 1e-6
    every_bar: bool = True
    long_rows: int = 100_000
    long_runs: float = 2.0

    def leak_on(self, bars: int) -> LeakConfig:
        """Return how hard to look for a leak on so many bars."""
        if bars <= self.long_rows:
            return self.leak
        spend = max(400_000, int(self.long_runs * bars))
        return msgspec.structs.replace(
            self.leak, perturbations=min(self.leak.perturbations, 1), budget_bars=self.leak.budget_bars or spend
        )

    def __post_init__(self) -> None:
        if len(set(self.seeds)) < 2:
            raise UserError("determinism needs at least two different seeds", mend="the default has three")
        if self.capital <= 0:
            raise UserError("the capital must be more than 0")
