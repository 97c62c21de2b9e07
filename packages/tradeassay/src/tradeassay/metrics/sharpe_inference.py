"""Inference on Sharpe ratios, allowing for noise, skew and the number of tries.

Probabilistic Sharpe ratio and minimum track record: Bailey and López de Prado (2012). Deflated
Sharpe ratio: the same authors (2014). Internal ratios are per period, not annualised. ``returns``
have shape (..., n). One series and a thousand resampled ones take the same call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.intervals import (
    DEFAULT,
    BootstrapConfig,
    choose_block,
    content_seed,
    measure_from,
    resamples,
    significant,
    too_few,
)
from tradeassay.metrics.measures import sharpe

_EULER = 0.5772156649015329
_NORMAL = NormalDist()


class Deflated(msgspec.Struct, frozen=True, kw_only=True):
    """A Sharpe ratio corrected for the choice of the best of many.

    ``probability`` is the deflated Sharpe ratio: the probability that the true ratio is above the
    expected best of ``trials`` worthless strategies. ``hurdle`` is this expected best ratio,
    annualised. ``sharpe`` is the observed ratio, annualised. ``trials`` is the effective number of
    independent tries and may be a fraction.
    """

    probability: Measure
    sharpe: float | None
    hurdle: float
    trials: float


def probabilistic_sharpe(
    returns: Floats,
    threshold: float = 0.0,
    *,
    periods_per_year: float = 252,
    bootstrap: BootstrapConfig = DEFAULT,
) -> Measure:
    """Return the probability that the true Sharpe ratio is above ``threshold``, with its interval.

    ``threshold`` is annualised. There is no value for fewer than three returns, or for returns that
    do not vary.
    """
    returns = _one_series(returns)
    n = returns.size
    hurdle = threshold / math.sqrt(periods_per_year)
    value = float(_psr(returns, hurdle)) if n > 2 else float("nan")
    if not math.isfinite(value):
        return not_scored("fewer than three sessions, or returns that do not vary")
    if n < bootstrap.least:
        return too_few(value, n, bootstrap)
    block = choose_block(returns, bootstrap)
    parts = [
        _psr(returns[rows], hurdle)
        for rows in resamples(n, bootstrap.draws, block, content_seed(bootstrap, returns))
    ]
    return measure_from(value, np.concatenate(parts), level=bootstrap.level, n=n)


def deflated_sharpe(
    returns: Floats,
    *,
    trials: float,
    trial_variance: float,
    periods_per_year: float = 252,
    bootstrap: BootstrapConfig = DEFAULT,
) -> Deflated:
    """Return the deflated Sharpe ratio of one series.

    ``trials`` is the (effectively independent) number of strategies tried. ``trial_variance`` is
    the variance of their *annualised* Sharpe ratios. Raises :class:`UserError` for fewer than one
    trial or a negative variance.
    """
    hurdle = expected_best_sharpe(trials, trial_variance)
    returns = _one_series(returns)
    observed = float(sharpe(returns, periods_per_year)) if returns.size > 1 else float("nan")
    return Deflated(
        probability=probabilistic_sharpe(
            returns, hurdle, periods_per_year=periods_per_year, bootstrap=bootstrap
        ),
        sharpe=significant(observed) if math.isfinite(observed) else None,
        hurdle=significant(hurdle),
        trials=significant(trials),
    )


def _psr(returns: Floats, hurdle: float) -> Floats:
    """Return the probabilistic Sharpe ratio along the last axis, or NaN if it is undefined.

    ``hurdle`` is per period.
    """
    ratio, spread = _sharpe_error(returns)
    n = np.asarray(returns).shape[-1]
    z = (ratio - hurdle) * math.sqrt(max(n - 1, 0)) / spread
    from scipy.special import ndtr

    return np.asarray(ndtr(z))


def _sharpe_error(returns: Floats) -> tuple[Floats, Floats]:
    """Return the Sharpe ratio per period and a multiple of its standard error.

    The second number is sqrt(1 - skew x ratio + (kurtosis - 1) / 4 x ratio ** 2). Divided by sqrt(n
    - 1) it is the ratio's standard error (Mertens 2002). Both are NaN if the returns do not vary.
    """
    returns = np.asarray(returns, dtype=np.float64)
    ratio = sharpe(returns, 1.0)
    centred = returns - returns.mean(axis=-1, keepdims=True)
    squared = centred * centred  # the power operator takes twenty times as long
    second = squared.mean(axis=-1)
    second = np.where(np.isfinite(ratio) & (second > 0), second, np.nan)
    skew = (squared * centred).mean(axis=-1) / second**1.5
    kurtosis = (squared * squared).mean(axis=-1) / second**2
    return ratio, np.asarray(np.sqrt(1.0 - skew * ratio + (kurtosis - 1.0) / 4.0 * ratio**2))


def expected_best_sharpe(trials: float, trial_variance: float) -> float:
    """Return the expected Sharpe ratio of the best of ``trials`` worthless strategies.

    It is sqrt(trial_variance) x the expected maximum of ``trials`` standard normal numbers, by the
    approximation of Bailey and López de Prado. It is 0 for one trial. Raises :class:`UserError` for
    fewer.
    """
    if not trials >= 1.0 or not trial_variance >= 0.0:
        hint = "give at least one trial and no negative variance"
        raise UserError(f"{trials} trials with a variance of {trial_variance}", hint=hint)
    if trials == 1.0:
        return 0.0
    best = (1.0 - _EULER) * _NORMAL.inv_cdf(1.0 - 1.0 / trials)
    best += _EULER * _NORMAL.inv_cdf(1.0 - 1.0 / (trials * math.e))
    return max(0.0, math.sqrt(trial_variance) * best)


def minimum_track_record(
    returns: Floats, threshold: float = 0.0, *, level: float = 0.95, periods_per_year: float = 252
) -> Measure:
    """Return the number of sessions needed to show a Sharpe ratio above ``threshold``.

    ``threshold`` is annualised, and the test is one-sided at ``level``. There is no value if the
    observed ratio is not above the threshold, because no length would be enough.
    """
    returns = _one_series(returns)
    ratio, spread = (
        _sharpe_error(returns) if returns.size > 2 else (np.array(np.nan), np.array(np.nan))
    )
    if not np.isfinite(spread):
        return not_scored("fewer than three sessions, or returns that do not vary")
    gap = float(ratio) - threshold / math.sqrt(periods_per_year)
    if gap <= 0.0:
        return not_scored("the observed ratio is not above the threshold: no length is enough")
    needed = 1.0 + float(spread) ** 2 * (_NORMAL.inv_cdf(level) / gap) ** 2
    note = "sessions, if the observed ratio is the true one"
    return Measure(value=significant(needed), level=level, n=returns.size, note=note)


def _one_series(returns: Floats | Sequence[float]) -> Floats:
    series = np.asarray(returns, dtype=np.float64)
    if series.ndim != 1:
        raise UserError(f"returns of shape {series.shape}", hint="give one series")
    return series
