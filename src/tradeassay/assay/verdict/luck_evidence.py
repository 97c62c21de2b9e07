"""Several seeds' luck as one piece of evidence."""

from __future__ import annotations

from collections.abc import Sequence

from tradeassay.assay.luck.luck import Luck
from tradeassay.assay.verdict.record import LuckEvidence
from tradeassay.core.measure import not_scored


def luck_evidence(each: Sequence[Luck]) -> LuckEvidence:
    """Return several seeds' luck as one."""
    placed = sorted(
        (one.place for one in each if one.place is not None), key=lambda place: place.percentile.value or 0.0
    )
    if not placed:
        return LuckEvidence(percentile=not_scored(str(each[0].reason) if each else "nothing was played"), p=None)
    # With an even number of seeds the worse of the two in the middle: a bound must not be the lucky one's.
    middle = placed[(len(placed) - 1) // 2]
    done_as_well = round((middle.by_luck.value or 0.0) * middle.portfolios)
    p = (done_as_well + 1) / (middle.portfolios + 1)
    return LuckEvidence(
        percentile=middle.percentile,
        p=min(1.0, p if len(placed) == 1 else 2.0 * p),
        portfolios=middle.portfolios,
        quantiles=middle.quantiles,
    )
