"""What a submission's trades come to, worked out by the host: positions, equity, P&L and shares of equity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tradeassay.code.engine.decisions import DecisionList
from tradeassay.code.submission_log import TradeLog
from tradeassay.core.view import Floats

_DUST: Final = 1e-9
"""A position this small beside the largest trade is the rounding of a position that was closed."""


@dataclass(frozen=True, slots=True, eq=False)
class Account:
    """Trades filled at the close of their bar, without costs.

    ``position`` is what each trade left in its leg, ``realised`` what it earned against the average entry price.
    ``equity`` is the account at every close, ``held`` the quantities of shape (legs, bars).
    """

    capital: float
    position: Floats
    realised: Floats
    equity: Floats
    held: Floats

    @property
    def ruined(self) -> bool:
        """Whether equity was ever nothing or less."""
        return bool(self.equity.size and self.equity.min() <= 0.0)


def keep_account(trades: TradeLog, closes: Floats, capital: float) -> Account:
    """Return the account of trades on closes of shape (legs, bars)."""
    legs, bars = closes.shape
    change = np.zeros((legs, bars))
    np.add.at(change, (trades.leg, trades.row), trades.quantity)
    held = np.cumsum(change, axis=1)
    position = np.zeros(len(trades))
    for leg in range(legs):
        mine = trades.leg == leg
        largest = float(np.abs(trades.quantity[mine]).max()) if mine.any() else 0.0
        after = np.cumsum(trades.quantity[mine])
        position[mine] = np.where(np.abs(after) <= _DUST * largest, 0.0, after)
        held[leg] = np.where(np.abs(held[leg]) <= _DUST * largest, 0.0, held[leg])
    cash = capital - np.cumsum((change * closes).sum(axis=0))
    equity = cash + (held * closes).sum(axis=0)
    return Account(capital, position, _realised(trades, closes), equity, held)


def decisions_of(trades: TradeLog, account: Account, closes: Floats, signals: Sequence[str]) -> DecisionList:
    """Return trades as exposures wanted: one decision for each bar and leg that was traded.

    ``signals`` are the names of the rules, whose places become the decisions' signals.
    """
    bars = closes.shape[1]
    keys = trades.row * closes.shape[0] + trades.leg
    # The last trade of a bar in a leg says what was wanted; np.unique gives the first of the reversed keys.
    unique, reverse = np.unique(keys[::-1], return_index=True)
    last = len(trades) - 1 - reverse
    row, leg = unique // max(closes.shape[0], 1), unique % max(closes.shape[0], 1)
    equity = account.equity[np.minimum(row, max(bars - 1, 0))] if len(trades) else np.zeros(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(equity > 0.0, account.held[leg, row] * closes[leg, row] / equity, 0.0)
    places: dict[str, int] = {}
    for place, name in enumerate(signals):
        places.setdefault(name, place)
    named = np.array([places.get(str(trades.signal[number]), -1) for number in last], dtype=np.int64)
    return DecisionList(row.astype(np.int64), leg.astype(np.int64), share, named)


def _realised(trades: TradeLog, closes: Floats) -> Floats:
    size, price = [0.0] * closes.shape[0], [0.0] * closes.shape[0]
    earned = np.zeros(len(trades))
    moves = zip(trades.row.tolist(), trades.leg.tolist(), trades.quantity.tolist(), strict=True)
    for number, (row, leg, quantity) in enumerate(moves):
        now, held = float(closes[leg, row]), size[leg]
        closed = min(abs(quantity), abs(held)) if held * quantity < 0 else 0.0
        earned[number] = closed * (now - price[leg]) * (1.0 if held > 0 else -1.0)
        after = held + quantity
        if held * quantity >= 0 and after != 0.0:
            price[leg] = (price[leg] * held + now * quantity) / after
        elif abs(quantity) > abs(held):
            price[leg] = now
        size[leg] = after
    return earned
