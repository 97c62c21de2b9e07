"""The same benchmark played in several ways, side by side: ``bright`` beside ``blinded``, with the paired test."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from tradeassay.core.measure import Measure
from tradeassay.metrics import BootstrapConfig, Comparison, compare_to_baseline, holm, nothing_to_compare
from tradeassay.report.data import AgentData, CellData
from tradeassay.report.words import result

Value = bool | int | float | str


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """One agent under one setting. ``versus`` compares it with the reference, None for the reference itself."""

    result: Measure
    versus: Comparison | None = None
    p_adjusted: float | None = None


class ContrastRow(msgspec.Struct, frozen=True, kw_only=True):
    """One agent under every setting, the reference first."""

    agent: str
    arms: tuple[Arm | None, ...]


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """Cells that differ in one setting only. ``labels`` name its values, ``cells`` are their ids."""

    key: str
    title: str
    where: str
    labels: tuple[str, ...]
    cells: tuple[str, ...]
    rows: tuple[ContrastRow, ...]


def contrasts(cells: Sequence[CellData], level: float, draws: int) -> tuple[Contrast, ...]:
    """Return every group of cells that differ in one setting of the conversation, where models played."""
    found = []
    for key in sorted({key for cell in cells for key in cell.settings}, key=lambda key: (key != "mask", key)):
        groups: dict[tuple[object, ...], list[CellData]] = {}
        for cell in cells:
            if key in cell.settings:
                others = tuple(sorted((name, str(value)) for name, value in cell.settings.items() if name != key))
                groups.setdefault((cell.benchmark, cell.dataset, cell.window, others), []).append(cell)
        for group in groups.values():
            if len({str(cell.settings[key]) for cell in group}) > 1:
                made = _contrast(key, group, cells, BootstrapConfig(level=level, draws=draws))
                found += [made] if made.rows else []
    return tuple(found)


def setting_words(key: str, value: Value) -> str:
    """Return a setting as a heading shows it: a mask by its name, ``control: yes``, ``inputs: no-news``."""
    if key == "mask":
        return str(value)
    shown = ("yes" if value else "no") if isinstance(value, bool) else value
    return f"{key.replace('_', ' ')}: {shown}"


def varying(cells: Sequence[CellData]) -> list[str]:
    """Return the settings that are not the same in all cells."""
    keys = sorted({key for cell in cells for key in cell.settings})
    return [key for key in keys if len({str(cell.settings.get(key)) for cell in cells}) > 1]


def _label(key: str, value: Value) -> str:
    """Return a value in a table that is about one setting: a word needs no name before it."""
    return value if isinstance(value, str) else setting_words(key, value)


def _contrast(key: str, group: list[CellData], cells: Sequence[CellData], config: BootstrapConfig) -> Contrast:
    # Whoever reads a mask or an ablation asks what was lost against the plain case, so that one comes first.
    plain = ("bright", False, "all")
    ordered = sorted(group, key=lambda cell: cell.settings[key] not in plain)
    first = ordered[0]
    names = dict.fromkeys(agent.name for cell in ordered for agent in cell.agents if agent.model is not None)
    labels = tuple(_label(key, cell.settings[key]) for cell in ordered)
    rows = _adjusted([_row(name, ordered, labels[0], config) for name in names])
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


def _row(name: str, cells: Sequence[CellData], reference: str, config: BootstrapConfig) -> ContrastRow:
    agents = [next((agent for agent in cell.agents if agent.name == name), None) for cell in cells]
    arms: list[Arm | None] = []
    for place, (cell, agent) in enumerate(zip(cells, agents, strict=True)):
        if agent is None:
            arms.append(None)
            continue
        versus = None if place == 0 else _paired(agent, cell, agents[0], cells[0], reference, config)
        arms.append(Arm(result=result(agent), versus=versus))
    return ContrastRow(agent=name, arms=tuple(arms))


def _paired(
    agent: AgentData,
    cell: CellData,
    other: AgentData | None,
    base: CellData,
    reference: str,
    config: BootstrapConfig,
) -> Comparison:
    if other is None or not agent.paths or not other.paths:
        return nothing_to_compare(reference, "one of the two has no result")
    if cell.sessions != base.sessions:
        return nothing_to_compare(reference, "the sessions differ")
    return compare_to_baseline(
        np.array(agent.paths),
        np.array(other.paths),
        periods_per_year=cell.periods_per_year,
        baseline=reference,
        bootstrap=config,
    )


def _adjusted(rows: Sequence[ContrastRow]) -> list[ContrastRow]:
    """Return rows with p-values corrected for the number of comparisons in the table."""
    raw = [arm.versus.p_value if arm and arm.versus else None for row in rows for arm in row.arms]
    left = iter(holm(raw))
    made = []
    for row in rows:
        arms = tuple(
            None if arm is None else msgspec.structs.replace(arm, p_adjusted=p)
            for arm, p in zip(row.arms, left, strict=False)
        )
        made.append(msgspec.structs.replace(row, arms=arms))
    return made
