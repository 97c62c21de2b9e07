"""Display an assay in a notebook as a piece of HTML with escaped text and without scripts."""

from __future__ import annotations

from markupsafe import Markup

from tradeassay.core.errors import UserError
from tradeassay.report.charts import waterfall_svg
from tradeassay.report.verdicts import PARTS, in_order, value_of, written_of
from tradeassay.verdict import Assay
from tradeassay.verdict.record import AgentAssay
from tradeassay.verdict.statement import QUANTITIES

MOST = 20
"""Largest number of tables and verdicts in one piece of HTML."""
_STYLE = (
    "<style>.tradeassay{font-family:system-ui,sans-serif;max-width:60rem}.tradeassay "
    "th,.tradeassay td"
    "{text-align:left;padding:.2em .7em .2em 0;white-space:nowrap}.tradeassay small{opacity:.75}"
    ".tradeassay svg{max-width:40rem;font-size:11px}.tradeassay rect.gain{fill:#3a9bdc}.tradeassay "
    "rect.loss"
    "{fill:#f08a4b}.tradeassay rect.sum{fill:#7a8594}.tradeassay svg "
    "text{text-anchor:middle;fill:currentColor}"
    ".tradeassay svg line{stroke:currentColor;opacity:.3}</style>"
)


def assay_piece(assay: Assay) -> str:
    """Return the verdicts with sentence, waterfall chart and parts."""
    parts = []
    for account in in_order(assay)[:MOST]:
        parts.append(
            Markup("<p><b>{}</b>: {}</p>").format(account.verdict.label, account.verdict.sentence)
        )
        drawing = waterfall_svg(account)
        if drawing is not None:
            parts.append(drawing)
        cells = Markup("").join(
            Markup("<td>{} <b>{}</b></td>").format(
                QUANTITIES[quantity].title, written_of(account, quantity)
            )
            for quantity in ("return", *PARTS)
            if value_of(account, quantity) is not None
        )
        parts.append(Markup("<table><tr>{}</tr></table>").format(cells))
        if account.verdict.limits:
            parts.append(
                Markup("<p><small>{}</small></p>").format("; ".join(account.verdict.limits))
            )
    parts += [Markup("<p><small>{}</small></p>").format(note) for note in assay.notes]
    return whole(*parts)


def drawing_piece(account: AgentAssay) -> str:
    """Return the waterfall chart of the return with intervals.

    Raises :class:`UserError` if the return has no parts.
    """
    drawing = waterfall_svg(account)
    if drawing is None:
        raise UserError(
            f"the return of {account.agent} could not be split into parts",
            hint=account.verdict.sentence,
        )
    return whole(drawing)


def whole(*parts: str) -> str:
    """Return the parts as one piece of HTML with its style."""
    return str(
        Markup('<div class="tradeassay">')
        + Markup(_STYLE)
        + Markup("").join(parts)
        + Markup("</div>")
    )
