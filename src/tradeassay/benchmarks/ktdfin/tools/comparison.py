"""``compare_candidates``: several names side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from tradeassay.benchmarks.ktdfin.desk import Desk
from tradeassay.benchmarks.ktdfin.tools.tool import Arguments, Tool, ToolRefused, look_up
from tradeassay.benchmarks.ktdfin.wire import Day, Stock, all_rounded
from tradeassay.core.view import Floats, Ints
from tradeassay.factors import FACTOR_NAMES


class CompareArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which names, and in which respects."""

    stock_ids: Annotated[list[Stock], Meta(min_length=2)]
    dims: Annotated[list[str], Meta(min_length=1, max_length=20)]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One row per name."""

    as_of: Day | None
    grid: dict[Stock, dict[str, float | None]]


def _volatility(desk: Desk, columns: Ints) -> Floats:
    closes = desk.closes[-21:, columns]
    with np.errstate(all="ignore"):
        result: Floats = np.std(closes[1:] / closes[:-1] - 1.0, axis=0, ddof=1) * np.sqrt(252.0)
    return result


def _drawdown(desk: Desk, columns: Ints) -> Floats:
    closes = desk.closes[:, columns]
    with np.errstate(all="ignore"):
        result: Floats = closes[-1] / np.fmax.reduce(closes, axis=0) - 1.0
    return result


METRICS: dict[str, Callable[[Desk, Ints], Floats]] = {
    "return_1d": lambda desk, columns: desk.change(1)[columns],
    "return_5d": lambda desk, columns: desk.change(5)[columns],
    "return_20d": lambda desk, columns: desk.change(20)[columns],
    "return_60d": lambda desk, columns: desk.change(60)[columns],
    "volatility_20d": _volatility,
    "drawdown_60d": _drawdown,
}
DIMS: tuple[str, ...] = (*FACTOR_NAMES, *METRICS)


def compare_candidates(desk: Desk, arguments: CompareArguments) -> Comparison:
    """Return a grid; raises :class:`ToolRefused` for an unknown dimension, an unknown name or too many names."""
    if len(arguments.stock_ids) > desk.config.most_compared:
        raise ToolRefused(f"at most {desk.config.most_compared} names can be compared at once")
    dims = tuple(dict.fromkeys(arguments.dims))
    if any(dim not in DIMS for dim in dims):
        raise ToolRefused("there is no such dimension", hint=f"any of {', '.join(DIMS)}")
    stocks = tuple(dict.fromkeys(arguments.stock_ids))
    columns = np.array([look_up(desk, stock) for stock in stocks], dtype=np.int64)
    values = [all_rounded(_dimension(desk, dim, columns)) for dim in dims]
    rows = zip(stocks, zip(*values, strict=True), strict=True)
    return Comparison(as_of=desk.as_of, grid={stock: dict(zip(dims, row, strict=True)) for stock, row in rows})


def _dimension(desk: Desk, dim: str, columns: Ints) -> Floats:
    if dim in METRICS:
        return METRICS[dim](desk, columns) if desk.closes.shape[0] > 1 else np.full(columns.size, np.nan)
    result: Floats = desk.factor_rows((dim,))[0, columns]
    return result


TOOL = Tool(
    name="compare_candidates",
    description=f"Put several names side by side. Dimensions: {', '.join(DIMS)}.",
    arguments=CompareArguments,
    answer=compare_candidates,
)
