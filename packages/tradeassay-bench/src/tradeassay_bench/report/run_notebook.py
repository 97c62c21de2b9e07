"""Display a run in a notebook: its leaderboards as HTML without scripts, with all text escaped."""

from __future__ import annotations

from markupsafe import Markup

from tradeassay.report.notebook import MOST, whole
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.report.export_tables import paste_tables
from tradeassay_bench.report.paste_cells import PasteTable
from tradeassay_bench.runs import CodeRun, Run


def run_piece(run: Run | CodeRun) -> str:
    """Return a run's leaderboards as HTML. For an unfinished run, return its progress."""
    head = Markup("<p><b>{}</b> <small>{}</small></p>").format(run.name, run.folder)
    try:
        tables = paste_tables(run)
    except RunError as error:
        return whole(head, Markup("<p>{}</p>").format(str(error)))
    more = (
        Markup("<p><small>and {} more</small></p>").format(len(tables) - MOST)
        if len(tables) > MOST
        else ""
    )
    return whole(head, *(_table(table) for table in tables[:MOST]), more)


def _table(table: PasteTable) -> str:
    head = Markup("").join(Markup("<th>{}</th>").format(column) for column in table.columns)
    rows = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(
                Markup('<td title="{}">{}</td>').format(cell.reason or "", cell.text)
                for cell in row
            )
        )
        for row in table.rows
    )
    unranked = [
        f"{row[table.named].text} is not ranked: {why}."
        for row in table.rows
        if (why := table.unranked(row)) is not None
    ]
    notes = Markup("").join(
        Markup("<br><small>{}</small>").format(note) for note in (*unranked, *table.notes)
    )
    return Markup(
        "<p>{}</p><div "
        'style="overflow-x:auto"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>'
        "<p>{}</p>"
    ).format(table.title, head, rows, notes)
