"""KTD-Fin: what is left of a trading model when it cannot recognise the stocks and the dates?"""

from tradeassay.benchmarks.ktdfin.day import Ktdfin as Ktdfin
from tradeassay.benchmarks.ktdfin.ktdfin_config import MODES as MODES, KtdfinConfig as KtdfinConfig, Mode as Mode
from tradeassay.benchmarks.ktdfin.panel import (
    DIAGNOSTICS as DIAGNOSTICS,
    PANEL as PANEL,
    KtdfinSetting as KtdfinSetting,
    OrderOutcome as OrderOutcome,
    compare_with as compare_with,
    order_outcomes as order_outcomes,
    panel as panel,
    published as published,
)
from tradeassay.benchmarks.ktdfin.specs import (
    paper_windows as paper_windows,
    windows as windows,
)
from tradeassay.benchmarks.ktdfin.tools import TOOLS as TOOLS
from tradeassay.benchmarks.specs import (
    KTDFIN as KTDFIN,
    KTDFIN_PAPER as KTDFIN_PAPER,
    KTDFIN_US as KTDFIN_US,
    KTDFIN_US_REAL as KTDFIN_US_REAL,
)
