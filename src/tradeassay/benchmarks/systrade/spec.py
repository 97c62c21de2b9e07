"""What a run of SysTradeBench is asked to do, and what came of one strategy: its iterations and their tokens."""

from typing import Final, Literal

import msgspec

from tradeassay.benchmarks.code_protocol import LONG_ANSWERS, CodeSpec, refuse_large_grid
from tradeassay.benchmarks.systrade import STRATEGIES
from tradeassay.benchmarks.systrade.data import DAYS, splits_of
from tradeassay.benchmarks.systrade.examine import Trail
from tradeassay.benchmarks.systrade.loading import MINUTES, SYSTB_STRATEGIES
from tradeassay.code.drift import DriftReport
from tradeassay.code.review import Review
from tradeassay.code.scores import Scorecard, ScoreConfig
from tradeassay.code.submission import Submission
from tradeassay.core.dialogue import Usage
from tradeassay.core.errors import UserError
from tradeassay.core.registry import refuse_unknown
from tradeassay.llm import ModelParams

SYSTRADE: Final = "systrade-v1"
SYSTRADE_SYSTB: Final = "systrade-systb-v1"
STRATEGIES_OF: Final[dict[str, tuple[str, ...]]] = {SYSTRADE: STRATEGIES, SYSTRADE_SYSTB: SYSTB_STRATEGIES}
"""The twelve strategies, and the twelve of the authors' public repository."""

MOST_MINUTES: Final = 2 * MINUTES


class SystradeSpec(CodeSpec, frozen=True, kw_only=True):
    """A SysTradeBench run. Every combination of model, strategy and seed is an episode.

    ``strategies`` empty takes all twelve. ``reviewers`` mark every submission, blind; a model's marks of its own
    work are kept but not counted. ``dataset`` with ``symbols`` takes stored daily bars instead of the synthetic
    year of ``data_seed``; ``splits`` are the days on which development and test begin and on which the test has
    ended. ``minutes`` is how many minutes strategies with a minute version get. Raises
    :class:`UserError` for nonsensical values."""

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
        self.refuse_bad(("strategies", "reviewers"), self.reviewers, example="scripted/builder-gold")
        refuse_unknown(self.benchmark, STRATEGIES_OF, f"there is no benchmark '{self.benchmark}'")
        for strategy in self.strategies:
            refuse_unknown(strategy, STRATEGIES_OF[self.benchmark], f"there is no strategy '{strategy}'")
        if not 1 <= self.iterations <= 10 or not self.seeds:
            raise UserError("iterations are 1 to 10, seeds at least one", hint="the paper has four iterations")
        if not 0 <= self.minutes <= MOST_MINUTES or not 0 <= self.data_seed < 2**63:
            hint = f"minutes are 0 to {MOST_MINUTES:,}, a data seed has at most 63 bits"
            raise UserError(f"{self.minutes} minutes of the year {self.data_seed}", hint=hint)
        refuse_large_grid(len(self.models) * len(self.chosen) * len(self.seeds))
        splits_of(self.splits)
        if (self.dataset is None) != (not self.symbols):
            raise UserError("a data set needs symbols, and symbols a data set", hint="give both or neither")

    @property
    def chosen(self) -> tuple[str, ...]:
        """The strategies, in the benchmark's order."""
        known = STRATEGIES_OF[self.benchmark]
        return tuple(name for name in known if not self.strategies or name in self.strategies)


Stopped = Literal["target", "iterations", "no answer", "no submission", "repeats itself"]


class OnInstrument(msgspec.Struct, frozen=True, kw_only=True):
    """A program on the test days of other symbols: what it returned before costs, or why it could not."""

    symbols: tuple[str, ...]
    total: float | None = None
    trades: int | None = None
    reason: str = ""


class ScoredIteration(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. ``scorecard`` is the test year's and never shown to the writer; ``develop`` is shown.

    ``drift`` is None for a first submission, ``trail`` where the test year could not be run. ``instruments`` are
    there where a run names more symbols than the strategy has legs."""

    scorecard: Scorecard
    develop: Scorecard
    drift: DriftReport | None = None
    trail: Trail | None = None
    instruments: tuple[OnInstrument, ...] | msgspec.UnsetType = msgspec.UNSET


class Iteration(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One submission. ``submission`` is None without one; ``reason`` then says what came instead.

    ``set_aside``: the patch drifted or changed too many lines, so it does not count, and the next iteration starts
    from its predecessor. ``usage`` adds up all answers to it, those that were asked for again included."""

    number: int
    set_aside: bool = False
    submission: Submission | None = None
    scored: ScoredIteration | None = None
    reviews: tuple[Review, ...] = ()
    reason: str = ""
    usage: Usage = Usage()


class StrategyOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of one strategy. ``usage`` adds up the writer's tokens, ``review_usage`` the reviewers'.

    ``cut_off`` counts unreadable answers that ran into the limit of tokens; the first is no iteration."""

    strategy: str
    model: str
    iterations: tuple[Iteration, ...]
    stopped: Stopped
    usage: Usage = Usage()
    review_usage: Usage = Usage()
    cut_off: int = 0

    @property
    def last(self) -> ScoredIteration | None:
        """The iteration that counts: the last submission that was scored and not set aside."""
        found = [one.scored for one in self.iterations if one.scored is not None and not one.set_aside]
        return found[-1] if found else None
