"""What code under examination reads: clocks, foreign randomness, and everything in its observation."""

from __future__ import annotations

import gc
import hashlib
import pickle
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, get_args

import msgspec
import numpy as np

from tradeassay.core.agent import Observation
from tradeassay.core.errors import DataError
from tradeassay.core.instruments import CorporateAction, Fundamental, Instrument, NewsItem
from tradeassay.core.time import Instant
from tradeassay.core.view import FIELDS, Adjustment, Bools, Days, Field, Floats, Ints, MarketView

_CLOCK_MODULE = "time"
_CLOCK_NAMES = frozenset(
    (
        "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
        "process_time_ns", "localtime", "gmtime", "clock_gettime", "clock_gettime_ns", "ctime",
    )
)  # fmt: skip
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
    if name in _CLOCK_NAMES and getattr(called, "__module__", None) == _CLOCK_MODULE:
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
    _read(digest, seen.view, index)
    return digest.hexdigest()


def _read(digest: Any, view: MarketView, index: str | None) -> None:
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
    digest.update(_ENCODER.encode([_or_error(view.fundamentals, symbol) for symbol in symbols]))
    if index is not None:
        digest.update(_ENCODER.encode(view.members(index)))
        _add(digest, view.index_levels(index))


def _or_error(ask: Callable[[str], object], symbol: str) -> object:
    try:
        return ask(symbol)
    except DataError as error:
        return str(error)


def _add(digest: Any, array: np.ndarray[Any, Any]) -> None:
    digest.update(f"{array.shape}{array.dtype}".encode())
    digest.update(np.ascontiguousarray(array).tobytes())


class BlankView:
    """A :class:`~tradeassay.core.view.MarketView` that passes another one on, with blanks."""

    def __init__(self, view: MarketView, *, trading: bool = True, prices: bool = True) -> None:
        self._view = view
        self._trading = trading
        self._prices = prices

    @property
    def clock(self) -> Instant:
        """The view's current instant."""
        return self._view.clock

    @property
    def symbols(self) -> tuple[str, ...]:
        """Instruments listed so far."""
        return self._view.symbols

    def column(self, symbol: str) -> int:
        """Return a symbol's column."""
        return self._view.column(symbol)

    def instrument(self, symbol: str) -> Instrument:
        """Return the facts about one instrument."""
        return self._view.instrument(symbol)

    def sessions(self, lookback: int | None = None) -> Days:
        """Return the dates of the completed sessions."""
        return self._view.sessions(lookback)

    def bars(self, field: Field, lookback: int | None = None, *, adjust: Adjustment = "split") -> Floats:
        """Return completed bars, or as many without a value."""
        bars = self._view.bars(field, lookback, adjust=adjust)
        return bars if self._prices else _blank(bars)

    def opens(self) -> Floats | None:
        """Return today's opening prices, or as many without a value."""
        opens = self._view.opens()
        return opens if opens is None or self._prices else _blank(opens)

    def minutes(self, symbol: str, lookback: int) -> tuple[Ints, dict[Field, Floats]]:
        """Return the last completed minute bars of one symbol."""
        return self._view.minutes(symbol, lookback)

    def tradable(self) -> Bools:
        """Return which columns trade, or that none does."""
        tradable = self._view.tradable()
        if self._trading:
            return tradable
        nothing = np.zeros_like(tradable)
        nothing.setflags(write=False)
        return nothing

    def members(self, index: str) -> tuple[str, ...]:
        """Return an index's members."""
        return self._view.members(index)

    def index_levels(self, index: str, lookback: int | None = None) -> Floats:
        """Return the completed closing levels of an index."""
        return self._view.index_levels(index, lookback)

    def fundamentals(self, symbol: str) -> tuple[Fundamental, ...]:
        """Return the figures known by now."""
        return self._view.fundamentals(symbol)

    def news(
        self, since: Instant, *, symbols: Sequence[str] | None = None, limit: int | None = None
    ) -> tuple[NewsItem, ...]:
        """Return items published in (since, clock]."""
        return self._view.news(since, symbols=symbols, limit=limit)

    def actions(self, since: Instant) -> tuple[CorporateAction, ...]:
        """Return corporate actions that became known in (since, clock]."""
        return self._view.actions(since)


def _blank(values: Floats) -> Floats:
    blank = np.full_like(values, np.nan)
    blank.setflags(write=False)
    return blank
