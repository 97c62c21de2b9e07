"""Reports: leaderboards for a terminal and self-contained HTML pages, written from recorded runs and assays.

Everything is written out from records of ``runs`` and ``assay``; nothing is computed here. Modules are imported on
first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tradeassay.report.code_board import print_check, print_code_board, print_evaluation
    from tradeassay.report.code_page import write_code_html
    from tradeassay.report.run_board import TerminalReport, print_comparison, print_leaderboard, terminal
    from tradeassay.report.run_page import render_html, write_html
    from tradeassay.report.systrade_page import write_check_html
    from tradeassay.report.verdicts import print_verdicts, write_verdicts

_HOMES = {
    "TerminalReport": "run_board",
    "print_check": "code_board",
    "print_code_board": "code_board",
    "print_comparison": "run_board",
    "print_evaluation": "code_board",
    "print_leaderboard": "run_board",
    "print_verdicts": "verdicts",
    "render_html": "run_page",
    "terminal": "run_board",
    "write_check_html": "systrade_page",
    "write_code_html": "code_page",
    "write_html": "run_page",
    "write_verdicts": "verdicts",
}

__all__ = [
    "TerminalReport",
    "print_check",
    "print_code_board",
    "print_comparison",
    "print_evaluation",
    "print_leaderboard",
    "print_verdicts",
    "render_html",
    "terminal",
    "write_check_html",
    "write_code_html",
    "write_html",
    "write_verdicts",
]


def __getattr__(name: str) -> Any:
    """Import a public name from the module that holds it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
