"""Bars under stress: a gap, a crash, trading halts and stale prices. A strategy must keep its rules in all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tradeassay.code.bars import TaskBars

Columns = dict[str, NDArray[Any]]
_PRICES: Final = ("open", "high", "low", "close")


def gap(feed: Columns, generator: np.random.Generator) -> Columns:
    """Return bars that open 15 % lower after the middle, and stay there."""
    middle = feed["close"].size // 2
    return {**feed, **{name: _scaled(feed[name], middle, 0.85) for name in _PRICES}}


def crash(feed: Columns, generator: np.random.Generator) -> Columns:
    """Return bars that lose 40 % within ten bars after the middle."""
    size = feed["close"].size
    start = size // 2
    path = np.ones(size)
    path[start:] = 0.6
    end = min(start + 10, size)
    path[start:end] = np.linspace(1.0, 0.6, 11)[1 : end - start + 1]
    return {**feed, **{name: feed[name] * path for name in _PRICES}}


def halts(feed: Columns, generator: np.random.Generator) -> Columns:
    """Return bars with five halts of eight bars each: the last close, no volume."""
    made = {name: np.array(values) for name, values in feed.items()}
    size = feed["close"].size
    for start in sorted(generator.integers(1, max(size - 8, 2), 5).tolist()):
        stop = min(start + 8, size)
        for name in _PRICES:
            made[name][start:stop] = made["close"][start - 1]
        made["volume"][start:stop] = 0.0
    return made


def stale(feed: Columns, generator: np.random.Generator) -> Columns:
    """Return bars of which a fifth repeat the bar before, as a feed that hangs does."""
    made = {name: np.array(values) for name, values in feed.items()}
    hangs = generator.random(feed["close"].size) < 0.2
    for t in np.flatnonzero(hangs[1:]) + 1:
        for name in _PRICES:
            made[name][t] = made[name][t - 1]
    return made


STRESSES: Final[dict[str, Callable[[Columns, np.random.Generator], Columns]]] = {
    "gap": gap,
    "crash": crash,
    "halts": halts,
    "stale": stale,
}


def stressed(bars: TaskBars, name: str, seed: int = 0) -> TaskBars:
    """Return bars under one stress, the same for all assets at the same bars."""
    feeds = {asset: STRESSES[name](dict(feed), np.random.default_rng(seed)) for asset, feed in bars.feeds.items()}
    return TaskBars(feeds, bars.timeframe, bars.clock, f"{bars.name} {name}".strip())


def _scaled(values: NDArray[Any], start: int, factor: float) -> NDArray[Any]:
    made = np.array(values, dtype=np.float64)
    made[start:] *= factor
    return made
