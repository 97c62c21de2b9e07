"""An untouched cerebro in this process, for comparing the host's replay with it. For code that we ship alone."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from tradeassay.code.backtrader.account import Fill, Trade
from tradeassay.code.backtrader.terms import BrokerTerms
from tradeassay.code.bars import TaskBars
from tradeassay.core.errors import SandboxError
from tradeassay.sandbox.strategy import FILE, MODULE

_MINUTES: Final = {"1h": 60, "15m": 15, "5m": 5, "1m": 1}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrustedRun:
    """What the framework itself makes of a strategy. ``value`` and ``cash`` are its broker's at the end.

    ``trades`` are in the order in which they were closed, open ones last.
    """

    fills: tuple[Fill, ...]
    trades: tuple[Trade, ...]
    equity: NDArray[np.float64]
    value: float
    cash: float


def run_trusted(source: str, bars: TaskBars, terms: BrokerTerms, *, trust: Literal["reference"]) -> TrustedRun:
    """Run a strategy that this project ships with the framework as it is, its own feeds and broker included.

    There is no isolation: ``trust`` must be ``reference``, else SandboxError. Whatever the code raises comes
    through.
    """
    if trust != "reference":
        raise SandboxError("only code marked trust='reference' may run inside the host's process")
    import backtrader as bt

    from tradeassay.code.backtrader.child import add_sizer, find_strategy
    from tradeassay.code.backtrader.trusted_recorder import recorder

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
