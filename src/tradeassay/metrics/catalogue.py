"""The measures by name: what a table, a page or a reader needs to know about each.

The functions are in :mod:`measures`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Group = Literal["result", "risk", "style", "conduct"]
Unit = Literal["fraction", "number"]
"""``fraction`` is shown in per cent, ``number`` as it is."""


class MeasureInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One measure. ``better`` says which direction is good, None where neither is.

    ``defined`` is one sentence with the formula. ``path`` marks measures that depend on the order of the
    returns: their interval tells what other orders of the same blocks would have given, and need not be
    centred on the value.
    """

    id: str
    title: str
    group: Group
    unit: Unit
    defined: str
    better: Literal["higher", "lower"] | None = None
    path: bool = False


MEASURES: tuple[MeasureInfo, ...] = (
    MeasureInfo(
        id="cumulative_return",
        title="Return",
        group="result",
        unit="fraction",
        better="higher",
        defined="Last value / initial value - 1, over the whole window.",
    ),
    MeasureInfo(
        id="annualised_return",
        title="Return per year",
        group="result",
        unit="fraction",
        better="higher",
        defined="(1 + return) ** (periods per year / sessions) - 1.",
    ),
    MeasureInfo(
        id="excess_return",
        title="Return over index",
        group="result",
        unit="fraction",
        better="higher",
        defined="Return minus the index's return over the same sessions, with dividends where the data has them.",
    ),
    MeasureInfo(
        id="volatility",
        title="Volatility",
        group="risk",
        unit="fraction",
        better="lower",
        defined="Standard deviation of session returns (n - 1) x sqrt(periods per year).",
    ),
    MeasureInfo(
        id="sharpe",
        title="Sharpe",
        group="result",
        unit="number",
        better="higher",
        defined="Mean session return / standard deviation (n - 1) x sqrt(periods per year); risk-free rate 0.",
    ),
    MeasureInfo(
        id="sortino",
        title="Sortino",
        group="result",
        unit="number",
        better="higher",
        defined="Mean session return / sqrt(mean of squared losses over all sessions) x sqrt(periods per year).",
    ),
    MeasureInfo(
        id="sortino_stockbench",
        title="Sortino (StockBench)",
        group="result",
        unit="number",
        better="higher",
        defined="Mean session return / standard deviation (n - 1) of the losing sessions only; not annualised.",
    ),
    MeasureInfo(
        id="max_drawdown",
        title="Max drawdown",
        group="risk",
        unit="fraction",
        better="higher",
        path=True,
        defined="Deepest fall from a peak of the equity curve, the initial value included; 0 or negative.",
    ),
    MeasureInfo(
        id="calmar",
        title="Calmar",
        group="result",
        unit="number",
        better="higher",
        path=True,
        defined="Return per year / size of the max drawdown.",
    ),
    MeasureInfo(
        id="information_ratio",
        title="Information ratio",
        group="result",
        unit="number",
        better="higher",
        defined="Mean of (return - index return) / its standard deviation (n - 1) x sqrt(periods per year); the "
        "index with dividends where the data has them.",
    ),
    MeasureInfo(
        id="turnover",
        title="Turnover per year",
        group="style",
        unit="number",
        defined="Mean over sessions of (bought + sold) / 2 / value before, x periods per year.",
    ),
    MeasureInfo(
        id="cost_rate",
        title="Costs per year",
        group="style",
        unit="fraction",
        better="lower",
        defined="Mean over sessions of (fees + taxes + borrowing + interest) / value before, x periods per year.",
    ),
    MeasureInfo(
        id="hhi",
        title="Concentration (HHI)",
        group="style",
        unit="number",
        defined="Sum of squared shares of what is invested, mean over the sessions with a holding; 1 = one name.",
    ),
    MeasureInfo(
        id="cash_ratio",
        title="Cash ratio",
        group="style",
        unit="fraction",
        defined="Cash / value at the end of each session, mean.",
    ),
    MeasureInfo(
        id="hit_rate",
        title="Hit rate",
        group="conduct",
        unit="fraction",
        better="higher",
        defined="Sessions with a gain / sessions with a gain or a loss.",
    ),
    MeasureInfo(
        id="abstention_rate",
        title="Abstention rate",
        group="conduct",
        unit="fraction",
        defined="Sessions answered without an order / all sessions.",
    ),
    MeasureInfo(
        id="failure_rate",
        title="Failure rate",
        group="conduct",
        unit="fraction",
        better="lower",
        defined="Sessions without a usable answer / all sessions.",
    ),
    MeasureInfo(
        id="rejection_rate",
        title="Rejection rate",
        group="conduct",
        unit="fraction",
        better="lower",
        defined="Orders refused by the venue, wholly or in part / orders given; orders that changed nothing are "
        "not refusals.",
    ),
)

BY_ID: dict[str, MeasureInfo] = {info.id: info for info in MEASURES}
