"""Which agent of a cell is best? Tiers instead of places where agents cannot be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec
import numpy as np

from tradeassay.core.view import Floats
from tradeassay.metrics import (
    BootstrapConfig,
    critical_difference,
    mean_p_value,
    model_confidence_set,
    rank_probabilities,
    significant,
    superior,
)
from tradeassay.runs.summary.rows import AgentSummary, CellSummary, Contest, OverMarkets, failed_too_often

_MOST = 6
"""Tiers that are told apart; what is left after them is the last one."""
_MARKETS = 3
"""Markets from which places in them are averaged."""


def contest_of(cell: CellSummary, bootstrap: BootstrapConfig) -> Contest | None:
    """Return who is best in a cell, paired session by session and averaged over seeds.

    None with fewer than two agents whose paths were read, or too few sessions.
    """
    unranked = {agent.name: why for agent in cell.agents if (why := failed_too_often(agent)) is not None}
    playing = [agent for agent in cell.agents if agent.paths and agent.name not in unranked and _alive(agent)]
    lengths = {len(path) for agent in playing for path in agent.paths}
    if len(playing) < 2 or len(lengths) != 1 or next(iter(lengths)) - 1 < bootstrap.least:
        return None
    growth = np.stack([_growth(agent) for agent in playing], axis=1)
    base = next((place for place, agent in enumerate(playing) if agent.baseline), None)
    names = tuple(agent.name for agent in playing)
    return msgspec.structs.replace(_held(growth.tobytes(), names, base, bootstrap), unranked=unranked)


@lru_cache(maxsize=32)
def _held(data: bytes, names: tuple[str, ...], base: int | None, bootstrap: BootstrapConfig) -> Contest:
    """Hold the contest, once for the table and for the page; ``data`` is log growth, (sessions, agents)."""
    growth = np.frombuffer(data).reshape(-1, len(names))
    ranks = rank_probabilities(np.expm1(growth), names, bootstrap=bootstrap)
    return Contest(
        tiers=_tiers(growth, names, bootstrap),
        best={name: significant(float(ranks.probability[k, 0])) for k, name in enumerate(names)},
        ranks={name: (float(ranks.low[k]), float(ranks.high[k])) for k, name in enumerate(names)},
        superior=_superior(growth, base, bootstrap),
        unranked={},
        sessions=int(growth.shape[0]),
        level=bootstrap.level,
    )


def _alive(agent: AgentSummary) -> bool:
    return all(value > 0.0 for path in agent.paths for value in path)


def _growth(agent: AgentSummary) -> Floats:
    """Return the log growth of each session, in the mean over seeds."""
    return np.asarray(np.diff(np.log(np.array(agent.paths)), axis=1).mean(axis=0))


def _tiers(growth: Floats, names: Sequence[str], bootstrap: BootstrapConfig) -> tuple[tuple[str, ...], ...]:
    """Take the confidence set of the best away again and again; agents with equal paths stay together."""
    twins: dict[bytes, list[int]] = {}
    for place in range(growth.shape[1]):
        twins.setdefault(np.ascontiguousarray(growth[:, place]).tobytes(), []).append(place)
    groups = list(twins.values())
    tiers: list[tuple[str, ...]] = []
    while groups:
        if len(groups) == 1 or len(tiers) == _MOST - 1:
            best = list(range(len(groups)))
        else:
            best = _best(growth[:, [group[0] for group in groups]], bootstrap)
        inside = sorted(
            (place for one in best for place in groups[one]), key=lambda place: -float(growth[:, place].sum())
        )
        tiers.append(tuple(names[place] for place in inside))
        groups = [group for place, group in enumerate(groups) if place not in set(best)]
    return tuple(tiers)


def _best(growth: Floats, bootstrap: BootstrapConfig) -> list[int]:
    """Return the places of those that cannot be told apart from the best.

    Two are told apart by the test that every other difference of two means goes by.
    """
    if growth.shape[1] > 2:
        return [int(one) for one in model_confidence_set(growth, bootstrap=bootstrap).included]
    apart = float(mean_p_value(growth[:, 0] - growth[:, 1])) < 1.0 - bootstrap.level
    return [int(growth.sum(axis=0).argmax())] if apart else [0, 1]


def _superior(growth: Floats, base: int | None, bootstrap: BootstrapConfig) -> float | None:
    """Return the p-value of nobody being better; None for one agent alone, whose difference says it."""
    if base is None or growth.shape[1] < 3:
        return None
    others = np.delete(growth, base, axis=1)
    return superior(others, growth[:, base], bootstrap=bootstrap).p_value


def over_markets(cells: Sequence[CellSummary], level: float) -> tuple[OverMarkets, ...]:
    """Return who is best over several markets, for every setting in which the same agents played three of them.

    Markets share no session: of cells on the same data whose windows overlap the first counts. Only agents with a
    place in every market are compared.
    """
    alike: dict[tuple[tuple[str, str], ...], list[CellSummary]] = {}
    for cell in cells:
        setting = tuple(sorted((key, str(value)) for key, value in cell.settings.items()))
        inside = alike.setdefault(setting, [])
        if not any(cell.dataset == one.dataset and set(cell.sessions) & set(one.sessions) for one in inside):
            inside.append(cell)
    found = []
    for setting, markets in alike.items():
        placed = [{one.name: one for one in cell.agents if _has_a_place(one)} for cell in markets]
        names = [name for name in (placed[0] if placed else {}) if all(name in there for there in placed)]
        if len(markets) < _MARKETS or len(names) < 2:
            continue
        results = np.array([[there[name].result.value for name in names] for there in placed], dtype=np.float64)
        found.append(
            OverMarkets(
                setting=dict(setting),
                markets=tuple(cell.title for cell in markets),
                places=critical_difference(results, names, level=level),
            )
        )
    return tuple(found)


def _has_a_place(agent: AgentSummary) -> bool:
    return agent.result.value is not None and failed_too_often(agent) is None
