"""The papers' own tables, written out for a terminal and for the page."""

from __future__ import annotations

from collections.abc import Sequence

from tradeassay.assay.papers import StudyTable
from tradeassay.core.measure import Measure
from tradeassay.report import numbers
from tradeassay.report.formatting import MeasureShown


def written_cell(measure: Measure, form: str) -> MeasureShown:
    """Return one cell: the value, or nothing with the reason as a note."""
    if measure.value is None:
        return MeasureShown(text="", note=measure.reason or "")
    return MeasureShown(text=numbers.written(measure.value, form), value=measure.value)


def print_studies(tables: Sequence[StudyTable]) -> None:
    """Print tables on stdout, one below the other; why a cell is empty is told below its table."""
    from rich.console import Group
    from rich.text import Text

    from tradeassay.core.screen import StackedTable
    from tradeassay.core.secrets import stdout

    for one in tables:
        rows: list[tuple[str, ...]] = []
        missing: dict[str, None] = {}
        for row in one.rows:
            cells = [written_cell(cell, form) for cell, form in zip(row.cells, one.forms, strict=True)]
            missing.update(dict.fromkeys(cell.note for cell in cells if not cell.text and cell.note))
            rows.append((row.name, *(cell.text or "-" for cell in cells)))
        table = StackedTable(("", *(f">{column}" for column in one.columns)), rows, title=one.title)
        notes = [Text(note, style="dim") for note in (one.note, *(f"-: {why}" for why in missing)) if note]
        stdout().print(Group(table, *notes))
