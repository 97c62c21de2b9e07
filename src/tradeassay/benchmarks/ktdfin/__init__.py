"""KTD-Fin: what is left of a trading model when it cannot recognise the stocks and the dates?"""

from tradeassay.benchmarks.ktdfin.day import day
from tradeassay.benchmarks.ktdfin.ktdfin_config import MODES, BaselineConfig, KtdfinConfig, Mode
from tradeassay.benchmarks.ktdfin.panel import (
    DIAGNOSTICS,
    PANEL,
    KtdfinSetting,
    OrderOutcome,
    compare_with,
    order_outcomes,
    panel,
    published,
)
from tradeassay.benchmarks.ktdfin.protocol import Ktdfin
from tradeassay.benchmarks.ktdfin.specs import (
    KTDFIN,
    KTDFIN_PAPER,
    KTDFIN_US,
    KTDFIN_US_REAL,
    paper_windows,
    windows,
)
from tradeassay.benchmarks.ktdfin.tools import TOOLS
