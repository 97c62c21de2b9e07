"""Another future: the same past, the same clock, and prices that might have followed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from tradeassay.code.leak.feeds import TIME, Feeds, Rows
from tradeassay.code.leak.trace import Array

PRICES: Final = ("open", "high", "low", "close")
_SWAP: Final = {"open": "open", "close": "close", "high": "low", "low": "high"}


def other_future(
    feeds: Feeds, known: int, length: int, rng: np.random.Generator, *, mirror: bool
) -> dict[str, Array]:
    """Return ``length`` rows of which the first ``known`` are true and the rest are another plausible path.

    Times stay as they are. Prices go on from the last true close by moves of bars drawn from the whole series in
    short blocks, the same bars for every feed, so that high and low enclose open and close as they did. With
    ``mirror`` the moves are the true ones with their sign turned. Other columns take the values of the drawn bars.
    """
    groups: dict[str, dict[str, Array]] = {}
    drawn = _drawn_bars(len(feeds), length - known, rng)
    for feed, group in feeds.groups.items():
        start, stop = feeds.count(feed, known), feeds.count(feed, length)
        size = feeds.length(feed)
        if mirror:
            bars = np.arange(start, stop)
        elif feeds.aligned:
            bars = drawn
        else:
            bars = _drawn_bars(size, stop - start, rng)
        groups[feed] = _continue(group, start, stop, bars, mirror=mirror)
    return feeds.join(groups)


def mirrored(group: Mapping[str, Array], anchors: Rows, rows: Rows) -> dict[str, Array]:
    """Return the prices of ``rows`` turned upside down about the close of ``anchors``: rises become falls.

    Empty for a feed without prices.
    """
    base = next((name for name in ("close", *PRICES) if name in group), None)
    if base is None:
        return {}
    close = _filled(np.asarray(group[base], dtype=np.float64))
    multiply = bool((close > 0).all())
    axis = close[anchors]
    turned: dict[str, Array] = {}
    for name in PRICES:
        if name in group:
            source = group[_SWAP[name] if _SWAP[name] in group else name]
            price = np.asarray(source, dtype=np.float64)[rows]
            turned[name] = axis * axis / price if multiply else 2 * axis - price
    _enclose(turned)
    return turned


def _drawn_bars(size: int, count: int, rng: np.random.Generator, block: int = 10) -> Rows:
    if size < 2 or count < 1:
        return np.zeros(max(count, 0), dtype=np.int64)
    starts = rng.integers(1, size, -(-count // block))
    bars = (starts[:, None] + np.arange(block)).ravel()[:count]
    return np.asarray(1 + (bars - 1) % (size - 1), dtype=np.int64)


def _continue(group: Mapping[str, Array], start: int, stop: int, bars: Rows, *, mirror: bool) -> dict[str, Array]:
    grown = {name: values[:stop].copy() for name, values in group.items()}
    anchor = "close" if "close" in group else next((name for name in PRICES if name in group), None)
    for name, values in group.items():
        if name != TIME and name not in PRICES:
            grown[name][start:stop] = values[bars[::-1] if mirror else bars]
    if anchor is None:
        return grown
    close = _filled(np.asarray(group[anchor], dtype=np.float64))
    multiply = bool((close > 0).all())
    first = close[max(start - 1, 0)]  # a feed that has not begun by then goes on from its own first price
    last = np.concatenate([close[:1], close[:-1]])[bars]
    step = _move(close[bars], last, multiply, mirror)
    path = first * np.cumprod(step) if multiply else first + np.cumsum(step)
    before = np.concatenate([[first], path[:-1]])[: len(path)]
    prices = {}
    for name in PRICES:
        if name in group:
            taken = group[_SWAP[name] if mirror and _SWAP[name] in group else name]
            move = _move(np.asarray(taken, dtype=np.float64)[bars], last, multiply, mirror)
            prices[name] = before * move if multiply else before + move
    _enclose(prices)
    for name, values in prices.items():
        grown[name][start:stop] = np.rint(values) if grown[name].dtype.kind in "iu" else values
    return grown


def _enclose(prices: dict[str, Array]) -> None:
    """Undo the last digit of rounding: no open or close outside the bar's range."""
    inside = list(prices.values())
    if "high" in prices:
        prices["high"] = np.maximum.reduce(inside)
    if "low" in prices:
        prices["low"] = np.minimum.reduce(inside)


def _move(value: Array, last: Array, multiply: bool, mirror: bool) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        move: Array = value / last if multiply else value - last
        if mirror:
            move = 1.0 / move if multiply else -move
    return move


def _filled(close: Array) -> Array:
    """Return prices with gaps filled by the last known one (the first known at the start)."""
    known = np.flatnonzero(np.isfinite(close))
    if not known.size:
        return np.ones_like(close)
    place = np.searchsorted(known, np.arange(len(close)), side="right") - 1
    filled: Array = close[known[np.maximum(place, 0)]]
    return filled
