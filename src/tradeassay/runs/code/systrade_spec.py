"""What a SysTradeBench run is asked for: models, strategies, iterations, reviewers, and the data."""

from __future__ import annotations

import msgspec

from tradeassay.benchmarks.systrade import STRATEGIES
from tradeassay.benchmarks.systrade.data import DAYS, splits_of
from tradeassay.code.scores.scorecard import ScoreConfig
from tradeassay.core.errors import UserError
from tradeassay.core.near import did_you_mean
from tradeassay.llm import ModelParams, parse_name
from tradeassay.runs.code.quantcode_spec import LONG_ANSWERS

SYSTRADE = "systrade-v1"


class SystradeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A SysTradeBench run. Every combination of model, strategy and seed is an item.

    ``strategies`` empty takes all twelve. ``reviewers`` mark every hand-in, blind; marks of one's own are kept and
    not counted. ``dataset`` with ``symbols`` takes stored daily bars instead of the synthetic year of
    ``data_seed``; ``splits`` are the days on which development and test begin and on which the test has ended.
    ``minutes`` gives strategies that have a minute version so many minutes. Raises :class:`UserError` for what
    makes no sense.
    """

    models: tuple[str, ...]
    benchmark: str = SYSTRADE
    strategies: tuple[str, ...] = ()
    iterations: int = 4
    early_stop: bool = True
    reviewers: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    dataset: str | None = None
    symbols: tuple[str, ...] = ()
    splits: tuple[str, ...] = DAYS
    data_seed: int = 1
    minutes: int = 0
    score: ScoreConfig = ScoreConfig()
    params: ModelParams = LONG_ANSWERS
    review_params: ModelParams = ModelParams(temperature=0.7)

    def __post_init__(self) -> None:
        if not self.models:
            raise UserError("no model is named", mend="give at least one, e.g. scripted/builder-gold")
        for model in (*self.models, *self.reviewers):
            parse_name(model)
        for name in ("models", "strategies", "reviewers", "seeds"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise UserError(f"a value of {name} is given twice", mend="give each once")
        for strategy in self.strategies:
            if strategy not in STRATEGIES:
                hint = did_you_mean(strategy, STRATEGIES, f"one of {', '.join(STRATEGIES)}")
                raise UserError(f"there is no strategy '{strategy}'", mend=hint)
        if not 1 <= self.iterations <= 10 or not self.seeds or self.minutes < 0:
            raise UserError("iterations are 1 to 10, seeds at least one", mend="the paper has four iterations")
        splits_of(self.splits)
        if (self.dataset is None) != (not self.symbols):
            raise UserError("a data set needs symbols, and symbols a data set", mend="give both or neither")

    @property
    def chosen(self) -> tuple[str, ...]:
        """The strategies, in the benchmark's order."""
        return tuple(s for s in STRATEGIES if not self.strategies or s in self.strategies)

    @property
    def trials(self) -> int:
        """How many hand-ins may be scored on the test year of one strategy."""
        return len(self.models) * len(self.seeds) * self.iterations
