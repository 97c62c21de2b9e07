"""Implement KTD-Fin: trading by models that cannot recognise the stocks and the dates."""

from typing import TYPE_CHECKING

from tradeassay.core.lazy import attach

if TYPE_CHECKING:
    from tradeassay_bench.benchmarks.ktdfin.day import Ktdfin as Ktdfin
    from tradeassay_bench.benchmarks.ktdfin.ktdfin_config import (
        MODES as MODES,
        KtdfinConfig as KtdfinConfig,
        Mode as Mode,
    )
    from tradeassay_bench.benchmarks.ktdfin.panel import (
        DIAGNOSTICS as DIAGNOSTICS,
        PANEL as PANEL,
        KtdfinSetting as KtdfinSetting,
        OrderOutcome as OrderOutcome,
        compare_with as compare_with,
        ktdfin_panel as ktdfin_panel,
        order_outcomes as order_outcomes,
        published as published,
    )
    from tradeassay_bench.benchmarks.ktdfin.specs import (
        paper_windows as paper_windows,
        windows as windows,
    )
    from tradeassay_bench.benchmarks.ktdfin.tools import TOOLS as TOOLS
    from tradeassay_bench.benchmarks.specs import (
        KTDFIN as KTDFIN,
        KTDFIN_PAPER as KTDFIN_PAPER,
        KTDFIN_US as KTDFIN_US,
        KTDFIN_US_REAL as KTDFIN_US_REAL,
    )
else:
    __getattr__, __dir__, __all__ = attach(
        __name__,
        {
            "tradeassay_bench.benchmarks.ktdfin.day": ["Ktdfin"],
            "tradeassay_bench.benchmarks.ktdfin.ktdfin_config": ["MODES", "KtdfinConfig", "Mode"],
            "tradeassay_bench.benchmarks.ktdfin.panel": [
                "DIAGNOSTICS",
                "PANEL",
                "KtdfinSetting",
                "OrderOutcome",
                "compare_with",
                "order_outcomes",
                "ktdfin_panel",
                "published",
            ],
            "tradeassay_bench.benchmarks.ktdfin.specs": ["paper_windows", "windows"],
            "tradeassay_bench.benchmarks.ktdfin.tools": ["TOOLS"],
            "tradeassay_bench.benchmarks.specs": [
                "KTDFIN",
                "KTDFIN_PAPER",
                "KTDFIN_US",
                "KTDFIN_US_REAL",
            ],
        },
    )
