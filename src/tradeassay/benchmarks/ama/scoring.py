"""The five measures of the paper: CR, AR, AV, SR, MDD, each with an interval where a resampling can give one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tradeassay.benchmarks.ama.rules import Kind, Rules
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats
from tradeassay.metrics.bootstrap import BootstrapConfig, choose_block, content_seed, resamples
from tradeassay.metrics.drawdown import max_drawdown
from tradeassay.metrics.ratios import sharpe
from tradeassay.metrics.returns import annualised_return, cumulative_return, growth, volatility

MEASURES = ("CR", "AR", "AV", "SR", "MDD")


def ama_panel(
    returns: Floats, kind: Kind, rules: Rules, bootstrap: BootstrapConfig | None = None
) -> dict[str, Measure]:
    """Return the five measures of a series of daily returns; without ``bootstrap`` they carry no interval.

    An empty series and undefined ratios are not scored, with the reason.
    """
    returns = np.asarray(returns, dtype=np.float64)
    if returns.size == 0:
        return {name: not_scored("no settled session") for name in MEASURES}
    year = rules.periods_per_year(kind)
    functions = _functions(year, rules)
    drawn = None
    if bootstrap is not None and returns.size >= bootstrap.least:
        seed = content_seed(bootstrap, returns)
        block = choose_block(returns, bootstrap)
        drawn = returns[np.concatenate(list(resamples(returns.size, bootstrap.draws, block, seed)))]
    return {name: _measure(name, function, returns, drawn, bootstrap) for name, function in functions.items()}


def published_drawdown(returns: Floats) -> Floats:
    """Return the paper's drawdown as printed: the largest (max R - R) / max R on the cumulative return R.

    It is undefined (NaN) until R has been above zero, and can exceed 1; kept to compare with published tables.
    """
    gained = growth(returns)[..., 1:] - 1.0
    peak = np.maximum.accumulate(gained, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        fall = np.where(peak > 0, (peak - gained) / peak, np.nan)
    worst = np.where(np.isnan(fall), -np.inf, fall).max(axis=-1)
    return np.asarray(np.where(np.isinf(worst), np.nan, -worst))


def _functions(year: int, rules: Rules) -> dict[str, Callable[[Floats], Floats]]:
    fall: Callable[[Floats], Floats]
    fall = published_drawdown if rules.published_mdd else (lambda returns: max_drawdown(growth(returns)))
    return {
        "CR": lambda returns: cumulative_return(growth(returns)),
        "AR": lambda returns: annualised_return(growth(returns), year),
        "AV": lambda returns: volatility(returns, year),
        "SR": lambda returns: sharpe(returns, year),
        "MDD": fall,
    }


_WHY = {
    "AR": "the account ended at or below zero",
    "AV": "fewer than two settled sessions",
    "SR": "fewer than two settled sessions, or returns that do not vary",
    "MDD": "the cumulative return was never above zero, where the printed formula is undefined",
}


def _measure(
    name: str,
    function: Callable[[Floats], Floats],
    returns: Floats,
    drawn: Floats | None,
    bootstrap: BootstrapConfig | None,
) -> Measure:
    value = float(function(returns))
    if not np.isfinite(value):
        return not_scored(_WHY.get(name, "undefined"))
    if drawn is None or bootstrap is None:
        note = None if bootstrap is None else f"fewer than {bootstrap.least} settled sessions: no interval"
        return Measure(value=value, n=returns.size, note=note)
    spread = function(drawn)
    spread = spread[np.isfinite(spread)]
    if spread.size < 0.9 * drawn.shape[0]:
        return Measure(value=value, n=returns.size, note="undefined in too many resamples: no interval")
    tail = (1.0 - bootstrap.level) / 2.0
    low, high = np.quantile(spread, (tail, 1.0 - tail))
    return Measure(value=value, low=float(low), high=float(high), level=bootstrap.level, n=returns.size)
