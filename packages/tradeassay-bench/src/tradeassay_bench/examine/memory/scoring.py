"""Compute means and shares of answers clustered by day, and the agreement of moves.

Stated moves are compared with the true moves by size and by sign.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from statistics import NormalDist

import numpy as np

from tradeassay.core.arrays import Floats, Ints
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.intervals import between, significant, student_reach, wilson_interval
from tradeassay.metrics.ranks import tied_ranks
from tradeassay_bench.examine.memory.questions import HORIZONS, RecallAnswer


def clustered_mean(values: Floats, clusters: Sequence[Hashable], level: float) -> Measure:
    """Return a mean with Student's interval over clusters of any size.

    With fewer than three clusters there is no interval.
    """
    value = float(values.mean())
    places = {name: k for k, name in enumerate(dict.fromkeys(clusters))}
    at = np.array([places[name] for name in clusters])
    sums = np.bincount(at, weights=values - value, minlength=len(places))
    n = len(places)
    if n < 3:
        return Measure(
            value=significant(value), level=level, n=values.size, note=f"no interval: {n} days"
        )
    error = float(np.sqrt((sums**2).sum() * n / (n - 1))) / values.size
    half = student_reach(n - 1, level) * error
    return between(value, (value - half, value + half), level, values.size, f"over {n} days")


def clustered_rate(
    hits: Sequence[bool], days: Sequence[str], level: float, nothing: str
) -> Measure:
    """Return a share with Wilson's interval.

    The interval uses the effective number of answers after clustering by day.
    """
    if not hits:
        return not_scored(nothing)
    values = np.array(hits, dtype=np.float64)
    share, n = float(values.mean()), values.size
    plain = clustered_mean(values, days, level)
    effective = float(len(set(days)))
    if plain.low is not None and 0.0 < share < 1.0:
        error = (share - plain.low) / student_reach(len(set(days)) - 1, level)
        effective = min(float(n), share * (1.0 - share) / error**2) if error > 0.0 else effective
    whole = max(1, round(effective))
    low, high = wilson_interval(share * whole, whole, level)
    return Measure(value=significant(share), low=low, high=high, level=level, n=n)


def sizes_recalled(answers: Sequence[RecallAnswer], level: float) -> Measure:
    """Return the correlation of stated with true moves, by normal scores of their ranks.

    Guesses have a correlation of 0. Horizons are ranked separately. The usual size of a name's
    moves is removed from its stated moves. A model that always answers "up", with larger moves for
    more volatile names, has only guessed that the market rises. One guess may concern a whole day
    or a whole name. The interval therefore adds two variances: from leaving out each period of days
    in turn, and from leaving out each name.
    """
    moves = [
        one
        for one in answers
        if one.kind in HORIZONS and one.value is not None and one.truth is not None
    ]
    n = len(moves)
    if n < 8:
        return not_scored(f"{n} moves were given with a size, 8 are needed")
    kinds, names = (
        np.unique(labels, return_inverse=True)[1]
        for labels in ([one.kind for one in moves], [one.symbol for one in moves])
    )
    truths = np.array([one.truth for one in moves], dtype=np.float64)
    stated, true = (
        _by_group(values, kinds, _normal_scores)
        for values in (np.array([one.value for one in moves]), truths)
    )
    large = _by_group(np.abs(truths), kinds, _normal_scores)
    usual = _normal_scores(
        _by_group(large, names, lambda sizes: np.full(sizes.size, np.median(sizes)))
    )
    stated = _standardised(stated - usual * float(stated @ usual) / n)
    if not (stated.any() and true.any()):
        return not_scored("all moves of a name that were stated, or all true ones, are the same")
    value = float(stated @ true) / n
    # A move that begins before the first move of a period ends belongs to that period.
    stretches = np.zeros(n, dtype=np.int64)
    number, ends = -1, ""
    for place in sorted(range(n), key=lambda k: moves[k].day):
        if moves[place].day >= ends:
            number, ends = number + 1, moves[place].until
        stretches[place] = number
    variances, freedoms = np.zeros(2), np.zeros(2)
    for k, groups in enumerate((stretches, names)):
        shares, parts = (np.bincount(groups, weights=stated * one) / n for one in (stated, true))
        # A few unusual answers may have nearly all of the weight, so groups count by their weights.
        count = 1.0 / float(shares @ shares)
        if count < 2.0:
            few = "no interval: it rests on one name or on one stretch of days"
            return Measure(value=significant(value), level=level, n=n, note=few)
        without = (value - parts) / (1.0 - shares)
        variances[k] = ((without - value) ** 2).sum() * (shares.size - 1) / shares.size
        freedoms[k] = count - 1.0
    # Welch and Satterthwaite: the more precise variance has less influence on the degrees of
    # freedom.
    freedom = (
        float(variances.sum() ** 2 / (variances**2 / freedoms).sum())
        if variances.any()
        else freedoms.min()
    )
    half = student_reach(freedom, level) * float(np.sqrt(variances.sum()))
    return between(value, (value - half, value + half), level, n)


def _by_group(values: Floats, groups: Ints, function: Callable[[Floats], Floats]) -> Floats:
    """Return the result of a function for the values of each group."""
    made = np.zeros(values.size)
    for group in range(int(groups.max()) + 1):
        here = groups == group
        made[here] = function(values[here])
    return made


def _normal_scores(values: Floats) -> Floats:
    """Return the normal quantiles of ranks with mean 0 and variance 1.

    Returns all 0 if all values are equal.
    """
    ranks, place = np.unique(tied_ranks(values), return_inverse=True)
    normal = NormalDist()
    return _standardised(
        np.array([normal.inv_cdf((rank - 0.5) / values.size) for rank in ranks])[place]
    )


def _standardised(values: Floats) -> Floats:
    away = values - values.mean()
    spread = float(away.std())
    return away / spread if spread > 1e-6 else np.zeros(values.size)
