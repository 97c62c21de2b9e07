"""Implement the daily protocol: one checked decision per session, with limited attempts."""

from tradeassay_bench.benchmarks.daily.day import (
    ByObservation as ByObservation,
    Daily as Daily,
    DailyConfig as DailyConfig,
    DayConfig as DayConfig,
    complaint as complaint,
    day as day,
    play_day as play_day,
)
