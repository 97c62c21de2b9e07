"""The paper's Tables 3 to 8 with ours beside them, and why the two are not measurements of the same thing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tradeassay.benchmarks.quantcode.published import OurRun, published, why_not_comparable
from tradeassay.metrics import rate_measure
from tradeassay.report.code_rates import NOTHING, STAGE_TITLES, Rate, rate, way

if TYPE_CHECKING:
    from tradeassay.runs.quantcode_scores import CellScores

_NONE_OF_OURS = "this run has no such answers"
_TURNS = (1, 3, 5, 10)
_STAGES = {
    "solved": "Solved",
    "judge": "Turned down by the judge",
    "lookahead": "Looks ahead",
    "trade": "No trade",
    "backtest": "Breaks while running",
    "compile": "Does not compile",
    "trick": "Trick",
    "no_code": "No code, reasoning loop",
    "not_scored": "Not judged",
}


class PaperTable(msgspec.Struct, frozen=True, kw_only=True):
    """One table of the paper in our columns. A row is (who, whether it is ours, cells)."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, bool, tuple[Rate, ...]], ...]
    reasons: tuple[str, ...]
    note: str = ""


class PaperView(msgspec.Struct, frozen=True, kw_only=True):
    """All of them, and where the printed ones come from. ``reasons`` hold for every table."""

    source: str
    notes: tuple[str, ...]
    reasons: tuple[str, ...]
    tables: tuple[PaperTable, ...]


def paper_view(spec: Any, tasks: int, cells: Sequence[CellScores]) -> PaperView:
    """Return the printed tables with ours beside them."""
    paper = published()
    single = [cell for cell in cells if cell.setting == "single-turn"]
    agentic = [cell for cell in cells if cell.setting == "agentic"]
    why = {
        setting: why_not_comparable(
            OurRun(
                public_tasks=spec.task_file is not None,
                real_data=False,
                tasks=tasks,
                setting=setting,
                turns=spec.turns,
                decided_by="language" if spec.evaluate.decides == "language" else "behaviour",
                wording="formal" if spec.wordings == ("formal",) else "conversational",
            )
        )
        for setting in ("single-turn", "agentic")
    }
    shared = tuple(reason for reason in why["single-turn"] if reason in why["agentic"])
    own = {setting: tuple(r for r in reasons if r not in shared) for setting, reasons in why.items()}
    tables = (
        _table3(paper, single, own["single-turn"]),
        _table4(paper, agentic, own["agentic"]),
        _ends("Table 5: where single-turn answers end", paper.single_turn_stages, single, own["single-turn"]),
        _table6(paper, single, own["single-turn"]),
        _ends("Table 7: where agentic conversations end", paper.agentic_stages, agentic, own["agentic"]),
        _table8(paper, agentic, own["agentic"]),
    )
    return PaperView(source=paper.source, notes=paper.notes, reasons=shared, tables=tables)


def _table3(paper: Any, cells: Sequence[CellScores], reasons: tuple[str, ...]) -> PaperTable:
    rows = [(f"{cell.model} ({way(cell)})", True, _stages(cell)) for cell in cells]
    rows += [
        (row.model, False, tuple(_printed(getattr(row, s)) for s, _, _ in STAGE_TITLES))
        for row in paper.single_turn
    ]
    return PaperTable(
        title="Table 3: single-turn, share of tasks that pass each stage",
        columns=("Compile", "Backtest", "Trade", "Judge"),
        rows=_sorted(rows),
        reasons=reasons,
    )


def _table4(paper: Any, cells: Sequence[CellScores], reasons: tuple[str, ...]) -> PaperTable:
    rows = []
    for cell in cells:
        mean = cell.mean_turns.value
        turns = Rate(text="n/a" if mean is None else f"{mean:.1f}", interval="", sort=mean)
        by = tuple(rate(cell.by_turn[n - 1]) if n <= len(cell.by_turn) else NOTHING for n in _TURNS)
        rows.append((f"{cell.model} ({way(cell)})", True, (*_stages(cell), turns, *by)))
    for row in paper.agentic:
        stages = tuple(_printed(getattr(row, stage)) for stage, _, _ in STAGE_TITLES)
        printed = Rate(text=f"{row.mean_turns:.1f}", interval="", sort=row.mean_turns)
        rows.append((row.model, False, (*stages, printed, *(_printed(getattr(row, f"t{n}")) for n in _TURNS))))
    return PaperTable(
        title="Table 4: agentic, final stages, mean number of turns, solved by turn",
        columns=("Compile", "Backtest", "Trade", "Judge", "Mean turns", "T1", "T3", "T5", "T10"),
        rows=_sorted(rows),
        reasons=reasons,
    )


def _ends(title: str, printed: Any, cells: Sequence[CellScores], reasons: tuple[str, ...]) -> PaperTable:
    ours = _sum(cell.ends for cell in cells)
    total = sum(ours.values())
    paper = {row.stage: row.share for row in printed}
    rows = tuple(
        (
            words,
            False,
            (
                _printed(paper[stage]) if stage in paper else NOTHING,
                rate(rate_measure(ours.get(stage, 0), total, nothing=_NONE_OF_OURS)),
            ),
        )
        for stage, words in _STAGES.items()
        if stage in paper or ours.get(stage)
    )
    return PaperTable(title=title, columns=("Paper", "Ours, all models"), rows=rows, reasons=reasons)


def _table6(paper: Any, cells: Sequence[CellScores], reasons: tuple[str, ...]) -> PaperTable:
    ours, total = _sum(cell.last_failures for cell in cells), sum(cell.rates.items for cell in cells)
    printed = {row.failure_class: row.share for row in paper.failures}
    rows = tuple(
        (
            title,
            False,
            (
                _printed(printed[name]) if name in printed else NOTHING,
                rate(rate_measure(ours.get(name, 0), total, nothing=_NONE_OF_OURS)),
            ),
        )
        for name, title in failure_titles().items()
        if name in printed or ours.get(name)
    )
    return PaperTable(
        title="Table 6: why single-turn answers fail, share of all answers",
        columns=("Paper", "Ours, all models"),
        rows=rows,
        reasons=reasons,
    )


def _table8(paper: Any, cells: Sequence[CellScores], reasons: tuple[str, ...]) -> PaperTable:
    first, last = _sum(c.first_failures for c in cells), _sum(c.last_failures for c in cells)
    answers, lost = sum(cell.rates.items for cell in cells), sum(last.values())
    printed = {row.failure_class: row for row in paper.failure_turns}
    rows = tuple(
        (
            title,
            False,
            (
                _printed(printed[name].turn_1) if name in printed else NOTHING,
                rate(rate_measure(first.get(name, 0), answers, nothing=_NONE_OF_OURS)),
                _printed(printed[name].last_turn) if name in printed else NOTHING,
                rate(rate_measure(last.get(name, 0), lost, nothing="no conversation ended in a failure")),
            ),
        )
        for name, title in failure_titles().items()
        if name in printed or first.get(name) or last.get(name)
    )
    return PaperTable(
        title="Table 8: why answers fail, first turn against the last turn of those that never succeed",
        columns=("Paper, turn 1", "Ours, turn 1", "Paper, last turn", "Ours, last turn"),
        rows=rows,
        reasons=reasons,
        note="Ours, turn 1: the first answers of agentic conversations; the paper's are its single-turn answers.",
    )


def failure_titles() -> dict[str, str]:
    """Return the classes of failure and what they are called."""
    from tradeassay.runs.quantcode_scores import FAILURE_TITLES

    return FAILURE_TITLES


def _stages(cell: CellScores) -> tuple[Rate, ...]:
    return tuple(rate(getattr(cell.rates, stage)) for stage, _, _ in STAGE_TITLES)


def _printed(share: float) -> Rate:
    return Rate(text=f"{share:.1f}%", interval="", sort=share / 100.0)


def _sorted(rows: list[tuple[str, bool, tuple[Rate, ...]]]) -> tuple[tuple[str, bool, tuple[Rate, ...]], ...]:
    """Order by the judge's column; ours stand among the printed ones."""
    return tuple(sorted(rows, key=lambda row: -(row[2][3].sort if row[2][3].sort is not None else -1.0)))


def _sum(parts: Iterable[dict[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in parts:
        for name, count in part.items():
            found[name] = found.get(name, 0) + count
    return found
