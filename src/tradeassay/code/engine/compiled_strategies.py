"""Run one of the twelve strategies compiled: bars in, decisions out, millions of bars a second."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradeassay.account.shares import DecisionList
from tradeassay.code.semantics.expression import calendar_of
from tradeassay.code.semantics.model import Semantics
from tradeassay.core.errors import UserError
from tradeassay.core.view import Floats

KERNELS: dict[str, str] = {
    "bollinger": "single",
    "double-ma": "single",
    "turtle": "single",
    "index-enhancement": "single",
    "vol-target": "single",
    "rsi-macd": "single",
    "dual-thrust": "sessions",
    "r-breaker": "sessions",
    "spread": "several",
    "calendar-spread": "several",
    "pairs": "several",
    "cross-asset-momentum": "several",
}
"""Which module holds the kernel of a strategy; its function has the strategy's name."""


def kernel(id: str) -> Callable[..., int]:
    """Return a strategy's compiled function; raises :class:`UserError` when it has none."""
    if id not in KERNELS:
        raise UserError(f"strategy '{id}' has no compiled form", mend=f"one of {', '.join(KERNELS)}")
    module = import_module(f"tradeassay.code.engine.kernels.{KERNELS[id]}")
    found: Callable[..., int] = getattr(module, id.replace("-", "_"))
    return found


class Tape:
    """Bars laid out for kernels: fields of shape (legs, bars), and marks of sessions' first and last bars."""

    def __init__(
        self,
        feeds: Mapping[str, Mapping[str, NDArray[Any]]],
        legs: tuple[str, ...],
        times: NDArray[Any],
        last_bars: NDArray[np.bool_] | None = None,
    ) -> None:
        fields = ("open", "high", "low", "close")
        self.open, self.high, self.low, self.close = (
            np.ascontiguousarray(np.stack([np.asarray(feeds[leg][field], dtype=np.float64) for leg in legs]))
            for field in fields
        )
        if not np.isfinite(self.close).all():
            raise UserError("a close is missing", mend="drop that bar from every leg")
        calendar = calendar_of(times, last_bars)
        self.first = calendar.first.astype(np.bool_)
        self.last = calendar.last.astype(np.bool_)

    def __len__(self) -> int:
        return int(self.close.shape[1])


def run_compiled(semantics: Semantics, tape: Tape, parameters: Mapping[str, float] | None = None) -> DecisionList:
    """Return a strategy's decisions over a tape; the same as the interpreter's, but for the last bits of sizes."""
    values = {name: p.value for name, p in semantics.parameters.items()} | dict(parameters or {})
    unknown = sorted(set(values) - set(semantics.parameters))
    if unknown:
        raise UserError(f"strategy '{semantics.id}' has no parameter '{unknown[0]}'")
    given: Floats = np.array([values[name] for name in semantics.parameters], dtype=np.float64)
    room = len(tape) * len(semantics.inputs.legs)
    rows, legs, signals = (np.empty(room, dtype=np.int64) for _ in range(3))
    fractions = np.empty(room)
    count = kernel(semantics.id)(
        tape.open, tape.high, tape.low, tape.close, tape.first, tape.last, given, rows, legs, fractions, signals
    )
    # Copies: views would keep buffers of the tape's length alive for a handful of decisions.
    return DecisionList(rows[:count].copy(), legs[:count].copy(), fractions[:count].copy(), signals[:count].copy())
