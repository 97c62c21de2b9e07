"""Beside the stages: does any decision depend on bars that come after it?"""

from __future__ import annotations

from typing import Final

import msgspec

from tradeassay.code.backtrader import Backtest, terms_of
from tradeassay.code.backtrader.fed import FedVerdict, compare_fed, run_fed
from tradeassay.code.bars import TaskBars
from tradeassay.code.leak import LeakConfig, LeakRecord, check_leaks
from tradeassay.code.running import leak_subject
from tradeassay.code.stages.compiling import Framework
from tradeassay.code.stages.result import PASSED, StageResult, failed, not_scored
from tradeassay.code.task import CodeTask
from tradeassay.core.errors import SandboxError
from tradeassay.core.hashing import sha256_bytes
from tradeassay.sandbox import Executor, Limits

BRIEF: Final = LeakConfig(warm_up_cuts=2, change_cuts=4, random_cuts=2, perturbations=1, splice_runs=1)
"""How hard a program is looked at that gave no cause. One that read whole lines or later bars gets the full
check.
"""

_PROOF: Final = "fed bar by bar it decides the same on every bar: no decision can depend on a later one"
_POINTERS: Final = frozenset({"future-index", "preloaded-array", "cheat-timer"})


def lookahead_stage(
    executor: Executor,
    task: CodeTask,
    source: str,
    bars: TaskBars,
    run: Backtest,
    framework: Framework,
    config: LeakConfig,
    limits: Limits | None = None,
) -> tuple[StageResult, LeakRecord]:
    """Return the verdict and its evidence. Cuts follow from the source alone: the same program, the same check.

    A Backtrader program is fed bar by bar first. The same decisions are a proof, and nothing more is needed; with
    others the full check follows, which tries the first bar on which they part before all others.

    A program that cannot be checked by its own doing (two equal runs differ, it breaks on most prefixes, it is too
    slow) has failed; where the data is too short nobody can tell.
    """
    pointers = [trick for trick in run.tricks if trick.name in _POINTERS]
    fed = _fed(executor, task, source, bars, run, framework, config, limits)
    if fed is not None and fed.proven:
        return PASSED, LeakRecord(verdict="clean", reason=_PROOF, runs=1, bars=bars.rows, fed="same")
    thorough = bool(pointers) or fed is not None
    subject = leak_subject(executor, task, source, bars, framework, limits)
    report = check_leaks(
        subject,
        bars.columns(),
        LeakConfig() if thorough else config,
        seed=int(sha256_bytes(source.encode("utf-8", "surrogatepass"))[:8], 16),
        scored=run.trace(),
        suspects=() if fed is None or fed.suspect is None else (fed.suspect,),
    )
    record = report.record
    if fed is not None:
        record = msgspec.structs.replace(
            record, fed="differs", notes=(fed.reason, *record.notes), runs=record.runs + 1
        )
    if record.verdict == "clean":
        return PASSED, record
    if record.verdict == "leaky":
        named = "".join(f"; {trick.name}: {trick.evidence}" for trick in pointers)
        return failed(f"{record.evidence[0].text}{named}", pointers[0].name if pointers else "look_ahead"), record
    if record.cause == "too_short":
        return not_scored(record.reason), record
    return failed(f"look-ahead cannot be excluded: {record.reason}", record.cause or "not_checked"), record


def _fed(
    executor: Executor,
    task: CodeTask,
    source: str,
    bars: TaskBars,
    run: Backtest,
    framework: Framework,
    config: LeakConfig,
    limits: Limits | None,
) -> FedVerdict | None:
    """Feed the program bar by bar, where its framework and the executor can; None where they cannot."""
    if framework != "backtrader":
        return None
    try:
        fed = run_fed(executor, source, bars, terms_of(task), limits=limits)
    except SandboxError:
        return None
    return compare_fed(run, fed, bars.rows, config.rtol)
