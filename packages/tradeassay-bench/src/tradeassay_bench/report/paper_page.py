"""Write a paper with our results: one page, and every table as Markdown, LaTeX and CSV."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from markupsafe import Markup

from tradeassay.core.files import write_atomic
from tradeassay.report.charts import INDEX, ChartLook, Curve, Equity, LineStyle, line_chart, styles
from tradeassay.report.shell import render_page, write_page
from tradeassay_bench.benchmarks.exhibits import Curves, FilledExhibit, PaperPage
from tradeassay_bench.core.tables import Table
from tradeassay_bench.report.code_page import pasted_row, plain_rows
from tradeassay_bench.report.export_tables import write_tables
from tradeassay_bench.report.paste_cells import PasteTable
from tradeassay_bench.runs.store.folder import folder_in_commands

_FILES = {"md": "md", "latex": "tex", "csv": "csv"}


def write_paper(page: PaperPage, folder: Path, badges: Sequence[tuple[str, str]] = ()) -> Path:
    """Write ``paper.html`` and its tables (in ``tables/``) into a folder. Return the page's path.

    ``badges`` contains the caveats for the numbers of the page.
    """
    made = folder / "tables"
    made.mkdir(parents=True, exist_ok=True)
    for place, shelf in enumerate(page.exhibits, 1):
        tables = tuple(_pasted(shelf, table, page, badges) for table in shelf.ours.tables)
        name = f"{place:02d}-{re.sub(r'[^a-z0-9]+', '-', shelf.exhibit.id)}"
        for form, ending in _FILES.items() if tables else ():
            text = write_tables(tables, form, (page.paper,))  # type: ignore[arg-type]  # one of the forms
            write_atomic(made / f"{name}.{ending}", text.encode())
    curves = chain.from_iterable(filled.ours.curves for filled in page.exhibits)
    lines = chain.from_iterable(drawn.lines for drawn in curves)
    names = list(dict.fromkeys(name for name, _ in lines))
    look = styles(names, "") | {name: INDEX for name in names if name.endswith("(index)")}
    charts = {
        one.exhibit.id: [day_chart(c, look) for c in one.ours.curves if not c.steps]
        for one in page.exhibits
    }
    check = f"tradeassay verify {folder_in_commands(folder)}"
    context = {"page": page, "badges": badges, "look": look, "charts": charts, "check": check}
    return write_page(
        folder / "paper.html", render_page("paper.html.j2", context, scripts=("charts.js",))
    )


def day_chart(curves: Curves, look: dict[str, LineStyle]) -> Markup:
    lines = tuple(Curve(entry=name, label=name, returns=values) for name, values in curves.lines)
    names = ", ".join(name for name, _ in curves.lines)
    about = f"{len(lines)} lines from {curves.x[0]} to {curves.x[-1]}: {names}"
    return line_chart(
        Equity(days=curves.x, curves=lines, sessions=len(curves.x)), ChartLook(styles=look), about
    )


def _pasted(
    shelf: FilledExhibit, table: Table, page: PaperPage, badges: Sequence[tuple[str, str]]
) -> PasteTable:
    """Return a paper's table with its caveats as footnotes."""
    rows = tuple(map(pasted_row, table.rows))
    notes = [
        shelf.exhibit.about + ".",
        *([table.note] if table.note else []),
        f"Comparable with the printed values: {shelf.ours.comparable}.",
        *(f"{text[0].upper()}{text[1:]}." for _, text in badges),
        page.source,
    ]
    columns = ("row" if not table.columns[0] else table.columns[0], *table.columns[1:])
    return PasteTable(f"{shelf.exhibit.number}: {table.title}", columns, rows, tuple(notes))


def print_paper(page: PaperPage, *, only: bool = False) -> None:
    """Print the tables of a paper on stdout in the paper's order.

    ``only`` omits tables without our numbers. The reasons for empty cells are printed below their
    table.
    """
    from rich.console import Group
    from rich.text import Text

    from tradeassay.core.screen import StackedTable, stdout

    if page.shared:
        stdout().print(
            Text(f"nothing here is comparable, because {'; '.join(page.shared)}", style="dim"), ""
        )
    for one in page.exhibits:
        filled = bool(one.ours.tables or one.ours.curves)
        if only and not filled:
            continue
        stdout().print(Text(f"{one.exhibit.number}: {one.exhibit.about}", style="bold"))
        for table in one.ours.tables:
            columns = (table.columns[0], *(f">{column}" for column in table.columns[1:]))
            measures = [cell.measure for cell in chain.from_iterable(r.cells for r in table.rows)]
            reasons = (measure.reason for measure in measures if measure is not None)
            missing = [
                f"n/a: {why}" for why in dict.fromkeys(reason for reason in reasons if reason)
            ]
            notes = [
                Text(note, style="dim") for note in (table.note, *table.unranked, *missing) if note
            ]
            stdout().print(
                Group(StackedTable(columns, plain_rows(table), title=table.title), *notes)
            )
        if one.ours.curves and not one.ours.tables:
            stdout().print(Text("drawn on the page", style="dim"))
        words = (
            f"comparable: {page.comparable(one.ours)}"
            if filled
            else f"not made: {one.ours.missing}"
        )
        stdout().print(Text(words, style="dim"), "")
