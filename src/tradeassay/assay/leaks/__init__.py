"""Leak test for agents: is anything decided today moved by what happens tomorrow, and through which channel?"""

from __future__ import annotations

from tradeassay.assay.leaks.examine import leak_test, leak_test_of_episode
from tradeassay.assay.leaks.leak_result import CHANNELS, Channel, LeakFinding, LeakTestConfig, LeakTestReport
from tradeassay.assay.leaks.playing import LateStamp, late_stamps, withhold_late

__all__ = [
    "CHANNELS",
    "Channel",
    "LateStamp",
    "LeakFinding",
    "LeakTestConfig",
    "LeakTestReport",
    "late_stamps",
    "leak_test",
    "leak_test_of_episode",
    "withhold_late",
]
