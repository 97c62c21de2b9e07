"""Measures of a value path and of its agent, each with an interval or a reason for its absence.

The measures are pure functions over arrays (``measures``). A journal becomes an
:class:`EpisodeSeries`. :func:`score` computes the panel of measures from it. :func:`across_seeds`
summarises repetitions. :func:`compare_to_baseline` tests whether two paths differ. This package
does not depend on a simulator or a model.
"""

from tradeassay.metrics.anytime import (
    WatchedMean as WatchedMean,
    e_bh as e_bh,
    e_value as e_value,
    watched_interval as watched_interval,
    watched_mean as watched_mean,
    watched_sign as watched_sign,
)
from tradeassay.metrics.baseline import (
    AgainstBaseline as AgainstBaseline,
    compare_to_baseline as compare_to_baseline,
    corrected as corrected,
    holm as holm,
    nothing_to_compare as nothing_to_compare,
)
from tradeassay.metrics.calibration import (
    Bin as Bin,
    Calibration as Calibration,
    brier as brier,
    calibration as calibration,
    calibration_curve as calibration_curve,
    expected_calibration_error as expected_calibration_error,
)
from tradeassay.metrics.catalogue import (
    BY_ID as BY_ID,
    MEASURES as MEASURES,
    MeasureInfo as MeasureInfo,
)
from tradeassay.metrics.cosine import (
    cosine_interval as cosine_interval,
    cosine_variance as cosine_variance,
    growth_interval as growth_interval,
    mean_p_value as mean_p_value,
)
from tradeassay.metrics.intervals import (
    BootstrapConfig as BootstrapConfig,
    ar1_inflation as ar1_inflation,
    long_run_variance as long_run_variance,
    mean_block_length as mean_block_length,
    rate_measure as rate_measure,
    resamples as resamples,
    significant as significant,
    variance_inflation as variance_inflation,
    wilson_interval as wilson_interval,
)
from tradeassay.metrics.measures import (
    abstention_rate as abstention_rate,
    annualised_return as annualised_return,
    calmar as calmar,
    cash_ratio as cash_ratio,
    concentration as concentration,
    cost_rate as cost_rate,
    cumulative_return as cumulative_return,
    downside_deviation as downside_deviation,
    drawdowns as drawdowns,
    failure_rate as failure_rate,
    growth as growth,
    hit_rate as hit_rate,
    information_ratio as information_ratio,
    max_drawdown as max_drawdown,
    rejection_rate as rejection_rate,
    sharpe as sharpe,
    simple_returns as simple_returns,
    sortino as sortino,
    sortino_stockbench as sortino_stockbench,
    turnover as turnover,
    volatility as volatility,
)
from tradeassay.metrics.multiple import (
    Overfitting as Overfitting,
    Superior as Superior,
    lucky_share as lucky_share,
    overfitting as overfitting,
    superior as superior,
    tiers as tiers,
)
from tradeassay.metrics.paired import (
    PairedTest as PairedTest,
    overlapping_clusters as overlapping_clusters,
    wilcoxon as wilcoxon,
    wilcoxon_clustered as wilcoxon_clustered,
)
from tradeassay.metrics.power import (
    LEAST_RATIO as LEAST_RATIO,
    Design as Design,
    PowerSummary as PowerSummary,
    measured_design as measured_design,
    minimum_detectable_ratio as minimum_detectable_ratio,
    power_of as power_of,
    power_summary as power_summary,
    seeds_needed as seeds_needed,
    sessions_needed as sessions_needed,
)
from tradeassay.metrics.ranks import (
    CriticalDifference as CriticalDifference,
    critical_difference as critical_difference,
)
from tradeassay.metrics.reliability import (
    Play as Play,
    PlayWords as PlayWords,
    Reliability as Reliability,
    reliability as reliability,
)
from tradeassay.metrics.score import (
    EpisodeSeries as EpisodeSeries,
    SeedSummary as SeedSummary,
    across_seeds as across_seeds,
    score as score,
    series_from_nav as series_from_nav,
    summarise as summarise,
)
from tradeassay.metrics.sharpe_inference import (
    Deflated as Deflated,
    deflated_sharpe as deflated_sharpe,
    expected_best_sharpe as expected_best_sharpe,
    minimum_track_record as minimum_track_record,
    probabilistic_sharpe as probabilistic_sharpe,
)
