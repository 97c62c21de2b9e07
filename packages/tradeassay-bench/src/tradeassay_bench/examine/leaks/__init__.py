"""Test whether an agent's decisions depend on future data, and through which channel."""

from __future__ import annotations

from tradeassay_bench.examine.leaks.examine import leak_test as leak_test
from tradeassay_bench.examine.leaks.leak_result import (
    CHANNELS as CHANNELS,
    LeakFinding as LeakFinding,
    LeakTestConfig as LeakTestConfig,
    LeakTestReport as LeakTestReport,
)
from tradeassay_bench.examine.leaks.playing import (
    late_stamps as late_stamps,
    withhold_late as withhold_late,
)
