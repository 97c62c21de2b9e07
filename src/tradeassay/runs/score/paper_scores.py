"""What a paper measures beyond the catalogue: KTD-Fin's own panel."""

from __future__ import annotations

from collections.abc import Sequence

from tradeassay.benchmarks import Benchmark, ktdfin
from tradeassay.core.events import StepRecord
from tradeassay.core.measure import Measure
from tradeassay.data import Snapshot
from tradeassay.metrics import BootstrapConfig, EpisodeSeries, significant

PAPER_OWN = (
    "turnover", "hhi", "cash_ratio", "abstention_rate", "parse_failure_rate", "ece", "tool_validity_rate", "brier",
    "excess_return",
)  # fmt: skip
"""Measures that the paper defines itself."""


def paper_measures(
    benchmark: Benchmark,
    records: Sequence[StepRecord],
    series: EpisodeSeries,
    snapshot: Snapshot,
    bootstrap: BootstrapConfig,
) -> dict[str, Measure]:
    """Return the measures of one episode that the paper defines itself; they stand beside the catalogue's.

    Under ``paper`` turnover, concentration and abstention are the paper's, and the index of the excess is counted
    from the first close of the window instead of the close before it.
    """
    outcomes = ktdfin.order_outcomes(records, snapshot)
    panel = ktdfin.panel(records, series, outcomes, convention=benchmark.convention, bootstrap=bootstrap)
    found = {name: panel[name] for name in PAPER_OWN if name in panel}
    total, index = panel["total_return"].value, series.index
    if benchmark.convention == "paper" and total is not None and index is not None and index.size > 2:
        excess = total - (float(index[-1] / index[1]) - 1.0)
        note = "no interval: the index is counted from the first close, as in the paper"
        found["excess_return"] = Measure(value=significant(excess), n=len(series.sessions), note=note)
    return found
