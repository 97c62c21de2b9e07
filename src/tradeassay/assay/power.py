"""What a recorded run could have shown: how much skill an agent's sessions and seeds would have revealed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tradeassay.metrics import Design, PowerSummary, power_summary
from tradeassay.metrics.power import SKILLED
from tradeassay.runs.summary import summary_of

if TYPE_CHECKING:
    from tradeassay.runs import Run


class AgentPower(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's comparison with its baseline, as an experiment; None and a ``reason`` where none was made."""

    cell: str
    agent: str
    design: Design | None
    power_summary: PowerSummary | None
    reason: str | None = None

    @property
    def sentence(self) -> str:
        """What could have been seen, in plain words."""
        return self.power_summary.sentence if self.power_summary is not None else f"no comparison: {self.reason}"


def power_of_run(run: Run, *, ir: float = SKILLED) -> tuple[AgentPower, ...]:
    """Return, for every agent of a run but the baselines, what its comparison could have shown. Dependence between
    sessions and between seeds is measured on its active log returns. Raises
    :class:`~tradeassay.core.errors.RunError` while the run is unfinished."""
    found = []
    for cell in summary_of(run, details=False).cells:
        for agent in cell.agents:
            if agent.baseline:
                continue
            seen = None if agent.design is None else power_summary(agent.design, ir=ir)
            why = None
            if seen is None and (agent.result.value is None or agent.failure):
                why = f"the account has no result ({agent.failure or agent.result.reason})"
            elif seen is None:
                why = "there is no baseline" if agent.versus is None else agent.versus.sentence
            found.append(
                AgentPower(cell=cell.id, agent=agent.name, design=agent.design, power_summary=seen, reason=why)
            )
    return tuple(found)
