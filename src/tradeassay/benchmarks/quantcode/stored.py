"""Public tasks on stored bars: those of the symbol that a task names, at its timeframe.

The public file tells its user what to download. Whoever has imported that data can run its tasks on it instead of
on a synthetic market; what they lack without real prices is then no longer said of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.benchmarks.quantcode.loading import OTHER_PRICES
from tradeassay.code.bars import FIELDS, MINUTES, OPEN_MINUTE, Clock, TaskBars, bars_from_snapshot
from tradeassay.code.task import CodeTask, Timeframe
from tradeassay.core.errors import UserError
from tradeassay.core.registry import did_you_mean
from tradeassay.core.time import MINUTE
from tradeassay.data.snapshot import AsOfView, Snapshot
from tradeassay.data.tables.bars import ZONES, to_local

_ALL: Final = np.iinfo(np.int64).max // 2
_FEWEST: Final = 100
"""Fewer bars are no market to run a strategy on."""


def on_stored_bars(task: CodeTask, snapshot: Snapshot, symbol: str | None = None) -> tuple[CodeTask, TaskBars]:
    """Return a task as it is on stored bars, and the last of its symbol's bars, as many as it has.

    ``symbol`` replaces the one that the task names. Days are adjusted for splits, shorter bars are as traded and
    stamped in the exchange's own time; a data set with shorter bars than the task's is summed up. An account that
    cannot pay for one unit gets the cash for ten, and ``lacks`` says so. Raises :class:`UserError` for a task with
    a reference (it is judged on drawn markets), and where the data set has no such symbol, no bars of that length
    or too few of them.
    """
    if task.has_reference:
        raise UserError(
            f"task '{task.id}' is judged on drawn markets", hint="stored bars are for tasks of the public file"
        )
    view = snapshot.at(snapshot.rows(None, None)[-1], "close")
    name = _find(symbol or task.symbol or "", view.symbols, snapshot.name)
    bars = (
        bars_from_snapshot(snapshot, (name,)) if task.timeframe == "1d" else _shorter(task, snapshot, view, name)
    )
    if bars.rows < _FEWEST:
        raise UserError(
            f"'{snapshot.name}' has {bars.rows} bars of '{name}', {_FEWEST} are needed",
            hint="import a longer span",
        )
    bars = bars.with_columns({key: values[-task.bars :] for key, values in bars.columns().items()})
    real = snapshot.facts.kind == "real"
    lacks = tuple(what for what in task.lacks if not (real and what == OTHER_PRICES))
    cash, unit = task.cash, float(bars.feeds["A"]["high"].max())
    if unit * (1.0 + task.commission) > cash:
        cash = 10.0 ** math.ceil(math.log10(10.0 * unit))
        lacks += (f"cash for a unit at {unit:,.2f}: {cash:,.0f} instead of {task.cash:,.0f}",)
    return msgspec.structs.replace(task, lacks=lacks, cash=cash), bars


def _find(symbol: str, known: tuple[str, ...], dataset: str) -> str:
    """Return how a data set spells a symbol: BTC-USD may be BTC/USDT or BTC there."""
    if symbol in known:
        return symbol
    plain = {_plain(name): name for name in known}
    base = re.split(r"[-/]", symbol.upper())[0] if re.search(r"[-/]USDT?$", symbol.upper()) else ""
    for spelled in (_plain(symbol), base):
        if spelled and spelled in plain:
            return plain[spelled]
    what = f"'{symbol}'" if symbol else "the symbol of a task that names none"
    hint = did_you_mean(symbol, known, f"it has {', '.join(known[:3])} ...; name one with --symbols")
    raise UserError(f"'{dataset}' does not have {what}", hint=hint)


def _plain(symbol: str) -> str:
    return re.sub(r"USDT$", "USD", re.sub(r"[^A-Z0-9]", "", symbol.upper()))


def _shorter(task: CodeTask, snapshot: Snapshot, view: AsOfView, symbol: str) -> TaskBars:
    length, wanted = snapshot.facts.minutes_per_bar, MINUTES[task.timeframe]
    if wanted % length:
        raise UserError(
            f"'{snapshot.name}' has bars of {length} minutes, the task wants {task.timeframe}",
            hint="import bars of one minute",
        )
    closes, fields = view.minutes(symbol, _ALL)
    opens = to_local(closes - length * MINUTE, ZONES[snapshot.calendar])
    clock: Clock = "always" if snapshot.calendar == "24/7" else "exchange"
    feed = {"time": opens.astype("M8[ns]")}
    feed |= {str(name): np.asarray(fields[name], dtype=np.float64) for name in fields if name in FIELDS}
    whole = np.all([np.isfinite(feed[name]) for name in FIELDS[1:]], axis=0) & (feed["low"] > 0.0)
    summed = sum_up({name: values[whole] for name, values in feed.items()}, task.timeframe, clock)
    return TaskBars({"A": summed}, task.timeframe, clock, f"{snapshot.name}:{symbol} {task.timeframe}")


def sum_up(feed: Mapping[str, NDArray[Any]], timeframe: Timeframe, clock: Clock) -> dict[str, NDArray[Any]]:
    """Return bars of a longer timeframe; they begin with the session. A bar is stamped with when it begins."""
    minute = feed["time"].astype("M8[m]").astype(np.int64) - OPEN_MINUTE[clock]
    begins = minute // MINUTES[timeframe] * MINUTES[timeframe]
    first = np.flatnonzero(np.append(True, begins[1:] != begins[:-1])) if minute.size else np.zeros(0, np.int64)
    if not first.size:
        return {name: values[:0] for name, values in feed.items()}
    last = np.append(first[1:], minute.size) - 1
    return {
        "time": (begins[first] + OPEN_MINUTE[clock]).astype("M8[m]").astype("M8[ns]"),
        "open": feed["open"][first],
        "high": np.maximum.reduceat(feed["high"], first),
        "low": np.minimum.reduceat(feed["low"], first),
        "close": feed["close"][last],
        "volume": np.add.reduceat(feed["volume"], first),
    }
