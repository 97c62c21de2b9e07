"""Names, units and definitions of the measures for tables, pages and readers.

The functions are in :mod:`measures`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

_Group = Literal["result", "risk", "style", "conduct"]
_Unit = Literal["fraction", "number"]
"""``fraction`` is displayed in per cent, ``number`` without conversion."""
_Better = Literal["higher", "lower"]


class MeasureInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One measure.

    ``better`` is the good direction, or None if there is none. ``defined`` is one sentence with the
    formula. ``path`` marks measures that depend on the order of the returns. Their interval
    describes other orders of the same blocks and need not be centred on the value.
    """

    id: str
    title: str
    group: _Group
    unit: _Unit
    defined: str
    better: _Better | None = None
    path: bool = False


_TABLE: tuple[tuple[str, str, _Group, _Unit, _Better | None], ...] = (
    ("cumulative_return", "Return", "result", "fraction", "higher"),
    ("annualised_return", "Return per year", "result", "fraction", "higher"),
    ("excess_return", "Return over index", "result", "fraction", "higher"),
    ("volatility", "Volatility", "risk", "fraction", "lower"),
    ("sharpe", "Sharpe ratio", "result", "number", "higher"),
    ("sortino", "Sortino ratio", "result", "number", "higher"),
    ("sortino_stockbench", "Sortino ratio (StockBench)", "result", "number", "higher"),
    ("max_drawdown", "Max drawdown", "risk", "fraction", "higher"),
    ("calmar", "Calmar ratio", "result", "number", "higher"),
    ("information_ratio", "Information ratio", "result", "number", "higher"),
    ("turnover", "Turnover per year", "style", "number", None),
    ("cost_rate", "Costs per year", "style", "fraction", "lower"),
    ("hhi", "Concentration (HHI)", "style", "number", None),
    ("cash_ratio", "Cash ratio", "style", "fraction", None),
    ("hit_rate", "Hit rate", "conduct", "fraction", "higher"),
    ("abstention_rate", "Abstention rate", "conduct", "fraction", None),
    ("failure_rate", "Failure rate", "conduct", "fraction", "lower"),
    ("rejection_rate", "Rejection rate", "conduct", "fraction", "lower"),
)
_DEFINED = {
    "cumulative_return": "Last value / initial value - 1, over the whole window.",
    "annualised_return": "(1 + return) ** (periods per year / sessions) - 1.",
    "excess_return": "Return minus the index's return over the same sessions, with dividends where "
    "the data has "
    "them.",
    "volatility": "Standard deviation of session returns (n - 1) x sqrt(periods per year).",
    "sharpe": "Mean session return / standard deviation (n - 1) x sqrt(periods per year); "
    "risk-free rate 0.",
    "sortino": "Mean session return / sqrt(mean of squared losses over all sessions) x "
    "sqrt(periods per year).",
    "sortino_stockbench": "Mean session return / standard deviation (n - 1) of the losing sessions "
    "only; not "
    "annualised.",
    "max_drawdown": "Deepest fall from a peak of the equity curve, the initial value included; 0 "
    "or negative.",
    "calmar": "Return per year / size of the max drawdown.",
    "information_ratio": "Mean of (return - index return) / its standard deviation (n - 1) x "
    "sqrt(periods per "
    "year); the index with dividends where the data has them.",
    "turnover": "Mean over sessions of (bought + sold) / 2 / value before, x periods per year.",
    "cost_rate": "Mean over sessions of (fees + taxes + borrowing + interest) / value before, x "
    "periods per year.",
    "hhi": "Sum of squared shares of what is invested, mean over the sessions with a holding; 1 = "
    "one name.",
    "cash_ratio": "Cash / value at the end of each session, mean.",
    "hit_rate": "Sessions with a gain / sessions with a gain or a loss.",
    "abstention_rate": "Sessions answered without an order / all sessions.",
    "failure_rate": "Sessions without a usable answer / all sessions.",
    "rejection_rate": "Orders refused by the venue, wholly or in part / orders given; orders that "
    "changed "
    "nothing are not refusals.",
}
MEASURES: tuple[MeasureInfo, ...] = tuple(
    MeasureInfo(
        id=id,
        title=title,
        group=group,
        unit=unit,
        better=better,
        defined=_DEFINED[id],
        path=id in ("max_drawdown", "calmar"),
    )
    for id, title, group, unit, better in _TABLE
)
BY_ID: dict[str, MeasureInfo] = {info.id: info for info in MEASURES}
