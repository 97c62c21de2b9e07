"""The daily protocol: one decision per session, checked; after too many bad answers the day has failed."""

from tradeassay.benchmarks.daily.day import (
    ByObservation as ByObservation,
    Daily as Daily,
    DailyConfig as DailyConfig,
    DayConfig as DayConfig,
    complaint as complaint,
    day as day,
    drive as drive,
)
