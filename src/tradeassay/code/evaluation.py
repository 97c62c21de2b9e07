"""What came of one program: every stage, both judges, the look-ahead check, tricks, and what it earned."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from tradeassay.code.earned import Earned
from tradeassay.code.judges.verdict import BehaviourVerdict, LanguageVerdict
from tradeassay.code.leak.report import LeakRecord
from tradeassay.code.stages.compiling import Framework
from tradeassay.code.stages.result import StageResult
from tradeassay.code.taxonomy import FailureClass, classify_run

StageName = Literal["compile", "backtest", "trade", "lookahead", "judge"]
STAGES: Final[tuple[StageName, ...]] = ("compile", "backtest", "trade", "lookahead", "judge")
"""In the order in which they are tried. Four are nested; ``lookahead`` stands beside them and voids what it
convicts."""

Outcome = Literal["solved", "trick", "compile", "backtest", "trade", "lookahead", "judge", "not_scored"]


class EvaluateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Please evaluate a program. A protocol yields it and is sent the :class:`Evaluation`."""

    task: str
    source: str
    framework: Framework = "backtrader"
    turn: int = 1


class TrickFound(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A trick by name, and what was seen. A ``grave`` one alone scores zero; the others are pointers, and the
    look-ahead check is what convicts.
    """

    name: str
    detail: str = ""
    grave: bool = True


class EvaluationUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What an evaluation cost in the sandbox: runs of the program and their processor seconds.

    Runs of the look-ahead check are counted; their processor time is known only in part and is left out.
    """

    runs: int = 0
    cpu_s: float = 0.0


class Evaluation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The whole record of one program on one task. JSON-able; equal programs get equal records, usage aside.

    ``judge`` is the stage as it counts, by the rule in ``decided_by``; ``judge_behaviour`` and
    ``judge_language`` are both verdicts in full. ``earned`` is shown and never scored.
    """

    task: str
    framework: Framework
    source_sha256: str
    compile: StageResult
    backtest: StageResult
    trade: StageResult
    lookahead: StageResult
    judge: StageResult
    decided_by: str = ""
    judge_behaviour: BehaviourVerdict | None = None
    judge_language: LanguageVerdict | None = None
    leak: LeakRecord | None = None
    tricks: tuple[TrickFound, ...] = ()
    attempts: tuple[str, ...] = ()
    trades: int | None = None
    earned: Earned | None = None
    usage: EvaluationUsage = EvaluationUsage()

    @property
    def outcome(self) -> Outcome:
        """Where it ended. A grave trick comes before everything else: what it touched cannot be believed."""
        if self.grave_tricks:
            return "trick"
        for name in STAGES:
            stage: StageResult = getattr(self, name)
            if stage.failed:
                return name
        return "solved" if all(getattr(self, name).passed for name in STAGES) else "not_scored"

    @property
    def grave_tricks(self) -> tuple[TrickFound, ...]:
        """The tricks that score zero."""
        return tuple(trick for trick in self.tricks if trick.grave)

    @property
    def score(self) -> float | None:
        """1 when solved, 0 when not, None when nobody could tell."""
        outcome = self.outcome
        return None if outcome == "not_scored" else float(outcome == "solved")

    @property
    def solved(self) -> bool | None:
        """Whether every stage was passed; None when nobody could tell."""
        score = self.score
        return None if score is None else score == 1.0

    @property
    def reason(self) -> str:
        """Why it is not solved, in one line; empty when it is."""
        outcome = self.outcome
        if outcome == "trick":
            return "; ".join(f"{trick.name}: {trick.detail}".rstrip(": ") for trick in self.grave_tricks)
        if outcome == "not_scored":
            open_stages = [stage for name in STAGES if (stage := self.stage(name)).status == "not_scored"]
            return "; ".join(stage.reason for stage in open_stages)
        return "" if outcome == "solved" else self.stage(outcome).reason

    @property
    def judges_disagree(self) -> bool:
        """Whether both judges came to a verdict, and not to the same."""
        said = {v.status for v in (self.judge_behaviour, self.judge_language) if v is not None}
        return said == {"passed", "failed"}

    @property
    def failure_class(self) -> FailureClass | None:
        """The class of :mod:`tradeassay.code.taxonomy`; None when solved or not scored."""
        outcome = self.outcome
        if outcome == "backtest":
            return classify_run(self.backtest)
        by_outcome: dict[str, FailureClass] = {
            "trick": "trick",
            "compile": "compilation",
            "trade": "signals-never-activate",
            "lookahead": "look-ahead",
            "judge": "does-not-match",
        }
        return by_outcome.get(outcome)

    def stage(self, name: str) -> StageResult:
        """Return a stage's result by name; raises KeyError for another name."""
        if name not in STAGES:
            raise KeyError(name)
        result: StageResult = getattr(self, name)
        return result
