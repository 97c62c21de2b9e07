"""An untouched cerebro in this process, for comparing the host's replay with it.

Only for code that we ship.
"""

import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tradeassay_bench.account.backtrader import BrokerTerms
from tradeassay_programs.code.bars import MINUTES, TaskBars
from tradeassay_programs.sandbox.strategy import FILE, MODULE


class PlainFill(NamedTuple):
    """An execution, by the names of :class:`~tradeassay_bench.account.backtrader.Fill`."""

    bar: int
    asset: str
    size: float
    price: float
    opened: float
    closed: float
    commission: float
    pnl: float


class PlainTrade(NamedTuple):
    """A round trip, by the names of :class:`~tradeassay_bench.account.backtrader.RoundTrip`."""

    asset: str
    tradeid: int
    entry_bar: int
    exit_bar: int | None
    long: bool
    pnl: float
    net: float


@dataclass(frozen=True, slots=True, eq=False)
class TrustedRun:
    """What the framework itself makes of a strategy; ``value`` is its broker's at the end."""

    fills: list[PlainFill]
    trades: list[PlainTrade]
    equity: NDArray[np.float64]
    value: float


def run_trusted(source: str, bars: TaskBars, terms: BrokerTerms) -> TrustedRun:
    """Run a strategy that this project ships with the framework as it is, without isolation."""
    import backtrader as bt
    import pandas as pd

    from tradeassay_programs.code.harness.backtrader import add_sizer, find_strategy

    fills: list[PlainFill] = []
    equity: list[float] = []

    class Recorder(bt.Analyzer):  # type: ignore[misc]  # backtrader has no types
        """Notes what happens; changes nothing."""

        def notify_order(self, order: Any) -> None:
            where = len(order.data) - 1, order.data._name
            for bit in order.executed.iterpending():
                fills.append(
                    PlainFill(
                        *where, bit.size, bit.price, bit.opened, bit.closed, bit.comm, bit.pnl
                    )
                )

        def notify_cashvalue(self, cash: float, value: float) -> None:
            equity.append(value)

    sys.modules[MODULE] = module = ModuleType(MODULE)
    try:
        exec(compile(source, FILE, "exec", dont_inherit=True), module.__dict__)
        cerebro = bt.Cerebro(stdstats=False)
        cerebro.broker.setcash(terms.cash)
        cerebro.broker.setcommission(commission=terms.commission)
        daily = bars.timeframe == "1d"
        unit = {"timeframe": bt.TimeFrame.Days if daily else bt.TimeFrame.Minutes}
        unit["compression"] = 1 if daily else MINUTES[bars.timeframe]
        for label, feed in bars.feeds.items():
            prices = {name: feed[name] for name in ("open", "high", "low", "close", "volume")}
            frame = pd.DataFrame(prices, index=pd.DatetimeIndex(feed["time"]))
            cerebro.adddata(bt.feeds.PandasData(dataname=frame, **unit), name=label)
        add_sizer(cerebro, terms.sizing.kind, terms.sizing.value)
        cerebro.addstrategy(find_strategy(module))
        cerebro.addanalyzer(Recorder)
        (strategy,) = cerebro.run()
    finally:
        sys.modules.pop(MODULE, None)
    trades = [
        PlainTrade(
            one.data._name,
            one.tradeid,
            one.baropen - 1,
            one.barclose - 1 if one.isclosed else None,
            one.long,
            one.pnl,
            one.pnlcomm,
        )
        for by_id in strategy._trades.values()
        for line in by_id.values()
        for one in line
    ]
    return TrustedRun(fills, trades, np.array(equity), float(cerebro.broker.getvalue()))
