"""What can be wrong with a bar, whatever its array's shape: used on raw tables and on panels alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tradeassay.core.view import Field

TOLERANCE = 1e-6
"""Relative slack of comparisons inside a bar: vendors round adjusted prices field by field."""

GAP = 0.30
"""A move of more than this from one close to the next open *and* close calls for a corporate action."""

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Where a check fails: a mask over the bars, and a function that says why at one of them."""

    check: str
    mask: np.ndarray[Any, np.dtype[np.bool_]]
    reason: Callable[[Any], str]


def check_bars(bars: Mapping[Field, Array]) -> Iterator[Suspicion]:
    """Yield what is wrong inside single bars. NaN in every price means "no bar" and is never wrong."""
    o, h, l, c = bars["open"], bars["high"], bars["low"], bars["close"]  # noqa: E741 - the trade's own letters
    prices = {"open": o, "high": h, "low": l, "close": c}
    present = [np.isfinite(values) for values in prices.values()]
    some, every = np.logical_or.reduce(present), np.logical_and.reduce(present)

    def names(where: Any) -> str:
        return ", ".join(name for name, values in prices.items() if not np.isfinite(values[where]))

    yield Suspicion("incomplete bar", some & ~every, lambda at: f"the bar has no {names(at)}")
    lowest = np.fmin.reduce([o, h, l, c])
    wrong = lowest <= 0
    yield Suspicion("price not positive", wrong, lambda at: f"price {lowest[at]:g} is not positive")
    slack = 1 + TOLERANCE
    inverted = (h * slack < l) & ~wrong
    yield Suspicion("high below low", inverted, lambda at: f"high {h[at]:g} is below low {l[at]:g}")
    top, bottom = np.fmax(o, c), np.fmin(o, c)
    yield Suspicion(
        "high below open or close",
        (h * slack < top) & ~inverted & ~wrong,
        lambda at: f"high {h[at]:g} is below {'open' if o[at] >= c[at] else 'close'} {top[at]:g}",
    )
    yield Suspicion(
        "low above open or close",
        (l > bottom * slack) & ~inverted & ~wrong,
        lambda at: f"low {l[at]:g} is above {'open' if o[at] <= c[at] else 'close'} {bottom[at]:g}",
    )
    volume, amount = bars["volume"], bars["amount"]
    yield Suspicion("negative volume", volume < 0, lambda at: f"volume {volume[at]:g} is negative")
    yield Suspicion("negative amount", amount < 0, lambda at: f"amount {amount[at]:g} is negative")


def gaps(open_: Array, close: Array, previous: Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return where both open and close lie more than :data:`GAP` away from the (adjusted) previous close.

    A split that nobody recorded moves both; a crash within the day moves the close alone.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        opened, closed = open_ / previous - 1, close / previous - 1
    sane = (previous > 0) & (open_ > 0) & (close > 0)
    return sane & (((opened > GAP) & (closed > GAP)) | ((opened < -GAP) & (closed < -GAP)))
