"""Reports: leaderboards for a terminal and one self-contained HTML page, made from recorded runs.

``print_leaderboard(run)`` and ``write_html(run)`` are what a command needs; ``from_run`` gives the plain data
between, :class:`ReportData`, from which both are made. Modules are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tradeassay.report.adapter import from_run
    from tradeassay.report.boards import TerminalReport
    from tradeassay.report.data import (
        AgentData,
        CellData,
        DecisionNote,
        HoldingsOverTime,
        ReportData,
        Trade,
    )
    from tradeassay.report.page import render_html
    from tradeassay.report.show import print_comparison, print_leaderboard, terminal, write_html

_HOMES = {
    "AgentData": "data",
    "CellData": "data",
    "DecisionNote": "data",
    "HoldingsOverTime": "data",
    "ReportData": "data",
    "TerminalReport": "boards",
    "Trade": "data",
    "from_run": "adapter",
    "print_comparison": "show",
    "print_leaderboard": "show",
    "render_html": "page",
    "terminal": "show",
    "write_html": "show",
}

__all__ = [
    "AgentData",
    "CellData",
    "DecisionNote",
    "HoldingsOverTime",
    "ReportData",
    "TerminalReport",
    "Trade",
    "from_run",
    "print_comparison",
    "print_leaderboard",
    "render_html",
    "terminal",
    "write_html",
]


def __getattr__(name: str) -> Any:
    """Import a public name from the module that holds it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
