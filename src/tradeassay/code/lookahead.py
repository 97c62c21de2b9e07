"""Does any decision of a program depend on bars that come after it? The one wrapper around the leak check.

A Backtrader program that was fed needs no check, and programs on frames are grown on every judged market. A
submission that cannot be checked through its own fault (two equal runs differ, it breaks on most prefixes, it is
too slow) has failed; where the data is too short the check is undecided. A submission is replayed on its
micro-scenarios at every bar, by a child that never holds a bar that it has not answered for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from tradeassay.code.bars import TaskBars
from tradeassay.code.checks import (
    PASSED,
    Exhibit,
    Finding,
    Measures,
    convicted,
    failed,
    not_run,
    passed,
)
from tradeassay.code.growing import AWAY, HOME, Growth, GrowthPlan, choose_rows, grow
from tradeassay.code.leak import LeakConfig, LeakRecord, RunFailure, Trace, check_leaks
from tradeassay.code.leak.report import WholeSeries
from tradeassay.code.leak.source_rules import source_advice
from tradeassay.code.leak.trace import Columns, first_difference
from tradeassay.code.submission import SubmissionRun, SubmissionRunner
from tradeassay.code.task import CodeTask
from tradeassay.core.draws import seed_from
from tradeassay.core.view import Floats
from tradeassay.sandbox import JobExecutor, JobLimits

BRIEF: Final = LeakConfig(warm_up_cuts=2, change_cuts=4, random_cuts=2, perturbations=1, splice_runs=1)
"""The check for a program that raised no suspicion. One that read whole lines or later bars gets the full one."""

REPLAY_BARS: Final = 400
"""Micro-scenarios up to this length are replayed at every bar."""

NOT_CLEARED: Final = "not_cleared"
"""The class of a finding that is neither passed nor failed: look-ahead could not be excluded nor shown."""

SCORED_FED: Final = (
    "its orders were taken bar by bar, before the next bar left the host: none can depend on a later one"
)
_PROVEN: Final = "called on the rows so far it decides the same on every row of every market"
POINTERS: Final = frozenset({"future-index", "preloaded-array", "cheat-timer"})
"""Tricks that point to later bars; whether they were used is for a check to prove."""


def cannot_be_excluded(record: LeakRecord) -> str:
    """Return the failure reason for a program that made the check impossible."""
    return f"look-ahead cannot be excluded: {record.reason}"


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
        record = check_leaks(
            runner,
            columns,
            config,
            seed=seed,
            scored=scored.trades.trace(share=runner.shares(scored.trades, columns)),
            deterministic=True,
            suspects=suspects,
        ).record
        bars = sum(_bars(pair[0]) for pair in short.values())
        found = _submission_finding(record, bars)
    return msgspec.structs.replace(found, advice=advice)


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


def frame_lookahead(
    executor: JobExecutor,
    task: CodeTask,
    source: str,
    markets: Sequence[tuple[TaskBars, Floats | None]],
    secret: str,
    *,
    limits: JobLimits | None = None,
    home: GrowthPlan = HOME,
) -> tuple[Finding, LeakRecord]:
    """Grow a program on every market on which it ran, by the plan ``home`` on the first; a difference convicts."""
    grown: list[tuple[str, Growth]] = []
    fewest = 1
    for number, (bars, targets) in enumerate(markets):
        if targets is None:
            continue
        rng = np.random.default_rng(seed_from(secret, "growing", task.id, number))
        plan = AWAY if number else home
        wanted = choose_rows(targets, plan, rng)
        found = grow(executor, source, bars, targets, wanted, limits=limits)
        grown.append((bars.name, found))
        if not found.same:
            break
        fewest = max(fewest, 1 if found.proven else fewest_met(plan, bars.rows))
    return _finding(grown, fewest)


def _finding(grown: Sequence[tuple[str, Growth]], fewest: int) -> tuple[Finding, LeakRecord]:
    name, last = grown[-1]
    asked, rows = sum(one.asked for _, one in grown), sum(one.rows for _, one in grown)
    notes = tuple(f"{market}: {note}" for market, one in grown for note in one.notes)
    notes += (f"{asked} of {rows} rows on {len(grown)} markets were asked about with no later row at hand",)
    if not last.same:
        reason = f"{name}: {last.reason}"
        record = LeakRecord(
            verdict="leaky", reason=reason, runs=len(grown), bars=asked, fed="differs", notes=notes
        )
        return failed(reason, "look_ahead" if last.row is not None else "fails_on_prefixes"), record
    proven = all(one.proven for _, one in grown)
    reason = (
        _PROVEN
        if proven
        else (
            "called on the rows so far it decides the same on every row that was tried; "
            f"a leak that acts on fewer than {fewest} rows is not excluded"
        )
    )
    record = LeakRecord(
        verdict="clean", reason=reason, runs=len(grown), bars=asked, fed="same" if proven else "", notes=notes
    )
    return PASSED, record


def fewest_met(plan: GrowthPlan, rows: int) -> int:
    """Return how many rows a leak must touch, wherever they lie, to be met by a drawn one in 95 of 100 secrets.

    Rows of the warm-up, and those on which a target changes, are asked about too, but a leak can do without them.
    """
    return int(np.ceil(np.log(0.05) / np.log1p(-plan.drawn / rows))) if plan.drawn < rows else 1
