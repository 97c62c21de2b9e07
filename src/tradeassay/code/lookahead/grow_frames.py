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
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.code.backtrader import Backtest, BacktestJob
from tradeassay.code.bars import FIELDS
from tradeassay.code.checks import PASSED, Finding, failed
from tradeassay.code.frames import LIMITS, BadTargets, read_targets, read_with_targets, sandbox_job
from tradeassay.code.harness.desk import frame_format, pack_rows
from tradeassay.code.harness.frames import HEAD, ROWS
from tradeassay.code.harness.wire import GROWING
from tradeassay.code.lookahead.grow import LeakRecord
from tradeassay.core.view import Floats, Ints
from tradeassay.sandbox import FrameFeed, Job, JobExecutor, JobResult
from tradeassay.sandbox.codec import Caps, ClaimHead, CodecError, decode
from tradeassay.sandbox.failures import plain_line

_CAPS: Final = Caps(columns=64, rows=1 << 13, words=8, total=1 << 16)
_ROOM: Final = 60_000
"""Bytes of targets that an answer may hold: where they fit, a sampled row answers for all rows before it too."""
_CLOSE: Final = 1e-9
"""Targets that differ by less are one: libraries may round the last digit by the length of their input."""
_PROVEN: Final = "called on the rows so far it decides the same on every row of every market"


class GrowthPlan(msgspec.Struct, frozen=True, kw_only=True):
    """On how many rows a program is asked. Up to ``every`` rows all of them; of more, the first ``warm_up`` and
    ``drawn`` others before it sees the whole table, and at most ``changes`` on which its target changes (and the
    row before each) afterwards. ``slower`` is how much more time all calls together may take than a single one.
    """

    every: int
    warm_up: int
    drawn: int
    changes: int
    slower: int = 3

    def rows(self, rows: int, rng: np.random.Generator) -> Ints:
        """Return the rows to ask about before the whole table is shown, in order."""
        if rows <= self.every:
            return np.arange(rows, dtype=np.int64)
        drawn = rng.choice(rows, min(self.drawn, rows), replace=False)
        return np.unique(np.concatenate([np.arange(min(self.warm_up, rows)), drawn])).astype(np.int64)

    def fewest_met(self, rows: int) -> int:
        """Return how many rows a leak must touch, wherever they lie, to be met by a drawn one in 95 of 100
        secrets.
        """
        if rows <= self.every or self.drawn >= rows:
            return 1
        return int(np.ceil(np.log(0.05) / np.log1p(-self.drawn / rows)))


HOME: Final = GrowthPlan(every=1_000, warm_up=300, drawn=200, changes=100)
AWAY: Final = GrowthPlan(every=300, warm_up=120, drawn=40, changes=40)
"""On the home market, and on the other judged ones."""
SHORT: Final = GrowthPlan(every=1_000, warm_up=0, drawn=60, changes=60)
"""Where nobody judges, on the first third or so of the home market."""


@dataclass(slots=True, kw_only=True)
class GrownRun:
    """A scored run, and what the program said before it. ``targets`` are those of the whole table, None where it
    gave none. ``said`` are the targets up to every row that was asked about (the last, or all), or why there are
    none; ``ended`` why the answers stopped early.
    """

    job: BacktestJob
    run: Backtest
    targets: Floats | None
    said: dict[int, Floats | str] = field(default_factory=dict)
    ended: str = ""

    def difference(self) -> tuple[int | None, str, tuple[str, ...]]:
        """Return the first row on which the whole table and the rows so far differ, how, and what was tolerated:
        a program may break on fewer rows than it needs before its first position.
        """
        assert self.targets is not None
        held = np.flatnonzero((self.targets != 0.0).any(axis=1))
        first = int(held[0]) if held.size else len(self.targets)
        early: tuple[str, ...] = ()
        for row, said in sorted(self.said.items()):
            if isinstance(said, str):
                if row >= first:
                    return row, f"with no rows after {row} it breaks: {said}", early
                early = (f"with {row + 1} rows, before its first position, it breaks: {said}",)
                continue
            start = row + 1 - len(said)
            gap = np.abs(said - self.targets[start : row + 1])
            if (gap > _CLOSE).any():
                place, asset = (int(at[0]) for at in np.nonzero(gap > _CLOSE))
                at = start + place
                after = "it" if at == row else str(row)
                name, whole = self.job.bars.assets[asset], self.targets[at, asset]
                text = (
                    f"on row {at} the target of asset {name} is {whole:g} with all rows "
                    f"and {said[place, asset]:g} with no rows after {after}"
                )
                return at, text, early
        return None, self.ended, early


def run_grown(
    executor: JobExecutor, jobs: Sequence[BacktestJob], plans: Sequence[tuple[GrowthPlan, np.random.Generator]]
) -> list[GrownRun]:
    """Call programs on growing tables, then on the whole ones, a child for each table."""
    wanted = [plan.rows(job.bars.rows, rng) for job, (plan, rng) in zip(jobs, plans, strict=True)]
    # A program that was asked on every row may be called on the whole table by the same child. Any other could
    # remember where it was asked, and look ahead everywhere else.
    reach = [
        job.bars.rows if rows.size == job.bars.rows else int(rows[-1]) + 1
        for job, rows in zip(jobs, wanted, strict=True)
    ]
    sent = [
        _grown_job(job, rows, last, plan.slower)
        for job, rows, last, (plan, _) in zip(jobs, wanted, reach, plans, strict=True)
    ]
    made = []
    for job, rows, last, result in zip(jobs, wanted, reach, executor.map(sent), strict=True):
        said, ended = _answers(job, rows, last, result)
        if last < job.bars.rows or (ended and said):
            # What broke while it grew may still run: that is another question, which the whole table answers.
            result = executor.run(sandbox_job(job)) if said or not ended else result
        run, targets = read_with_targets(job, result)
        made.append(GrownRun(job=job, run=run, targets=targets, said=said, ended=ended))
    return made


def ask_at(executor: JobExecutor, grown: GrownRun, rows: Ints) -> None:
    """Ask about more rows in a fresh child that never holds a later one, after the whole table was seen."""
    rows = np.setdiff1d(rows, [row for row, said in grown.said.items() if not isinstance(said, str)])
    if rows.size:
        last = int(rows[-1]) + 1
        result = executor.run(_grown_job(grown.job, rows, last, 3))
        said, grown.ended = _answers(grown.job, rows, last, result)
        grown.said |= said


def frame_lookahead(
    executor: JobExecutor, grown: Sequence[GrownRun], plans: Sequence[tuple[GrowthPlan, np.random.Generator]]
) -> tuple[Finding, LeakRecord]:
    """Compare what programs said before and after they saw the whole table; a difference convicts."""
    ran = [(one, plan, rng) for one, (plan, rng) in zip(grown, plans, strict=False) if one.targets is not None]
    asked, fewest, runs, notes = 0, 1, 0, list[str]()
    for one, plan, rng in ran:
        runs += 1
        row, reason, early = one.difference()
        before, rows = len(one.said), one.job.bars.rows
        if not reason and before < rows:
            more = _changes(one.targets, plan.changes, rng)
            ask_at(executor, one, more)
            runs += bool(more.size)
            row, reason, early = one.difference()
        asked += before
        fewest = max(fewest, plan.fewest_met(rows))
        notes += [f"{one.job.bars.name}: {note}" for note in early]
        if reason:
            reason = f"{one.job.bars.name}: {reason}"
            record = LeakRecord(
                verdict="leaky", reason=reason, runs=runs, bars=asked, fed="differs", notes=tuple(notes)
            )
            return failed(reason, "look_ahead" if row is not None else "fails_on_prefixes"), record
    total = sum(one.job.bars.rows for one, _, _ in ran)
    notes.append(f"{asked} of {total} rows on {len(ran)} markets were asked about before any later row was shown")
    reason = (
        _PROVEN
        if asked == total
        else (
            "called on the rows so far it decides the same on every row that was tried; "
            f"a leak that acts on fewer than {fewest} rows is not excluded"
        )
    )
    return PASSED, LeakRecord(
        verdict="clean",
        reason=reason,
        runs=runs,
        bars=asked,
        fed="same" if asked == total else "",
        notes=tuple(notes),
    )


def _changes(targets: Floats | None, most: int, rng: np.random.Generator) -> Ints:
    assert targets is not None
    changed = np.flatnonzero((targets[1:] != targets[:-1]).any(axis=1)) + 1
    if changed.size > most:
        changed = rng.choice(changed, most, replace=False)
    return np.unique(np.concatenate([changed, changed - 1])).astype(np.int64)


def _grown_job(job: BacktestJob, wanted: Ints, rows: int, slower: int) -> Job:
    """Return the job: the first ``rows`` rows in the feed, each wanted one ending a frame. A feed of all rows
    ends with a call on the whole table.
    """
    bars, single = job.bars, len(job.bars.assets) == 1
    feed = next(iter(bars.feeds.values()))
    columns: dict[str, NDArray[Any]] = {name: feed[name] for name in FIELDS} if single else bars.columns()
    form = frame_format(columns)
    ends, most = _frames(wanted, rows)
    packed, size = pack_rows(columns), struct.calcsize(form)
    asked = frozenset(wanted.tolist())
    frames = bytearray()
    start = 0
    for end in ends.tolist():
        frames += HEAD.pack(end + 1 - start, end in asked)
        frames += packed[start * size : (end + 1) * size].ljust(most * size, b"\0")
        start = end + 1
    limits = job.limits or LIMITS
    return Job(
        source=job.source,
        harness=GROWING,
        params={
            "columns": "\n".join(columns),
            "format": form,
            "bars": bars.rows,
            "most": most,
            "all": _whole_answers(job, wanted),
            "pass_as": "frame" if single else "frames",
        },
        feed=FrameFeed(frames=bytes(frames), size=HEAD.size + most * size),
        limits=msgspec.structs.replace(limits, cpu_s=limits.cpu_s * slower, wall_s=limits.wall_s * slower),
        seed=job.seed,
    )


def _whole_answers(job: BacktestJob, wanted: Ints) -> bool:
    """Return whether answers hold all targets so far: not where every row answers for itself."""
    return wanted.size < job.bars.rows and job.bars.rows * len(job.bars.assets) * 8 <= _ROOM


def _frames(wanted: Ints, rows: int) -> tuple[Ints, int]:
    most = max(1, -(-rows // max(1, len(wanted))))
    ends = np.unique(np.concatenate([wanted, np.arange(most - 1, rows, most), [rows - 1]]))
    return ends.astype(np.int64), most


def _answers(job: BacktestJob, wanted: Ints, rows: int, result: JobResult) -> tuple[dict[int, Floats | str], str]:
    ends, _ = _frames(wanted, rows)
    payloads = dict(zip(ends.tolist(), result.answers, strict=False))
    every = _whole_answers(job, wanted)
    said = {row: _targets(payloads[row], row, job, every) for row in wanted.tolist() if row in payloads}
    if len(said) == len(wanted):
        return said, ""
    why = result.failure.text if result.failure is not None else "it stopped answering"
    seen = int(ends[len(result.answers) - 1]) + 1 if result.answers else 0
    return said, f"called on the rows so far it ends after {seen} rows: {why}"


def _targets(payload: bytes, row: int, job: BacktestJob, every: bool) -> Floats | str:
    try:
        message = decode(payload, _CAPS)
        if isinstance(message, ClaimHead):
            return plain_line(f"{message.error}: {message.message}", 300)
        found = dict(message)
        if every:
            return read_targets(found, row + 1, job.bars.assets)
        rows = found.pop(ROWS, None)
        if rows is None or rows.dtype.kind != "i" or rows.tolist() != [row + 1]:
            return "it does not return one target per row"
        return read_targets(found, 1, job.bars.assets)
    except (CodecError, BadTargets) as error:
        return str(error)
