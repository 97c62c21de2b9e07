"""Stated confidences against what came true, over all repetitions of an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tradeassay.assay.verdict.record import Calibration
from tradeassay.benchmarks.ktdfin.outcomes import order_outcomes
from tradeassay.core.errors import DataError, RunError
from tradeassay.core.measure import not_scored
from tradeassay.metrics import calibration, calibration_curve

if TYPE_CHECKING:
    from tradeassay.runs import AgentScores, Run


def calibration_of(run: Run, scores: AgentScores) -> Calibration | None:
    """Return how well an agent's confidences were calibrated; None when it never stated one.

    An order is judged from the open that fills it to the next one; where orders fill at the close there is no
    number, and the reason.
    """
    journals = [tuple(run.records(key)) for key in scores.episodes if run.outcome(key) is not None]
    stated = any(
        order.confidence is not None and order.side is not None
        for records in journals
        for record in records
        for order in record.decision.orders
    )
    if not stated:
        return None
    key = scores.episodes[0]
    benchmark = run.manifest.benchmark(run.episode(key))
    if benchmark.market.fill != "open":
        return _nothing("orders are judged from open to open, and here they fill at the close")
    try:
        snapshot = run.snapshot(key)
        outcomes = [one for records in journals for one in order_outcomes(records, snapshot)]
    except (DataError, RunError):
        return _nothing("the data cannot be read")
    judged = [
        (one.confidence, right, one.step)
        for one in outcomes
        if (right := one.right(benchmark.convention)) is not None and 0.0 <= one.confidence <= 1.0
    ]
    said, true, step = (np.array([row[place] for row in judged]) for place in range(3))
    scored = calibration(said, true, step.astype(np.int64), bootstrap=run.spec.bootstrap)
    return Calibration(
        ece=scored["ece"], brier=scored["brier"], bins=calibration_curve(said, true) if judged else ()
    )


def _nothing(reason: str) -> Calibration:
    return Calibration(ece=not_scored(reason), brier=not_scored(reason))
