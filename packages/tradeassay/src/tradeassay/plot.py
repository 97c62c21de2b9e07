"""Charts of a verdict for notebooks and papers, as the SVG of our pages without further packages.

::

    tradeassay.plot.made_of(tradeassay.assay(frame, benchmark=spy))
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tradeassay.core.errors import UserError

if TYPE_CHECKING:
    from tradeassay.verdict import Assay

__all__ = ["Drawing", "made_of"]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart that a notebook displays. ``save`` writes it as a page."""

    html: str

    def _repr_html_(self) -> str:
        return self.html

    def save(self, path: Path | str) -> Path:
        from tradeassay.report.shell import write_page

        return write_page(Path(path), f"<!doctype html><meta charset=utf-8>{self.html}")


def made_of(assay: Assay | object, agent: str | None = None) -> Drawing:
    """Return a waterfall chart of the parts of one account's return, with intervals.

    ``agent`` selects one of several accounts. Raises :class:`UserError` if the return could not be
    split into parts.
    """
    from tradeassay.report.notebook import drawing_piece
    from tradeassay.verdict import Assay

    if not isinstance(assay, Assay):
        hint = "judge it first: made_of(tradeassay.assay(...))"
        raise UserError(f"a {type(assay).__name__} is not a verdict", hint=hint)
    found = [
        one
        for one in assay.agents
        if agent is None or one.agent == agent or one.agent.endswith(f": {agent}")
    ]
    if len(found) != 1:
        names = ", ".join(dict.fromkeys(one.agent for one in assay.agents))
        raise UserError("several accounts were judged", hint=f"give agent=, one of {names}")
    return Drawing(drawing_piece(found[0]))
