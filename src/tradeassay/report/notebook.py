"""What a notebook shows of a run or an assay: a piece of HTML, every text in it escaped, without scripts."""

from __future__ import annotations

from markupsafe import Markup

from tradeassay.assay.verdict import Assay
from tradeassay.assay.verdict.record import AgentAssay
from tradeassay.core.errors import RunError, UserError
from tradeassay.report import numbers
from tradeassay.report.charts import waterfall_svg
from tradeassay.report.export_tables import paste_tables
from tradeassay.report.formatting import PasteTable
from tradeassay.report.verdicts import PARTS, in_order
from tradeassay.runs import CodeRun, Run

_MOST = 20
"""Tables and verdicts that one piece shows."""
_STYLE = (
    "<style>.tradeassay{font-family:system-ui,sans-serif;max-width:60rem}.tradeassay th,.tradeassay td"
    "{text-align:left;padding:.2em .7em .2em 0;white-space:nowrap}.tradeassay small{opacity:.75}"
    ".tradeassay svg{max-width:40rem;font-size:11px}.tradeassay rect.gain{fill:#3a9bdc}.tradeassay rect.loss"
    "{fill:#f08a4b}.tradeassay rect.sum{fill:#7a8594}.tradeassay svg text{text-anchor:middle;fill:currentColor}"
    ".tradeassay svg line{stroke:currentColor;opacity:.3}</style>"
)


def run_piece(run: Run | CodeRun) -> str:
    """Return a run's leaderboards; one that is not finished says how far it is."""
    head = Markup("<p><b>{}</b> <small>{}</small></p>").format(run.name, run.folder)
    try:
        tables = paste_tables(run)
    except RunError as error:
        return _whole(head, Markup("<p>{}</p>").format(str(error)))
    more = Markup("<p><small>and {} more</small></p>").format(len(tables) - _MOST) if len(tables) > _MOST else ""
    return _whole(head, *(_table(table) for table in tables[:_MOST]), more)


def assay_piece(assay: Assay) -> str:
    """Return the verdicts: their sentence, the drawing of what the return is made of, and the parts."""
    parts = []
    for one in in_order(assay)[:_MOST]:
        parts.append(Markup("<p><b>{}</b>: {}</p>").format(one.verdict.label, one.verdict.sentence))
        drawing = waterfall_svg(one)
        if drawing is not None:
            parts.append(drawing)
        made = [(title, one.parts[name]) for name, title, _ in PARTS[1:] if name in one.parts]
        entries = [("Return", one.total), *made]
        cells = Markup("").join(
            Markup("<td>{} <b>{}</b></td>").format(title, numbers.written(measure.value, "change"))
            for title, measure in entries
            if measure.value is not None
        )
        parts.append(Markup("<table><tr>{}</tr></table>").format(cells))
        if one.verdict.limits:
            parts.append(Markup("<p><small>{}</small></p>").format("; ".join(one.verdict.limits)))
    parts += [Markup("<p><small>{}</small></p>").format(note) for note in assay.notes]
    return _whole(*parts)


def drawing_piece(one: AgentAssay) -> str:
    """Return the steps from zero to the return with their intervals; raises :class:`UserError` where none are."""
    drawing = waterfall_svg(one)
    if drawing is None:
        raise UserError(f"the return of {one.agent} is not taken apart", hint=one.verdict.sentence)
    return _whole(drawing)


def _table(table: PasteTable) -> str:
    head = Markup("").join(Markup("<th>{}</th>").format(column) for column in table.columns)
    rows = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(Markup('<td title="{}">{}</td>').format(cell.reason or "", cell.text) for cell in row)
        )
        for row in table.rows
    )
    unranked = [
        f"{row[table.named].text} is not ranked: {why}."
        for row in table.rows
        if (why := table.unranked(row)) is not None
    ]
    notes = Markup("").join(Markup("<br><small>{}</small>").format(note) for note in (*unranked, *table.notes))
    return Markup(
        '<p>{}</p><div style="overflow-x:auto"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>'
        "<p>{}</p>"
    ).format(table.title, head, rows, notes)


def _whole(*parts: str) -> str:
    return str(Markup('<div class="tradeassay">') + Markup(_STYLE) + Markup("").join(parts) + Markup("</div>"))
