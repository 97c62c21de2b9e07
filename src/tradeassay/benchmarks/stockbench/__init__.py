"""StockBench: can a language model trade a portfolio of large US stocks, day by day?"""

from tradeassay.benchmarks.stockbench.day import Stockbench, dialogue
from tradeassay.benchmarks.stockbench.panel import (
    PANEL,
    CohortStanding,
    ErrorProfile,
    SizeRow,
    StockbenchSetting,
    compare_with,
    composite,
    error_profile,
    frictionless_equal_weight,
    measures_of,
    published,
    published_baseline,
    size_study,
    standings,
)
from tradeassay.benchmarks.stockbench.specs import (
    BASELINES,
    DJIA_20,
    DJIA_REST,
    STOCKBENCH,
    STOCKBENCH_DJIA,
    STOCKBENCH_DJIA_PAPER,
    STOCKBENCH_DOWN,
    STOCKBENCH_PAPER,
    STOCKBENCH_SIZES,
    STOCKBENCH_UP,
    market_of,
    windows,
)
from tradeassay.benchmarks.stockbench.stockbench_config import (
    INPUTS,
    PROMPTS,
    SIZES,
    Inputs,
    Prompt,
    StockbenchConfig,
)
