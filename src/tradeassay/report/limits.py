"""What a leaderboard could have shown at all, and intervals that hold for all of its rows together."""

from __future__ import annotations

import numpy as np

from tradeassay.core.measure import Measure
from tradeassay.metrics import BootstrapConfig, Design, foresight, measured_design, simultaneous_differences
from tradeassay.report.data import AgentData, CellData


def together(cell: CellData, level: float, draws: int) -> dict[str, Measure]:
    """Return each agent's yearly difference from the baseline with intervals that hold for all agents at once.

    Nothing where fewer than two agents are compared, or paths were not read.
    """
    base = next((agent for agent in cell.agents if agent.baseline and agent.paths), None)
    rivals = _rivals(cell)
    if base is None or len(rivals) < 2 or not all(agent.paths for agent in rivals):
        return {}
    found = simultaneous_differences(
        [np.array(agent.paths) for agent in rivals],
        np.array(base.paths[0]),
        periods_per_year=cell.periods_per_year,
        bootstrap=BootstrapConfig(level=level, draws=draws),
    )
    return {agent.name: measure for agent, measure in zip(rivals, found, strict=True)}


def limits_in_words(cell: CellData, level: float) -> tuple[str, ...]:
    """Say when skill could not have shown in a cell; nothing when it could, or when nobody was compared."""
    rivals = _rivals(cell)
    if not rivals or len(cell.sessions) < 2:
        return ()
    seen = foresight(_design(rivals, cell, level))
    return (f"{seen.sentence}.",) if seen.hopeless else ()


def _design(rivals: list[AgentData], cell: CellData, level: float) -> Design:
    """Return the cell as an experiment; dependence is measured where paths are at hand."""
    base = next((agent for agent in cell.agents if agent.baseline and agent.paths), None)
    shown = next((agent for agent in rivals if agent.paths), None)
    if base is not None and shown is not None:
        paths, yard = np.array(shown.paths), np.array(base.paths[0])
        if paths.shape[-1] == yard.size and (paths > 0).all() and (yard > 0).all():
            active = np.diff(np.log(paths), axis=-1) - np.diff(np.log(yard))
            return measured_design(
                active, level=level, comparisons=len(rivals), periods_per_year=cell.periods_per_year
            )
    return Design(
        sessions=len(cell.sessions),
        seeds=max(agent.seeds for agent in rivals),
        level=level,
        comparisons=len(rivals),
        periods_per_year=cell.periods_per_year,
    )


def _rivals(cell: CellData) -> list[AgentData]:
    return [
        agent
        for agent in cell.agents
        if agent.versus_baseline is not None and agent.versus_baseline.distinguishable is not None
    ]
