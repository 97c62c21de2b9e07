"""Compute the power of a recorded run: the smallest skill that it could have revealed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tradeassay.metrics import Design, PowerSummary, power_summary
from tradeassay.metrics.power import SKILLED
from tradeassay_bench.runs.summary import summary_of

if TYPE_CHECKING:
    from tradeassay_bench.runs import Run


class AgentPower(msgspec.Struct, frozen=True, kw_only=True):
    """The power of an agent's comparison with its baseline.

    If there is no comparison, ``design`` and ``power_summary`` are None and ``reason`` states why.
    """

    setting: str = msgspec.field(name="cell")
    agent: str
    design: Design | None
    power_summary: PowerSummary | None
    reason: str | None = None

    @property
    def sentence(self) -> str:
        """Return a sentence with the smallest effect that the comparison could have detected."""
        return (
            self.power_summary.sentence
            if self.power_summary is not None
            else f"no comparison: {self.reason}"
        )


def power_of_run(run: Run, *, ratio: float = SKILLED) -> tuple[AgentPower, ...]:
    """Return the power of every agent's comparison in a run. Baselines are left out.

    The dependence between sessions and between seeds is measured on active log returns. Raises
    :class:`~tradeassay_bench.core.errors.RunError` while the run is unfinished.
    """
    rows = []
    for setting in summary_of(run, details=False).settings:
        for agent in setting.agents:
            if agent.baseline:
                continue
            power = None if agent.design is None else power_summary(agent.design, ratio=ratio)
            why = None
            if power is None and (agent.result.value is None or agent.failure):
                why = f"the account has no result ({agent.failure or agent.result.reason})"
            elif power is None:
                why = "there is no baseline" if agent.versus is None else agent.versus.sentence
            rows.append(
                AgentPower(
                    setting=setting.id,
                    agent=agent.name,
                    design=agent.design,
                    power_summary=power,
                    reason=why,
                )
            )
    return tuple(rows)
