"""Cumulative success by turn as a drawing: one line per row of the main table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from tradeassay.report import numbers
from tradeassay.report.palette import LineStyle

if TYPE_CHECKING:
    from tradeassay.runs.quantcode_scores import CellScores

WIDTH, HEIGHT, LEFT, BOTTOM = 640.0, 260.0, 46.0, 30.0


class TurnLine(msgspec.Struct, frozen=True, kw_only=True):
    """One row's line: its points, its band (the intervals) and its numbers in words, turn by turn."""

    name: str
    style: LineStyle
    points: str
    dots: tuple[tuple[float, float], ...]
    texts: tuple[str, ...]
    intervals: tuple[str, ...]
    mean: str


class TurnChart(msgspec.Struct, frozen=True, kw_only=True):
    """The drawing. ``ticks`` are the turns with their place."""

    width: float
    height: float
    left: float
    bottom: float
    ticks: tuple[tuple[int, float], ...]
    grid: tuple[tuple[str, float], ...]
    lines: tuple[TurnLine, ...]


def turn_chart(cells: Sequence[CellScores], colours: Mapping[str, LineStyle]) -> TurnChart | None:
    """Return the drawing of the agentic rows, None when a run has none."""
    agentic = [cell for cell in cells if cell.setting == "agentic" and cell.by_turn]
    if not agentic:
        return None
    turns = max(len(cell.by_turn) for cell in agentic)

    def x(turn: int) -> float:
        return round(LEFT + (WIDTH - LEFT - 12.0) * ((turn - 1) / max(1, turns - 1) if turns > 1 else 0.5), 1)

    def y(value: float) -> float:
        return round(8.0 + (HEIGHT - BOTTOM - 8.0) * (1.0 - value), 1)

    lines = []
    for cell in agentic:
        dots = tuple((x(n), y(m.value)) for n, m in enumerate(cell.by_turn, 1) if m.value is not None)
        lines.append(
            TurnLine(
                name=f"{cell.model} · {cell.wording} · {cell.framework}",
                style=colours[cell.name],
                points=" ".join(f"{a},{b}" for a, b in dots),
                dots=dots,
                texts=tuple(_share(m.value) for m in cell.by_turn),
                intervals=tuple(
                    "" if m.low is None or m.high is None else f"{_share(m.low)} to {_share(m.high)}"
                    for m in cell.by_turn
                ),
                mean=numbers.NONE if cell.mean_turns.value is None else f"{cell.mean_turns.value:.1f}",
            )
        )
    return TurnChart(
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        bottom=HEIGHT - BOTTOM,
        ticks=tuple((turn, x(turn)) for turn in range(1, turns + 1)),
        grid=tuple((f"{share:.0%}", y(share)) for share in (0.0, 0.25, 0.5, 0.75, 1.0)),
        lines=tuple(lines),
    )


def _share(value: float | None) -> str:
    return numbers.NONE if value is None else numbers.number(value, unit="fraction")
