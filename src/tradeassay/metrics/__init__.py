"""Measures of a value path and of the one who made it, each with an interval or a reason for having none.

The measures are pure functions over arrays (``returns``, ``drawdown``, ``ratios``, ``style``, ``conduct``).
A journal becomes an :class:`EpisodeSeries`, :func:`score` turns that into the panel, :func:`across_seeds` sums up
repetitions, :func:`compare_to_baseline` says whether two paths can be told apart. Nothing here knows a simulator
or a model.
"""

from tradeassay.metrics.baseline import Comparison, compare_to_baseline, holm, nothing_to_compare
from tradeassay.metrics.block_length import mean_block_length
from tradeassay.metrics.bootstrap import BootstrapConfig, resamples
from tradeassay.metrics.calibration import Bin, brier, calibration, calibration_curve, expected_calibration_error
from tradeassay.metrics.catalogue import BY_ID, MEASURES, MeasureInfo
from tradeassay.metrics.conduct import abstention_rate, failure_rate, hit_rate, rejection_rate
from tradeassay.metrics.drawdown import drawdowns, max_drawdown
from tradeassay.metrics.intervals import significant, wilson_interval
from tradeassay.metrics.rates import rate_measure
from tradeassay.metrics.ratios import (
    calmar,
    downside_deviation,
    information_ratio,
    sharpe,
    sortino,
    sortino_stockbench,
)
from tradeassay.metrics.records import Holdings, holdings_from_records, series_from_records
from tradeassay.metrics.returns import annualised_return, cumulative_return, growth, simple_returns, volatility
from tradeassay.metrics.score import score
from tradeassay.metrics.seeds import SeedSummary, across_seeds, summarise
from tradeassay.metrics.series import EpisodeSeries, series_from_nav
from tradeassay.metrics.style import cash_ratio, concentration, cost_rate, turnover

__all__ = [
    "BY_ID",
    "MEASURES",
    "Bin",
    "BootstrapConfig",
    "Comparison",
    "EpisodeSeries",
    "Holdings",
    "MeasureInfo",
    "SeedSummary",
    "abstention_rate",
    "across_seeds",
    "annualised_return",
    "brier",
    "calibration",
    "calibration_curve",
    "calmar",
    "cash_ratio",
    "compare_to_baseline",
    "concentration",
    "cost_rate",
    "cumulative_return",
    "downside_deviation",
    "drawdowns",
    "expected_calibration_error",
    "failure_rate",
    "growth",
    "hit_rate",
    "holdings_from_records",
    "holm",
    "information_ratio",
    "max_drawdown",
    "mean_block_length",
    "nothing_to_compare",
    "rate_measure",
    "rejection_rate",
    "resamples",
    "score",
    "series_from_nav",
    "series_from_records",
    "sharpe",
    "significant",
    "simple_returns",
    "sortino",
    "sortino_stockbench",
    "summarise",
    "turnover",
    "volatility",
    "wilson_interval",
]
