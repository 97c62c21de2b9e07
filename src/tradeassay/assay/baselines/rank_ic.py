"""How well scores rank what came after: the daily rank correlation, and its error with overlapping outcomes."""

from __future__ import annotations

import math

import numpy as np

from tradeassay.agents.factor_models.dataset import Samples
from tradeassay.agents.factor_models.fitting import FittedModel
from tradeassay.agents.factor_models.trained import RankIC
from tradeassay.core.view import Floats

_AT_ONCE = 4096


def score_samples(fitted: FittedModel, samples: Samples) -> Floats:
    """Return the score of every sample, some thousands at a time: no model looks from one name to another."""
    parts = range(0, len(samples), _AT_ONCE)
    return np.concatenate([fitted.scores(samples.features[start : start + _AT_ONCE]) for start in parts])


def daily_rank_ic(scores: Floats, samples: Samples) -> Floats:
    """Return each day's rank correlation (Spearman) of scores and returns; 0 where all scores are equal."""
    from scipy.stats import rankdata

    found = np.zeros(len(samples.by_day()))
    for place, rows in enumerate(samples.by_day()):
        one, other = rankdata(scores[rows]), rankdata(samples.returns[rows])
        one, other = one - one.mean(), other - other.mean()
        scale = math.sqrt(float(one @ one) * float(other @ other))
        found[place] = float(one @ other) / scale if scale > 0 else 0.0
    return found


def mean_rank_ic(daily: Floats, horizon: int) -> RankIC:
    """Return the mean and its error; outcomes of ``horizon`` sessions overlap, which Newey and West allow for."""
    return RankIC(mean=float(daily.mean()), error=newey_west(daily, horizon - 1), days=int(daily.size))


def newey_west(series: Floats, lags: int) -> float | None:
    """Return the standard error of a mean with ``lags`` autocovariances; None below two values."""
    n = series.size
    if n < 2:
        return None
    gap = series - series.mean()
    variance = float(gap @ gap) / n
    for lag in range(1, min(lags, n - 1) + 1):
        variance += 2.0 * (1.0 - lag / (lags + 1.0)) * float(gap[lag:] @ gap[:-lag]) / n
    return math.sqrt(max(variance, 0.0) / n)
