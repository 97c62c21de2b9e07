"""Programs on frames, called on the rows so far before any child sees the whole table.

A vectorised program gets its whole table at once, and what it says about a row may depend on rows after it.
Called on the rows so far it cannot. So a child gets the rows a few at a time and answers where it is asked; only
then is the program called on all of them, which is the scored run. Where both say the same on every row, no
decision looks ahead; where they differ, the first such row is the proof. Short tables are asked about on every
row; long ones in the warm-up and on rows drawn from the run's secret. Afterwards another child, which never held a
later row either, is asked where the scored run changes a target: that can convict, and clears nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.code.backtrader import Backtest, BacktestJob
from tradeassay.code.bars import FIELDS
from tradeassay.code.checks import PASSED, Finding, failed
from tradeassay.code.frames import LIMITS, BadTargets, read_result, read_targets, sandbox_job
from tradeassay.code.harness.desk import frame_format, pack_rows
from tradeassay.code.harness.frames import ASKED, HEAD, NEW_TABLE, ROWS
from tradeassay.code.harness.wire import GROWING
from tradeassay.code.lookahead.grow import LeakRecord
from tradeassay.core.printable import printable
from tradeassay.core.view import Floats, Ints
from tradeassay.sandbox import CpuTimeout, FrameFeed, Job, JobExecutor, JobResult, WallTimeout
from tradeassay.sandbox.codec import Caps, ClaimHead, CodecError, decode
from tradeassay.sandbox.strategy import Scalar

_CAPS: Final = Caps(columns=64, rows=1 << 13, words=8, total=1 << 16)
_ROOM: Final = 60_000
"""Bytes of targets that an answer may hold: where they fit, a sampled row answers for all rows before it too."""
_CLOSE: Final = 1e-9
"""Targets that differ by less are one: libraries may round the last digit by the length of their input."""
_TOO_SLOW: Final = (CpuTimeout, WallTimeout)


class GrowthPlan(msgspec.Struct, frozen=True, kw_only=True):
    """On how many rows a program is asked. Up to ``every`` rows all of them; of more, the first ``warm_up``,
    ``drawn`` others and at most ``hinted`` of ``hints`` before it sees the whole table, and at most ``changes`` on
    which its target changes (and the row before each) afterwards. ``slower`` is how much more time all calls
    on one table may take than a single one.
    """

    every: int
    warm_up: int
    drawn: int
    changes: int
    slower: int = 3
    hinted: int = 0
    hints: tuple[int, ...] = ()

    def rows(self, rows: int, rng: np.random.Generator) -> Ints:
        """Return the rows to ask about before the whole table is shown, in order."""
        if rows <= self.every:
            return np.arange(rows, dtype=np.int64)
        drawn = rng.choice(rows, min(self.drawn, rows), replace=False)
        hints = np.array([row for row in self.hints if 0 <= row < rows], dtype=np.int64)
        if hints.size > self.hinted:
            hints = rng.choice(hints, self.hinted, replace=False)
        return np.unique(np.concatenate([np.arange(min(self.warm_up, rows)), drawn, hints])).astype(np.int64)

    def fewest_met(self, rows: int) -> int:
        """Return how many rows a leak must touch to be met by a drawn one in 95 of 100 secrets."""
        if rows <= self.every or self.drawn >= rows:
            return 1
        return int(np.ceil(np.log(0.05) / np.log1p(-self.drawn / rows)))


HOME: Final = GrowthPlan(every=1_000, warm_up=300, drawn=200, changes=100)
AWAY: Final = GrowthPlan(every=300, warm_up=120, drawn=40, changes=40)
"""On the home market, and on the other judged ones."""
REWARDED: Final = GrowthPlan(every=0, warm_up=0, drawn=10, changes=6, slower=1, hinted=54)
"""For a judged reward: where the reference's position changes, and on a few other rows."""
SHORT: Final = GrowthPlan(every=1_000, warm_up=0, drawn=60, changes=60)
"""Where nobody judges, on the first third or so of the home market."""


@dataclass(slots=True, kw_only=True)
class GrownRun:
    """A scored run, on the whole table, and what the program said before it. ``said`` are the targets up to every
    row that was asked about (the last, or all), or why there are none; ``ended`` why the answers stopped early.
    """

    job: BacktestJob
    run: Backtest
    said: dict[int, Floats | str] = field(default_factory=dict)
    ended: str = ""

    def difference(self) -> tuple[int | None, str, tuple[str, ...]]:
        """Return the first row on which the whole table and the rows so far differ, how, and what was tolerated:
        a program may break on fewer rows than it needs before its first position.
        """
        targets = self.run.targets
        assert targets is not None
        held = np.flatnonzero((targets != 0.0).any(axis=1))
        first = int(held[0]) if held.size else len(targets)
        early: tuple[str, ...] = ()
        for row, said in sorted(self.said.items()):
            if isinstance(said, str):
                if row >= first:
                    return row, f"with no rows after {row} it breaks: {said}", early
                early = (f"with {row + 1} rows, before its first position, it breaks: {said}",)
                continue
            start = row + 1 - len(said)
            gap = np.abs(said - targets[start : row + 1])
            if (gap > _CLOSE).any():
                place, asset = (int(at[0]) for at in np.nonzero(gap > _CLOSE))
                at = start + place
                after = "it" if at == row else str(row)
                name, whole = self.job.bars.assets[asset], targets[at, asset]
                text = (
                    f"on row {at} the target of asset {name} is {whole:g} with all rows "
                    f"and {said[place, asset]:g} with no rows after {after}"
                )
                return at, text, early
        return None, self.ended, early


def run_grown(
    executor: JobExecutor, jobs: Sequence[BacktestJob], plans: Sequence[tuple[GrowthPlan, np.random.Generator]]
) -> list[GrownRun]:
    """Call programs on growing tables, then on the whole ones; the same program on several by one child."""
    wanted = [plan.rows(job.bars.rows, rng) for job, (plan, rng) in zip(jobs, plans, strict=True)]
    asked: list[tuple[dict[int, Floats | str], str]] = []
    whole: list[JobResult] = []
    if len(jobs) > 1 and all(map(_whole_answers, jobs, wanted)):
        # One child grows on all tables, another sees all of them whole, and neither knows of the other.
        slower = plans[0][0].slower
        grown = executor.run(_grown_job(jobs, wanted, slower))
        asked = _answers(jobs, wanted, grown)
        if isinstance(grown.failure, _TOO_SLOW) or (not grown.answers and grown.failure is not None):
            # It is too slow, or did not get as far as its first call: nothing more is learned from whole tables.
            whole = [grown for _ in jobs]
        else:
            shown = executor.run(_grown_job(jobs, [np.array([job.bars.rows - 1]) for job in jobs], slower))
            whole = [shown for _ in jobs] if isinstance(shown.failure, _TOO_SLOW) else _apart(shown, len(jobs))
            whole = whole or list(executor.map(sandbox_job(job) for job in jobs))
    else:
        # A program that was asked on every row may be called on the whole table by the same child. Any other could
        # remember where it was asked, and look ahead everywhere else.
        sent = [
            _grown_job([job], [rows], plan.slower, whole=rows.size == job.bars.rows)
            for job, rows, (plan, _) in zip(jobs, wanted, plans, strict=True)
        ]
        for job, rows, result in zip(jobs, wanted, executor.map(sent), strict=True):
            asked += _answers([job], [rows], result)
            said, ended = asked[-1]
            # What broke while it grew may still run: that is another question, which the whole table answers.
            again = (ended or rows.size < job.bars.rows) and (said or not ended)
            whole.append(executor.run(sandbox_job(job)) if again else result)
    return [
        GrownRun(job=job, run=read_result(job, result), said=said, ended=ended)
        for job, (said, ended), result in zip(jobs, asked, whole, strict=True)
    ]


def _apart(result: JobResult, tables: int) -> list[JobResult]:
    """Return a result for each table of a child that saw them whole; none where something went wrong on one."""
    payloads = [payload for payload in result.answers if payload]
    if result.failure is not None or len(payloads) != tables:
        return []
    try:
        found = [decode(payload, _CAPS) for payload in payloads]
    except CodecError:
        return []
    part = msgspec.structs.replace(result.usage, cpu_s=result.usage.cpu_s / tables)
    made = [replace(result, columns=one, usage=part) for one in found if not isinstance(one, ClaimHead)]
    return made if len(made) == tables else []


def frame_lookahead(
    executor: JobExecutor, grown: Sequence[GrownRun], plans: Sequence[tuple[GrowthPlan, np.random.Generator]]
) -> tuple[Finding, LeakRecord]:
    """Compare what programs said before and after they saw the whole table; a difference convicts."""
    ran = [(one, plan, rng) for one, (plan, rng) in zip(grown, plans, strict=False) if one.run.targets is not None]
    asked, fewest, runs, notes = 0, 1, len(ran), list[str]()
    before = [len(one.said) for one, _, _ in ran]
    if not any(one.difference()[1] for one, _, _ in ran):
        # Ask where the scored runs change a target, in a fresh child that never holds a later row.
        open_ones = [one for one in ran if len(one[0].said) < one[0].job.bars.rows]
        more = [(one, rows) for one, plan, rng in open_ones if (rows := _changes(one, plan, rng)).size]
        runs += len(more)
        if more:
            jobs, wanted = [one.job for one, _ in more], [rows for _, rows in more]
            result = executor.run(_grown_job(jobs, wanted, min(plan.slower for _, plan, _ in ran)))
            for (one, _), (said, ended) in zip(more, _answers(jobs, wanted, result), strict=True):
                one.said, one.ended = one.said | said, ended
    for (one, plan, _), many in zip(ran, before, strict=True):
        row, reason, early = one.difference()
        asked += many
        fewest = max(fewest, plan.fewest_met(one.job.bars.rows))
        notes += [f"{one.job.bars.name}: {note}" for note in early]
        if reason:
            reason, told = f"{one.job.bars.name}: {reason}", tuple(notes)
            found = LeakRecord(verdict="leaky", reason=reason, runs=runs, bars=asked, fed="differs", notes=told)
            return failed(reason, "look_ahead" if row is not None else "fails_on_prefixes"), found
    total = sum(one.job.bars.rows for one, _, _ in ran)
    notes.append(f"{asked} of {total} rows on {len(ran)} markets were asked about before any later row was shown")
    reason, fed = "called on the rows so far it decides the same on every row of every market", asked == total
    if not fed:
        same = "called on the rows so far it decides the same on every row that was tried"
        reason = f"{same}; a leak that acts on fewer than {fewest} rows is not excluded"
    record = LeakRecord(verdict="clean", reason=reason, runs=runs, bars=asked, notes=tuple(notes))
    return PASSED, msgspec.structs.replace(record, fed="same") if fed else record


def _changes(one: GrownRun, plan: GrowthPlan, rng: np.random.Generator) -> Ints:
    """Return rows on which the scored run changes a target, and those before; such as were not asked about.

    Where the reference is known, changes that are filled after its first decision come first: what changes without
    an order, or before anything is judged, could be there to hide another.
    """
    targets = one.run.targets
    assert targets is not None
    changed = np.flatnonzero((targets[1:] != targets[:-1]).any(axis=1)) + 1
    asked = np.array([row for row, said in one.said.items() if not isinstance(said, str)], dtype=np.int64)
    changed = changed[~(np.isin(changed, asked) & np.isin(changed - 1, asked))]
    if changed.size > plan.changes:
        changed = rng.choice(changed, changed.size if plan.hints else plan.changes, replace=False)
        counts = np.isin(changed, [fill.bar - 1 for fill in one.run.fills])
        counts &= changed >= min(plan.hints, default=0)
        changed = changed[np.argsort(~counts, kind="stable")][: plan.changes]
    return np.setdiff1d(np.concatenate([changed, changed - 1]), asked)


def _grown_job(jobs: Sequence[BacktestJob], wanted: Sequence[Ints], slower: int, *, whole: bool = False) -> Job:
    """Return the job: of every table the rows up to the last wanted one in the feed, each wanted one ending a
    frame; ``whole`` adds a call on the whole of an only table.
    """
    job, single = jobs[0], len(jobs[0].bars.assets) == 1
    tables: list[dict[str, NDArray[Any]]] = [
        {name: next(iter(one.bars.feeds.values()))[name] for name in FIELDS} if single else one.bars.columns()
        for one in jobs
    ]
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
        "bars": max(one.bars.rows for one in jobs),
        "most": most,
        "all": all(map(_whole_answers, jobs, wanted)),
        "whole": whole,
        "pass_as": "frame" if single else "frames",
    }
    feed = FrameFeed(frames=bytes(frames), size=HEAD.size + most * size)
    longer = msgspec.structs.replace(limits, cpu_s=limits.cpu_s * slower, wall_s=limits.wall_s * slower)
    return Job(source=job.source, harness=GROWING, params=params, feed=feed, limits=longer, seed=job.seed)


def _whole_answers(job: BacktestJob, wanted: Ints) -> bool:
    """Return whether answers hold all targets so far: not where every row answers for itself."""
    return wanted.size < job.bars.rows and job.bars.rows * len(job.bars.assets) * 8 <= _ROOM


def _most(wanted: Sequence[Ints]) -> int:
    """Return how many rows the frames of these tables hold at most."""
    return max(1, *(-(-(int(rows[-1]) + 1) // len(rows)) for rows in wanted))


def _ends(wanted: Ints, most: int) -> Ints:
    """Return the last row of every frame of a table, with at most so many rows in one."""
    last = int(wanted[-1]) + 1
    return np.unique(np.concatenate([wanted, np.arange(most - 1, last, most)])).astype(np.int64)


def _answers(
    jobs: Sequence[BacktestJob], wanted: Sequence[Ints], result: JobResult
) -> list[tuple[dict[int, Floats | str], str]]:
    """Return for every table what was said, by row, and why the answers stopped early."""
    left, found, most = list(result.answers), [], _most(wanted)
    every = all(map(_whole_answers, jobs, wanted))
    for job, rows in zip(jobs, wanted, strict=True):
        ends = _ends(rows, most)
        payloads, left = dict(zip(ends.tolist(), left, strict=False)), left[len(ends) :]
        said = {row: _targets(payloads[row], row, job, every) for row in rows.tolist() if row in payloads}
        ended = ""
        if len(said) < len(rows):
            why = result.failure.text if result.failure is not None else "it stopped answering"
            ended = f"called on the rows so far it ends after {max(payloads, default=-1) + 1} rows: {why}"
        found.append((said, ended))
    return found


def _targets(payload: bytes, row: int, job: BacktestJob, every: bool) -> Floats | str:
    try:
        message = decode(payload, _CAPS)
        if isinstance(message, ClaimHead):
            return printable(f"{message.error}: {message.message}"[:300])
        found = dict(message)
        if every:
            return read_targets(found, row + 1, job.bars.assets)
        rows = found.pop(ROWS, None)
        if rows is None or rows.dtype.kind != "i" or rows.tolist() != [row + 1]:
            return "it does not return one target per row"
        return read_targets(found, 1, job.bars.assets)
    except (CodecError, BadTargets) as error:
        return str(error)
