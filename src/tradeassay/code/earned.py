"""What a strategy earned, with buy and hold beside it. Shown, never scored: a task is about doing what it says."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from tradeassay.code.bars import TaskBars, bars_per_session
from tradeassay.core.view import Floats
from tradeassay.metrics import cumulative_return, max_drawdown, sharpe, simple_returns

_SESSIONS_PER_YEAR = {"exchange": 252, "futures": 252, "always": 365}


class Performance(msgspec.Struct, frozen=True, kw_only=True):
    """One value path: fractions over the whole run, and the yearly Sharpe ratio of its bars (risk-free rate 0).

    None where a number is not defined: a path that never moves has no Sharpe ratio.
    """

    total_return: float | None
    max_drawdown: float | None
    sharpe: float | None


class Earned(msgspec.Struct, frozen=True, kw_only=True):
    """The strategy on the task's home market after commission; equal-weight buy and hold of its assets from the
    first open, without costs.
    """

    market: str
    strategy: Performance
    hold: Performance
    trades: int
    final_value: float


def earned(bars: TaskBars, equity: Floats, cash: float, trades: int) -> Earned:
    """Return the panel of a run; ``equity`` is the account's value at every bar's close."""
    per_year = _SESSIONS_PER_YEAR[bars.clock] * bars_per_session(bars.clock, bars.timeframe)
    hold = np.mean([feed["close"] / feed["open"][0] for feed in bars.feeds.values()], axis=0)
    return Earned(
        market=bars.name,
        strategy=performance(np.concatenate([[cash], equity]), per_year),
        hold=performance(np.concatenate([[1.0], hold]), per_year),
        trades=trades,
        final_value=float(equity[-1]) if equity.size else cash,
    )


def performance(path: Floats, per_year: float) -> Performance:
    """Return the numbers of one value path, which starts with the initial value."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return Performance(
            total_return=_finite(cumulative_return(path)),
            max_drawdown=_finite(max_drawdown(path)),
            sharpe=_finite(sharpe(simple_returns(path), per_year)),
        )


def _finite(value: Floats) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None
