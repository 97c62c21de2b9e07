"""Programs on frames, fed: called again on all rows so far, in a child that never held a later one.

A vectorised program gets its whole table at once, and what it says about a row may depend on rows after it.
Called on the rows so far it cannot. Where both say the same on every row, no decision looks ahead; where they
differ, the first such row is the proof. Short tables are grown row by row; of long ones the warm-up, the rows on
which a target changes, and rows drawn from the run's secret.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.code.bars import FIELDS, TaskBars
from tradeassay.code.frames import LIMITS, BadTargets, read_targets
from tradeassay.code.harness.desk import frame_format, pack_rows
from tradeassay.code.harness.frames import HEAD, ROWS
from tradeassay.code.harness.wire import GROWING
from tradeassay.core.view import Floats, Ints
from tradeassay.sandbox import FrameFeed, Job, JobExecutor, JobLimits
from tradeassay.sandbox.codec import Caps, ClaimHead, CodecError, decode
from tradeassay.sandbox.failures import plain_line

_SLOWER: Final = 3
_CAPS: Final = Caps(columns=64, rows=4, words=8, total=1 << 16)
_CLOSE: Final = 1e-9
"""Targets that differ by less are one: libraries may round the last digit by the length of their input."""


class GrowthPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How many rows are asked about. Up to ``every`` rows all of them are; of more, the first ``warm_up``, at most
    ``changes`` on which the target changes (and the row before each), ``drawn`` others, and any ``suspects``.
    """

    every: int
    warm_up: int
    changes: int
    drawn: int
    suspects: tuple[int, ...] = ()


HOME: Final = GrowthPlan(every=1_000, warm_up=300, changes=100, drawn=200)
AWAY: Final = GrowthPlan(every=300, warm_up=120, changes=40, drawn=40)
"""On the home market, and on the other judged ones."""
SHORT: Final = GrowthPlan(every=24, warm_up=3, changes=12, drawn=4)
"""Where nobody judges, on the first third or so of the home market: some thirty rows, most of them where the
program changes its mind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What growing showed. ``asked`` rows of ``rows`` were compared; ``proven``: all of them, and all the same.

    ``row`` is the first on which whole table and rows so far differ, ``reason`` how; both None and empty when they
    never do. ``notes`` say what was tolerated.
    """

    rows: int
    asked: int
    row: int | None = None
    reason: str = ""
    notes: tuple[str, ...] = ()
    cpu_s: float = 0.0

    @property
    def same(self) -> bool:
        """Whether no difference was found."""
        return not self.reason

    @property
    def proven(self) -> bool:
        """Whether every row was compared and none differs."""
        return self.same and self.asked == self.rows


def choose_rows(targets: Floats, plan: GrowthPlan, rng: np.random.Generator) -> Ints:
    """Return the rows to ask about, in order; ``targets`` are those of the whole table, (rows, assets)."""
    rows = len(targets)
    if rows <= plan.every:
        return np.arange(rows, dtype=np.int64)
    changed = np.flatnonzero((targets[1:] != targets[:-1]).any(axis=1)) + 1
    if changed.size > plan.changes:
        changed = rng.choice(changed, plan.changes, replace=False)
    drawn = rng.choice(rows, min(plan.drawn, rows), replace=False)
    chosen = np.concatenate(
        [np.arange(min(plan.warm_up, rows)), changed, changed - 1, drawn, [rows - 1], plan.suspects]
    )
    return np.unique(chosen).astype(np.int64)


def grow(
    executor: JobExecutor,
    source: str,
    bars: TaskBars,
    targets: Floats,
    wanted: Ints,
    *,
    limits: JobLimits | None = None,
    seed: int = 0,
) -> Growth:
    """Ask a program on growing tables and compare with its ``targets`` on the whole one.

    Raises SandboxError when the executor cannot feed a child.
    """
    result = executor.run(_job(source, bars, wanted, limits or LIMITS, seed))
    ends, _ = _frames(wanted, bars.rows)
    said_at = dict(zip(ends.tolist(), result.answers, strict=False))
    seen: list[tuple[int, Any]] = [
        (row, _read(said_at[row], row, bars)) for row in wanted.tolist() if row in said_at
    ]
    held = np.flatnonzero((targets != 0.0).any(axis=1))
    first = int(held[0]) if held.size else len(targets)
    early: list[str] = []
    asked = 0
    for row, said in seen:
        if isinstance(said, str):
            if row >= first:
                return _differs(row, len(targets), asked, f"with no rows after {row} it breaks: {said}", early)
            early.append(f"with {row + 1} rows, before its first position, it breaks: {said}")
            continue
        asked += 1
        gap = np.abs(said - targets[row])
        if (gap > _CLOSE).any():
            asset = int(np.argmax(gap))
            text = (
                f"on row {row} the target of asset {bars.assets[asset]} is {targets[row, asset]:g} with all rows "
                f"and {said[asset]:g} with no rows after it"
            )
            return _differs(row, len(targets), asked, text, early)
    notes = early[-1:]
    if len(seen) < len(wanted) or result.failure is not None:
        why = result.failure.text if result.failure is not None else "it stopped answering"
        rows = int(ends[len(result.answers) - 1]) + 1 if result.answers else 0
        reason = f"called on the rows so far it ends after {rows} rows: {why}"
        return Growth(rows=len(targets), asked=asked, reason=reason, notes=tuple(notes), cpu_s=result.usage.cpu_s)
    counted = asked + len(early)
    return Growth(rows=len(targets), asked=counted, notes=tuple(notes), cpu_s=result.usage.cpu_s)


def _differs(row: int, rows: int, asked: int, reason: str, early: list[str]) -> Growth:
    return Growth(rows=rows, asked=asked, row=row, reason=reason, notes=tuple(early[-1:]))


def _job(source: str, bars: TaskBars, wanted: Ints, limits: JobLimits, seed: int) -> Job:
    single = len(bars.assets) == 1
    feed = next(iter(bars.feeds.values()))
    columns: dict[str, NDArray[Any]] = {name: feed[name] for name in FIELDS} if single else bars.columns()
    form = frame_format(columns)
    slower = msgspec.structs.replace(limits, cpu_s=limits.cpu_s * _SLOWER, wall_s=limits.wall_s * _SLOWER)
    ends, most = _frames(wanted, bars.rows)
    return Job(
        source=source,
        harness=GROWING,
        columns={},
        params={
            "columns": "\n".join(columns),
            "format": form,
            "bars": bars.rows,
            "most": most,
            "pass_as": "frame" if single else "frames",
        },
        feed=_feed(pack_rows(columns), struct.calcsize(form), ends, most, frozenset(wanted.tolist())),
        limits=slower,
        seed=seed,
    )


def _frames(wanted: Ints, rows: int) -> tuple[Ints, int]:
    """Return the last row of every frame and the most rows that one holds: each wanted row ends one, and none is
    so long that the frames would be mostly empty.
    """
    most = max(1, -(-rows // max(1, len(wanted))))
    ends = np.unique(np.concatenate([wanted, np.arange(most - 1, rows, most), [rows - 1]]))
    return ends.astype(np.int64), most


def _feed(rows: bytes, size: int, ends: Ints, most: int, wanted: frozenset[int]) -> FrameFeed:
    frames = bytearray()
    start = 0
    for end in ends.tolist():
        frames += HEAD.pack(end + 1 - start, end in wanted)
        frames += rows[start * size : (end + 1) * size].ljust(most * size, b"\0")
        start = end + 1
    return FrameFeed(frames=bytes(frames), size=HEAD.size + most * size)


def _read(payload: bytes, row: int, bars: TaskBars) -> Floats | str:
    """Return the last targets that an answer holds, or why it holds none."""
    try:
        message = decode(payload, _CAPS)
        if isinstance(message, ClaimHead):
            return plain_line(f"{message.error}: {message.message}", 300)
        found = dict(message)
        rows = found.pop(ROWS, None)
        if rows is None or rows.dtype.kind != "i" or rows.tolist() != [row + 1]:
            return "it does not return one target per row"
        last: Floats = read_targets(found, 1, bars.assets)[0]
        return last
    except (CodecError, BadTargets) as error:
        return str(error)
