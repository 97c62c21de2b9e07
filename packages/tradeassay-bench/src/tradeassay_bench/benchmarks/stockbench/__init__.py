"""Implement StockBench: language models trade a portfolio of large US stocks, day by day."""

from typing import TYPE_CHECKING

from tradeassay.core.lazy import attach

if TYPE_CHECKING:
    from tradeassay_bench.benchmarks.specs import (
        STOCKBENCH as STOCKBENCH,
        STOCKBENCH_DJIA as STOCKBENCH_DJIA,
        STOCKBENCH_PAPER as STOCKBENCH_PAPER,
    )
    from tradeassay_bench.benchmarks.stockbench.day import Stockbench as Stockbench
    from tradeassay_bench.benchmarks.stockbench.panel import (
        PANEL as PANEL,
        CohortStanding as CohortStanding,
        ErrorProfile as ErrorProfile,
        SizeRow as SizeRow,
        StockbenchSetting as StockbenchSetting,
        compare_with as compare_with,
        composite as composite,
        error_profile as error_profile,
        frictionless_equal_weight as frictionless_equal_weight,
        measures_of as measures_of,
        published as published,
        published_baseline as published_baseline,
        size_study as size_study,
        standings as standings,
    )
    from tradeassay_bench.benchmarks.stockbench.specs import DJIA_20 as DJIA_20, windows as windows
    from tradeassay_bench.benchmarks.stockbench.stockbench_config import (
        INPUTS as INPUTS,
        SIZES as SIZES,
        Inputs as Inputs,
        Prompt as Prompt,
        StockbenchConfig as StockbenchConfig,
    )
else:
    __getattr__, __dir__, __all__ = attach(
        __name__,
        {
            "tradeassay_bench.benchmarks.specs": [
                "STOCKBENCH",
                "STOCKBENCH_DJIA",
                "STOCKBENCH_PAPER",
            ],
            "tradeassay_bench.benchmarks.stockbench.day": ["Stockbench"],
            "tradeassay_bench.benchmarks.stockbench.panel": [
                "PANEL",
                "CohortStanding",
                "ErrorProfile",
                "SizeRow",
                "StockbenchSetting",
                "compare_with",
                "composite",
                "error_profile",
                "frictionless_equal_weight",
                "measures_of",
                "published",
                "published_baseline",
                "size_study",
                "standings",
            ],
            "tradeassay_bench.benchmarks.stockbench.specs": ["DJIA_20", "windows"],
            "tradeassay_bench.benchmarks.stockbench.stockbench_config": [
                "INPUTS",
                "SIZES",
                "Inputs",
                "Prompt",
                "StockbenchConfig",
            ],
        },
    )
