"""What the rest of the house calls: a run, or report data, to a terminal or to a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tradeassay.core.errors import UserError
from tradeassay.report.adapter import from_run
from tradeassay.report.boards import TerminalReport
from tradeassay.report.data import ReportData
from tradeassay.report.page import write_page
from tradeassay.runs import CodeRun, Run

if TYPE_CHECKING:
    from rich.console import Console

    from tradeassay.runs import RunComparison


def terminal(source: Run | ReportData) -> TerminalReport:
    """Return leaderboards, badges and plain sentences as one rich renderable that fits any width."""
    return TerminalReport(_data(source, details=False))


def write_html(source: Run | CodeRun | ReportData, path: Path | None = None) -> Path:
    """Write the self-contained page and return its path (default: ``report.html`` in the run's folder)."""
    if isinstance(source, CodeRun):
        from tradeassay.report.code_page import write_code_html

        return write_code_html(source, path)
    if path is None:
        if isinstance(source, ReportData):
            raise UserError("no place for the page", mend="give a path")
        path = source.folder / "report.html"
    return write_page(_data(source), path)


def print_leaderboard(source: Run | CodeRun | ReportData) -> None:
    """Print the leaderboards on stdout; a pipe gets them at full width."""
    if isinstance(source, CodeRun):
        from tradeassay.report.code_board import print_code_board

        print_code_board(source)
        return
    _console().print(terminal(source))


def print_comparison(comparison: RunComparison) -> None:
    """Print two runs side by side on stdout."""
    from tradeassay.report.side_by_side import side_by_side

    _console().print(side_by_side(comparison))


def _console() -> Console:
    import sys

    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 160, highlight=False)


def _data(source: Run | ReportData, *, details: bool = True) -> ReportData:
    return source if isinstance(source, ReportData) else from_run(source, details=details)
