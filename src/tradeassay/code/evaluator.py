"""Evaluate one program on one task: compile, run, trade, look-ahead, judges."""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.code.backtrader import Backtest
from tradeassay.code.earned import earned
from tradeassay.code.evaluation import Evaluation, EvaluationUsage, TrickFound
from tradeassay.code.judges.behaviour import SHARED, BehaviourConfig, References, judge_behaviour
from tradeassay.code.judges.language import (
    JudgeCase,
    JudgeClient,
    LanguageJudgeConfig,
    drive_judge,
    judge_dialogue,
)
from tradeassay.code.judges.verdict import BehaviourVerdict, LanguageVerdict
from tradeassay.code.leak import LeakConfig
from tradeassay.code.running import run_programs, task_bars
from tradeassay.code.stages.compiling import Framework, compile_stage
from tradeassay.code.stages.lookahead import BRIEF, lookahead_stage
from tradeassay.code.stages.result import PASSED, StageResult, failed, not_reached, not_scored
from tradeassay.code.stages.running import backtest_stage, compile_failure, trade_stage
from tradeassay.code.task import CodeTask, Wording
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_bytes
from tradeassay.sandbox import Executor, Limits

Decides = Literal["reference-first", "behaviour", "language", "both"]


class EvaluateConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How a program is evaluated.

    ``decides`` says which judge the judge stage goes by: ``reference-first`` is the behavioural one, and the
    language judge where a task has no reference; ``both`` asks for both. ``leak`` None leaves the look-ahead
    check out; the stage is then not scored, and nothing can be solved.
    """

    decides: Decides = "reference-first"
    behaviour: BehaviourConfig = BehaviourConfig()
    language: LanguageJudgeConfig = LanguageJudgeConfig()
    leak: LeakConfig | None = BRIEF
    limits: Limits | None = None


def evaluate(
    task: CodeTask,
    source: str,
    *,
    executor: Executor,
    config: EvaluateConfig | None = None,
    judge: JudgeClient | None = None,
    framework: Framework = "backtrader",
    wording: Wording = "formal",
    references: References = SHARED,
) -> Evaluation:
    """Return everything there is to say about a program. A bad program is a result; only a broken executor raises.

    The language judge is asked when ``judge`` is given and the program gets that far. ``wording`` is what it is
    shown. Raises :class:`UserError` for a framework that the task has no variant for.
    """
    config = config or EvaluateConfig()
    found = examine(task, source, executor=executor, config=config, framework=framework, references=references)
    if judge is None or not wants_language_judge(found):
        return found
    case = judge_case(task, source, framework=framework, wording=wording)
    dialogue = judge_dialogue(case, judge.prompts, judge=judge.name, config=config.language)
    return with_language(found, drive_judge(dialogue, judge), config)


def examine(
    task: CodeTask,
    source: str,
    *,
    executor: Executor,
    config: EvaluateConfig | None = None,
    framework: Framework = "backtrader",
    references: References = SHARED,
) -> Evaluation:
    """Return all of an evaluation but the language judge, whom somebody else may ask; see
    :func:`with_language`.
    """
    config = config or EvaluateConfig()
    if framework == "frame" and task.frame is None:
        raise UserError(f"task '{task.id}' has no variant for frames", mend="run it with the framework backtrader")
    empty = Evaluation(
        task=task.id,
        framework=framework,
        source_sha256=sha256_bytes(source.encode("utf-8", "surrogatepass")),
        compile=compile_stage(source, framework),
        backtest=not_reached("it does not compile"),
        trade=not_reached("it does not compile"),
        lookahead=not_reached("it does not compile"),
        judge=not_reached("it does not compile"),
    )
    if not empty.compile.passed:
        return empty
    bars = task_bars(task)
    run = next(run_programs(executor, task, [(source, bars)], framework, limits=config.limits))
    ran = _after_run(empty, run)
    if not ran.trade.passed or ran.grave_tricks:
        return ran
    ran = msgspec.structs.replace(ran, earned=earned(bars, run.equity, task.cash, len(run.trades)))
    if config.leak is None:
        ran = msgspec.structs.replace(ran, lookahead=not_scored("the look-ahead check was left out"))
    else:
        stage, record = lookahead_stage(
            executor, task, source, bars, run, framework, config.leak, limits=config.limits
        )
        ran = msgspec.structs.replace(ran, lookahead=stage, leak=record, usage=_more(ran.usage, record.runs))
        if stage.failed:
            return msgspec.structs.replace(ran, judge=not_reached("it was found to look ahead"))
    return _after_behaviour(ran, task, source, run, executor, config, references)


def wants_language_judge(found: Evaluation) -> bool:
    """Return whether a program got as far as a judge and no language judge has spoken yet."""
    return found.judge.status != "not_reached" and (
        found.judge_language is None or found.judge_language.status == "not_scored"
    )


def judge_case(
    task: CodeTask, source: str, *, framework: Framework = "backtrader", wording: Wording = "formal"
) -> JudgeCase:
    """Return what a language judge is shown; a wording that the task lacks becomes the formal one."""
    description = task.text(wording, framework) or task.text("formal", framework) or task.formal
    return JudgeCase(
        task_id=task.id,
        description=description,
        source=source,
        framework=framework,
        indicators=task.expect.indicators,
        direction=task.expect.direction,
    )


def with_language(found: Evaluation, verdict: LanguageVerdict, config: EvaluateConfig | None = None) -> Evaluation:
    """Return an evaluation with the language judge's verdict in it, the judge stage decided anew."""
    config = config or EvaluateConfig()
    stage, by = _decide(found.judge_behaviour, verdict, config.decides)
    return msgspec.structs.replace(found, judge_language=verdict, judge=stage, decided_by=by)


def _after_run(empty: Evaluation, run: Backtest) -> Evaluation:
    tricks = _tricks([run])
    usage = EvaluationUsage(runs=1, cpu_s=run.usage.cpu_s)
    attempts = tuple(attempt.text for attempt in run.attempts)
    late = compile_failure(run)
    if late is not None:
        return msgspec.structs.replace(empty, compile=late, tricks=tricks, usage=usage, attempts=attempts)
    ran = backtest_stage(run)
    trade = trade_stage(run) if ran.passed else not_reached("it did not run to its end")
    after = "it did not run to its end" if not ran.passed else "it opened no trade"
    if trade.passed:
        after = "a trick was found"
    return msgspec.structs.replace(
        empty,
        backtest=ran,
        trade=trade,
        lookahead=not_reached(after),
        judge=not_reached(after),
        tricks=tricks,
        attempts=attempts,
        trades=len(run.trades) if ran.passed else None,
        usage=usage,
    )


def _after_behaviour(
    ran: Evaluation,
    task: CodeTask,
    source: str,
    run: Backtest,
    executor: Executor,
    config: EvaluateConfig,
    references: References,
) -> Evaluation:
    verdict, others = judge_behaviour(
        executor, task, source, run, ran.framework,
        config=config.behaviour, references=references, limits=config.limits,
    )  # fmt: skip
    silent = LanguageVerdict(status="not_scored", reason="no language judge was asked")
    stage, by = _decide(verdict, silent, config.decides)
    tricks = _tricks([run, *others])
    if any(trick.grave for trick in tricks):
        stage, by = not_reached("a trick was found on another market"), ""
    usage = _more(ran.usage, len(others), sum(other.usage.cpu_s for other in others))
    return msgspec.structs.replace(
        ran, judge_behaviour=verdict, judge_language=silent, judge=stage, decided_by=by, tricks=tricks, usage=usage
    )


def _decide(
    behaviour: BehaviourVerdict | None, language: LanguageVerdict | None, decides: Decides
) -> tuple[StageResult, str]:
    first = decides == "reference-first"
    if first:
        decides = "behaviour" if behaviour is not None and behaviour.status != "not_scored" else "language"
    if decides == "behaviour":
        return _stage(behaviour), "behaviour"
    if decides == "language":
        stage = _stage(language)
        if first and stage.status == "not_scored" and behaviour is not None:
            stage = not_scored(f"{behaviour.reason}; {stage.reason}")
        return stage, "language"
    parts = [_stage(behaviour), _stage(language)]
    against = [part for part in parts if part.failed]
    silent = [part for part in parts if part.status == "not_scored"]
    if against:
        return failed("; ".join(part.reason for part in against), "does_not_match"), "both"
    return (not_scored("; ".join(part.reason for part in silent)), "both") if silent else (PASSED, "both")


def _stage(verdict: BehaviourVerdict | LanguageVerdict | None) -> StageResult:
    if verdict is None or verdict.status == "not_scored":
        return not_scored(verdict.reason if verdict is not None else "no judge was asked")
    return PASSED if verdict.status == "passed" else failed(verdict.reason, "does_not_match")


def _tricks(runs: list[Backtest]) -> tuple[TrickFound, ...]:
    found = {
        trick.name: TrickFound(name=trick.name, detail=trick.evidence, grave=trick.grave)
        for run in reversed(runs)
        for trick in run.tricks
    }
    return tuple(found[name] for name in sorted(found))


def _more(usage: EvaluationUsage, runs: int, cpu_s: float = 0.0) -> EvaluationUsage:
    return EvaluationUsage(runs=usage.runs + runs, cpu_s=usage.cpu_s + cpu_s)
