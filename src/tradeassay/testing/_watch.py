"""Watching what a piece of code reads while it runs: the clock, and randomness that is not its own."""

from __future__ import annotations

import pickle
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np

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
    function was imported. A profiler that was active is put back afterwards.
    """
    accused: set[str] = set()

    def hook(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call":
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
