"""Define the benchmark suites and the protocols through which models run them.

The suites of the papers are imported on first use.
"""

from tradeassay_bench.account import venues
from tradeassay_bench.benchmarks.benchmark import (
    Benchmark as Benchmark,
    NamedWindow as NamedWindow,
    benchmarks as benchmarks,
    find_window as find_window,
    window_sets as window_sets,
)
from tradeassay_bench.benchmarks.daily import (
    Daily as Daily,
    DailyConfig as DailyConfig,
    DayConfig as DayConfig,
    day as day,
    play_day as play_day,
)
from tradeassay_bench.benchmarks.protocol import (
    ModelProtocol as ModelProtocol,
    ProtocolConfig as ProtocolConfig,
    protocols as protocols,
)
from tradeassay_bench.benchmarks.specs import (
    DAILY_ASHARE as DAILY_ASHARE,
    DAILY_CRYPTO as DAILY_CRYPTO,
    DAILY_US as DAILY_US,
    DAILY_US_REAL as DAILY_US_REAL,
    KTDFIN as KTDFIN,
    KTDFIN_PAPER as KTDFIN_PAPER,
    KTDFIN_US as KTDFIN_US,
    KTDFIN_US_REAL as KTDFIN_US_REAL,
    STOCKBENCH as STOCKBENCH,
    STOCKBENCH_DJIA as STOCKBENCH_DJIA,
    STOCKBENCH_PAPER as STOCKBENCH_PAPER,
)

_KTDFIN, _STOCKBENCH = f"{__name__}.ktdfin", f"{__name__}.stockbench"
protocols.declare("ktdfin", f"{_KTDFIN}.day")
protocols.declare("stockbench", f"{_STOCKBENCH}.day")
window_sets.declare("ktdfin", f"{_KTDFIN}.specs")
window_sets.declare("stockbench", f"{_STOCKBENCH}.specs")
venues.declare("ashare-ktdfin-v1", f"{_KTDFIN}.specs")
venues.declare("us-stockbench-v1", f"{_STOCKBENCH}.specs")
