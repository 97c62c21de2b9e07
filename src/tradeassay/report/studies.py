"""The papers' own tables, written out for a terminal and for the page."""

from __future__ import annotations

from collections.abc import Sequence

from tradeassay.assay.papers import StudyTable
from tradeassay.core.measure import Measure
from tradeassay.report import numbers
from tradeassay.report.formatting import MeasureShown

_WIDEST_NAME = 24


def written_cell(measure: Measure, form: str) -> MeasureShown:
    """Return one cell: the value, or nothing with the reason as a note."""
    if measure.value is None:
        return MeasureShown(text="", note=measure.reason or "")
    return MeasureShown(text=numbers.written(measure.value, form), value=measure.value)


def print_studies(tables: Sequence[StudyTable]) -> None:
    """Print tables on stdout, one below the other; why a cell is empty is told below its table."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from tradeassay.core.secrets import stdout

    for one in tables:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", title=Text(one.title))
        longest = max((len(row.name) for row in one.rows), default=0)
        table.add_column("", overflow="fold", min_width=min(longest, _WIDEST_NAME))
        for column in one.columns:
            table.add_column(column, justify="right", overflow="fold")
        missing: dict[str, None] = {}
        for row in one.rows:
            cells = [written_cell(cell, form) for cell, form in zip(row.cells, one.forms, strict=True)]
            missing.update(dict.fromkeys(cell.note for cell in cells if not cell.text and cell.note))
            table.add_row(Text(row.name), *(Text(cell.text or "-") for cell in cells))
        notes = [Text(note, style="dim") for note in (one.note, *(f"-: {why}" for why in missing)) if note]
        stdout().print(Group(table, *notes))
