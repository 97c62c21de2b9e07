"""Reports: leaderboards for a terminal and self-contained HTML pages, written from recorded runs and assays.

Everything is written out from records of ``runs`` and ``assay``; nothing is computed here. The names are imported
on first use, because some of them are heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.core.lazy import lazily

if TYPE_CHECKING:
    from tradeassay.report.code_page import write_code_html as write_code_html
    from tradeassay.report.export_tables import paste as paste, paste_tables as paste_tables
    from tradeassay.report.formatting import PasteTable as PasteTable
    from tradeassay.report.leaderboard import (
        TerminalReport as TerminalReport,
        print_code_board as print_code_board,
        print_comparison as print_comparison,
        print_leaderboard as print_leaderboard,
        terminal as terminal,
    )
    from tradeassay.report.page import render_html as render_html, write_html as write_html
    from tradeassay.report.site import SiteReport as SiteReport, write_site as write_site
    from tradeassay.report.verdicts import print_verdicts as print_verdicts
else:
    __getattr__, __dir__, __all__ = lazily(__name__)
