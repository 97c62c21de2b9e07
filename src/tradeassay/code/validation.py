"""Run every gold solution and every decoy without a model: gold must pass, a decoy must fail where it says.

How often a judge is wrong is measured on the same programs, because their right verdict is known.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from tradeassay.code.evaluation import DECISIONS, DRAWS, EvaluateConfig, Evaluation, evaluate
from tradeassay.code.judges.behaviour import judge_decisions
from tradeassay.code.judges.decisions import JudgeStatus
from tradeassay.code.judges.language import JudgeClient
from tradeassay.code.judges.markets import SHARED_DRAWS
from tradeassay.code.running import Rules, reference_of, rules_of, run_programs
from tradeassay.code.task import CodeTask, Decoy, Expectations, Framework
from tradeassay.core.hashing import seed_from
from tradeassay.core.measure import Measure
from tradeassay.metrics import rate_measure
from tradeassay.sandbox import JobExecutor


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One program with a known answer: ``right`` is a gold solution, otherwise a decoy to be rejected."""

    program: str
    right: bool
    verdict: JudgeStatus


class JudgeErrors(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's errors. ``false_rejects`` is over gold solutions, ``false_accepts`` over decoys, counting only
    those it gave a verdict on; ``unscored`` counts the others. The lists name the programs it was wrong about.
    """

    judge: str
    false_rejects: Measure
    false_accepts: Measure
    unscored: int
    rejected_gold: tuple[str, ...] = ()
    accepted_decoys: tuple[str, ...] = ()
    note: str = ""


def error_rates(judge: str, judged: Iterable[Judged], *, note: str = "") -> JudgeErrors:
    """Return how often ``judge`` was wrong, with Wilson intervals; a rate over nothing is not scored."""
    cases = list(judged)
    told = [case for case in cases if case.verdict != "not_scored"]
    gold = [case for case in told if case.right]
    decoys = [case for case in told if not case.right]
    rejected = tuple(case.program for case in gold if case.verdict == "failed")
    accepted = tuple(case.program for case in decoys if case.verdict == "passed")
    silent = "the judge gave no verdict on a"
    return JudgeErrors(
        judge=judge,
        false_rejects=rate_measure(len(rejected), len(gold), nothing=f"{silent} gold solution"),
        false_accepts=rate_measure(len(accepted), len(decoys), nothing=f"{silent} decoy"),
        unscored=len(cases) - len(told),
        rejected_gold=rejected,
        accepted_decoys=accepted,
        note=note,
    )


_REDRAWS = 7
"""How many further home markets a decoy gets to trade on."""

_SELF = "gold is compared with itself: no false rejects means that runs repeat, not that the judge is fair"

_TWINS = (
    "each reference for frames is judged by the Backtrader reference of its task: an independent right solution"
)


class ValidateConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How hard to look. ``thorough`` gives every program that gets that far the look-ahead check; otherwise only
    gold solutions and decoys of the kind look-ahead get it (other decoys have to fail elsewhere).
    """

    thorough: bool = False
    threads: int = 3
    rules: Rules = msgspec.field(default_factory=lambda: rules_of(None))


class ProgramLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One program: what was expected of it, and what happened. ``program`` is ``gold`` or a decoy's name.
    ``redrawn`` counts the home markets on which a decoy that is to be refused later made no trade.
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
        suffix = "" if self.framework == "backtrader" else f" ({self.framework})"
        return f"{self.task}/{self.program}{suffix}"


class TwinLine(msgspec.Struct, frozen=True, kw_only=True):
    """A task's two references compared with each other; ``accepted`` is what the behavioural judge would say."""

    task: str
    agreement: float
    accepted: bool


class ValidationReport(msgspec.Struct, frozen=True, kw_only=True):
    """All lines in the order of the tasks, and how often each judge was wrong. ``twins`` are tasks with a
    reference in each framework: independent correct solutions, on which the behavioural judge's false rejects mean
    something.
    """

    tasks: int
    lines: tuple[ProgramLine, ...]
    judges: tuple[JudgeErrors, ...]
    twins: tuple[TwinLine, ...] = ()

    @property
    def ok(self) -> bool:
        return all(line.ok for line in self.lines)

    @property
    def wrong(self) -> tuple[ProgramLine, ...]:
        return tuple(line for line in self.lines if not line.ok)

    @property
    def disagreements(self) -> tuple[ProgramLine, ...]:
        return tuple(line for line in self.lines if {line.behaviour, line.language} == {"passed", "failed"})


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
    """Evaluate gold and decoys of every task in order; ``tell`` hears each line, from several threads."""
    config, chosen = config or ValidateConfig(), tuple(tasks)
    programs: list[_Program] = []
    for task in chosen:
        decoys: dict[Framework, Sequence[Decoy]] = {"backtrader": task.decoys}
        if task.frame is not None:
            decoys["frame"] = task.frame.decoys
        for framework, these in decoys.items():
            gold = reference_of(task, framework)
            # What is printed is not looked at, so printing makes no decoy.
            wrong = [(decoy.source, decoy) for decoy in these if decoy.kind != "printed-result"]
            for source, decoy in [*([(gold, None)] if gold else []), *wrong]:
                programs.append(_Program(task=task, framework=framework, source=source, decoy=decoy))

    def one(program: _Program) -> ProgramLine:
        client = judge if program.framework == "backtrader" else frame_judge
        decoy, rules = program.decoy, config.rules
        leak = config.thorough or decoy is None or decoy.fails_at == "lookahead"
        rule = EvaluateConfig(decides="behaviour", leak=leak)
        # A wrong program may find no occasion to trade on one drawn market.
        again = _REDRAWS if decoy is not None and decoy.fails_at in ("lookahead", "judge") else 0
        for redrawn in range(again + 1):
            if redrawn:
                secret = f"{seed_from(config.rules.secret, 'validate again', redrawn):064x}"
                rules = msgspec.structs.replace(config.rules, secret=secret)
            found = evaluate(
                program.task,
                program.source,
                executor=executor,
                config=rule,
                judge=client,
                framework=program.framework,
                rules=rules,
            )
            if found.outcome != "trade":
                break
        line = _line(program, found, redrawn=redrawn)
        if tell is not None:
            tell(line)
        return line

    def twin(task: CodeTask) -> TwinLine | None:
        source = reference_of(task, "frame")
        if not (source and reference_of(task, "backtrader")):
            return None
        judging = SHARED_DRAWS.of(executor, task, "backtrader", config.rules, DRAWS)
        wanted = [(source, market.bars) for market in judging.markets]
        runs = list(run_programs(executor, task, wanted, "frame", rules=config.rules))
        # What a task expects of orders (their kinds) is written for Backtrader.
        plain = msgspec.structs.replace(task, expect=Expectations(direction="both", order_kinds=()))
        found = judge_decisions(plain, judging, runs, DECISIONS)
        return TwinLine(task=task.id, agreement=found.agreement or 0.0, accepted=found.status == "passed")

    with ThreadPoolExecutor(max(1, config.threads), thread_name_prefix="validate") as threads:
        lines = tuple(threads.map(one, programs))
        twins = tuple(found for found in threads.map(twin, chosen) if found is not None)
    name = None if judge is None else judge.name
    return ValidationReport(tasks=len(chosen), lines=lines, judges=_judges(lines, twins, name), twins=twins)


def gathered(parts: Sequence[ValidationReport], judge: str | None) -> ValidationReport:
    """Return one report of several, in their order; ``judge`` names the model that was measured, if one was."""
    lines = tuple(line for part in parts for line in part.lines)
    twins = tuple(twin for part in parts for twin in part.twins)
    tasks = sum(part.tasks for part in parts)
    return ValidationReport(tasks=tasks, lines=lines, judges=_judges(lines, twins, judge), twins=twins)


def _line(program: _Program, found: Evaluation, *, redrawn: int) -> ProgramLine:
    decoy, said = program.decoy, found.judge_behaviour
    expected = "solved" if decoy is None else decoy.fails_at
    immaterial = found.immaterial if decoy is None else ()
    return ProgramLine(
        task=program.task.id,
        program="gold" if decoy is None else decoy.name,
        framework=program.framework,
        kind="gold" if decoy is None else decoy.kind,
        expected=expected,
        outcome=found.outcome,
        ok=found.outcome == expected and not immaterial,
        reason=found.reason or "; ".join(f"immaterial: {one}" for one in immaterial),
        immaterial=immaterial,
        agreement=None if said is None else said.agreement,
        behaviour="" if said is None else said.status,
        language="" if found.judge_language is None else found.judge_language.status,
        trades=found.trades,
        tricks=tuple(trick.name for trick in found.tricks),
        runs=found.usage.runs,
        cpu_s=found.usage.cpu_s,
        redrawn=redrawn,
    )


def _judges(lines: Sequence[ProgramLine], twins: Sequence[TwinLine], judge: str | None) -> tuple[JudgeErrors, ...]:
    def cases(name: str) -> list[Judged]:
        given = [(line, getattr(line, name)) for line in lines if line.expected in ("solved", "judge")]
        return [Judged(program=one.name, right=one.expected == "solved", verdict=v) for one, v in given if v]

    found = [error_rates("behaviour", cases("behaviour"), note=_SELF)]
    if twins:
        right = [Judged(program=t.task, right=True, verdict="passed" if t.accepted else "failed") for t in twins]
        found.append(error_rates("behaviour, on references of two frameworks", right, note=_TWINS))
    if judge is not None:
        found.append(error_rates(judge, cases("language")))
    return tuple(found)
