"""Likelihood ratio of skill against the luckiest of several tries.

A record of Y years whose alpha has the t statistic t is compared under two hypotheses. The scale is
a standard normal score z with the same tail as t:

* *skill*: the annual alpha ratio is drawn from a half-normal of scale 1. Given the ratio, z is
  normal with mean ratio x sqrt(Y) and standard deviation 1.
* *luck*: z is the largest of independent standard normal scores, like the best of worthless tries.
  The number of tries is the one up to N that makes z likeliest. So a score far below the usual best
  of N tries is still the best of fewer tries.

The likelihood ratio is the density of z under skill divided by its density under luck. It needs no
prior probability of skill. Readers can multiply it by their own prior odds.
"""

from __future__ import annotations

import math

from tradeassay.core.arrays import Floats
from tradeassay.metrics.cosine import cosine_t

SCALE = 1.0
"""Scale of the half-normal annual alpha ratio under skill. Few professionals sustain 1, hardly any
2."""
_MOST_TRIES = 10**9
_LARGEST_SCORE = 37.0
"""Above this score the normal tail probability is zero in a float."""


def normal_score(values: Floats, periods_per_year: float = 252) -> float:
    """Return the standard normal score with the same tail as the t statistic of a series' mean.

    It is NaN for a series that does not vary.
    """
    from scipy.special import log_ndtr, ndtri_exp, stdtr

    t, freedom = cosine_t(values, periods_per_year)
    if math.isnan(float(t)):
        return math.nan
    tail = float(stdtr(freedom, -abs(float(t))))
    if tail <= 0.0:
        return math.copysign(_LARGEST_SCORE, float(t))
    score = -float(ndtri_exp(max(math.log(tail), float(log_ndtr(-_LARGEST_SCORE)))))
    return math.copysign(score, float(t))


def likelihood_ratio(score: float, years: float, tries: int) -> float:
    """Return the likelihood of a score under skill relative to luck.

    Luck means the best of ``tries`` worthless tries.
    """
    return math.exp(min(_log_skill(score, years) - _log_luck(score, tries), 700.0))


def equal_tries(score: float, years: float) -> int | None:
    """Return the number of worthless tries for which the likelihood ratio is 1.

    Returns None if a single worthless try is already as likely as skill.
    """
    if likelihood_ratio(score, years, 1) <= 1.0:
        return None
    low, high = 1, 2
    while likelihood_ratio(score, years, high) > 1.0:
        if high >= _MOST_TRIES:
            return _MOST_TRIES
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        if likelihood_ratio(score, years, middle) > 1.0:
            low = middle
        else:
            high = middle
    return high


def _log_skill(score: float, years: float) -> float:
    """Return the log density of a score whose mean is half-normal x sqrt(years)."""
    from scipy.special import log_ndtr

    spread = SCALE * SCALE * years
    variance = 1.0 + spread
    normal = -0.5 * (score * score / variance + math.log(2.0 * math.pi * variance))
    return math.log(2.0) + normal + float(log_ndtr(score * math.sqrt(spread / variance)))


def _log_luck(score: float, tries: int) -> float:
    """Return the log density of the largest of k standard normal scores.

    It is maximised over k <= ``tries``. The density n phi(z) Phi(z)^(n - 1) increases with n up to
    1 / (1 - Phi(z)).
    """
    from scipy.special import log_ndtr

    likeliest = math.exp(min(-float(log_ndtr(-score)), math.log(_MOST_TRIES)))
    tries = max(1, min(tries, math.floor(likeliest)))
    normal = -0.5 * (score * score + math.log(2.0 * math.pi))
    return math.log(tries) + normal + (tries - 1) * float(log_ndtr(score))
