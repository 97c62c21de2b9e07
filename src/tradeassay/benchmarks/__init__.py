"""Benchmarks: frozen statements of what is played, and the protocol of a trading day."""

from tradeassay.benchmarks.benchmark import Benchmark, NamedWindow, benchmarks, find_window, window_sets
from tradeassay.benchmarks.daily import Daily, DailyConfig, DayConfig, day, drive
from tradeassay.benchmarks.daily.specs import DAILY_ASHARE, DAILY_CRYPTO, DAILY_US, DAILY_US_REAL
from tradeassay.benchmarks.ktdfin import KTDFIN, KTDFIN_PAPER, KTDFIN_US, KTDFIN_US_REAL
from tradeassay.benchmarks.protocol import ModelProtocol, ProtocolConfig, protocols
from tradeassay.benchmarks.stockbench import STOCKBENCH, STOCKBENCH_DJIA, STOCKBENCH_PAPER
