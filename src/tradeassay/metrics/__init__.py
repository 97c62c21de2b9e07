"""Measures of a value path and of whoever made it, each with an interval or a reason for having none.

The measures are pure functions over arrays (``measures``).
A journal becomes an :class:`EpisodeSeries`, :func:`score` turns that into the panel, :func:`across_seeds` sums up
repetitions, :func:`compare_to_baseline` says whether two paths can be told apart. Nothing here knows a simulator
or a model.
"""

from tradeassay.metrics.anytime import WatchedMean, e_bh, e_value, watched_interval, watched_mean, watched_sign
from tradeassay.metrics.baseline import AgainstBaseline, compare_to_baseline, corrected, holm, nothing_to_compare
from tradeassay.metrics.bootstrap import BootstrapConfig, mean_block_length, resamples
from tradeassay.metrics.calibration import (
    Bin,
    Calibration,
    brier,
    calibration,
    calibration_curve,
    expected_calibration_error,
)
from tradeassay.metrics.catalogue import BY_ID, MEASURES, MeasureInfo
from tradeassay.metrics.cosine import cosine_interval, cosine_variance, growth_interval, mean_p_value
from tradeassay.metrics.intervals import (
    ar1_inflation,
    long_run_variance,
    rate_measure,
    significant,
    variance_inflation,
    wilson_interval,
)
from tradeassay.metrics.measures import (
    abstention_rate,
    annualised_return,
    calmar,
    cash_ratio,
    concentration,
    cost_rate,
    cumulative_return,
    downside_deviation,
    drawdowns,
    failure_rate,
    growth,
    hit_rate,
    information_ratio,
    max_drawdown,
    rejection_rate,
    sharpe,
    simple_returns,
    sortino,
    sortino_stockbench,
    turnover,
    volatility,
)
from tradeassay.metrics.multiple import Superior, lucky_share, superior, tiers
from tradeassay.metrics.overfitting import Overfitting, overfitting
from tradeassay.metrics.paired import PairedTest, overlapping_clusters, wilcoxon, wilcoxon_clustered
from tradeassay.metrics.power import (
    Design,
    PowerSummary,
    measured_design,
    minimum_detectable_ir,
    power_of,
    power_summary,
    seeds_needed,
    sessions_needed,
)
from tradeassay.metrics.ranks import CriticalDifference, critical_difference
from tradeassay.metrics.reliability import Play, PlayWords, Reliability, reliability
from tradeassay.metrics.score import SeedSummary, across_seeds, score, summarise
from tradeassay.metrics.series import EpisodeSeries, series_from_nav
from tradeassay.metrics.sharpe_inference import (
    Deflated,
    deflated_sharpe,
    expected_best_sharpe,
    minimum_track_record,
    probabilistic_sharpe,
)

__all__ = [
    "BY_ID",
    "MEASURES",
    "AgainstBaseline",
    "Bin",
    "BootstrapConfig",
    "Calibration",
    "CriticalDifference",
    "Deflated",
    "Design",
    "EpisodeSeries",
    "MeasureInfo",
    "Overfitting",
    "PairedTest",
    "Play",
    "PlayWords",
    "PowerSummary",
    "Reliability",
    "SeedSummary",
    "Superior",
    "WatchedMean",
    "abstention_rate",
    "across_seeds",
    "annualised_return",
    "ar1_inflation",
    "brier",
    "calibration",
    "calibration_curve",
    "calmar",
    "cash_ratio",
    "compare_to_baseline",
    "concentration",
    "corrected",
    "cosine_interval",
    "cosine_variance",
    "cost_rate",
    "critical_difference",
    "cumulative_return",
    "deflated_sharpe",
    "downside_deviation",
    "drawdowns",
    "e_bh",
    "e_value",
    "expected_best_sharpe",
    "expected_calibration_error",
    "failure_rate",
    "growth",
    "growth_interval",
    "hit_rate",
    "holm",
    "information_ratio",
    "long_run_variance",
    "lucky_share",
    "max_drawdown",
    "mean_block_length",
    "mean_p_value",
    "measured_design",
    "minimum_detectable_ir",
    "minimum_track_record",
    "nothing_to_compare",
    "overfitting",
    "overlapping_clusters",
    "power_of",
    "power_summary",
    "probabilistic_sharpe",
    "rate_measure",
    "rejection_rate",
    "reliability",
    "resamples",
    "score",
    "seeds_needed",
    "series_from_nav",
    "sessions_needed",
    "sharpe",
    "significant",
    "simple_returns",
    "sortino",
    "sortino_stockbench",
    "summarise",
    "superior",
    "tiers",
    "turnover",
    "variance_inflation",
    "volatility",
    "watched_interval",
    "watched_mean",
    "watched_sign",
    "wilcoxon",
    "wilcoxon_clustered",
    "wilson_interval",
]
