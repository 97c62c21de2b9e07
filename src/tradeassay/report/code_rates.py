"""Stage rates of a run of programs, written out for a table: numbers with intervals, and bars on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tradeassay.core.measure import Measure
from tradeassay.report import numbers
from tradeassay.report.interval_bar import IntervalBar, Scale
from tradeassay.report.palette import LineStyle, styles

if TYPE_CHECKING:
    from tradeassay.runs.quantcode_scores import CellScores, QuantCodeScores, StageRates

STAGE_TITLES = (
    ("compile", "Compiles", "the source compiles and defines exactly one strategy"),
    ("backtest", "Runs", "it runs to the end of the data"),
    ("trade", "Trades", "it opens at least one trade, by the host's own fills"),
    ("judge", "Solved", "it does what the task says, by the judge who decides, and was not seen to look ahead"),
)
_UNIT = Scale(low=0.0, high=1.0)


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """One rate: its text, its interval in small print, its drawing; ``note`` says why there is none."""

    text: str
    interval: str
    sort: float | None
    note: str = ""
    bar: IntervalBar | None = None


class RateRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a table of stage rates."""

    name: str
    kind: str
    items: str
    left_out: str
    rates: tuple[Rate, ...]
    turns: str = ""
    cost: str = ""
    style: LineStyle | None = None


class GroupTable(msgspec.Struct, frozen=True, kw_only=True):
    """Rates of the solved by the values of one property (``columns``), one line per row of the main table."""

    by: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Rate, ...]], ...]


def rate(measure: Measure) -> Rate:
    """Write a share out."""
    if measure.value is None:
        return Rate(text=numbers.NONE, interval="", sort=None, note=measure.reason or "")
    interval = ""
    if measure.low is not None and measure.high is not None:
        low, high = (numbers.number(end, unit="fraction") for end in (measure.low, measure.high))
        interval = f"{low} to {high}"
    return Rate(
        text=numbers.number(measure.value, unit="fraction"),
        interval=interval,
        sort=measure.value,
        bar=_UNIT.bar(measure),
    )


def stage_row(
    name: str, kind: str, rates: StageRates, *, turns: str = "", cost: str = "", style: LineStyle | None = None
) -> RateRow:
    """Return one row."""
    left_out = []
    if rates.failed:
        left_out.append(f"{rates.failed} without an answer")
    if rates.unscored:
        left_out.append(f"{rates.unscored} not judged")
    return RateRow(
        name=name,
        kind=kind,
        items=f"{rates.items:,}",
        left_out=", ".join(left_out),
        rates=tuple(rate(getattr(rates, stage)) for stage, _, _ in STAGE_TITLES),
        turns=turns,
        cost=cost,
        style=style,
    )


def ranked_cells(scores: QuantCodeScores) -> list[CellScores]:
    """Return the rows, most solved first; those without a rate last."""
    return sorted(
        scores.cells, key=lambda cell: 1.0 if cell.rates.judge.value is None else -cell.rates.judge.value
    )


def cell_styles(cells: Sequence[CellScores]) -> dict[str, LineStyle]:
    """Return a colour and dash per row."""
    return styles([cell.name for cell in cells], "")


def way(cell: CellScores) -> str:
    """Return in which way a row's tasks were put: ``agentic · formal · backtrader``."""
    return f"{cell.setting} · {cell.wording} · {cell.framework}"


def cost_words(cell: CellScores) -> str:
    """Return what a solved task took."""
    tokens, usd = cell.tokens_per_solved, cell.usd_per_solved
    if tokens.value is None:
        return tokens.reason or ""
    money = numbers.dollars(usd.value) if usd.value is not None else "price unknown"
    return f"{numbers.short(round(tokens.value))} tokens · {money}"


def group_tables(cells: Sequence[CellScores]) -> tuple[GroupTable, ...]:
    """Return the rates of the solved by source, difficulty, timeframe and family."""
    found = []
    for by in dict.fromkeys(group.by for cell in cells for group in cell.groups):
        values = tuple(dict.fromkeys(group.value for cell in cells for group in cell.groups if group.by == by))
        if len(values) < 2 and by != "difficulty":
            continue
        rows = tuple(
            (f"{cell.model} · {way(cell)}", tuple(_group(cell, by, value) for value in values)) for cell in cells
        )
        found.append(GroupTable(by=by, columns=values, rows=rows))
    return tuple(found)


def contrasts_of(cells: Sequence[CellScores]) -> tuple[GroupTable, ...]:
    """Return rates by wording and by framework, where a run has more than one."""
    found = []
    for by in ("wording", "framework"):
        values = tuple(dict.fromkeys(str(getattr(cell, by)) for cell in cells))
        if len(values) < 2:
            continue
        others: dict[tuple[Any, ...], dict[str, CellScores]] = {}
        for cell in cells:
            other = "framework" if by == "wording" else "wording"
            others.setdefault((cell.model, cell.setting, getattr(cell, other)), {})[getattr(cell, by)] = cell
        rows = tuple(
            (
                " · ".join(place),
                tuple(rate(byvalue[v].rates.judge) if v in byvalue else NOTHING for v in values),
            )
            for place, byvalue in others.items()
        )
        found.append(GroupTable(by=by, columns=values, rows=rows))
    return tuple(found)


NOTHING = Rate(text="–", interval="", sort=None)


def _group(cell: CellScores, by: str, value: str) -> Rate:
    for group in cell.groups:
        if group.by == by and group.value == value:
            made = rate(group.rates.judge)
            return msgspec.structs.replace(made, note=made.note or f"{group.rates.items} items")
    return NOTHING
