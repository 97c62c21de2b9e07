"""Inference for repeated looks and any stopping time: e-processes and their confidence bands.

A test at 5 % that is repeated every day is wrong far more often than in 5 % of years. For the bands
of this module, the chance that the band *ever* excludes the true mean is at most 1 - level. Let x
be returns around their mean, S = sum x and V = sum x^2. Then exp(a S - a^2 V / 2) is a
supermartingale if positive and negative x are equally likely. This holds for any tails and for
volatility that changes from day to day (de la Peña 1999). Mixing over a normal a gives the band
(Robbins 1970; Howard, Ramdas, McAuliffe and Sekhon 2021) and an e-value. Five sessions are summed
before the test to allow for serial dependence. V then contains all dependence within a week, and
most of a moderate dependence.

Two cases are not covered, and results say so: skewed returns (rare large losses that have not yet
occurred), and dependence over months.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats, Ints
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.intervals import significant

SESSIONS_PER_SUM = 5
"""Number of sessions that are summed into one observation."""
FIRST_LOOK = 60
"""Number of sessions before the first result. They set the scale for the later ones."""
_BURN = FIRST_LOOK // SESSIONS_PER_SUM
_NARROWEST = 378
"""Number of sessions at which the band is optimised to be narrowest: a year and a half."""
_STEPS = 40


class WatchedMean(msgspec.Struct, frozen=True):
    """The band of a mean at every look. It is empty before the first look.

    ``sessions`` is the number of sessions up to each look. ``low`` and ``high`` are the band per
    session, which never widens. ``mean`` is the mean up to the look.
    """

    sessions: tuple[int, ...]
    mean: Floats
    low: Floats
    high: Floats


def watched_mean(values: Floats, *, level: float = 0.95) -> WatchedMean:
    """Return the band of the mean of a series of shape (n,), at each look from the first one on."""
    sums = _weekly_sums(np.asarray(values, dtype=np.float64))
    low, high = _bounds(sums, 1.0 - level)
    looks = np.flatnonzero(np.isfinite(low))
    count = np.arange(1, sums.size + 1)
    return WatchedMean(
        sessions=tuple(int(SESSIONS_PER_SUM * count[look]) for look in looks),
        mean=(np.cumsum(sums) / count / SESSIONS_PER_SUM)[looks],
        low=np.maximum.accumulate(low[looks]) / SESSIONS_PER_SUM,
        high=np.minimum.accumulate(high[looks]) / SESSIONS_PER_SUM,
    )


def watched_interval(values: Floats, *, periods_per_year: float, level: float = 0.95) -> Measure:
    """Return an annualised mean with a band that remains valid under daily looks.

    ``values`` has shape (n,). There is no interval before the first look, or if the series never
    moves. There is none either if earlier looks contradict later ones, because the series then has
    no constant mean.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.size < 2 or not np.isfinite(values).all():
        return not_scored(
            "fewer than two sessions" if values.size < 2 else "a number in the series is missing"
        )
    value = significant(float(values.mean()) * periods_per_year)
    watched = watched_mean(values, level=level)
    if not watched.sessions:
        note = (
            f"no interval: {values.size} sessions, the first look is after {FIRST_LOOK} that move"
        )
        return Measure(value=value, level=level, n=values.size, note=note)
    low, high = float(watched.low[-1]), float(watched.high[-1])
    if low > high:
        note = "no interval: it changed so much that no one mean fits all looks"
        return Measure(value=value, level=level, n=values.size, note=note)
    return Measure(
        value=value,
        low=significant(low * periods_per_year),
        high=significant(high * periods_per_year),
        level=level,
        n=values.size,
        note="holds however often it is looked at",
    )


def watched_sign(values: Floats, *, level: float = 0.95) -> Ints:
    """Return the sign of a mean along the last axis, or 0 if it is not significant.

    It is significant if its band excluded zero at some look.
    """
    sums, alpha = _weekly_sums(np.asarray(values, dtype=np.float64)), 1.0 - level
    total, squares = np.cumsum(sums, axis=-1), np.cumsum(sums**2, axis=-1)
    prior = _scale(sums) * _weight(alpha)
    with np.errstate(invalid="ignore"):
        certain = total**2 > (squares + prior) * np.log((squares + prior) / (prior * alpha**2))
    over, under = ((certain & side).any(axis=-1) for side in (total > 0.0, total < 0.0))
    return np.asarray(over.astype(np.int64) - under)


def level_at(n: int, level: float) -> float:
    """Return the level of a single test after ``n`` sessions that is as strict as the band."""
    alpha = 1.0 - level
    prior, seen = _weight(alpha), max(n, FIRST_LOOK) / SESSIONS_PER_SUM
    z = math.sqrt((1.0 + prior / seen) * math.log((seen + prior) / (prior * alpha**2)))
    return math.erf(z / math.sqrt(2.0))


def e_value(values: Floats) -> float | None:
    """Return the e-value for a positive mean, or None before the first look.

    If the mean is not positive, the chance that the e-value *ever* reaches 20 is at most 5 %.
    ``values`` has shape (n,).
    """
    sums = _weekly_sums(np.asarray(values, dtype=np.float64))
    scale = _scale(sums)
    if not sums.size or not np.isfinite(scale[-1]):
        return None
    prior = float(scale[-1]) * _weight(0.05)
    total, squares = float(sums.sum()), float((sums**2).sum()) + prior
    z = total / math.sqrt(squares)
    # One-sided: a is half-normal, restricted to positive values.
    log = (
        0.5 * math.log(prior / squares)
        + 0.5 * z * z
        + math.log(max(math.erfc(-z / math.sqrt(2.0)), 1e-300))
    )
    return significant(math.exp(min(log, 700.0)))


def e_bh(e_values: Sequence[float | None], level: float = 0.95) -> list[bool | None]:
    """Return which results of a table e-BH selects (Wang and Ramdas 2022). None stays None.

    At most a share 1 - ``level`` of the selected results is expected to be false, for any
    dependence between results and any time of the look. If all null hypotheses are true, the chance
    that a result is *ever* selected is at most 1 - ``level``. None is not counted as a result.
    """
    known = sorted((e for e in e_values if e is not None), reverse=True)
    enough = [e for rank, e in enumerate(known, 1) if e >= len(known) / ((1.0 - level) * rank)]
    least = enough[-1] if enough else math.inf
    return [None if e is None else e >= least for e in e_values]


def _weekly_sums(values: Floats) -> Floats:
    """Return sums of whole weeks along the last axis.

    Sessions of an incomplete week are left out.
    """
    whole = values.shape[-1] // SESSIONS_PER_SUM
    return np.asarray(
        values[..., : whole * SESSIONS_PER_SUM]
        .reshape(*values.shape[:-1], whole, SESSIONS_PER_SUM)
        .sum(axis=-1)
    )


def _scale(sums: Floats) -> Floats:
    """Return the variance of the first weeks with nonzero returns, for every look.

    It is NaN for looks before there are enough such weeks.
    """
    moved = np.cumsum(sums != 0.0, axis=-1)
    early = np.where(moved <= _BURN, sums, 0.0)
    start = (early**2).sum(axis=-1, keepdims=True) / _BURN
    return np.where((moved >= _BURN) & (start > 0.0), start, np.nan)


def _weight(alpha: float) -> float:
    """Return the prior's variance for which the band is narrowest at ``_NARROWEST``.

    The unit is the variance of a week.
    """
    log = 2.0 * math.log(1.0 / alpha)
    return _NARROWEST / SESSIONS_PER_SUM / (log + math.log1p(log))


def _bounds(sums: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return the lower and upper bound of the weekly mean at every look, along the last axis.

    The bounds are NaN before the first look and as long as no mean is excluded.
    """
    count = np.arange(1, sums.shape[-1] + 1, dtype=np.float64)
    mean = np.cumsum(sums, axis=-1) / count
    spread = np.maximum(np.cumsum(sums**2, axis=-1) - count * mean**2, 0.0)
    prior = _scale(sums) * _weight(alpha)
    # The bounds solve n^2 d^2 = (V + n d^2 + prior) log((V + n d^2 + prior) / (prior alpha^2)).
    square = np.zeros_like(mean)
    with np.errstate(invalid="ignore"):
        for _ in range(_STEPS):
            log = np.log((spread + count * square + prior) / (prior * alpha**2))
            square = np.where(
                count > log + 1.0, (spread + prior) * log / (count**2 - count * log), np.nan
            )
        reach = np.sqrt(square)
    return mean - reach, mean + reach
