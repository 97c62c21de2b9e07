"""Write reports on recorded runs and assays: terminal leaderboards and self-contained HTML pages.

Reports only format the records of ``runs`` and ``examine``. They compute nothing. Names are
imported on first use because some modules are slow to load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradeassay.core.lazy import attach

if TYPE_CHECKING:
    from tradeassay.report.verdicts import print_verdicts as print_verdicts
    from tradeassay_bench.report.code_page import write_code_html as write_code_html
    from tradeassay_bench.report.export_tables import paste as paste, paste_tables as paste_tables
    from tradeassay_bench.report.leaderboard import (
        TerminalReport as TerminalReport,
        print_code_board as print_code_board,
        print_comparison as print_comparison,
        print_leaderboard as print_leaderboard,
        terminal as terminal,
    )
    from tradeassay_bench.report.paste_cells import PasteTable as PasteTable
    from tradeassay_bench.report.run_html import (
        render_html as render_html,
        write_html as write_html,
    )
    from tradeassay_bench.report.site import SiteReport as SiteReport, write_site as write_site
else:
    __getattr__, __dir__, __all__ = attach(
        __name__,
        {
            "tradeassay_bench.report.code_page": ["write_code_html"],
            "tradeassay_bench.report.export_tables": ["paste", "paste_tables"],
            "tradeassay_bench.report.paste_cells": ["PasteTable"],
            "tradeassay_bench.report.leaderboard": [
                "TerminalReport",
                "print_code_board",
                "print_comparison",
                "print_leaderboard",
                "terminal",
            ],
            "tradeassay_bench.report.run_html": ["render_html", "write_html"],
            "tradeassay_bench.report.site": ["SiteReport", "write_site"],
            "tradeassay.report.verdicts": ["print_verdicts"],
        },
    )
