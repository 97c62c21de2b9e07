"""Test programs on frames for look-ahead, by calling them on growing frames before any child sees
the whole table.

A vectorised program gets its whole table at once, so its target on a row may depend on later rows.
A call on the rows so far cannot. A child therefore gets the rows a few at a time, and answers on
some of them. Only then is the program called on the whole table, which is the scored run. If both
give the same targets on every row, no decision looks ahead. If they differ, the first such row is
the proof.

A short table is tested on every row. A longer table is tested in the warm-up and on rows drawn from
the run's secret. Afterwards another child, which never gets a later row either, is tested on rows
where the scored run changes a target. This test can convict a program and never clear it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.core.arrays import Floats, Ints
from tradeassay.core.printable import printable
from tradeassay_programs.code.backtrader import Backtest, BacktestJob
from tradeassay_programs.code.bars import FIELDS
from tradeassay_programs.code.checks import PASSED, Finding, failed
from tradeassay_programs.code.frames import (
    LIMITS,
    BadTargets,
    read_result,
    read_targets,
    sandbox_job,
)
from tradeassay_programs.code.harness.frames import (
    ASKED,
    HEAD,
    NEW_TABLE,
    ROWS,
    frame_format,
    pack_rows,
)
from tradeassay_programs.code.harness.wire import GROWING
from tradeassay_programs.code.lookahead.grow import LeakRecord
from tradeassay_programs.sandbox import (
    CpuTimeout,
    FrameFeed,
    Job,
    JobExecutor,
    JobResult,
    WallTimeout,
)
from tradeassay_programs.sandbox.codec import Caps, ClaimHead, CodecError, decode
from tradeassay_programs.sandbox.strategy import Scalar

_CAPS: Final = Caps(columns=64, rows=1 << 13, words=8, total=1 << 16)
_ROOM: Final = 60_000
"""Maximum size of an answer in bytes.

If all targets so far fit, the answer on a row also contains the targets of earlier rows.
"""
_CLOSE: Final = 1e-9
"""Maximum difference between equal targets.

Libraries may round the last digit depending on the length of their input.
"""
_TOO_SLOW: Final = (CpuTimeout, WallTimeout)


class GrowthPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The rows on which a program is tested.

    - Tables of up to ``every`` rows are tested on every row.
    - Longer tables are tested on the first ``warm_up`` rows, on ``drawn`` random rows, and on at
      most ``hinted`` rows of ``hints``, before the program sees the whole table.
    - Afterwards they are tested on at most ``changes`` rows where the target changes, and on the
      row before each.

    ``slower`` is the permitted ratio of the time of all calls on one table to the time of a single
    call.
    """

    every: int
    warm_up: int
    drawn: int
    changes: int
    slower: int = 3
    hinted: int = 0
    hints: tuple[int, ...] = ()

    def rows(self, rows: int, rng: np.random.Generator) -> Ints:
        """Return the rows to test before the whole table is shown, in order."""
        if rows <= self.every:
            return np.arange(rows, dtype=np.int64)
        drawn = rng.choice(rows, min(self.drawn, rows), replace=False)
        hints = np.array([row for row in self.hints if 0 <= row < rows], dtype=np.int64)
        if hints.size > self.hinted:
            hints = rng.choice(hints, self.hinted, replace=False)
        return np.unique(np.concatenate([np.arange(min(self.warm_up, rows)), drawn, hints])).astype(
            np.int64
        )

    def fewest_met(self, rows: int) -> int:
        """Return the number of rows that a leak must affect for a detection by 95 % of secrets."""
        if rows <= self.every or self.drawn >= rows:
            return 1
        return int(np.ceil(np.log(0.05) / np.log1p(-self.drawn / rows)))


HOME: Final = GrowthPlan(every=1_000, warm_up=300, drawn=200, changes=100)
AWAY: Final = GrowthPlan(every=300, warm_up=120, drawn=40, changes=40)
"""The plans for the home market and for the other judged markets."""
REWARDED: Final = GrowthPlan(every=0, warm_up=0, drawn=10, changes=6, slower=1, hinted=54)
"""The plan for a judged reward: rows where the reference's position changes, and a few others."""
SHORT: Final = GrowthPlan(every=1_000, warm_up=0, drawn=60, changes=60)
"""The plan for a run without a judge, on the first part of the home market."""


@dataclass(slots=True, kw_only=True)
class GrownRun:
    """A scored run on the whole table, and the program's earlier answers.

    ``answers`` contains, for each tested row, the last target or all targets up to it, or the
    failure. ``ended`` is the reason if the answers stopped early.
    """

    job: BacktestJob
    run: Backtest
    answers: dict[int, Floats | str] = field(default_factory=dict)
    ended: str = ""

    def difference(self) -> tuple[int | None, str, tuple[str, ...]]:
        """Return the first row with different targets, the difference, and tolerated failures.

        The scored run is compared with the answers. A program may fail on fewer rows than it needs,
        before its first position.
        """
        targets = self.run.targets
        assert targets is not None
        held = np.flatnonzero((targets != 0.0).any(axis=1))
        first = int(held[0]) if held.size else len(targets)
        early: tuple[str, ...] = ()
        for row, answer in sorted(self.answers.items()):
            if isinstance(answer, str):
                if row >= first:
                    return row, f"with no rows after {row} it breaks: {answer}", early
                early = (f"with {row + 1} rows, before its first position, it breaks: {answer}",)
                continue
            start = row + 1 - len(answer)
            differs = np.abs(answer - targets[start : row + 1]) > _CLOSE
            if differs.any():
                place, asset = (int(at[0]) for at in np.nonzero(differs))
                at = start + place
                after = "it" if at == row else str(row)
                name, whole = self.job.bars.assets[asset], targets[at, asset]
                text = (
                    f"on row {at} the target of asset {name} is {whole:g} with all rows "
                    f"and {answer[place, asset]:g} with no rows after {after}"
                )
                return at, text, early
        return None, self.ended, early


def run_grown(
    executor: JobExecutor,
    jobs: Sequence[BacktestJob],
    plans: Sequence[tuple[GrowthPlan, np.random.Generator]],
) -> list[GrownRun]:
    """Return the runs of programs on growing tables, then on whole tables.

    One child process runs all tables of one program.
    """
    wanted = [plan.rows(job.bars.rows, rng) for job, (plan, rng) in zip(jobs, plans, strict=True)]
    answered: list[tuple[dict[int, Floats | str], str]] = []
    whole: list[JobResult] = []
    if len(jobs) > 1 and all(map(_whole_answers, jobs, wanted)):
        # One child gets growing tables, and another child gets all of them whole. Neither knows of
        # the other.
        slower = plans[0][0].slower
        grown = executor.run(_grown_job(jobs, wanted, slower))
        answered = _answers(jobs, wanted, grown)
        no_answer = not grown.answers and grown.failure is not None
        if isinstance(grown.failure, _TOO_SLOW) or no_answer:
            # The program is too slow, or failed before its first call. A run on whole tables would
            # not help.
            whole = [grown for _ in jobs]
        else:
            last_rows = [np.array([job.bars.rows - 1]) for job in jobs]
            shown = executor.run(_grown_job(jobs, last_rows, slower))
            if isinstance(shown.failure, _TOO_SLOW):
                whole = [shown for _ in jobs]
            else:
                whole = _split_by_table(shown, len(jobs))
            # If one table failed, each table gets a separate child.
            whole = whole or list(executor.map(sandbox_job(job) for job in jobs))
    else:
        # A program that was tested on every row may be called on the whole table by the same child.
        # Any other program could remember where it was tested, and look ahead everywhere else.
        sent = [
            _grown_job([job], [rows], plan.slower, whole=rows.size == job.bars.rows)
            for job, rows, (plan, _) in zip(jobs, wanted, plans, strict=True)
        ]
        for job, rows, result in zip(jobs, wanted, executor.map(sent), strict=True):
            answered += _answers([job], [rows], result)
            answers, ended = answered[-1]
            # A program that failed on growing tables may still run on the whole one.
            again = (ended or rows.size < job.bars.rows) and (answers or not ended)
            whole.append(executor.run(sandbox_job(job)) if again else result)
    return [
        GrownRun(job=job, run=read_result(job, result), answers=answers, ended=ended)
        for job, (answers, ended), result in zip(jobs, answered, whole, strict=True)
    ]


def _split_by_table(result: JobResult, tables: int) -> list[JobResult]:
    """Return a result for each table of a child that saw several whole tables.

    The list is empty if one of the tables failed.
    """
    payloads = [payload for payload in result.answers if payload]
    if result.failure is not None or len(payloads) != tables:
        return []
    usage = msgspec.structs.replace(result.usage, cpu_s=result.usage.cpu_s / tables)
    results = []
    for payload in payloads:
        try:
            columns = decode(payload, _CAPS)
        except CodecError:
            return []
        if isinstance(columns, ClaimHead):
            return []
        results.append(replace(result, columns=columns, usage=usage))
    return results


def frame_lookahead(
    executor: JobExecutor,
    grown: Sequence[GrownRun],
    plans: Sequence[tuple[GrowthPlan, np.random.Generator]],
) -> tuple[Finding, LeakRecord]:
    """Return the finding of the look-ahead check on frames, and its record.

    The programs' answers before and after they saw the whole table are compared. A difference
    convicts.
    """
    finished = [
        (growth, plan, rng)
        for growth, (plan, rng) in zip(grown, plans, strict=False)
        if growth.run.targets is not None
    ]
    tested, fewest, runs, notes = 0, 1, len(finished), list[str]()
    # Rows that are tested after the scored run do not count, because they cannot clear a program.
    counts_before = [len(growth.answers) for growth, _, _ in finished]
    if not any(growth.difference()[1] for growth, _, _ in finished):
        runs += _probe_changes(executor, finished)
    for (growth, plan, _), count in zip(finished, counts_before, strict=True):
        row, reason, early = growth.difference()
        tested += count
        fewest = max(fewest, plan.fewest_met(growth.job.bars.rows))
        notes += [f"{growth.job.bars.name}: {note}" for note in early]
        if reason:
            reason = f"{growth.job.bars.name}: {reason}"
            leaky = LeakRecord(
                verdict="leaky",
                reason=reason,
                runs=runs,
                bars=tested,
                fed="differs",
                notes=tuple(notes),
            )
            return failed(reason, "look_ahead" if row is not None else "fails_on_prefixes"), leaky
    total = sum(growth.job.bars.rows for growth, _, _ in finished)
    notes.append(
        f"{tested} of {total} rows on {len(finished)} markets were asked about before any later "
        "row was shown"
    )
    everywhere = tested == total
    reason = "called on the rows so far it decides the same on every row of every market"
    if not everywhere:
        same = "called on the rows so far it decides the same on every row that was tried"
        reason = f"{same}; a leak that acts on fewer than {fewest} rows is not excluded"
    record = LeakRecord(verdict="clean", reason=reason, runs=runs, bars=tested, notes=tuple(notes))
    return PASSED, msgspec.structs.replace(record, fed="same") if everywhere else record


def _probe_changes(
    executor: JobExecutor,
    finished: Sequence[tuple[GrownRun, GrowthPlan, np.random.Generator]],
) -> int:
    """Test rows where the scored runs change a target, in a fresh child that never gets a later
    row.

    The answers are added to the runs. Returns the number of tested runs.
    """
    probed: list[tuple[GrownRun, Ints]] = []
    for growth, plan, rng in finished:
        if len(growth.answers) < growth.job.bars.rows:
            rows = _changes(growth, plan, rng)
            if rows.size:
                probed.append((growth, rows))
    if not probed:
        return 0
    jobs = [growth.job for growth, _ in probed]
    wanted = [rows for _, rows in probed]
    slower = min(plan.slower for _, plan, _ in finished)
    result = executor.run(_grown_job(jobs, wanted, slower))
    answered = _answers(jobs, wanted, result)
    for (growth, _), (answers, ended) in zip(probed, answered, strict=True):
        growth.answers |= answers
        growth.ended = ended
    return len(probed)


def _changes(growth: GrownRun, plan: GrowthPlan, rng: np.random.Generator) -> Ints:
    """Return untested rows on which the scored run changes a target, and the rows before them.

    If the reference is known, changes that are filled after its first decision come first. A change
    without an order, or before the judged part, could be there to hide another change.
    """
    targets = growth.run.targets
    assert targets is not None
    changed = np.flatnonzero((targets[1:] != targets[:-1]).any(axis=1)) + 1
    tested = np.array(
        [row for row, answer in growth.answers.items() if not isinstance(answer, str)],
        dtype=np.int64,
    )
    changed = changed[~(np.isin(changed, tested) & np.isin(changed - 1, tested))]
    if changed.size > plan.changes:
        changed = rng.choice(changed, changed.size if plan.hints else plan.changes, replace=False)
        preferred = np.isin(changed, [fill.bar - 1 for fill in growth.run.fills])
        preferred &= changed >= min(plan.hints, default=0)
        changed = changed[np.argsort(~preferred, kind="stable")][: plan.changes]
    return np.setdiff1d(np.concatenate([changed, changed - 1]), tested)


def _grown_job(
    jobs: Sequence[BacktestJob], wanted: Sequence[Ints], slower: int, *, whole: bool = False
) -> Job:
    """Return the job that feeds growing tables to a program.

    The feed contains the rows of every table up to its last wanted row, and each wanted row ends a
    frame. ``whole`` adds a call on the whole table, if there is only one.
    """
    job, single = jobs[0], len(jobs[0].bars.assets) == 1
    tables: list[dict[str, NDArray[Any]]] = []
    for each in jobs:
        if single:
            (feed_columns,) = each.bars.feeds.values()
            tables.append({name: feed_columns[name] for name in FIELDS})
        else:
            tables.append(each.bars.columns())
    form, most = frame_format(tables[0]), _most(wanted)
    size, frames = struct.calcsize(form), bytearray()
    for number, (columns, rows) in enumerate(zip(tables, wanted, strict=True)):
        packed, asked, start = pack_rows(columns), frozenset(rows.tolist()), 0
        for end in _ends(rows, most).tolist():
            new = NEW_TABLE if number and not start else 0
            frames += HEAD.pack(end + 1 - start, (ASKED if end in asked else 0) | new)
            frames += packed[start * size : (end + 1) * size].ljust(most * size, b"\0")
            start = end + 1
    limits, slower = job.limits or LIMITS, slower * len(jobs)
    params: dict[str, Scalar] = {
        "columns": "\n".join(tables[0]),
        "format": form,
        "bars": max(each.bars.rows for each in jobs),
        "most": most,
        "all": all(map(_whole_answers, jobs, wanted)),
        "whole": whole,
        "pass_as": "frame" if single else "frames",
    }
    feed = FrameFeed(frames=bytes(frames), size=HEAD.size + most * size)
    longer = msgspec.structs.replace(
        limits, cpu_s=limits.cpu_s * slower, wall_s=limits.wall_s * slower
    )
    return Job(
        source=job.source, harness=GROWING, params=params, feed=feed, limits=longer, seed=job.seed
    )


def _whole_answers(job: BacktestJob, wanted: Ints) -> bool:
    """Return whether an answer contains all targets so far.

    It does if not every row is tested and the targets fit.
    """
    return wanted.size < job.bars.rows and job.bars.rows * len(job.bars.assets) * 8 <= _ROOM


def _most(wanted: Sequence[Ints]) -> int:
    """Return the largest number of rows in a frame of these tables."""
    return max(1, *(-(-(int(rows[-1]) + 1) // len(rows)) for rows in wanted))


def _ends(wanted: Ints, most: int) -> Ints:
    """Return the last row of every frame of a table, with at most ``most`` rows in a frame."""
    last = int(wanted[-1]) + 1
    return np.unique(np.concatenate([wanted, np.arange(most - 1, last, most)])).astype(np.int64)


def _answers(
    jobs: Sequence[BacktestJob], wanted: Sequence[Ints], result: JobResult
) -> list[tuple[dict[int, Floats | str], str]]:
    """Return the answers of every table by row, and the reason if they stopped early."""
    left, answered, most = list(result.answers), [], _most(wanted)
    whole = all(map(_whole_answers, jobs, wanted))
    for job, rows in zip(jobs, wanted, strict=True):
        ends = _ends(rows, most)
        payloads, left = dict(zip(ends.tolist(), left, strict=False)), left[len(ends) :]
        answers = {
            row: _targets(payloads[row], row, job, whole)
            for row in rows.tolist()
            if row in payloads
        }
        ended = ""
        if len(answers) < len(rows):
            reason = result.failure.text if result.failure is not None else "it stopped answering"
            rows_seen = max(payloads, default=-1) + 1
            ended = f"called on the rows so far it ends after {rows_seen} rows: {reason}"
        answered.append((answers, ended))
    return answered


def _targets(payload: bytes, row: int, job: BacktestJob, whole: bool) -> Floats | str:
    """Return the targets in an answer, or the failure.

    ``whole`` answers contain all targets up to the row.
    """
    try:
        message = decode(payload, _CAPS)
        if isinstance(message, ClaimHead):
            return printable(f"{message.error}: {message.message}"[:300])
        columns = dict(message)
        if whole:
            return read_targets(columns, row + 1, job.bars.assets)
        rows = columns.pop(ROWS, None)
        if rows is None or rows.dtype.kind != "i" or rows.tolist() != [row + 1]:
            return "it does not return one target per row"
        return read_targets(columns, 1, job.bars.assets)
    except (CodecError, BadTargets) as error:
        return str(error)
