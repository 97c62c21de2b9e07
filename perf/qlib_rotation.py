"""The top-20 rotation for both engines: hold the best 20 by score, replace up to five of the worst
per day.
"""

from __future__ import annotations

import numpy as np

from tradeassay_bench.core.agent import AskDecision, EpisodeInfo, Observation
from tradeassay_bench.core.orders import Decision, Order

TOP, DROP = 20, 5


class Rotation:
    """An agent with a table of scores, like Qlib's ``TopkDropoutStrategy`` with a precomputed
    signal.

    With ``shares`` it orders numbers of shares, computed from yesterday's closes, so that another
    engine can execute the same orders. Otherwise it spends equal amounts of money.
    """

    def __init__(
        self, score: np.ndarray, first_row: int, *, shares: bool = False, invest: float = 0.95
    ) -> None:
        self.score = score
        self.first_row = first_row
        self.shares = shares
        self.invest = invest

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        """Do nothing."""

    def answer(self, request: AskDecision) -> Decision:
        """Rank the names by yesterday's information. Sell the worst holdings and buy the best other
        names.
        """
        seen = request.observation
        score = self.score[self.first_row + seen.step - 1]
        symbols, column, positions = seen.view.symbols, seen.view.column, seen.account.positions
        fresh: list[str] = []
        room = DROP + TOP - len(positions)
        for best in np.argsort(-score, kind="stable").tolist():
            if len(fresh) == room:
                break
            if symbols[best] not in positions:
                fresh.append(symbols[best])
        wanted = [*positions, *fresh]
        marks = score[[column(symbol) for symbol in wanted]].tolist()
        dropped = {symbol for _, symbol in sorted(zip(marks, wanted, strict=True))[:DROP]}
        sell = [symbol for symbol in positions if symbol in dropped]
        buy = fresh[: len(sell) + TOP - len(positions)]
        orders = [
            Order(symbol=symbol, amount=positions[symbol].quantity, side="SELL") for symbol in sell
        ]
        if buy:
            orders += self._purchases(seen, sell, buy)
        return Decision(orders=tuple(orders))

    def _purchases(self, seen: Observation, sell: list[str], buy: list[str]) -> list[Order]:
        money = seen.account.cash + sum(seen.account.positions[symbol].value for symbol in sell)
        each = money * self.invest / len(buy)
        if not self.shares:
            return [Order(symbol=symbol, amount=each, unit="dollars", side="BUY") for symbol in buy]
        closes = seen.view.bars("close", 1, adjust="none")[-1]
        orders = []
        for symbol in buy:
            lots = each / float(closes[seen.view.column(symbol)]) // 100
            if lots > 0:
                orders.append(Order(symbol=symbol, amount=lots * 100.0, side="BUY"))
        return orders
