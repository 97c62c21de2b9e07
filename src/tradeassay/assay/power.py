"""What a recorded run could have shown: how much skill an agent's sessions and seeds would have revealed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tradeassay.metrics import Design, Foresight, foresight, measured_design
from tradeassay.metrics.power import SKILLED

if TYPE_CHECKING:
    from tradeassay.runs import AgentScores, Run


class AgentPower(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's comparison with its baseline, as an experiment; None and a ``reason`` where none was made."""

    cell: str
    agent: str
    design: Design | None
    foresight: Foresight | None
    reason: str | None = None

    @property
    def sentence(self) -> str:
        """What could have been seen, in plain words."""
        return self.foresight.sentence if self.foresight is not None else f"no comparison: {self.reason}"


def power_of_run(run: Run, *, ir: float = SKILLED) -> tuple[AgentPower, ...]:
    """Return, for every agent of a run but the baselines, what its comparison could have shown.

    Dependence between sessions and between seeds is measured on its active log returns. Raises
    :class:`~tradeassay.core.errors.RunError` while the run is unfinished.
    """
    rows = run.scores.agents
    found = []
    for row in rows:
        if row.baseline:
            continue
        peers = [other for other in rows if other.cell == row.cell]
        baseline = next((other for other in peers if other.baseline), None)
        found.append(_power(run, row, baseline, max(1, sum(not other.baseline for other in peers)), ir))
    return tuple(found)


def _power(run: Run, row: AgentScores, baseline: AgentScores | None, company: int, ir: float) -> AgentPower:
    nothing = AgentPower(cell=row.cell, agent=row.agent, design=None, foresight=None, reason="")
    if baseline is None:
        return msgspec.structs.replace(nothing, reason="there is no baseline")
    base = run.series(baseline.episodes[0])
    sound = [
        series for series in map(run.series, row.episodes) if series.failure is None and series.ruined is None
    ]
    if base.failure is not None or base.ruined is not None or not sound:
        return msgspec.structs.replace(nothing, reason="an account has no result")
    if any(series.sessions != base.sessions for series in sound) or len(base.sessions) < 2:
        return msgspec.structs.replace(nothing, reason="the sessions differ, or there are fewer than two")
    active = np.stack([np.diff(np.log(series.nav)) - np.diff(np.log(base.nav)) for series in sound])
    design = measured_design(
        active,
        level=run.spec.bootstrap.level,
        comparisons=company,
        periods_per_year=base.periods_per_year,
    )
    seen = foresight(design, ir=ir)
    return AgentPower(cell=row.cell, agent=row.agent, design=design, foresight=seen)
