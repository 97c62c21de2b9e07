"""Figures that follow from a run's records: comparisons within a cell and between settings, months, holdings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from tradeassay.metrics import (
    BootstrapConfig,
    Design,
    compare_to_baseline,
    corrected,
    critical_difference,
    drawdowns,
    measured_design,
    nothing_to_compare,
    power_summary,
    significant,
    tiers,
)
from tradeassay.metrics.history import history_of
from tradeassay.metrics.reliability import Play, PlayWords, reliability
from tradeassay.runs.summary.rows import (
    AgentSummary,
    CellSummary,
    Contest,
    Contrast,
    ContrastArm,
    ContrastRow,
    EpisodeDetail,
    HoldingsOverTime,
    HoldingTimes,
    OverMarkets,
    RunSummary,
)

Value = bool | int | float | str


def completed_run(read: RunSummary) -> RunSummary:
    bootstrap = BootstrapConfig(level=read.level, draws=read.draws)
    return msgspec.structs.replace(
        read,
        cells=tuple(compare_cell(cell, bootstrap) for cell in read.cells),
        contrasts=contrasts(read.cells, bootstrap),
        over_markets=over_markets(read.cells, read.level),
        reliability=reliability(plays_of(read.cells), called=PLAYED, level=read.level),
    )


# Within a cell


def compare_cell(cell: CellSummary, bootstrap: BootstrapConfig) -> CellSummary:
    """Return a cell completed with what its agents show together: tiers, and when skill could not have shown."""
    rivals = [
        agent for agent in cell.agents if agent.versus is not None and agent.versus.distinguishable is not None
    ]
    agents = tuple(
        msgspec.structs.replace(agent, design=_design(agent, rivals, cell, bootstrap.level))
        for agent in cell.agents
    )
    # Why skill could not have shown: that of the agent that is easiest to see, and what the hardest would take.
    seen = sorted((power_summary(one.design) for one in agents if one.design), key=lambda one: one.sessions)
    limits: tuple[str, ...] = ()
    if seen and seen[0].hopeless:
        hardest = seen[-1].sessions
        more = "" if hardest == seen[0].sessions else f", for the agent that is hardest to judge {hardest:,}"
        limits = (f"{seen[0].sentence}{more}.",)
    cell = msgspec.structs.replace(cell, agents=agents, limits=limits)
    return msgspec.structs.replace(cell, contest=contest_of(cell, bootstrap))


def _design(agent: AgentSummary, rivals: list[AgentSummary], cell: CellSummary, level: float) -> Design | None:
    """Return an agent's comparison as an experiment; None where it was not compared, or paths were not read."""
    base = next((one for one in cell.agents if one.baseline and one.paths), None)
    if agent.name not in {one.name for one in rivals} or base is None or not agent.paths:
        return None
    paths, yard = np.array(agent.paths), np.array(base.paths[0])
    if paths.shape[-1] != yard.size or yard.size < 3 or not ((paths > 0).all() and (yard > 0).all()):
        return None
    return measured_design(
        np.diff(np.log(paths), axis=-1) - np.diff(np.log(yard)),
        level=level,
        comparisons=len(rivals),
        periods_per_year=cell.periods_per_year,
    )


# Which agent is best: tiers instead of places where agents cannot be told apart

_MARKETS = 3
"""Markets from which places in them are averaged."""


def contest_of(cell: CellSummary, bootstrap: BootstrapConfig) -> Contest | None:
    """Return who is best in a cell, paired session by session and averaged over seeds. None without an agent whose
    paths were read, or with too few sessions."""
    playing = [
        agent
        for agent in cell.agents
        if not agent.baseline and agent.paths and agent.has_place and min(map(min, agent.paths)) > 0.0
    ]
    lengths = {len(path) for agent in playing for path in agent.paths}
    if len(lengths) != 1 or next(iter(lengths)) - 1 < bootstrap.least:
        return None
    # The log growth of each session, in the mean over seeds.
    growth = np.stack([np.diff(np.log(np.array(agent.paths)), axis=1).mean(axis=0) for agent in playing], axis=1)
    found = tiers(growth, level=bootstrap.level)
    return Contest(
        tiers=tuple(tuple(playing[place].name for place in tier) for tier in found),
        sessions=int(growth.shape[0]),
        level=bootstrap.level,
    )


def over_markets(cells: Sequence[CellSummary], level: float) -> tuple[OverMarkets, ...]:
    """Return who is best over several markets, for every setting in which the same agents played three of them.
    Markets share no session: of cells on the same data whose windows overlap the first counts. Only agents with a
    place in every market are compared."""
    alike: dict[tuple[tuple[str, str], ...], list[CellSummary]] = {}
    for cell in cells:
        setting = tuple(sorted((key, str(value)) for key, value in cell.settings.items()))
        inside = alike.setdefault(setting, [])
        if not any(cell.dataset == one.dataset and set(cell.sessions) & set(one.sessions) for one in inside):
            inside.append(cell)
    found = []
    for setting, markets in alike.items():
        placed = [{one.name: one for one in cell.agents if one.has_place} for cell in markets]
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


# How reliable: plays of several seeds, windows and wordings

PLAYED = PlayWords(
    passes="ends ahead of its baseline",
    score="yearly growth beyond the baseline",
    model="agent",
    wording="setting",
)


def plays_of(cells: Sequence[CellSummary], run: str = "") -> Iterator[Play]:
    """Yield every play of a run's agents; a setting of the conversation is a wording, and so is a ``run`` that is
    compared with others. Windows that share sessions are one unit."""
    first: dict[str, list[CellSummary]] = {}
    for cell in cells:
        alike = first.setdefault(cell.dataset, [])
        unit = next((one for one in alike if set(one.sessions) & set(cell.sessions)), cell)
        alike += [cell] if unit is cell else []
        base = next((one for one in cell.agents if one.baseline and one.paths), None)
        words = [setting_words(key, value) for key, value in sorted(cell.settings.items())]
        for agent in cell.agents:
            if agent.baseline or base is None:
                continue
            failed, paths = dict(agent.failed_episodes), iter(agent.paths)
            for seed, key in enumerate(agent.row.episodes):
                score = None if key in failed else _beyond(next(paths), base.paths[0], cell.periods_per_year)
                yield Play(
                    model=agent.name,
                    wording=", ".join([run, *words] if run else words),
                    window=" ".join((cell.benchmark, cell.dataset, cell.window or "")),
                    seed=seed,
                    passed=score is not None and score > 0.0,
                    score=score,
                    unit=f"{unit.dataset} {unit.window or unit.id}",
                )


def _beyond(path: Sequence[float], base: Sequence[float], year: int) -> float | None:
    """Return the yearly log growth beyond the baseline's; None where everything was lost."""
    if len(path) < 2 or len(path) != len(base) or min(path[-1], base[-1]) <= 0.0:
        return None
    return significant(math.log(path[-1] / path[0] * base[0] / base[-1]) * year / (len(path) - 1))


# Between settings: ``bright`` next to ``blinded``, with the paired test


def contrasts(cells: Sequence[CellSummary], bootstrap: BootstrapConfig) -> tuple[Contrast, ...]:
    """Return every group of cells that differ in one setting of the conversation, where models played."""
    found = []
    for key in sorted({key for cell in cells for key in cell.settings}, key=lambda key: (key != "mask", key)):
        groups: dict[tuple[object, ...], list[CellSummary]] = {}
        for cell in cells:
            if key in cell.settings:
                others = tuple(sorted((name, str(value)) for name, value in cell.settings.items() if name != key))
                groups.setdefault((cell.benchmark, cell.dataset, cell.window, others), []).append(cell)
        for group in groups.values():
            if len({str(cell.settings[key]) for cell in group}) > 1:
                made = _contrast(key, group, cells, bootstrap)
                found += [made] if made.rows else []
    return tuple(found)


def setting_words(key: str, value: Value) -> str:
    """Return a setting as a heading shows it: a mask by its name, ``control: yes``, ``inputs: no-news``."""
    if key == "mask":
        return str(value)
    shown = ("yes" if value else "no") if isinstance(value, bool) else value
    return f"{key.replace('_', ' ')}: {shown}"


def varying(cells: Sequence[CellSummary]) -> list[str]:
    keys = sorted({key for cell in cells for key in cell.settings})
    return [key for key in keys if len({str(cell.settings.get(key)) for cell in cells}) > 1]


def _contrast(
    key: str, group: list[CellSummary], cells: Sequence[CellSummary], bootstrap: BootstrapConfig
) -> Contrast:
    # Readers of a mask or an ablation ask what was lost against the plain case, so that case comes first.
    plain = ("bright", False, "all")
    ordered = sorted(group, key=lambda cell: cell.settings[key] not in plain)
    first = ordered[0]
    names = dict.fromkeys(agent.name for cell in ordered for agent in cell.agents if agent.model is not None)
    # In a table about one setting, a value does not need the setting's name before it.
    labels = tuple(
        value if isinstance(value := cell.settings[key], str) else setting_words(key, value) for cell in ordered
    )
    rows = [_row(name, ordered, labels[0], bootstrap) for name in names]
    # Comparisons allow for the number of them in the table.
    left = iter(corrected([arm.versus for row in rows for arm in row.arms if arm], bootstrap.level))
    rows = [
        ContrastRow(
            agent=row.agent,
            arms=tuple(arm and ContrastArm(result=arm.result, versus=next(left)) for arm in row.arms),
        )
        for row in rows
    ]
    others = [setting_words(name, first.settings[name]) for name in varying(cells) if name in first.settings]
    where = [first.benchmark, f"on {first.dataset}", *([first.window] if first.window else [])]
    where += [words for words in others if words != setting_words(key, first.settings[key])]
    return Contrast(
        key=key,
        title="Mask by mask" if key == "mask" else f"By {key.replace('_', ' ')}",
        where=", ".join([" ".join(where[:2]), *where[2:]]),
        labels=labels,
        cells=tuple(cell.id for cell in ordered),
        rows=tuple(rows),
    )


def _row(name: str, cells: Sequence[CellSummary], reference: str, bootstrap: BootstrapConfig) -> ContrastRow:
    agents = [next((agent for agent in cell.agents if agent.name == name), None) for cell in cells]
    arms: list[ContrastArm | None] = []
    for place, (cell, agent) in enumerate(zip(cells, agents, strict=True)):
        if agent is None:
            arms.append(None)
            continue
        versus = None
        if place:
            other = agents[0]
            if other is None or not agent.paths or not other.paths:
                versus = nothing_to_compare(reference, "one of the two has no result")
            elif cell.sessions != cells[0].sessions:
                versus = nothing_to_compare(reference, "the sessions differ")
            else:
                versus = compare_to_baseline(
                    np.array(agent.paths),
                    np.array(other.paths),
                    periods_per_year=cell.periods_per_year,
                    baseline=reference,
                    bootstrap=bootstrap,
                )
        arms.append(ContrastArm(result=agent.result, versus=versus))
    return ContrastRow(agent=name, arms=tuple(arms))


# One episode


def completed_episode(
    read: EpisodeDetail, sessions: Sequence[str], path: Sequence[float], periods_per_year: int
) -> EpisodeDetail:
    """Return an episode completed with what follows from its path (empty without a result) and holdings."""
    return msgspec.structs.replace(
        read,
        falls=tuple(drawdowns(np.asarray(path, dtype=np.float64)).tolist()) if path else (),
        history=history_of(sessions, path, periods_per_year),
        times=None if read.holdings is None else holding_times(read.holdings),
    )


def holding_times(held: HoldingsOverTime) -> HoldingTimes:
    """Return how many names are held and for how long; a name still held at the end counts up to there."""
    if not held.symbols:
        return HoldingTimes(names=0.0, fewest=0, most=0, spells=0, sessions=None)
    there = np.abs(np.asarray(held.weights, dtype=np.float64)) > 0
    spells = int(there[:, 0].sum() + (there[:, 1:] & ~there[:, :-1]).sum())
    count = there.sum(axis=0)
    return HoldingTimes(
        names=float(count.mean()),
        fewest=int(count.min()),
        most=int(count.max()),
        spells=spells,
        sessions=float(there.sum()) / spells if spells else None,
    )
