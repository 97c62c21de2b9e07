"""Harnesses for Backtrader jobs.

They run in the sandbox's child and send the strategy's decisions to the host.

:func:`run` has all rows of the job. Each line of a feed takes one copy in memory. :func:`run_fed`
gets a bar only after the host has received the orders for the previous bar, so the process contains
no later bar.
"""

from __future__ import annotations

import itertools
import struct
from array import array
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

import backtrader as bt
import numpy as np

from tradeassay.core.order_columns import (
    ACTION_CANCEL,
    ACTION_SUBMIT,
    FLOATS,
    GIVEN,
    INTEGERS,
    day_numbers,
)
from tradeassay_programs.code.harness.watch import (
    READ,
    Print,
    changes,
    fingerprint,
    shadowed,
    watch_lines,
)
from tradeassay_programs.code.harness.wire import ACCOUNT, ACTION, NOTES, PRICES
from tradeassay_programs.sandbox.feed import answer, receive
from tradeassay_programs.sandbox.strategy import MODULE, NoEntry, by_table

_OCO_PLACE: Final = 8
"""The position of ``oco`` among the arguments of the broker's ``buy`` and ``sell``."""


class RecordingBroker(bt.brokers.BackBroker):  # type: ignore[misc]  # backtrader has no types
    """Records every order and cancellation with its bar and the broker's turn."""

    def __init__(self) -> None:
        self.record: dict[str, list[Any]] = {name: [] for name in (*INTEGERS, *FLOATS)}
        self.turns = 0
        self.feeds: list[Any] = []
        self._oco_ref = 0
        super().__init__()

    def next(self) -> None:
        self.turns += 1
        super().next()

    def buy(self, *args: Any, **kwargs: Any) -> Any:
        other = kwargs.get("oco", args[_OCO_PLACE] if len(args) > _OCO_PLACE else None)
        self._oco_ref = getattr(other, "ref", 0)
        return super().buy(*args, **kwargs)

    def sell(self, *args: Any, **kwargs: Any) -> Any:
        other = kwargs.get("oco", args[_OCO_PLACE] if len(args) > _OCO_PLACE else None)
        self._oco_ref = getattr(other, "ref", 0)
        return super().sell(*args, **kwargs)

    def submit(self, order: Any, check: bool = True) -> Any:
        values = {
            "action": ACTION_SUBMIT,
            "ref": order.ref,
            "asset": next((k for k, feed in enumerate(self.feeds) if feed is order.data), -1),
            "side": 1 if order.isbuy() else -1,
            "kind": order.exectype,
            "given": sum(bit for name, bit in GIVEN.items() if getattr(order, name) is not None),
            "parent": getattr(order.parent, "ref", 0),
            "oco": self._oco_ref,
            "transmit": int(bool(order.transmit)),
            "tradeid": order.tradeid,
            "row": len(order.data) - 1,
            "size": abs(order.size),
        }
        for name in GIVEN:
            value = getattr(order, name)
            values[name] = 0.0 if value is None else float(value)
        self._note(values)
        return super().submit(order, check=check)

    def cancel(self, order: Any, bracket: bool = False) -> Any:
        """Record a cancellation that the strategy requested, then cancel the order.

        A cancellation caused by another order is not recorded.
        """
        if not bracket and order is not None:
            self._note({"action": ACTION_CANCEL, "ref": order.ref, "row": len(order.data) - 1})
        return super().cancel(order, bracket=bracket)

    def _note(self, values: dict[str, Any]) -> None:
        values["turn"] = self.turns
        for name, column in self.record.items():
            column.append(values.get(name, 0))


_FRAMES: Final = {
    "1d": (bt.TimeFrame.Days, 1),
    "1h": (bt.TimeFrame.Minutes, 60),
    "30m": (bt.TimeFrame.Minutes, 30),
    "15m": (bt.TimeFrame.Minutes, 15),
    "5m": (bt.TimeFrame.Minutes, 5),
    "1m": (bt.TimeFrame.Minutes, 1),
}


class ColumnFeed(bt.feed.DataBase):  # type: ignore[misc]  # backtrader has no types
    """A data feed over the columns of one asset."""

    def preload(self) -> None:
        """Fill all lines in one step, with the same result as loading row by row."""
        columns = self.p.dataname
        rows = len(columns["close"])
        numbers = {"datetime": day_numbers(columns["time"]), "openinterest": np.full(rows, np.nan)}
        for alias in self.getlinealiases():
            values = numbers[alias] if alias in numbers else columns[alias]
            line = getattr(self.lines, alias)
            line.array = array("d", np.ascontiguousarray(values, dtype=np.float64).tobytes())
        self.home()

    def advance_peek(self) -> float:
        """Return the time of the next bar for Backtrader's loop, or infinity after the last bar."""
        clock = self.lines.datetime
        if clock.lencount < len(clock.array) - clock.extension:
            return float(clock.array[clock._idx + 1])
        return float("inf")

    def advance(self, size: int = 1, datamaster: Any = None, ticks: bool = True) -> None:
        """Advance by ``size`` bars. Without a master feed there are no ticks to update."""
        if datamaster is None:
            self.lines.advance(size)
        else:
            super().advance(size, datamaster, ticks)

    def _tick_nullify(self) -> None:
        """Do nothing. Without ticks, the broker reads the same numbers from the bar."""

    def _tick_fill(self, force: bool = False) -> None: ...


_ORIGINAL: Final[list[Print]] = []
"""The fingerprint of Backtrader's state before any program runs. :func:`warm_up` fills it."""


_NAN: Final = float("nan")


class NoStrategy(NoEntry):
    """Raised if the code does not define exactly one strategy."""


def run(
    module: ModuleType, columns: Mapping[str, Any], params: Mapping[str, Any]
) -> dict[str, Any]:
    """Run the module's strategy on all bars, and return the columns that the host reads.

    ``columns`` contains the bars of all assets, and ``params`` the account terms and the timeframe.
    The result has the recorded orders as columns, the figures of the account, and notes on changes
    to the framework. Raises :class:`NoStrategy` unless the module defines exactly one strategy.
    """
    broker = RecordingBroker()
    feeds = {label: (ColumnFeed, {"dataname": group}) for label, group in by_table(columns).items()}
    found = _play(find_strategy(module), broker, feeds, params)
    types = dict.fromkeys(INTEGERS, np.int64) | dict.fromkeys(FLOATS, np.float64)
    return {
        **{name: np.array(broker.record[name], dtype=kind) for name, kind in types.items()},
        **found,
    }


def _play(
    strategy: type,
    broker: RecordingBroker,
    feeds: Mapping[str, tuple[Any, dict[str, Any]]],
    params: Mapping[str, Any],
    **how: bool,
) -> dict[str, Any]:
    """Run a strategy on feeds, and return the figures of its account and its notes.

    ``feeds`` maps each asset to a feed class and the arguments of the class. ``how`` contains
    options of ``bt.Cerebro``.
    """
    notes = changes(_ORIGINAL)
    broker.setcash(params["cash"])
    broker.setcommission(commission=params["commission"])
    cerebro = bt.Cerebro(stdstats=False, **how)
    cerebro.broker = broker
    frame, compression = _FRAMES[params["timeframe"]]
    for label, (kind, given) in feeds.items():
        feed = kind(name=label, timeframe=frame, compression=compression, **given)
        cerebro.adddata(feed, name=label)
        broker.feeds.append(feed)
    add_sizer(cerebro, params["sizing"], params["size"])
    cerebro.addstrategy(strategy)
    cerebro.run()
    notes += [*READ, *changes(_ORIGINAL), *shadowed(broker, cerebro)]
    completed = sum(order.status == bt.Order.Completed for order in broker.orders)
    account = [
        float(broker.getvalue()),
        float(broker.getcash()),
        float(completed),
        float(broker.turns),
    ]
    return {ACCOUNT: np.array(account), NOTES: np.array(list(dict.fromkeys(notes)), dtype=object)}


def find_strategy(module: ModuleType) -> type:
    """Return the only strategy class that the module defines.

    Base classes of other strategies in the module are ignored. Raises :class:`NoStrategy` unless
    exactly one strategy remains.
    """
    own = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, bt.Strategy) and value.__module__ == MODULE
    ]
    own = list(dict.fromkeys(own))
    last = [
        kind
        for kind in own
        if not any(other is not kind and issubclass(other, kind) for other in own)
    ]
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
    """The connection to the host.

    Each message from the host contains one bar as doubles: its time, then five values per asset.
    """

    def __init__(self, broker: RecordingBroker, assets: int) -> None:
        self._row = struct.Struct(f"<{1 + len(PRICES) * assets}d")
        self._record = broker.record
        self._sent = 0
        self._owed = False
        self.values: tuple[float, ...] | None = ()
        self.more = False

    def step(self) -> None:
        self.settle()
        frame = receive(self._row.size)
        self._owed = frame is not None
        self.values = None if frame is None else self._row.unpack(frame)
        if (
            self.values and self.values[0] != self.values[0]
        ):  # A NaN ends a table before the next one.
            answer()
            self.values, self._owed, self.more = None, False, True

    def settle(self) -> None:
        if not self._owed:
            return
        self._owed = False
        if len(self._record["ref"]) == self._sent:
            answer()
            return
        columns = [self._record[name][self._sent :] for name in (*INTEGERS, *FLOATS)]
        self._sent += len(columns[0])
        answer(b"".join(ACTION.pack(*action) for action in zip(*columns, strict=True)))


class FedFeed(bt.feed.DataBase):  # type: ignore[misc]  # backtrader has no types
    """A data feed of one asset that receives its bars from the host one at a time.

    The first asset's feed requests the next bar.
    """

    params = (("line", None), ("place", 0))

    def start(self) -> None:
        """Look up the lines once, because every bar writes seven values."""
        super().start()
        self._cells = [getattr(self.lines, name) for name in ("datetime", *PRICES, "openinterest")]
        self._line, self._place = self.p.line, self.p.place
        self._prices = slice(1 + len(PRICES) * self._place, 1 + len(PRICES) * (self._place + 1))

    def load(self) -> bool:
        """Append the next bar, and return whether there was one.

        Filters are not applied, because a strategy starts too late to add a filter. Preloaded bars
        are not filtered either.
        """
        if not self._place:
            self._line.step()
        values = self._line.values
        if values is None:
            return False
        for cell, value in zip(self._cells, (values[0], *values[self._prices], _NAN), strict=True):
            cell.forward(value)
        return True

    def _tick_nullify(self) -> None:
        """Do nothing; see :class:`ColumnFeed`."""

    def _tick_fill(self, force: bool = False) -> None: ...


def run_fed(
    module: ModuleType, columns: Mapping[str, Any], params: Mapping[str, Any]
) -> dict[str, Any]:
    """Run the module's strategy on bars that arrive one at a time, and return account and notes.

    If the host sends several tables, each table has a separate run, and the figures of the accounts
    are concatenated.
    """
    labels = str(params["assets"]).split(",")
    found: list[dict[str, Any]] = []
    more = True
    while more:
        if found:
            module = vars(module)["__loader__"]()
            _forget_orders()
        broker = RecordingBroker()
        line = _Line(broker, len(labels))
        feeds = {
            label: (FedFeed, {"line": line, "place": place}) for place, label in enumerate(labels)
        }
        found.append(
            _play(find_strategy(module), broker, feeds, params, preload=False, runonce=False)
        )
        line.settle()
        more = line.more
    notes = dict.fromkeys(note for one in found for note in one[NOTES])
    account = np.concatenate([one[ACCOUNT] for one in found])
    return {ACCOUNT: account, NOTES: np.array(list(notes), dtype=object)}


class _Rehearsal:
    """Artificial bars for :func:`warm_up`."""

    values: tuple[float, ...] | None = ()
    _day = 730_000.0

    def step(self) -> None:
        self._day += 1.0
        price = 100.0 + self._day % 7
        self.values = (
            (self._day, price, price, price, price, 1.0) if self._day < 730_060.0 else None
        )


class _Rehearsed(bt.Strategy):  # type: ignore[misc]  # backtrader has no types
    def __init__(self) -> None:
        self.cross = bt.indicators.CrossOver(
            bt.indicators.SMA(period=3), bt.indicators.EMA(period=5)
        )

    def next(self) -> None:
        if self.cross[0] > 0 and not self.position:
            self.buy()
        elif self.cross[0] < 0 and self.position:
            self.close()


def warm_up() -> None:
    """Run a small strategy once in the zygote, so that children skip the slow first-time work."""
    watch_lines()
    params = {"cash": 1e5, "commission": 0.001, "timeframe": "1d", "sizing": "fixed", "size": 1.0}
    feeds = {"A": (FedFeed, {"line": _Rehearsal(), "place": 0})}
    _play(_Rehearsed, RecordingBroker(), feeds, params, preload=False, runonce=False)
    _forget_orders()
    _ORIGINAL.extend(fingerprint())


def _forget_orders() -> None:
    bt.Order.refbasis, bt.Trade.refbasis = itertools.count(1), itertools.count(1)
