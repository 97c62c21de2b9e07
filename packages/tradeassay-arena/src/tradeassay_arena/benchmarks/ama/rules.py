"""Compute positions, returns and the five measures from actions, in both conventions.

The paper's text says that HOLD keeps the position. Its formula and its code make the position flat.
The convention ``paper`` follows the formula, and ``corrected`` follows the text. A decision made
with the information of ``t`` earns the return from ``t`` to ``t + 1``.
"""

from collections.abc import Callable
from typing import Final, Literal

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Convention, Measure, not_scored
from tradeassay.metrics.horizon import TOO_SHORT, Horizon
from tradeassay.metrics.intervals import BootstrapConfig, choose_block, content_seed, resamples
from tradeassay.metrics.measures import (
    annualised_return,
    cumulative_return,
    growth,
    max_drawdown,
    sharpe,
    volatility,
)
from tradeassay_bench.benchmarks.code_protocol import OtherCommand

AMA: Final = "ama-v1"
COMMAND: Final = OtherCommand(
    played="played in the arena", command="tradeassay arena run --replay synthetic"
)
Kind = Literal["stock", "crypto"]


class AmaRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of positions, fees and measures.

    ``fee_bp`` is the fee per side in basis points, on the part of the position that changes.
    ``stock_year`` and ``crypto_year`` are the numbers of sessions per year. With ``published_mdd``,
    the drawdown follows the paper's formula instead of the equity curve. The formula is on the
    cumulative return R, relative to the running maximum of R.
    """

    id: str = AMA
    convention: Convention
    hold: Literal["keep", "flat"]
    fee_bp: float
    stock_year: int
    crypto_year: int
    published_mdd: bool

    def __post_init__(self) -> None:
        if not 0 <= self.fee_bp < 10_000:
            raise UserError(
                f"a fee of {self.fee_bp} basis points is not valid",
                hint="give 0 to 9999, such as 5",
            )

    def periods_per_year(self, kind: Kind) -> int:
        """Return the number of sessions per year of this kind of asset."""
        return self.stock_year if kind == "stock" else self.crypto_year


PAPER = AmaRules(
    convention="paper", hold="flat", fee_bp=0.0, stock_year=252, crypto_year=252, published_mdd=True
)
SOUND = AmaRules(
    convention="corrected",
    hold="keep",
    fee_bp=5.0,
    stock_year=252,
    crypto_year=365,
    published_mdd=False,
)


def rules_for(convention: Convention) -> AmaRules:
    return PAPER if convention == "paper" else SOUND


MEASURES = ("CR", "AR", "AV", "SR", "MDD")


def ama_panel(
    returns: Floats, kind: Kind, rules: AmaRules, bootstrap: BootstrapConfig | None = None
) -> dict[str, Measure]:
    """Return the five measures of a series of daily returns.

    Without ``bootstrap`` the measures have no intervals. An empty series, undefined ratios, and
    annual figures of only a few days are not scored. Each such measure states the reason.
    """
    returns = np.asarray(returns, dtype=np.float64)
    if returns.size == 0:
        return {name: not_scored("no settled session") for name in MEASURES}
    year = rules.periods_per_year(kind)
    fall: Callable[[Floats], Floats]
    fall = (
        published_drawdown
        if rules.published_mdd
        else (lambda returns: max_drawdown(growth(returns)))
    )
    functions: dict[str, Callable[[Floats], Floats]] = {
        "CR": lambda returns: cumulative_return(growth(returns)),
        "AR": lambda returns: annualised_return(growth(returns), year),
        "AV": lambda returns: volatility(returns, year),
        "SR": lambda returns: sharpe(returns, year),
        "MDD": fall,
    }
    drawn = None
    if bootstrap is not None and returns.size >= bootstrap.least:
        seed = content_seed(bootstrap, returns)
        block = choose_block(returns, bootstrap)
        drawn = returns[np.concatenate(list(resamples(returns.size, bootstrap.draws, block, seed)))]
    panel = {
        name: _measure(name, function, returns, drawn, bootstrap)
        for name, function in functions.items()
    }
    if (
        rules.convention == "corrected"
        and bootstrap is not None
        and Horizon(returns.size, year).is_short
    ):
        panel |= dict.fromkeys(("AR", "AV", "SR"), not_scored(TOO_SHORT))
    return panel


def published_drawdown(returns: Floats) -> Floats:
    """Return the drawdown by the paper's formula: the largest (max R - R) / max R on the cumulative
    return R.

    It is undefined (NaN) until R has been above zero, and can exceed 1. It is used to compare with
    published tables.
    """
    gained = growth(returns)[..., 1:] - 1.0
    peak = np.maximum.accumulate(gained, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        fall = np.where(peak > 0, (peak - gained) / peak, np.nan)
    worst = np.where(np.isnan(fall), -np.inf, fall).max(axis=-1)
    return np.asarray(np.where(np.isinf(worst), np.nan, -worst))


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
        note = (
            None
            if bootstrap is None
            else f"fewer than {bootstrap.least} settled sessions: no interval"
        )
        return Measure(value=value, n=returns.size, note=note)
    spread = function(drawn)
    spread = spread[np.isfinite(spread)]
    if spread.size < 0.9 * drawn.shape[0]:
        return Measure(
            value=value, n=returns.size, note="undefined in too many resamples: no interval"
        )
    tail = (1.0 - bootstrap.level) / 2.0
    low, high = np.quantile(spread, (tail, 1.0 - tail))
    return Measure(
        value=value, low=float(low), high=float(high), level=bootstrap.level, n=returns.size
    )
