"""Leak test for agents: is anything decided today moved by what happens tomorrow, and through which channel?"""

from __future__ import annotations

from tradeassay.assay.leaks.examine import leak_test
from tradeassay.assay.leaks.records import CHANNELS, Channel, LeakFinding, LeakTestConfig, LeakTestReport
from tradeassay.assay.leaks.time_guard import LateStamp, late_stamps, withhold_late

__all__ = [
    "CHANNELS",
    "Channel",
    "LateStamp",
    "LeakFinding",
    "LeakTestConfig",
    "LeakTestReport",
    "late_stamps",
    "leak_test",
    "withhold_late",
]
