"""An untouched cerebro in this process, for comparing the host's replay with it. Only for code that we ship."""

import sys
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from tradeassay.account.backtrader import BrokerTerms, Fill, RoundTrip
from tradeassay.code.bars import TaskBars
from tradeassay.core.errors import SandboxError
from tradeassay.sandbox.strategy import FILE, MODULE


@lru_cache(maxsize=1)
def recorder() -> type:
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

        def all_trades(self) -> tuple[RoundTrip, ...]:
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


def _trade(trade: Any) -> RoundTrip:
    return RoundTrip(
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


_MINUTES: Final = {"1h": 60, "30m": 30, "15m": 15, "5m": 5, "1m": 1}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrustedRun:
    """What the framework itself makes of a strategy. ``value`` and ``cash`` are its broker's at the end.

    ``trades`` are in the order in which they were closed, open ones last.
    """

    fills: tuple[Fill, ...]
    trades: tuple[RoundTrip, ...]
    equity: NDArray[np.float64]
    value: float
    cash: float


def run_trusted(source: str, bars: TaskBars, terms: BrokerTerms, *, trust: Literal["reference"]) -> TrustedRun:
    """Run a strategy that this project ships with the framework as it is: no isolation, ``trust`` must be
    ``reference``.
    """
    if trust != "reference":
        raise SandboxError("only code marked trust='reference' may run inside the host's process")
    import backtrader as bt

    from tradeassay.code.harness.backtrader import add_sizer, find_strategy

    module = ModuleType(MODULE)
    sys.modules[MODULE] = module
    try:
        exec(compile(source, FILE, "exec", dont_inherit=True), module.__dict__)
        cerebro = bt.Cerebro(stdstats=False)
        cerebro.broker.setcash(terms.cash)
        cerebro.broker.setcommission(commission=terms.commission)
        for label, frame in _frames(bars).items():
            kind = bt.TimeFrame.Days if bars.timeframe == "1d" else bt.TimeFrame.Minutes
            feed = bt.feeds.PandasData(dataname=frame, timeframe=kind, compression=_MINUTES.get(bars.timeframe, 1))
            cerebro.adddata(feed, name=label)
        add_sizer(cerebro, terms.sizing.kind, terms.sizing.value)
        cerebro.addstrategy(find_strategy(module))
        cerebro.addanalyzer(recorder(), _name="recorder")
        found: Any = cerebro.run()[0].analyzers.recorder
    finally:
        sys.modules.pop(MODULE, None)
    return TrustedRun(
        fills=tuple(found.fills),
        trades=found.all_trades(),
        equity=np.array(found.equity),
        value=float(cerebro.broker.getvalue()),
        cash=float(cerebro.broker.getcash()),
    )


def _frames(bars: TaskBars) -> dict[str, Any]:
    import pandas as pd

    return {
        label: pd.DataFrame(
            {name: feed[name] for name in ("open", "high", "low", "close", "volume")},
            index=pd.DatetimeIndex(feed["time"]),
        )
        for label, feed in bars.feeds.items()
    }
