"""Compute the measures of a KTD-Fin run: outcomes of orders, the panel, and published numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import DataError
from tradeassay.core.measure import Convention, Measure, not_scored
from tradeassay.metrics import (
    BootstrapConfig,
    EpisodeSeries,
    MeasureInfo,
    calibration,
    rate_measure,
    resamples,
    score,
)
from tradeassay.metrics.intervals import choose_block, content_seed, measure_from, too_few
from tradeassay.metrics.score import FEWEST_TO_ANNUALISE
from tradeassay_bench.benchmarks.exhibits import Published, load_published, unmet_conditions
from tradeassay_bench.core.events import StepRecord
from tradeassay_bench.core.orders import Side
from tradeassay_bench.data.store.read import CSI300
from tradeassay_bench.play import holdings_from_records

if TYPE_CHECKING:
    from tradeassay_bench.data import Snapshot


class OrderOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """An order with a confidence, and the return of its name from one open to the next.

    The return starts at the open at which the order fills. The next open is the first time at which
    T+1 allows the sale of purchased shares. The return includes dividends. ``next_return`` is None
    if either open is missing.
    """

    step: int
    symbol: str
    side: Side
    confidence: float
    next_return: float | None

    def right(self, convention: Convention) -> bool | None:
        """Return whether the order was right, or None if its return is unknown.

        Under ``paper`` an order is right if its name gained, for both sides. Under ``corrected`` a
        sale is right if its name lost.
        """
        if self.next_return is None:
            return None
        if convention == "corrected" and self.side == "SELL":
            return self.next_return < 0
        return self.next_return > 0


def order_outcomes(records: Iterable[StepRecord], snapshot: Snapshot) -> tuple[OrderOutcome, ...]:
    """Return the outcome of every order that states a side and a confidence, filled or not."""
    outcomes: list[OrderOutcome] = []
    for record in records:
        decision = record.decision
        if decision.status != "ok" or not decision.orders:
            continue
        row = snapshot.rows(record.session, record.session).start
        for order in decision.orders:
            if order.side is not None and order.confidence is not None:
                outcome = OrderOutcome(
                    step=record.step,
                    symbol=order.symbol,
                    side=order.side,
                    confidence=order.confidence,
                    next_return=_next_return(snapshot, row, order.symbol),
                )
                outcomes.append(outcome)
    return tuple(outcomes)


def _next_return(snapshot: Snapshot, row: int, symbol: str) -> float | None:
    """Return a symbol's return from the open of a row to the next open.

    Return None if the return is unknown.
    """
    if row + 1 >= len(snapshot.sessions):
        return None
    view = snapshot.at(row + 1, "close")
    try:
        column = view.column(symbol)
    except DataError:
        return None
    before, after = view.bars("open", 2, adjust="total")[:, column].tolist()
    change = after / before - 1.0 if before else math.nan
    return change if math.isfinite(change) else None


class KtdfinFigure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One published number, as a fraction. ``bound`` marks a limit instead of a value."""

    who: str
    measure: str
    value: float
    where: str
    window: str | None = None
    mask: str | None = None
    mode: str | None = None
    bound: Literal["at most", "at least"] | None = None


class KtdfinSetting(msgspec.Struct, frozen=True, kw_only=True):
    """The setting of one of our own results."""

    data: Literal["real", "synthetic"]
    market: str
    index: str | None
    window: str
    structural: bool
    convention: Convention
    mask: str | None = None
    mode: str | None = None


@cache
def published() -> Published[KtdfinFigure]:
    """Return the numbers published in the paper."""
    return msgspec.convert(load_published("ktdfin"), Published[KtdfinFigure])


def compare_with(figure: KtdfinFigure, ours: KtdfinSetting) -> tuple[str, ...]:
    """Return all reasons why one of our results is not comparable with a published number.

    The tuple is empty if the result is comparable.
    """
    checks = (
        (ours.data == "real", "our data is synthetic"),
        (ours.market == "ashare", "our market is not the Chinese A-share market"),
        (
            ours.index is not None and ours.index.casefold() in CSI300,
            "our universe is not the CSI300",
        ),
        (
            ours.convention == "paper",
            "our convention is 'corrected': known errors of the paper are removed",
        ),
        (
            figure.window is None or figure.window == ours.window,
            f"the figure is for the window {figure.window}",
        ),
        (not ours.structural, "our window has the published length but other dates"),
        (
            figure.mask is None or figure.mask == ours.mask,
            f"the figure is for the mask {figure.mask}",
        ),
        (
            figure.mode is None or figure.mode == ours.mode,
            f"the figure is for the mode {figure.mode}",
        ),
    )
    return unmet_conditions(checks)


DEFAULT = BootstrapConfig()
CONSTRAINT = "constraint"
"""Kind of failure of a submission with the right form that broke a rule."""
BAD_CALLS = frozenset(("parse", "tool"))
"""Kinds of failures of research calls that could not be parsed or answered."""


_MEASURES = msgspec.toml.decode(
    (files(__package__) / "measures.toml").read_bytes(), type=dict[str, tuple[MeasureInfo, ...]]
)
PANEL, DIAGNOSTICS = _MEASURES["panel"], _MEASURES["diagnostics"]


def ktdfin_panel(
    records: Sequence[StepRecord],
    series: EpisodeSeries,
    outcomes: Sequence[OrderOutcome],
    *,
    convention: Convention = "corrected",
    bootstrap: BootstrapConfig = DEFAULT,
) -> dict[str, Measure]:
    """Return the ten measures and two diagnostics of an episode, each with an interval or a reason.

    ``series`` is the output of ``series_from_records``, ``outcomes`` the output of
    :func:`order_outcomes`. A failed episode has no results, but its rates are still returned.
    """
    scored = score(series, bootstrap=bootstrap)
    measures = {"total_return": scored["cumulative_return"]}
    measures |= {info.id: scored[info.id] for info in PANEL[1:8]}
    if convention == "paper" and scored["cumulative_return"].value is not None:
        measures |= _as_printed(records, series, bootstrap)
    measures["parse_failure_rate"] = parse_failure_rate(records, bootstrap.level)
    judged = []
    for outcome in outcomes:
        right = outcome.right(convention)
        if right is not None:
            judged.append((outcome, right))
    calibrated = calibration(
        np.array([outcome.confidence for outcome, _ in judged]),
        np.array([right for _, right in judged]),
        np.array([outcome.step for outcome, _ in judged], dtype=np.int64),
        bootstrap=bootstrap,
    )
    measures["ece"] = calibrated["ece"]
    measures["tool_validity_rate"] = tool_validity_rate(records, bootstrap.level)
    measures["brier"] = calibrated["brier"]
    return measures


def parse_failure_rate(records: Sequence[StepRecord], level: float = 0.95) -> Measure:
    """Return the rate of days without a submission of the right form, after all retries.

    A failed day counts, whatever its last failure was: an answer of the wrong form, a truncated or
    repeated answer, or no answer. It does not count if one of its submissions was refused for
    breaking a constraint, because constraints are checked only if the form is right.
    """
    count = 0
    for record in records:
        decision = record.decision
        had_the_right_form = any(failure.kind == CONSTRAINT for failure in decision.failures)
        if decision.status == "failed" and not had_the_right_form:
            count += 1
    return rate_measure(count, len(records), nothing="nothing was recorded", level=level)


def tool_validity_rate(records: Sequence[StepRecord], level: float = 0.95) -> Measure:
    """Return the rate of research calls that were answered. Calls beyond the budget are
    excluded.
    """
    calls = 0
    bad = 0
    for record in records:
        calls += record.decision.tool_calls
        bad += sum(failure.kind in BAD_CALLS for failure in record.decision.failures)
    return rate_measure(calls - bad, calls, nothing="no tool was called", level=level)


def _as_printed(
    records: Sequence[StepRecord], series: EpisodeSeries, config: BootstrapConfig
) -> dict[str, Measure]:
    """Return the measures that the paper defines differently."""
    weights = holdings_from_records(records).weights
    before = np.vstack([np.zeros((1, weights.shape[1])), weights[:-1]])
    changed = np.abs(weights - before).sum(axis=1)
    idle = (series.orders == 0).astype(np.float64)
    daily = {
        "turnover": changed * float(series.periods_per_year),
        "hhi": (weights * weights).sum(axis=1),
        "abstention_rate": np.where(series.failed, 1.0, idle),
    }
    measures = {name: _mean(values, series, config) for name, values in daily.items()}
    if len(series.sessions) < FEWEST_TO_ANNUALISE:
        reason = f"{len(series.sessions)} sessions, at least {FEWEST_TO_ANNUALISE} are needed"
        measures["turnover"] = not_scored(reason)
    return measures


def _mean(values: Floats, series: EpisodeSeries, config: BootstrapConfig) -> Measure:
    """Return a mean over sessions, using the same resamples as the episode's other measures."""
    n = len(series.sessions)
    if n < config.least:
        return too_few(float(values.mean()), n, config)
    seed, block = content_seed(config, series.nav), choose_block(series.returns, config)
    drawn = [values[chosen].mean(axis=1) for chosen in resamples(n, config.draws, block, seed)]
    return measure_from(float(values.mean()), np.concatenate(drawn), level=config.level, n=n)
