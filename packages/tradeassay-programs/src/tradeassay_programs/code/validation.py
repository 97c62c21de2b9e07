"""Validate tasks without a model.

Every gold solution must pass, and every decoy must fail at its stage.

The correct verdict on these programs is known, so they also measure the error rates of a judge.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from tradeassay.core.measure import Measure
from tradeassay.metrics import rate_measure
from tradeassay_bench.core.run_secret import seed_from
from tradeassay_programs.code.evaluation import (
    DECISIONS,
    DRAWS,
    EvaluateConfig,
    Evaluation,
    evaluate,
)
from tradeassay_programs.code.judges.behaviour import judge_decisions
from tradeassay_programs.code.judges.decisions import JudgeStatus
from tradeassay_programs.code.judges.language import JudgeClient
from tradeassay_programs.code.judges.markets import SHARED_DRAWS
from tradeassay_programs.code.running import ExamSettings, exam_settings, reference_of, run_programs
from tradeassay_programs.code.task import CodeTask, Decoy, Expectations, Framework
from tradeassay_programs.sandbox import JobExecutor


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's verdict on a program with a known answer.

    With ``right`` the program is a gold solution. Otherwise it is a decoy.
    """

    program: str
    right: bool
    verdict: JudgeStatus


class JudgeErrors(msgspec.Struct, frozen=True, kw_only=True):
    """The error rates of a judge.

    ``false_rejects`` is a rate over gold solutions, and ``false_accepts`` over decoys. Both count
    only programs with a verdict. ``unscored`` counts programs without a verdict. ``rejected_gold``
    and ``accepted_decoys`` name the wrong verdicts.
    """

    judge: str
    false_rejects: Measure
    false_accepts: Measure
    unscored: int
    rejected_gold: tuple[str, ...] = ()
    accepted_decoys: tuple[str, ...] = ()
    note: str = ""


def error_rates(judge: str, judged: Iterable[Judged], *, note: str = "") -> JudgeErrors:
    """Return the error rates of ``judge`` with Wilson intervals.

    A rate over no programs is not scored.
    """
    cases = list(judged)
    scored = [case for case in cases if case.verdict != "not_scored"]
    gold = [case for case in scored if case.right]
    decoys = [case for case in scored if not case.right]
    rejected = tuple(case.program for case in gold if case.verdict == "failed")
    accepted = tuple(case.program for case in decoys if case.verdict == "passed")
    silent = "the judge gave no verdict on a"
    return JudgeErrors(
        judge=judge,
        false_rejects=rate_measure(len(rejected), len(gold), nothing=f"{silent} gold solution"),
        false_accepts=rate_measure(len(accepted), len(decoys), nothing=f"{silent} decoy"),
        unscored=len(cases) - len(scored),
        rejected_gold=rejected,
        accepted_decoys=accepted,
        note=note,
    )


_REDRAWS = 7
"""Maximum number of additional home markets that are drawn for a decoy that does not trade."""

_SELF = (
    "gold is compared with itself: no false rejects means that runs repeat, not that the "
    "judge "
    "is fair"
)

_TWINS = (
    "each reference for frames is judged by the Backtrader reference of its task: an "
    "independent right solution"
)


class ValidateConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a validation.

    With ``thorough``, the look-ahead check runs on every program that reaches it. Otherwise it runs
    only on gold solutions and on decoys that must fail it.
    """

    thorough: bool = False
    threads: int = 3
    rules: ExamSettings = msgspec.field(default_factory=lambda: exam_settings(None))


class ProgramLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of one program: its expected and its actual outcome.

    ``program`` is ``gold`` or the name of a decoy. ``redrawn`` counts the home markets on which a
    decoy made no trade although it must fail at a later stage.
    """

    task: str
    program: str
    framework: Framework
    expected: str
    outcome: str
    ok: bool
    kind: str = "gold"
    reason: str = ""
    agreement: float | None = None
    behaviour: str = ""
    language: str = ""
    trades: int | None = None
    tricks: tuple[str, ...] = ()
    runs: int = 0
    cpu_s: float = 0.0
    immaterial: tuple[str, ...] = ()
    redrawn: int = 0

    @property
    def name(self) -> str:
        """The name of the program: task, program, and the framework if it is not Backtrader."""
        suffix = "" if self.framework == "backtrader" else f" ({self.framework})"
        return f"{self.task}/{self.program}{suffix}"


class TwinLine(msgspec.Struct, frozen=True, kw_only=True):
    """The agreement of a task's two references.

    ``accepted`` is the behavioural judge's verdict on them.
    """

    task: str
    agreement: float
    accepted: bool


class ValidationReport(msgspec.Struct, frozen=True, kw_only=True):
    """All lines in the order of the tasks, and the error rates of each judge.

    ``twins`` are tasks with a reference in each framework. The references are independent correct
    solutions, so a false reject by the behavioural judge on them is meaningful.
    """

    tasks: int
    lines: tuple[ProgramLine, ...]
    judges: tuple[JudgeErrors, ...]
    twins: tuple[TwinLine, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every program had its expected outcome."""
        return all(line.ok for line in self.lines)

    @property
    def wrong(self) -> tuple[ProgramLine, ...]:
        """The programs whose outcome differs from the expected outcome."""
        return tuple(line for line in self.lines if not line.ok)

    @property
    def disagreements(self) -> tuple[ProgramLine, ...]:
        """The programs on which the two judges disagree."""
        return tuple(
            line for line in self.lines if {line.behaviour, line.language} == {"passed", "failed"}
        )


class _Program(msgspec.Struct, frozen=True, kw_only=True):
    task: CodeTask
    framework: Framework
    source: str
    decoy: Decoy | None


def validate(
    tasks: Iterable[CodeTask],
    executor: JobExecutor,
    *,
    config: ValidateConfig | None = None,
    judge: JudgeClient | None = None,
    frame_judge: JudgeClient | None = None,
    tell: Callable[[ProgramLine], None] | None = None,
) -> ValidationReport:
    """Evaluate the gold solution and the decoys of every task, in order.

    ``tell`` is called with each line, from several threads. ``judge`` reads programs for
    Backtrader, and ``frame_judge`` programs on frames.
    """
    config, chosen = config or ValidateConfig(), tuple(tasks)
    programs: list[_Program] = []
    for task in chosen:
        programs += _programs_of(task)

    def evaluate_program(program: _Program) -> ProgramLine:
        """Return the line of a program. A decoy that does not trade gets other home markets."""
        client = judge if program.framework == "backtrader" else frame_judge
        decoy, rules = program.decoy, config.rules
        leak = config.thorough or decoy is None or decoy.fails_at == "lookahead"
        rule = EvaluateConfig(decides="behaviour", leak=leak)
        # A decoy that must fail at a later stage may have no reason to trade on one drawn market.
        redraws = _REDRAWS if decoy is not None and decoy.fails_at in ("lookahead", "judge") else 0
        for redrawn in range(redraws + 1):
            if redrawn:
                secret = f"{seed_from(config.rules.secret, 'validate again', redrawn):064x}"
                rules = msgspec.structs.replace(config.rules, secret=secret)
            evaluation = evaluate(
                program.task,
                program.source,
                executor=executor,
                config=rule,
                judge=client,
                framework=program.framework,
                rules=rules,
            )
            if evaluation.outcome != "trade":
                break
        line = _line(program, evaluation, redrawn=redrawn)
        if tell is not None:
            tell(line)
        return line

    def compare_references(task: CodeTask) -> TwinLine | None:
        """Return the agreement of a task's two references, or None if one is missing."""
        source = reference_of(task, "frame")
        if not (source and reference_of(task, "backtrader")):
            return None
        judging = SHARED_DRAWS.all_markets(executor, task, "backtrader", config.rules, DRAWS)
        on_markets = [(source, market.bars) for market in judging.markets]
        runs = list(run_programs(executor, task, on_markets, "frame", rules=config.rules))
        # A task's expectations of orders are written for Backtrader.
        plain = msgspec.structs.replace(task, expect=Expectations(direction="both", order_kinds=()))
        verdict = judge_decisions(plain, judging, runs, DECISIONS)
        return TwinLine(
            task=task.id, agreement=verdict.agreement or 0.0, accepted=verdict.status == "passed"
        )

    with ThreadPoolExecutor(max(1, config.threads), thread_name_prefix="validate") as threads:
        lines = tuple(threads.map(evaluate_program, programs))
        compared = threads.map(compare_references, chosen)
        twins = tuple(twin for twin in compared if twin is not None)
    name = None if judge is None else judge.name
    return ValidationReport(
        tasks=len(chosen), lines=lines, judges=_judges(lines, twins, name), twins=twins
    )


def _programs_of(task: CodeTask) -> list[_Program]:
    """Return the gold solution and the decoys of a task in all of its frameworks."""
    decoys_by_framework: dict[Framework, Sequence[Decoy]] = {"backtrader": task.decoys}
    if task.frame is not None:
        decoys_by_framework["frame"] = task.frame.decoys
    programs = []
    for framework, decoys in decoys_by_framework.items():
        gold = reference_of(task, framework)
        if gold:
            programs.append(_Program(task=task, framework=framework, source=gold, decoy=None))
        for decoy in decoys:
            # Printed text is never read, so there is no decoy that prints a result.
            if decoy.kind != "printed-result":
                programs.append(
                    _Program(task=task, framework=framework, source=decoy.source, decoy=decoy)
                )
    return programs


def join_reports(parts: Sequence[ValidationReport], judge: str | None) -> ValidationReport:
    """Combine several reports in order. ``judge`` names the measured language judge, if any."""
    lines: list[ProgramLine] = []
    twins: list[TwinLine] = []
    for part in parts:
        lines += part.lines
        twins += part.twins
    return ValidationReport(
        tasks=sum(part.tasks for part in parts),
        lines=tuple(lines),
        judges=_judges(lines, twins, judge),
        twins=tuple(twins),
    )


def _line(program: _Program, evaluation: Evaluation, *, redrawn: int) -> ProgramLine:
    """Return the line of a program."""
    decoy = program.decoy
    behaviour, language = evaluation.judge_behaviour, evaluation.judge_language
    expected = "solved" if decoy is None else decoy.fails_at
    immaterial = evaluation.immaterial if decoy is None else ()
    return ProgramLine(
        task=program.task.id,
        program="gold" if decoy is None else decoy.name,
        framework=program.framework,
        kind="gold" if decoy is None else decoy.kind,
        expected=expected,
        outcome=evaluation.outcome,
        ok=evaluation.outcome == expected and not immaterial,
        reason=evaluation.reason or "; ".join(f"immaterial: {text}" for text in immaterial),
        immaterial=immaterial,
        agreement=None if behaviour is None else behaviour.agreement,
        behaviour="" if behaviour is None else behaviour.status,
        language="" if language is None else language.status,
        trades=evaluation.trades,
        tricks=tuple(trick.name for trick in evaluation.tricks),
        runs=evaluation.usage.runs,
        cpu_s=evaluation.usage.cpu_s,
        redrawn=redrawn,
    )


def _judges(
    lines: Sequence[ProgramLine], twins: Sequence[TwinLine], judge: str | None
) -> tuple[JudgeErrors, ...]:
    """Return the errors of the behavioural judge, and of the language judge if it was measured."""

    def cases(judge: str) -> list[Judged]:
        judged = []
        for line in lines:
            verdict = getattr(line, judge)
            if verdict and line.expected in ("solved", "judge"):
                right = line.expected == "solved"
                judged.append(Judged(program=line.name, right=right, verdict=verdict))
        return judged

    errors = [error_rates("behaviour", cases("behaviour"), note=_SELF)]
    if twins:
        right = [
            Judged(program=twin.task, right=True, verdict="passed" if twin.accepted else "failed")
            for twin in twins
        ]
        errors.append(error_rates("behaviour, on references of two frameworks", right, note=_TWINS))
    if judge is not None:
        errors.append(error_rates(judge, cases("language")))
    return tuple(errors)
