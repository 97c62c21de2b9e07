"""The paper's Tables 1 to 8 as cited data, and why a number of ours is not directly comparable."""

from functools import cache

from tradeassay.benchmarks.exhibits import PrintedRow, read_published, unmet
from tradeassay.code.checks import FailureClass


class PublishedStageRates(PrintedRow, frozen=True, kw_only=True):
    """One model of Table 3: the share of tasks that passed each stage."""

    model: str
    compile: float
    backtest: float
    trade: float
    judge: float


class AgenticRates(PublishedStageRates, frozen=True, kw_only=True):
    """One model of Table 4: final stage rates, the mean number of turns, and cumulative success by turn."""

    mean_turns: float
    t1: float
    t3: float
    t5: float
    t10: float


class SourceCount(PrintedRow, frozen=True, kw_only=True):
    """One row of Table 2: tasks by source and difficulty."""

    source: str
    easy: int
    medium: int
    hard: int

    @property
    def total(self) -> int:
        """All tasks of the source (Table 1)."""
        return self.easy + self.medium + self.hard


class StageShare(PrintedRow, frozen=True, kw_only=True):
    """One row of Table 5 or 7: the share of answers that ended there, over all models. ``stage`` is our name."""

    name: str
    stage: str
    share: float


class FailureShare(PrintedRow, frozen=True, kw_only=True, rename={"failure_class": "class"}):
    """One row of Table 6. ``failure_class`` is our name."""

    name: str
    failure_class: FailureClass
    share: float


class FailureTurns(PrintedRow, frozen=True, kw_only=True, rename={"failure_class": "class"}):
    """One row of Table 8: single-turn shares of all answers, and shares of the failed trajectories' last turns."""

    name: str
    failure_class: FailureClass
    turn_1: float
    last_turn: float


class QuantcodePublished(PrintedRow, frozen=True, kw_only=True):
    """All tables and where they come from. ``notes`` say where the paper is silent or contradicts itself."""

    source: str
    licence: str
    tasks: int
    notes: tuple[str, ...]
    single_turn: tuple[PublishedStageRates, ...]
    agentic: tuple[AgenticRates, ...]
    sources: tuple[SourceCount, ...]
    single_turn_stages: tuple[StageShare, ...]
    agentic_stages: tuple[StageShare, ...]
    failures: tuple[FailureShare, ...]
    failure_turns: tuple[FailureTurns, ...]


@cache
def published() -> QuantcodePublished:
    return read_published(__package__, QuantcodePublished)


def why_not_comparable(
    *,
    public_tasks: bool,
    tasks: int,
    real_data: bool = False,
    turns: int = 10,
    decided_by: str = "behaviour",
    formal: bool = True,
) -> tuple[str, ...]:
    """Return every reason why a rate of ours and one of the paper are not measurements of the same thing.

    It is never empty: the paper does not name its judge, and its harness has neither our sandbox nor our
    look-ahead check.
    """
    checks = (
        (public_tasks, "our tasks are not the paper's"),
        (real_data, "our data is synthetic; the paper's is downloaded history"),
        (not public_tasks or tasks == published().tasks, f"we ran {tasks} tasks, the paper 400"),
        (turns == 10, f"we allow {turns} turns, the paper 10"),
        (decided_by == "language", "our judge stage is not decided by a language model alone"),
        (formal, "our wording is the conversational one"),
        (False, "the paper does not name its judge"),
        (False, "programs that look ahead or trick score zero here and are not looked for in the paper"),
    )
    return unmet(checks)
