"""From actions to positions to returns, in both conventions.

The paper says that HOLD keeps the position; its formula and its code make it flat. ``paper`` follows the formula,
``sound`` the words. A decision made with what was known at ``t`` earns the return from ``t`` to ``t + 1``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.account.daily_target import next_position, target_growth
from tradeassay.core.arena import Action
from tradeassay.core.badges import Convention
from tradeassay.core.errors import UserError
from tradeassay.core.view import Floats

Kind = Literal["stock", "crypto"]


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How actions become money. ``fee_bp`` is paid per side on the part of the position that changes.

    ``stock_year``/``crypto_year`` are how many sessions make a year. ``published_mdd``: the drawdown is measured
    as the paper prints it (on the cumulative return R, relative to its running maximum), not on the equity curve.
    """

    id: str = "ama-v1"
    convention: Convention
    hold: Literal["keep", "flat"]
    fee_bp: float
    stock_year: int
    crypto_year: int
    published_mdd: bool

    def __post_init__(self) -> None:
        if not 0 <= self.fee_bp < 10_000:
            raise UserError(f"a fee of {self.fee_bp} basis points is no fee", mend="give 0 to 9999, such as 5")

    def periods_per_year(self, kind: Kind) -> int:
        """Return how many sessions of this kind of asset make a year."""
        return self.stock_year if kind == "stock" else self.crypto_year


PAPER = Rules(convention="paper", hold="flat", fee_bp=0.0, stock_year=252, crypto_year=252, published_mdd=True)
SOUND = Rules(convention="sound", hold="keep", fee_bp=5.0, stock_year=252, crypto_year=365, published_mdd=False)


def rules_for(convention: Convention) -> Rules:
    """Return the rules of a convention."""
    return PAPER if convention == "paper" else SOUND


def positions(actions: Sequence[Action], hold: Literal["keep", "flat"], start: int = 0) -> NDArray[np.int64]:
    """Return the position after each action, shape (n,)."""
    path = np.empty(len(actions), dtype=np.int64)
    now = start
    for row, action in enumerate(actions):
        path[row] = now = next_position(action, now, hold)
    return path


def daily_returns(held: NDArray[np.int64], prices: Floats, fee_bp: float, start: int = 0) -> Floats:
    """Return what each position earned, shape (n,), from ``n`` positions and ``n + 1`` prices.

    Position ``t`` was taken at price ``t`` (its fee is paid there) and is held until price ``t + 1``:
    ``(1 - fee) x (1 + w_t x (P_t+1 / P_t - 1)) - 1``. Days without a trade stay in the series. Raises
    :class:`UserError` when lengths do not fit or a price is not positive.
    """
    prices = np.asarray(prices, dtype=np.float64)
    if prices.shape != (len(held) + 1,):
        raise UserError(f"{len(held)} positions need {len(held) + 1} prices, got {prices.shape[0]}")
    if not np.isfinite(prices).all() or (prices <= 0).any():
        raise UserError("a price is missing or not positive", mend="leave that session out of the series")
    return target_growth(held, prices[1:] / prices[:-1] - 1.0, fee_bp, start) - 1.0
