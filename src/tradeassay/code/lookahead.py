"""Does any decision of a program depend on bars that come after it? The one wrapper around the leak check.

A program that cannot be checked through its own fault (two equal runs differ, it breaks on most prefixes, it is
too slow) has failed; where the data is too short the check is undecided. Cuts follow from the source alone: the
same program, the same check. A Backtrader program is fed bar by bar first: the same decisions are a proof, and
nothing more is needed; otherwise the full check follows, which tries the first bar on which they part before
all others. A submission is replayed on its micro-scenarios at every bar, by a child that never holds a bar that
it has not answered for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from tradeassay.code.backtrader import Backtest
from tradeassay.code.backtrader.account import terms_of
from tradeassay.code.backtrader.fed import FedVerdict, compare_fed, run_fed
from tradeassay.code.bars import TaskBars
from tradeassay.code.checks import (
    PASSED,
    Exhibit,
    Finding,
    Measures,
    convicted,
    failed,
    not_run,
    not_scored,
    passed,
)
from tradeassay.code.leak import LeakConfig, LeakRecord, RunFailure, Trace, check_leaks
from tradeassay.code.leak.report import WholeSeries
from tradeassay.code.leak.source_rules import source_advice
from tradeassay.code.leak.trace import Columns, first_difference
from tradeassay.code.running import leak_subject
from tradeassay.code.submission import SubmissionRun, SubmissionRunner
from tradeassay.code.task import CodeTask, Framework
from tradeassay.core.errors import SandboxError
from tradeassay.core.hashing import sha256_bytes
from tradeassay.sandbox import JobExecutor, JobLimits

BRIEF: Final = LeakConfig(warm_up_cuts=2, change_cuts=4, random_cuts=2, perturbations=1, splice_runs=1)
"""The check for a program that raised no suspicion. One that read whole lines or later bars gets the full one."""

REPLAY_BARS: Final = 400
"""Micro-scenarios up to this length are replayed at every bar."""

NOT_CLEARED: Final = "not_cleared"
"""The class of a finding that is neither passed nor failed: look-ahead could not be excluded nor shown."""

_PROOF: Final = "fed bar by bar it decides the same on every bar: no decision can depend on a later one"
POINTERS: Final = frozenset({"future-index", "preloaded-array", "cheat-timer"})
"""Tricks that point to later bars; whether they were used is for a check to prove."""


def seed_of_source(source: str) -> int:
    """Return the seed for other futures that was used before runs had secrets."""
    return int(sha256_bytes(source.encode("utf-8", "surrogatepass"))[:8], 16)


def cannot_be_excluded(record: LeakRecord) -> str:
    """Return the failure reason for a program that made the check impossible."""
    return f"look-ahead cannot be excluded: {record.reason}"


def program_lookahead(
    executor: JobExecutor,
    task: CodeTask,
    source: str,
    bars: TaskBars,
    run: Backtest,
    framework: Framework,
    config: LeakConfig,
    limits: JobLimits | None = None,
) -> tuple[Finding, LeakRecord]:
    """Check a program of a task; returns the finding and its record."""
    pointers = [trick for trick in run.tricks if trick.name in POINTERS]
    fed = _fed(executor, task, source, bars, run, config, limits) if framework == "backtrader" else None
    if fed is not None and fed.proven:
        return PASSED, LeakRecord(verdict="clean", reason=_PROOF, runs=1, bars=bars.rows, fed="same")
    thorough = bool(pointers) or fed is not None
    record = check_leaks(
        leak_subject(executor, task, source, bars, framework, limits),
        bars.columns(),
        LeakConfig() if thorough else config,
        seed=seed_of_source(source),
        scored=run.trace(),
        suspects=() if fed is None or fed.suspect is None else (fed.suspect,),
    ).record
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
    return failed(cannot_be_excluded(record), record.cause or "not_checked"), record


def submission_lookahead(
    runner: SubmissionRunner,
    columns: Columns,
    scored: SubmissionRun,
    scenarios: Mapping[str, tuple[Columns, SubmissionRun]],
    config: LeakConfig,
    *,
    seed: int,
    suspects: Sequence[int] = (),
) -> Finding:
    """Check a submission, and replay it on ``scenarios`` unless every bar of the scored series is tried anyway.

    What the source shows is advice, not a verdict. ``suspects`` are bars to try first.
    """
    assert scored.trades is not None
    advice = tuple(
        Exhibit(code="source_rule", text=found.text, line=found.line) for found in source_advice(runner.source)
    )
    whole = isinstance(config.whole, WholeSeries) and _bars(columns) <= config.whole.every_bar
    short = {} if whole else {name: pair for name, pair in scenarios.items() if _bars(pair[0]) <= REPLAY_BARS}
    replayed = _replay(runner, short) if short else ()
    if replayed:
        found = convicted(replayed, {"scenarios": len(short)})
    else:
        share = runner.shares(scored.trades, columns) if runner.strict else None
        record = check_leaks(
            runner,
            columns,
            config,
            seed=seed,
            scored=scored.trades.trace(share=share),
            deterministic=True,
            suspects=suspects,
        ).record
        bars = sum(_bars(pair[0]) for pair in short.values())
        found = _submission_finding(record, bars)
    return msgspec.structs.replace(found, advice=advice)


def _fed(
    executor: JobExecutor,
    task: CodeTask,
    source: str,
    bars: TaskBars,
    run: Backtest,
    config: LeakConfig,
    limits: JobLimits | None,
) -> FedVerdict | None:
    """Feed the program bar by bar, where the executor can; None where it cannot."""
    try:
        fed = run_fed(executor, source, bars, terms_of(task), limits=limits)
    except SandboxError:
        return None
    return compare_fed(run, fed, bars.rows, config.rtol)


def _submission_finding(record: LeakRecord, replayed_bars: int) -> Finding:
    measures: Measures = {
        "runs": record.runs,
        "cuts": len(record.cuts),
        "screened": record.screened,
        "replayed_bars": replayed_bars,
    }
    if record.cleared is not msgspec.UNSET and record.bound is not msgspec.UNSET:
        measures |= {"cleared_bars": record.cleared, "not_excluded_below_bars": record.bound}
    if record.verdict == "not_cleared":
        return Finding(
            status="not_scored", reason=f"not cleared: {record.reason}", error_class=NOT_CLEARED, measures=measures
        )
    if record.verdict == "leaky":
        found = [
            Exhibit(code=one.method.replace(" ", "_"), text=one.text, bar=one.row, where="scored bars")
            for one in record.evidence
        ]
        return convicted(found, measures)
    if record.verdict == "clean":
        return passed(record.reason, measures)
    if record.cause == "too_short":
        return not_run(record.reason)
    return convicted([Exhibit(code=record.cause or "not_checked", text=cannot_be_excluded(record))], measures)


def _replay(
    runner: SubmissionRunner, scenarios: Mapping[str, tuple[Columns, SubmissionRun]]
) -> tuple[Exhibit, ...]:
    """Compare each scenario's run with its bar-by-bar replay: rows strictly before the last of every prefix."""
    replays = runner.replays([columns for columns, _ in scenarios.values()])
    found: list[Exhibit] = []
    for (name, (columns, run)), (prefixes, failure) in zip(scenarios.items(), replays, strict=True):
        assert run.trades is not None
        one = _first_leak(name, run.trades.trace(), prefixes)
        if one is not None:
            found.append(one)
        elif failure is not None or len(prefixes) < _bars(columns):
            why = failure.text if failure is not None else "it stopped answering"
            text = f"scenario {name}: the replay ended after {len(prefixes)} bars: {why}"
            found.append(Exhibit(code="replay_failed", text=text, where=f"scenario {name}"))
    return tuple(found)


def _first_leak(name: str, scored: Trace, prefixes: Sequence[Trace | RunFailure]) -> Exhibit | None:
    where = f"scenario {name}"
    failures = [outcome for outcome in prefixes if isinstance(outcome, RunFailure)]
    for last, outcome in enumerate(prefixes):
        if isinstance(outcome, RunFailure):
            continue
        difference = first_difference(scored, outcome, last, 1e-9)
        if difference is not None:
            row, whole, part = difference
            text = (
                f"{where}, replay: on bar {row} the whole run decides {whole}; "
                f"with no bars after {last} it decides {part}"
            )
            return Exhibit(code="replay", text=text, bar=row, where=where)
    if prefixes and len(failures) > len(prefixes) // 2:
        text = f"{where}: it fails on {len(failures)} of {len(prefixes)} prefixes: {failures[-1].text}"
        return Exhibit(code="fails_on_prefixes", text=text, where=where)
    return None


def _bars(columns: Columns) -> int:
    return len(next(iter(columns.values())))
