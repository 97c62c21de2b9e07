"""Look-ahead by the rules of version 2: what was fed needs no check, frames are grown on every judged market."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tradeassay.code.bars import TaskBars
from tradeassay.code.checks import PASSED, Finding, failed
from tradeassay.code.growing import AWAY, HOME, Growth, GrowthPlan, choose_rows, grow
from tradeassay.code.leak import LeakRecord
from tradeassay.code.task import CodeTask
from tradeassay.core.draws import seed_from
from tradeassay.core.view import Floats
from tradeassay.sandbox import JobExecutor, JobLimits

SCORED_FED: Final = (
    "its orders were taken bar by bar, before the next bar left the host: none can depend on a later one"
)
_PROVEN: Final = "called on the rows so far it decides the same on every row of every market"


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
