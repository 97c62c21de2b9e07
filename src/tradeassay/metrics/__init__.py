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
from tradeassay.metrics.long_run import ar1_inflation, long_run_variance, variance_inflation
from tradeassay.metrics.multiple import benjamini_hochberg, simultaneous_differences, simultaneous_intervals
from tradeassay.metrics.overfitting import Overfitting, overfitting
from tradeassay.metrics.paired import PairedTest, overlapping_clusters, wilcoxon, wilcoxon_clustered
from tradeassay.metrics.power import (
    Design,
    Foresight,
    foresight,
    measured_design,
    minimum_detectable_ir,
    power_of,
    seeds_needed,
    sessions_needed,
)
from tradeassay.metrics.power_simulation import simulated_power
from tradeassay.metrics.ranks import CriticalDifference, RankProbabilities, critical_difference, rank_probabilities
from tradeassay.metrics.rates import rate_measure
from tradeassay.metrics.ratios import (
    calmar,
    downside_deviation,
    information_ratio,
    sharpe,
    sortino,
    sortino_stockbench,
)
from tradeassay.metrics.returns import annualised_return, cumulative_return, growth, simple_returns, volatility
from tradeassay.metrics.score import score
from tradeassay.metrics.seeds import SeedSummary, across_seeds, summarise
from tradeassay.metrics.series import EpisodeSeries, series_from_nav
from tradeassay.metrics.sharpe_inference import (
    Deflated,
    deflated_among,
    deflated_sharpe,
    effective_trials,
    expected_best_sharpe,
    minimum_track_record,
    probabilistic_sharpe,
)
from tradeassay.metrics.studentised import sharpe_difference, studentised_interval
from tradeassay.metrics.style import cash_ratio, concentration, cost_rate, turnover
from tradeassay.metrics.superior import ConfidenceSet, Superior, model_confidence_set, superior

__all__ = [
    "BY_ID",
    "MEASURES",
    "Bin",
    "BootstrapConfig",
    "Comparison",
    "ConfidenceSet",
    "CriticalDifference",
    "Deflated",
    "Design",
    "EpisodeSeries",
    "Foresight",
    "MeasureInfo",
    "Overfitting",
    "PairedTest",
    "RankProbabilities",
    "SeedSummary",
    "Superior",
    "abstention_rate",
    "across_seeds",
    "annualised_return",
    "ar1_inflation",
    "benjamini_hochberg",
    "brier",
    "calibration",
    "calibration_curve",
    "calmar",
    "cash_ratio",
    "compare_to_baseline",
    "concentration",
    "cost_rate",
    "critical_difference",
    "cumulative_return",
    "deflated_among",
    "deflated_sharpe",
    "downside_deviation",
    "drawdowns",
    "effective_trials",
    "expected_best_sharpe",
    "expected_calibration_error",
    "failure_rate",
    "foresight",
    "growth",
    "hit_rate",
    "holm",
    "information_ratio",
    "long_run_variance",
    "max_drawdown",
    "mean_block_length",
    "measured_design",
    "minimum_detectable_ir",
    "minimum_track_record",
    "model_confidence_set",
    "nothing_to_compare",
    "overfitting",
    "overlapping_clusters",
    "power_of",
    "probabilistic_sharpe",
    "rank_probabilities",
    "rate_measure",
    "rejection_rate",
    "resamples",
    "score",
    "seeds_needed",
    "series_from_nav",
    "sessions_needed",
    "sharpe",
    "sharpe_difference",
    "significant",
    "simple_returns",
    "simulated_power",
    "simultaneous_differences",
    "simultaneous_intervals",
    "sortino",
    "sortino_stockbench",
    "studentised_interval",
    "summarise",
    "superior",
    "turnover",
    "variance_inflation",
    "volatility",
    "wilcoxon",
    "wilcoxon_clustered",
    "wilson_interval",
]
