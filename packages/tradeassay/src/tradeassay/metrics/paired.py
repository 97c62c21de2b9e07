"""Wilcoxon's signed-rank test on paired results, one difference per window and seed.

Seeds of one window lived through the same market, so ten seeds of one lucky week are not
independent evidence. The *clustered* test therefore flips the signs of a whole window together
(Rosner, Glynn and Lee 2006, as an exact test of sign flips). The *plain* test, which papers report,
treats every pair as independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats, Ints
from tradeassay.core.errors import UserError
from tradeassay.metrics.intervals import significant
from tradeassay.metrics.ranks import tied_ranks

_EXACT_CLUSTERS = 16
"""Up to this number of clusters all sign flips are enumerated. Above it, the normal approximation
is used."""


class PairedTest(msgspec.Struct, frozen=True, kw_only=True):
    """The test that paired differences are centred on zero.

    ``p_value`` is two-sided, None if there was no test. ``statistic`` is the sum of signed ranks.
    ``median`` is the median difference. ``n`` is the number of nonzero differences. ``clusters`` is
    the number of independent groups (for a plain test: n). ``smallest_p`` is the smallest p-value
    that this number of clusters can give. If it is above 0.05, the test cannot be significant.
    """

    statistic: float
    p_value: float | None
    n: int
    clusters: int
    median: float | None
    smallest_p: float | None = None
    reason: str | None = None


def wilcoxon(differences: Floats) -> PairedTest:
    """Return Wilcoxon's plain signed-rank test, computed by scipy.

    Zeros are dropped. It is exact for few pairs without ties. Raises :class:`UserError` for a
    missing difference.
    """
    kept, _ = _nonzero(differences, np.arange(np.size(differences)))
    if not kept.size:
        return _nothing("every difference is zero")
    from scipy.stats import wilcoxon as scipy_wilcoxon

    result = scipy_wilcoxon(kept)
    return PairedTest(
        statistic=significant(float(_signed_ranks(kept).sum())),
        p_value=significant(float(result.pvalue)),
        n=int(kept.size),
        clusters=int(kept.size),
        median=significant(float(np.median(kept))),
        smallest_p=significant(2.0 ** (1 - kept.size)) if kept.size <= 50 else 0.0,
    )


def wilcoxon_clustered(differences: Floats, clusters: Sequence[object]) -> PairedTest:
    """Return the signed-rank test in which a whole cluster (a window) counts once.

    ``clusters`` names the group of each difference. Under the null hypothesis the signs of a group
    may be flipped together. With at most :data:`_EXACT_CLUSTERS` groups all flips are enumerated.
    With more groups the normal approximation is used. Raises :class:`UserError` for a missing
    difference, or if the numbers of groups and differences differ.
    """
    if len(clusters) != np.size(differences):
        hint = "give one for each"
        raise UserError(
            f"{len(clusters)} clusters for {np.size(differences)} differences", hint=hint
        )
    names = {name: place for place, name in enumerate(dict.fromkeys(clusters))}
    kept, place = _nonzero(
        differences, np.array([names[name] for name in clusters], dtype=np.int64)
    )
    if not kept.size:
        return _nothing("every difference is zero")
    every = np.asarray(
        np.bincount(place, weights=_signed_ranks(kept), minlength=len(names)), dtype=np.float64
    )
    sums = every[np.unique(place)]
    total = float(sums.sum())
    m = int(sums.size)
    if m <= _EXACT_CLUSTERS:
        # Share of the clusters' sign flips with a sum at least as far from zero.
        drawn = np.zeros(1)
        for cluster_sum in sums.tolist():
            drawn = np.concatenate([drawn + cluster_sum, drawn - cluster_sum])
        p = float((np.abs(drawn) >= abs(total) - 1e-9).mean())
    else:
        p = 2.0 * NormalDist().cdf(-abs(total) / math.sqrt(float((sums * sums).sum())))
    return PairedTest(
        statistic=significant(total),
        p_value=significant(min(1.0, p)),
        n=int(kept.size),
        clusters=m,
        median=significant(float(np.median(kept))),
        smallest_p=significant(2.0 ** (1 - m)),
    )


def overlapping_clusters(windows: Sequence[tuple[str, str]]) -> list[int]:
    """Return a cluster number per window. Windows that share a day share a number.

    A window is its first and last ISO day.
    """
    order = sorted(range(len(windows)), key=lambda place: windows[place])
    numbers, number, reach = [0] * len(windows), -1, ""
    for place in order:
        first, last = windows[place]
        if number < 0 or first > reach:
            number += 1
            reach = last
        reach = max(reach, last)
        numbers[place] = number
    return numbers


def _nonzero(differences: Floats, place: Ints) -> tuple[Floats, Ints]:
    values = np.asarray(differences, dtype=np.float64).ravel()
    if not np.isfinite(values).all():
        raise UserError(
            "a paired difference is missing", hint="leave out pairs in which one side has no result"
        )
    return values[values != 0.0], place[values != 0.0]


def _signed_ranks(values: Floats) -> Floats:
    return np.asarray(np.sign(values) * tied_ranks(np.abs(values)))


def _nothing(reason: str) -> PairedTest:
    return PairedTest(statistic=0.0, p_value=None, n=0, clusters=0, median=None, reason=reason)
