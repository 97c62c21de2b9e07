"""The daily protocol: one decision per session, checked; after too many bad answers the day has failed."""

from tradeassay.benchmarks.daily.day import ByObservation, Daily, DailyConfig, DayConfig, complaint, day, drive
