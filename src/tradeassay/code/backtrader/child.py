"""The harness of a Backtrader job: runs in the sandbox's child, on the job's rows, and sends decisions home."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

import backtrader as bt
import numpy as np

from tradeassay.code.backtrader.child_broker import RecordingBroker
from tradeassay.code.backtrader.child_feed import feeds_of
from tradeassay.code.backtrader.child_lines import LineWatch
from tradeassay.code.backtrader.child_watch import Members, Print, changes, fingerprint, shadowed
from tradeassay.code.backtrader.wire import ACCOUNT, FLOATS, INTEGERS, NOTES
from tradeassay.sandbox.strategy import MODULE, NoEntry

_ORIGINAL: Final[list[Print | Members]] = fingerprint()


class NoStrategy(NoEntry):
    """The code does not define exactly one strategy."""


def run(module: ModuleType, columns: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Run the module's strategy on the columns and return what it decided.

    Raises :class:`NoStrategy`, or whatever the strategy raises.
    """
    notes = changes(_ORIGINAL)
    strategy = find_strategy(module)
    broker = RecordingBroker()
    broker.setcash(params["cash"])
    broker.setcommission(commission=params["commission"])
    cerebro = bt.Cerebro(stdstats=False)
    cerebro.broker = broker
    for label, feed in feeds_of(columns, params["timeframe"]).items():
        cerebro.adddata(feed, name=label)
        broker.feeds.append(feed)
    add_sizer(cerebro, params["sizing"], params["size"])
    cerebro.addstrategy(strategy)
    with LineWatch(notes):
        cerebro.run()
    notes += [*changes(_ORIGINAL), *shadowed(broker, cerebro)]
    completed = sum(order.status == bt.Order.Completed for order in broker.orders)
    account = [float(broker.getvalue()), float(broker.getcash()), float(completed), float(broker.turns)]
    return {
        **{name: np.array(broker.record[name], dtype=np.int64) for name in INTEGERS},
        **{name: np.array(broker.record[name], dtype=np.float64) for name in FLOATS},
        ACCOUNT: np.array(account),
        NOTES: np.array(list(dict.fromkeys(notes)), dtype=object),
    }


def find_strategy(module: ModuleType) -> type:
    """Return the one strategy class that the module defines; one that others of it derive from does not count.

    Raises :class:`NoStrategy`.
    """
    own = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, bt.Strategy) and value.__module__ == MODULE
    ]
    own = list(dict.fromkeys(own))
    last = [kind for kind in own if not any(other is not kind and issubclass(other, kind) for other in own)]
    if len(last) != 1:
        names = ", ".join(kind.__name__ for kind in last[:5])
        seen = f"{len(last)} ({names})" if names else "none"
        raise NoStrategy(f"the code must define exactly one backtrader.Strategy, it has {seen}")
    return last[0]


def add_sizer(cerebro: Any, kind: str, value: float) -> None:
    """Give orders without a size the one that the task states."""
    if kind == "percent":
        cerebro.addsizer(bt.sizers.PercentSizer, percents=value)
    else:
        cerebro.addsizer(bt.sizers.FixedSize, stake=int(value) if value == int(value) else value)
