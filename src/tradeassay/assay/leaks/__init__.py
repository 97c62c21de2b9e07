"""Leak test for agents: is anything decided today moved by what happens tomorrow, and through which channel?"""

from __future__ import annotations

from tradeassay.assay.leaks.examine import leak_test as leak_test
from tradeassay.assay.leaks.leak_result import (
    CHANNELS as CHANNELS,
    LeakFinding as LeakFinding,
    LeakTestConfig as LeakTestConfig,
    LeakTestReport as LeakTestReport,
)
from tradeassay.assay.leaks.playing import late_stamps as late_stamps, withhold_late as withhold_late
