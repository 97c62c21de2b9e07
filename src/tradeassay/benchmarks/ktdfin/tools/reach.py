"""Which names a tool answers for: the members of the index, and what is held."""

from __future__ import annotations

from tradeassay.benchmarks.ktdfin.desk import Desk
from tradeassay.benchmarks.ktdfin.tools.tool import ToolRefused
from tradeassay.benchmarks.ktdfin.words import Stock


def look_up(desk: Desk, stock: Stock) -> int:
    """Return a stock's column; raises :class:`ToolRefused` for one that is out of reach."""
    if not desk.in_reach(stock):
        raise ToolRefused(
            "no such stock id in the universe or the portfolio", mend="use an id exactly as it was shown"
        )
    return desk.column(stock)
