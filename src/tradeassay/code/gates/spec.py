"""What a submission is held against: the frozen semantics, the Strategy Doc and the micro-scenarios."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradeassay.account.shares import DecisionList
from tradeassay.code.bars import TaskBars, make_bars
from tradeassay.code.semantics import Semantics, interpret
from tradeassay.code.semantics.expression import calendar_of
from tradeassay.code.task import Timeframe


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """A short price path chosen by hand, and what the strategy does on it: one decision for each trade."""

    name: str
    what: str
    bars: TaskBars
    expected: DecisionList


@dataclass(frozen=True, slots=True, eq=False)
class StrategySpec:
    """One strategy of the benchmark, as far as submissions are concerned."""

    semantics: Semantics
    doc: str
    scenarios: tuple[Scenario, ...]

    @property
    def id(self) -> str:
        """The strategy's name."""
        return self.semantics.id

    @property
    def signals(self) -> tuple[str, ...]:
        """The names that a trade's signal may have, in the order of the rules."""
        return tuple(rule.signal for rule in self.semantics.rules)

    def frozen_decisions(self, bars: TaskBars) -> DecisionList:
        """Return what the frozen semantics decide on bars, bar by bar. The assets are the legs, in order."""
        legs = self.semantics.inputs.legs
        feeds = dict(zip(legs, bars.feeds.values(), strict=False))
        last = calendar_of(bars.times).last.astype(np.bool_)
        return interpret(self.semantics, feeds, bars.times, last_bars=last)

    def practice_bars(self, rows: int = 500, seed: int = 1) -> TaskBars:
        """Return synthetic bars of the right shape: daily where the strategy has a daily version, else 15 minutes.

        Quarter hours stand in for minutes, so that the bars span enough sessions.
        """
        daily = "1d" in self.semantics.inputs.timeframes
        timeframe: Timeframe = "1d" if daily else "15m"
        count = len(self.semantics.inputs.legs)
        market = "us" if count == 1 else "pairs" if count == 2 else "trend"
        return make_bars(market, timeframe, count, rows, seed)
