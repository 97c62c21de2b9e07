"""Run a submission in the sandbox's child process. The output is not trusted."""

import datetime
import os
import struct
import time
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from tradeassay_programs.sandbox.codec import encode, encode_claim
from tradeassay_programs.sandbox.feed import answer, receive
from tradeassay_programs.sandbox.strategy import NoEntry, Unreturnable, claim_of, shape

_LOGS: Final = {
    "trade": (("symbol", "side", "signal", "order_id"), ("quantity", "price", "pnl", "equity")),
    "audit": (("kind", "id", "parent", "symbol"), ("value",)),
}
"""The text columns and the number columns of each log, in addition to its times."""
_LONGEST: Final = 200
_STAMP: Final = np.dtype("M8[ns]")


def run(
    module: ModuleType, columns: Mapping[str, Any], params: Mapping[str, Any]
) -> dict[str, Any]:
    if "zone" in params:
        pretend(str(params["zone"]), float(params["later_s"]))
    trades, audit = _called(module, shape(columns, "frames"), float(params["capital"]))
    columns = log_columns("trade", trades)
    return columns if params.get("only") == "trades" else columns | log_columns("audit", audit)


def pretend(zone: str, later_s: float) -> None:
    """Change the clock and time zone that Python code sees, before the strategy starts.

    C code still sees the true clock.
    """
    os.environ["TZ"] = zone
    time.tzset()
    now, now_ns, local, utc = time.time, time.time_ns, time.localtime, time.gmtime
    time.time = lambda: now() + later_s
    time.time_ns = lambda: now_ns() + int(later_s * 1e9)
    time.localtime = lambda seconds=None: local(now() + later_s if seconds is None else seconds)
    time.gmtime = lambda seconds=None: utc(now() + later_s if seconds is None else seconds)
    day: Any = datetime.date
    moment: Any = datetime.datetime

    class Like(type):
        def __instancecheck__(cls, other: object) -> bool:
            return isinstance(other, moment if cls.__name__ == "datetime" else day)

    class Moment(moment, metaclass=Like):  # type: ignore[misc]  # the real class, before it is replaced
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return moment.now(tz) + datetime.timedelta(seconds=later_s)

        @classmethod
        def today(cls) -> Any:
            return cls.now()

        @classmethod
        def utcnow(cls) -> Any:
            return moment.now(datetime.UTC).replace(tzinfo=None) + datetime.timedelta(
                seconds=later_s
            )

    class Day(day, metaclass=Like):  # type: ignore[misc]  # the real class
        @classmethod
        def today(cls) -> Any:
            return Moment.now().date()

    Moment.__name__, Day.__name__ = "datetime", "date"
    datetime.datetime, datetime.date = Moment, Day  # type: ignore[misc]  # what the strategy imports from there


def replay(
    module: ModuleType, columns: Mapping[str, Any], params: Mapping[str, Any]
) -> dict[str, Any]:
    """Take bars one at a time, each followed by a false bar, and answer with the trades.

    The trades are on all bars so far and the false bar. The child never gets a bar beyond the
    first unanswered bar, so no answer can depend on a later bar.
    """
    row = struct.Struct(str(params["format"]))
    letters = str(params["format"])[1:]
    width = len(letters) // 2
    table = GrowingFrames(
        str(params["columns"]).split("\n"), letters[:width], int(params["bars"]) + 1
    )
    count = 0
    while (frame := receive(row.size)) is not None:
        found = row.unpack(frame)
        table.put(count, found[:width])
        table.put(count + 1, found[width : 2 * width])
        count += 1
        if len(found) == 2 * width + 1 and not found[-1]:
            answer()
            continue
        answer(_answer(module, table, count + 1, float(params["capital"])))
    return {"bars": [count]}


class GrowingFrames:
    """Bars by name (``X/close``) that grow by one bar at a time, and frames of the first rows.

    Building frames from their columns takes a third of a replay, so the numbers of a leg are kept
    in one block.
    """

    def __init__(self, names: Sequence[str], kinds: str, size: int) -> None:
        self._names = names
        self._columns: dict[str, Any] = {}
        self._legs: dict[str, tuple[Any, Any, Any]] | None = {}
        legs: dict[str, list[str]] = {}
        kind = dict(zip(names, kinds, strict=True))
        for name in names:
            legs.setdefault(name.rpartition("/")[0], []).append(name)
        for leg, own in legs.items():
            numbers = [name for name in own if not name.endswith("/time")]
            block = np.empty((len(numbers), size))
            self._columns |= dict(zip(numbers, block, strict=True))
            if (
                f"{leg}/time" in own
                and all(kind[name] == "d" for name in numbers)
                and self._legs is not None
            ):
                times = np.empty(size, "i8")
                self._columns[f"{leg}/time"] = times
                self._legs[leg] = (
                    times,
                    block,
                    pd.Index([name.rpartition("/")[2] for name in numbers]),
                )
            else:
                self._legs = None
        if self._legs is None:
            types = {"q": "i8", "d": "f8", "?": "?"}
            self._columns = {name: np.empty(size, types[kind[name]]) for name in names}

    def put(self, row: int, values: Sequence[Any]) -> None:
        """Set the bar of a row. An empty sequence leaves it unchanged."""
        for name, value in zip(self._names, values, strict=False):
            self._columns[name][row] = value

    def first(self, rows: int) -> Any:
        """Return the first ``rows`` bars as a dict of frames."""
        if self._legs is None:
            seen = {name: self._columns[name][:rows] for name in self._names}
            seen |= {
                name: had.view("M8[ns]") for name, had in seen.items() if name.endswith("/time")
            }
            return shape(seen, "frames")
        return {
            leg: pd.DataFrame(
                block[:, :rows].copy().T,
                index=pd.DatetimeIndex(times[:rows].view("M8[ns]").copy(), name="time"),
                columns=columns,
                copy=False,
            )
            for leg, (times, block, columns) in self._legs.items()
        }


def _answer(module: ModuleType, table: GrowingFrames, rows: int, capital: float) -> bytes:
    try:
        trades, _ = _called(module, table.first(rows), capital)
        return b"".join(encode(log_columns("trade", trades)))
    except Exception as error:
        return encode_claim(claim_of(error))


def _called(module: ModuleType, market: Any, capital: float) -> tuple[Any, Any]:
    made = vars(module).get("TradingStrategy")
    if not callable(made):
        raise NoEntry("the code defines no class TradingStrategy")
    strategy = made()
    if not callable(getattr(strategy, "run", None)):
        raise NoEntry("the class TradingStrategy has no method run(market_data, initial_capital)")
    returned = strategy.run(market, capital)
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise Unreturnable("run() has to return two logs: (trade_log, audit_log)")
    return returned[0], returned[1]


def log_columns(kind: Literal["trade", "audit"], log: Any) -> dict[str, Any]:
    """Return a strategy's log as columns named ``trade/time``, ``trade/side``, etc."""
    rows, (texts, numbers) = _table(log, f"{kind}_log"), _LOGS[kind]
    values = rows("time")
    try:
        if all(type(value) is pd.Timestamp and value.tzinfo is None for value in values):
            times: Any = np.array([value.value for value in values], dtype="i8").view("M8[ns]")
        elif all(type(value) is np.datetime64 and value.dtype == _STAMP for value in values):
            times = np.array(values, dtype=_STAMP)
        else:
            stamps = pd.DatetimeIndex(pd.to_datetime(values))
            stamps = stamps if stamps.tz is None else stamps.tz_convert("UTC").tz_localize(None)
            times = stamps.as_unit("ns").to_numpy()
    except (TypeError, ValueError, OverflowError) as error:
        raise Unreturnable(
            f"the {kind}_log holds a time that is none: {str(error)[:200]}"
        ) from error
    made: dict[str, Any] = {f"{kind}/time": times}
    made |= {
        f"{kind}/{name}": np.array([_text(value) for value in rows(name)], object) for name in texts
    }
    made |= {
        f"{kind}/{name}": np.array([_number(value) for value in rows(name)], "f8")
        for name in numbers
    }
    return made


def _table(log: Any, name: str) -> Any:
    """Return a function from a column's name to its values.

    A missing column is filled with None.
    """
    if isinstance(log, pd.DataFrame):
        frame: Any = (
            log.reset_index() if "time" not in log.columns and log.index.name == "time" else log
        )
        return lambda key: frame[key].tolist() if key in frame.columns else [None] * len(frame)
    if isinstance(log, Sequence) and all(isinstance(row, Mapping) for row in log):
        return lambda key: [row.get(key) for row in log]
    raise Unreturnable(f"the {name} has to be a list of dicts or a frame")


def _text(value: Any) -> str | None:
    if type(value) is str:
        return value[:_LONGEST]
    if value is None or (isinstance(value, float) and value != value) or value is pd.NaT:
        return None
    return str(value)[:_LONGEST]


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):  # The values contain None.
        return float("nan")
