"""Runs of programs, prepared for readers: where answers end and why they fail, all models together.

The records of one program that pages and tables show are exported here too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tradeassay.code.evaluation import Evaluation
from tradeassay.code.review import Rated, ReviewBoard, ReviewForm
from tradeassay.code.scores import Scorecard
from tradeassay.code.submission import Submission
from tradeassay.core.measure import Measure
from tradeassay.metrics import rate_measure
from tradeassay.runs.score.quantcode_scores import FAILURE_TITLES, CellScores

__all__ = [
    "ENDS",
    "Evaluation",
    "PooledRates",
    "Rated",
    "ReviewBoard",
    "ReviewForm",
    "Scorecard",
    "Submission",
    "pooled_rates",
]

ENDS = (
    "solved",
    "judge",
    "lookahead",
    "trade",
    "backtest",
    "compile",
    "trick",
    "no_code",
    "not_scored",
)
"""Where an item can end, best first."""
_NONE_OF_OURS = "this run has no such answers"


class PooledRates(msgspec.Struct, frozen=True, kw_only=True):
    """Rates over rows. ``ends`` says where items ended, by one of :data:`ENDS`.

    ``first`` and ``last`` are the classes of failure of first and last answers, as shares of all answers; ``lost``
    are those of last answers as shares of the items that were never solved. ``counts`` are those behind ``last``.
    """

    ends: dict[str, Measure]
    first: dict[str, Measure]
    last: dict[str, Measure]
    lost: dict[str, Measure]
    counts: dict[str, int]


def pooled_rates(cells: Sequence[CellScores]) -> PooledRates:
    """Return the rates of all rows together; what never occurred has a rate of zero."""
    ends = _sum(cell.ends for cell in cells)
    first, last = _sum(cell.first_failures for cell in cells), _sum(cell.last_failures for cell in cells)
    answers = sum(cell.rates.items for cell in cells)
    titles = tuple(FAILURE_TITLES)
    return PooledRates(
        ends=_rates(ends, ENDS, sum(ends.values())),
        first=_rates(first, titles, answers),
        last=_rates(last, titles, answers),
        lost=_rates(last, titles, sum(last.values()), "no conversation ended in a failure"),
        counts=dict(sorted(last.items(), key=lambda pair: -pair[1])),
    )


def _rates(
    counts: Mapping[str, int], names: Sequence[str], total: int, nothing: str = _NONE_OF_OURS
) -> dict[str, Measure]:
    every = dict.fromkeys((*names, *counts))
    return {name: rate_measure(counts.get(name, 0), total, nothing=nothing) for name in every}


def _sum(parts: Iterable[Mapping[str, int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for part in parts:
        found.update(part)
    return found
