"""The daily protocol: one decision per session, checked, asked again with the reason, then counted as failed."""

from __future__ import annotations

from tradeassay.benchmarks.daily.check import complaint
from tradeassay.benchmarks.daily.day import ByObservation, DayConfig, day
from tradeassay.benchmarks.daily.drive import broken, drive

__all__ = ["ByObservation", "DayConfig", "broken", "complaint", "day", "drive"]
