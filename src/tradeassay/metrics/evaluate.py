"""All measures of one series, or of a thousand resampled ones, in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tradeassay.core.view import Floats, Ints
from tradeassay.metrics import conduct, ratios, returns, style
from tradeassay.metrics.drawdown import max_drawdown
from tradeassay.metrics.returns import simple_returns
from tradeassay.metrics.series import EpisodeSeries

_ROWS = ("returns", "turned", "cost", "hhi", "idle", "abstained", "failed", "orders", "rejected")


@dataclass(frozen=True, slots=True)
class Sessions:
    """An episode as a matrix: one row per quantity (``_ROWS``), one column per session; resampling is one take.

    ``index`` has the index's session returns, or is None. ``path`` is the value path where it is known; a resample
    has none and gets one by compounding. Money is in shares of the value before the session.
    """

    matrix: Floats
    index: Floats | None
    periods_per_year: int
    path: Floats | None = None

    @classmethod
    def of(cls, series: EpisodeSeries, index: Floats | None = None) -> Sessions:
        """Return the matrix of a series; ``index`` (n + 1 levels) replaces its own. One with a gap is none."""
        levels = series.index if index is None else index
        if levels is not None and not (levels > 0).all():
            levels = None
        before, after = series.nav[:-1], series.nav[1:]
        rows = (
            series.returns,
            series.traded / before,
            series.costs / before,
            series.hhi,
            series.cash / after,
            series.abstained,
            series.failed,
            series.orders,
            series.rejected,
        )
        matrix = np.array([np.asarray(row, dtype=np.float64) for row in rows])
        return cls(matrix, None if levels is None else simple_returns(levels), series.periods_per_year, series.nav)

    def take(self, indices: Ints) -> Sessions:
        """Return the resampled sessions: the matrix gets shape (quantities, draws, n)."""
        index = None if self.index is None else self.index[indices]
        return Sessions(self.matrix[:, indices], index, self.periods_per_year)


def evaluate(sessions: Sessions) -> dict[str, Floats]:
    """Return every measure by id, shape () for one series and (draws,) for resampled ones. NaN where undefined."""
    row = dict(zip(_ROWS, sessions.matrix, strict=True))
    earned, year = row["returns"], sessions.periods_per_year
    path = returns.growth(earned) if sessions.path is None else sessions.path
    ones = np.ones(1)
    values = {
        "cumulative_return": returns.cumulative_return(path),
        "annualised_return": returns.annualised_return(path, year),
        "volatility": returns.volatility(earned, year),
        "sharpe": ratios.sharpe(earned, year),
        "sortino": ratios.sortino(earned, year),
        "sortino_stockbench": ratios.sortino_stockbench(earned),
        "max_drawdown": max_drawdown(path),
        "calmar": ratios.calmar(path, year),
        "turnover": style.turnover(row["turned"], ones, year),
        "cost_rate": style.cost_rate(row["cost"], ones, year),
        "hhi": style.mean_held(row["hhi"]),
        "cash_ratio": style.cash_ratio(row["idle"], ones),
        "hit_rate": conduct.hit_rate(earned),
        "abstention_rate": conduct.abstention_rate(row["abstained"]),
        "failure_rate": conduct.failure_rate(row["failed"]),
        "rejection_rate": conduct.rejection_rate(row["rejected"], row["orders"]),
    }
    if sessions.index is not None:
        values["excess_return"] = values["cumulative_return"] - returns.cumulative_return(
            returns.growth(sessions.index)
        )
        values["information_ratio"] = ratios.information_ratio(earned, sessions.index, year)
    return values


def evaluate_resamples(sessions: Sessions, indices: Iterator[Ints]) -> dict[str, Floats]:
    """Return every measure on every resample, by id, shape (draws,)."""
    chunks = [evaluate(sessions.take(chunk)) for chunk in indices]
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}
