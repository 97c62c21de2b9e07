"""What code under examination reads: clocks, foreign randomness, and everything in its observation."""

from __future__ import annotations

import gc
import hashlib
import pickle
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, get_args

import msgspec
import numpy as np

from tradeassay.core.agent import Observation
from tradeassay.core.errors import DataError
from tradeassay.core.view import FIELDS, Adjustment, Bools, Field, Floats, MarketView

_CLOCK_NAMES = frozenset(
    "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns process_time process_time_ns localtime "
    "gmtime clock_gettime clock_gettime_ns ctime".split()
)
_DATE_NAMES = frozenset(("now", "utcnow", "today"))
_ENTROPY_NAMES = frozenset(("urandom", "getrandom"))


@contextmanager
def watched(accuse: Callable[[str], None]) -> Iterator[None]:
    """Run a block and ``accuse`` it of every clock it reads and every foreign randomness it uses.

    Calls into C are seen through the interpreter's profiling hook, so that it does not matter under which name a
    function was imported. A profiler that was active is restored afterwards.
    """
    accused: set[str] = set()
    # A test framework may time the garbage collector; a collection in the middle of an answer is not the agent's.
    collecting = {getattr(callback, "__code__", None) for callback in gc.callbacks}

    def hook(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call" and frame.f_code not in collecting:
            charge = _charge(called)
            if charge is not None:
                accused.add(charge)

    before = _random_states()
    profiler = sys.getprofile()
    sys.setprofile(hook)
    try:
        yield
    finally:
        sys.setprofile(profiler)
    for charge in sorted(accused):
        accuse(charge)
    if before[0] != (after := _random_states())[0]:
        accuse("uses Python's global random generator")
    if before[1] != after[1]:
        accuse("uses numpy's global random generator")


def _charge(called: Any) -> str | None:
    name = getattr(called, "__name__", "")
    if name in _CLOCK_NAMES and getattr(called, "__module__", None) == "time":
        return f"reads the clock (time.{name})"
    if name in _DATE_NAMES and getattr(getattr(called, "__self__", None), "__module__", None) == "datetime":
        return f"reads the clock ({called.__self__.__name__}.{name})"
    if name in _ENTROPY_NAMES:
        return "draws randomness from the operating system (an unseeded generator?)"
    return None


def _random_states() -> tuple[object, bytes]:
    # Reading numpy's global state is how its use is noticed.
    return random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002


_ENCODER = msgspec.json.Encoder(order="sorted")


def fingerprint(observation: Observation, index: str | None = None) -> str:
    """Return a hash over the observation and everything its view gives out."""
    digest = hashlib.sha256()
    seen = observation
    facts = (seen.step, seen.session, seen.time, seen.universe, seen.account, seen.rules, seen.since_last)
    digest.update(_ENCODER.encode((*facts, seen.sessions_left)))
    _add(digest, seen.columns)
    view = seen.view
    symbols = view.symbols
    digest.update(_ENCODER.encode((view.clock, symbols, [view.instrument(symbol) for symbol in symbols])))
    _add(digest, view.sessions())
    for field in FIELDS:
        for adjust in get_args(Adjustment):
            _add(digest, view.bars(field, adjust=adjust))
    opens = view.opens()
    _add(digest, np.empty(0) if opens is None else opens)
    _add(digest, view.tradable())
    digest.update(_ENCODER.encode([view.news(0), view.actions(0)]))
    figures: list[object] = []
    for symbol in symbols:
        try:
            figures.append(view.fundamentals(symbol))
        except DataError as error:
            figures.append(str(error))
    digest.update(_ENCODER.encode(figures))
    if index is not None:
        digest.update(_ENCODER.encode(view.members(index)))
        _add(digest, view.index_levels(index))
    return digest.hexdigest()


def _add(digest: Any, array: np.ndarray[Any, Any]) -> None:
    digest.update(f"{array.shape}{array.dtype}".encode())
    digest.update(np.ascontiguousarray(array).tobytes())


class BlankView:
    """A :class:`~tradeassay.core.view.MarketView` that passes another one on, with blanks."""

    def __init__(self, view: MarketView, *, trading: bool = True, prices: bool = True) -> None:
        self._view, self._trading, self._prices = view, trading, prices

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)

    def bars(self, field: Field, lookback: int | None = None, *, adjust: Adjustment = "split") -> Floats:
        bars = self._view.bars(field, lookback, adjust=adjust)
        return bars if self._prices else _read_only(np.full_like(bars, np.nan))

    def opens(self) -> Floats | None:
        opens = self._view.opens()
        return opens if opens is None or self._prices else _read_only(np.full_like(opens, np.nan))

    def tradable(self) -> Bools:
        tradable = self._view.tradable()
        return tradable if self._trading else _read_only(np.zeros_like(tradable))


def _read_only(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    values.setflags(write=False)
    return values
