"""Define the specification of a SysTradeBench run, and the record of one strategy with its
iterations.
"""

from typing import Final, Literal

import msgspec

from tradeassay.core.errors import UserError
from tradeassay.core.registry import refuse_unknown
from tradeassay_bench.benchmarks.code_protocol import LONG_ANSWERS, CodeSpec, check_grid_size
from tradeassay_bench.core.dialogue import Usage
from tradeassay_bench.llm import ModelParams
from tradeassay_programs.benchmarks.systrade import STRATEGIES
from tradeassay_programs.benchmarks.systrade.data import DAYS, splits_of
from tradeassay_programs.benchmarks.systrade.examine import Trail
from tradeassay_programs.benchmarks.systrade.loading import MINUTES, SYSTB_STRATEGIES
from tradeassay_programs.code.drift import DriftReport
from tradeassay_programs.code.review import Review
from tradeassay_programs.code.scores import Scorecard, ScoreConfig
from tradeassay_programs.code.submission import Submission

SYSTRADE: Final = "systrade-v1"
SYSTRADE_SYSTB: Final = "systrade-systb-v1"
STRATEGIES_OF: Final[dict[str, tuple[str, ...]]] = {
    SYSTRADE: STRATEGIES,
    SYSTRADE_SYSTB: SYSTB_STRATEGIES,
}
"""The strategies of each benchmark: this project's twelve, and twelve from the authors' repository.
"""

MOST_MINUTES: Final = 2 * MINUTES


class SystradeSpec(CodeSpec, frozen=True, kw_only=True):
    """A SysTradeBench run. Every combination of model, strategy and seed is an episode.

    - ``strategies`` names strategies. If it is empty, the run has all twelve strategies.
    - ``reviewers`` mark every submission blind. A model's marks for its own work are kept and not
      counted.
    - ``dataset`` with ``symbols`` provides stored daily bars instead of the synthetic year of
      ``data_seed``.
    - ``splits`` contains the first days of development and test, and the day after the test.
    - ``minutes`` is the number of minute bars for strategies with a minute version.

    Raises :class:`UserError` for values that are not valid.
    """

    benchmark: str = SYSTRADE
    strategies: tuple[str, ...] = ()
    iterations: int = 4
    early_stop: bool = True
    reviewers: tuple[str, ...] = ()
    dataset: str | None = None
    symbols: tuple[str, ...] = ()
    splits: tuple[str, ...] = DAYS
    data_seed: int = 1
    minutes: int = 0
    score: ScoreConfig = ScoreConfig()
    params: ModelParams = LONG_ANSWERS
    review_params: ModelParams = ModelParams(temperature=0.7)

    def __post_init__(self) -> None:
        self.validate_spec(
            ("strategies", "reviewers"), self.reviewers, example="scripted/builder-gold"
        )
        refuse_unknown(self.benchmark, STRATEGIES_OF, f"there is no benchmark '{self.benchmark}'")
        for strategy in self.strategies:
            refuse_unknown(
                strategy, STRATEGIES_OF[self.benchmark], f"there is no strategy '{strategy}'"
            )
        if not 1 <= self.iterations <= 10 or not self.seeds:
            raise UserError(
                "iterations must be 1 to 10, and seeds must not be empty",
                hint="the paper has four iterations",
            )
        if not 0 <= self.minutes <= MOST_MINUTES:
            hint = f"give 0 to {MOST_MINUTES:,}"
            raise UserError(f"{self.minutes} minutes are not valid", hint=hint)
        if not 0 <= self.data_seed < 2**63:
            hint = "give a number from 0 with at most 63 bits"
            raise UserError(f"the data seed {self.data_seed} is not valid", hint=hint)
        check_grid_size(len(self.models) * len(self.chosen) * len(self.seeds))
        splits_of(self.splits)
        if (self.dataset is None) != (not self.symbols):
            raise UserError(
                "a data set needs symbols, and symbols need a data set", hint="give both or neither"
            )

    @property
    def chosen(self) -> tuple[str, ...]:
        """The strategies, in the benchmark's order."""
        known = STRATEGIES_OF[self.benchmark]
        return tuple(name for name in known if not self.strategies or name in self.strategies)


Stopped = Literal["target", "iterations", "no answer", "no submission", "repeats itself"]


class OnInstrument(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a program on the test days of other symbols.

    ``total`` is the return before costs. ``reason`` is set if the program could not run.
    """

    symbols: tuple[str, ...]
    total: float | None = None
    trades: int | None = None
    reason: str = ""


class ScoredIteration(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of one submission.

    ``scorecard`` is of the test year, and the writer never sees it. ``develop`` is of the
    development year, and the writer sees it. ``drift`` is None for a first submission. ``trail`` is
    None if the submission could not run on the test year. ``instruments`` is set if the run names
    more symbols than the strategy has legs.
    """

    scorecard: Scorecard
    develop: Scorecard
    drift: DriftReport | None = None
    trail: Trail | None = None
    instruments: tuple[OnInstrument, ...] | msgspec.UnsetType = msgspec.UNSET


class Iteration(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One iteration of a dialogue.

    ``submission`` is None if the answer has none. ``reason`` then describes the answer.
    ``set_aside`` means that the patch drifted or changed too many lines. Such a patch does not
    count, and the next iteration starts from its predecessor. ``usage`` is the sum over all
    answers, including repeated requests.
    """

    number: int
    set_aside: bool = False
    submission: Submission | None = None
    scored: ScoredIteration | None = None
    reviews: tuple[Review, ...] = ()
    reason: str = ""
    usage: Usage = Usage()


class StrategyOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of one strategy.

    ``usage`` is the sum of the writer's tokens, and ``review_usage`` of the reviewers' tokens.
    ``cut_off`` counts unreadable answers that reached the token limit. The first of them is not an
    iteration.
    """

    strategy: str
    model: str
    iterations: tuple[Iteration, ...]
    stopped: Stopped
    usage: Usage = Usage()
    review_usage: Usage = Usage()
    cut_off: int = 0

    @property
    def last(self) -> ScoredIteration | None:
        """The scores of the last submission that was scored and not set aside."""
        for iteration in reversed(self.iterations):
            if iteration.scored is not None and not iteration.set_aside:
                return iteration.scored
        return None
