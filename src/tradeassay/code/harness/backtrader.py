"""The harnesses of a Backtrader job: run in the sandbox's child, they send decisions home.

:func:`run` has all rows of the job. :func:`run_fed` gets a bar only once the host has the orders for the bar
before: the framework runs without preloading, so its lines hold the bars so far, and there are no others
anywhere in the process.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

import backtrader as bt
import numpy as np

from tradeassay.code.harness.broker import RecordingBroker, feeds_of, frame_of
from tradeassay.code.harness.watch import LineWatch, Members, Print, changes, fingerprint, shadowed
from tradeassay.code.harness.wire import ACCOUNT, ACTION, NOTES, PRICES
from tradeassay.core.order_columns import FLOATS, INTEGERS
from tradeassay.sandbox.feed import answer, receive
from tradeassay.sandbox.strategy import MODULE, NoEntry

_ORIGINAL: Final[list[Print | Members]] = fingerprint()


_NAN: Final = float("nan")


class NoStrategy(NoEntry):
    """The code does not define exactly one strategy."""


def run(module: ModuleType, columns: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
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
    return {
        **{name: np.array(broker.record[name], dtype=np.int64) for name in INTEGERS},
        **{name: np.array(broker.record[name], dtype=np.float64) for name in FLOATS},
        ACCOUNT: _account(broker),
        NOTES: np.array(list(dict.fromkeys(notes)), dtype=object),
    }


def _account(broker: RecordingBroker) -> Any:
    completed = sum(order.status == bt.Order.Completed for order in broker.orders)
    return np.array([float(broker.getvalue()), float(broker.getcash()), float(completed), float(broker.turns)])


def find_strategy(module: ModuleType) -> type:
    """Return the one strategy class of the module, base classes of its others not counted; or
    :class:`NoStrategy`.
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
    if kind == "percent":
        cerebro.addsizer(bt.sizers.PercentSizer, percents=value)
    else:
        cerebro.addsizer(bt.sizers.FixedSize, stake=int(value) if value == int(value) else value)


class _Line:
    """The line to the host: one frame of doubles per bar (its time, then five prices per asset)."""

    def __init__(self, broker: RecordingBroker, assets: int) -> None:
        self._row = struct.Struct(f"<{1 + len(PRICES) * assets}d")
        self._record = broker.record
        self._sent = 0
        self._owed = False
        self.values: tuple[float, ...] | None = ()

    def step(self) -> None:
        self.settle()
        frame = receive(self._row.size)
        self._owed = frame is not None
        self.values = None if frame is None else self._row.unpack(frame)

    def settle(self) -> None:
        if not self._owed:
            return
        columns = [self._record[name][self._sent :] for name in (*INTEGERS, *FLOATS)]
        self._sent += len(columns[0])
        answer(b"".join(ACTION.pack(*action) for action in zip(*columns, strict=True)))
        self._owed = False


class FedFeed(bt.feed.DataBase):  # type: ignore[misc]  # backtrader has no types
    """One asset's bars as they come; the first asset's feed is the one that asks for the next."""

    params = (("line", None), ("place", 0))

    def _load(self) -> bool:
        line, place = self.p.line, self.p.place
        if place == 0:
            line.step()
        values = line.values
        if values is None:
            return False
        start = 1 + len(PRICES) * place
        # The lines are filled past their own accessors, which look for other lines bound to them; these have none.
        for cell, value in zip(self._cells, (values[0], *values[start : start + len(PRICES)], _NAN), strict=True):
            cell.array[cell._idx] = value
        return True

    def start(self) -> None:
        """Take hold of the lines once: a bar is six assignments, and there are many bars."""
        super().start()
        self._cells = [getattr(self.lines, name) for name in ("datetime", *PRICES, "openinterest")]

    def _tick_nullify(self) -> None:
        """Do nothing; see :class:`ColumnFeed`."""

    def _tick_fill(self, force: bool = False) -> None: ...


def run_fed(module: ModuleType, columns: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    notes = changes(_ORIGINAL)
    strategy = find_strategy(module)
    broker = RecordingBroker()
    broker.setcash(params["cash"])
    broker.setcommission(commission=params["commission"])
    cerebro = bt.Cerebro(stdstats=False, preload=False, runonce=False)
    cerebro.broker = broker
    labels = str(params["assets"]).split(",")
    line = _Line(broker, len(labels))
    frame, compression = frame_of(params["timeframe"])
    for place, label in enumerate(labels):
        feed = FedFeed(line=line, place=place, name=label, timeframe=frame, compression=compression)
        cerebro.adddata(feed, name=label)
        broker.feeds.append(feed)
    add_sizer(cerebro, params["sizing"], params["size"])
    cerebro.addstrategy(strategy)
    with LineWatch(notes):
        cerebro.run()
    line.settle()
    notes += [*changes(_ORIGINAL), *shadowed(broker, cerebro)]
    return {ACCOUNT: _account(broker), NOTES: np.array(list(dict.fromkeys(notes)), dtype=object)}
