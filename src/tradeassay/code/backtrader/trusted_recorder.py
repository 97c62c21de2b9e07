"""An analyser that notes the framework's own fills, trades and account, bar by bar."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tradeassay.code.backtrader.account import Fill, Trade


@lru_cache(maxsize=1)
def recorder() -> type:
    """Return the analyser's class; made on use, because the framework takes a while to import."""
    import backtrader as bt

    class Recorder(bt.Analyzer):  # type: ignore[misc]  # backtrader has no types
        """Notes what happens; changes nothing."""

        def __init__(self) -> None:
            self.fills: list[Fill] = []
            self.equity: list[float] = []

        def notify_order(self, order: Any) -> None:
            bar = len(order.data) - 1
            self.fills += [_fill(order, bit, bar) for bit in order.executed.iterpending()]

        def notify_cashvalue(self, cash: float, value: float) -> None:
            self.equity.append(value)

        def all_trades(self) -> tuple[Trade, ...]:
            lines = [line for by_id in self.strategy._trades.values() for line in by_id.values()]
            return tuple(_trade(trade) for line in lines for trade in line)

    return Recorder


def _fill(order: Any, bit: Any, bar: int) -> Fill:
    return Fill(
        bar=bar,
        ref=order.ref,
        asset=order.data._name,
        size=bit.size,
        price=bit.price,
        opened=bit.opened,
        closed=bit.closed,
        commission=bit.comm,
        pnl=bit.pnl,
    )


def _trade(trade: Any) -> Trade:
    return Trade(
        asset=trade.data._name,
        entry_bar=trade.baropen - 1,
        exit_bar=trade.barclose - 1 if trade.isclosed else None,
        size=1.0 if trade.long else -1.0,
        entry_price=trade.price,
        exit_price=None,
        pnl=trade.pnl,
        commission=trade.commission,
        net=trade.pnlcomm,
        tradeid=trade.tradeid,
    )
