"""Benchmarks: frozen statements of what is played, and the protocol of a trading day."""

from __future__ import annotations

from tradeassay.benchmarks.benchmark import Benchmark, benchmarks
from tradeassay.benchmarks.daily import DayConfig, day, drive
from tradeassay.benchmarks.daily.specs import DAILY_ASHARE, DAILY_CRYPTO, DAILY_US, DAILY_US_REAL

__all__ = [
    "DAILY_ASHARE",
    "DAILY_CRYPTO",
    "DAILY_US",
    "DAILY_US_REAL",
    "Benchmark",
    "DayConfig",
    "benchmarks",
    "day",
    "drive",
]
