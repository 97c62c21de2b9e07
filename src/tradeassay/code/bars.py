"""The bars that model-written strategies are run on: synthetic markets by name and seed, or a stored data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from tradeassay.code.bars_clock import MINUTES, Clock, bar_times, session_days
from tradeassay.code.bars_path import MarketSpec, make_paths
from tradeassay.code.task import Timeframe
from tradeassay.core.errors import UserError

if TYPE_CHECKING:
    from tradeassay.data.snapshot import Snapshot

FIELDS: Final = ("time", "open", "high", "low", "close", "volume")
LABELS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Assets are called A, B, C and so on."""

Feed = Mapping[str, NDArray[Any]]

MARKETS: Final[dict[str, MarketSpec]] = {
    "us": MarketSpec(title="us"),
    "crypto": MarketSpec(
        title="crypto", clock="always", price=300.0, volatility=0.70, cluster=0.14, common=0.65,
        drift=(-0.08, -0.02, 0.06, 0.12), volume=40_000.0,
    ),
    "futures": MarketSpec(
        title="futures", clock="futures", price=1_200.0, tick=0.25, volatility=0.22, gap=0.08, common=0.30,
        drift=(-0.07, 0.0, 0.07), volume=200_000.0,
    ),
    "trend": MarketSpec(
        title="trend", volatility=0.22, cluster=0.06, spell=(70, 220), drift=(-0.20, 0.24), common=0.30
    ),
    "range": MarketSpec(
        title="range", volatility=0.28, cluster=0.06, spell=(20, 60), drift=(-0.10, 0.10), pull=0.05, common=0.20
    ),
    "volatile": MarketSpec(
        title="volatile", volatility=0.65, cluster=0.16, spell=(15, 60), drift=(-0.15, 0.0, 0.15), gap=0.35
    ),
    "pairs": MarketSpec(title="pairs", volatility=0.25, common=0.20, tied=True),
}  # fmt: skip
"""Synthetic markets by name. All but ``crypto`` (round the clock) and ``futures`` (18:00 to 17:00) trade on
weekdays from 09:30 to 16:00."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskBars:
    """Bars of one or more assets on one clock: every feed has the same ``time``.

    ``feeds`` maps an asset's label to its columns: ``time`` (M8[ns], when the bar opens), ``open``, ``high``,
    ``low``, ``close``, ``volume`` (f8). Raises :class:`UserError` for feeds that are empty, lack a column or
    do not share their times.
    """

    feeds: Mapping[str, Feed]
    timeframe: Timeframe
    clock: Clock = "exchange"
    name: str = ""

    def __post_init__(self) -> None:
        if not self.feeds:
            raise UserError("bars of no asset")
        if self.timeframe not in MINUTES:
            raise UserError(f"no timeframe '{self.timeframe}'", mend=f"one of {', '.join(MINUTES)}")
        for label, feed in self.feeds.items():
            _check_feed(label, feed, self.times)

    @property
    def assets(self) -> tuple[str, ...]:
        """The labels, in order."""
        return tuple(self.feeds)

    @property
    def times(self) -> NDArray[np.datetime64]:
        """When each bar opens; the same for all assets."""
        return next(iter(self.feeds.values()))["time"]

    @property
    def rows(self) -> int:
        """How many bars every asset has."""
        return int(self.times.size)

    @property
    def sessions(self) -> NDArray[np.datetime64]:
        """The session (its day) that each bar belongs to."""
        return session_days(self.clock, self.times)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return all of it flat, ``A/time``, ``A/open`` and so on: what a sandboxed job is given."""
        return {f"{label}/{name}": feed[name] for label, feed in self.feeds.items() for name in FIELDS}

    def with_columns(self, columns: Mapping[str, NDArray[Any]]) -> TaskBars:
        """Return bars with other columns (in the form of :meth:`columns`), same timeframe and clock."""
        feeds: dict[str, dict[str, NDArray[Any]]] = {}
        for key, values in columns.items():
            label, _, name = key.rpartition("/")
            feeds.setdefault(label, {})[name] = values
        return TaskBars(feeds, self.timeframe, self.clock, self.name)

    def first(self, rows: int) -> TaskBars:
        """Return the first ``rows`` bars of every asset."""
        return self.with_columns({name: values[:rows] for name, values in self.columns().items()})


def make_bars(
    market: str, timeframe: Timeframe = "1d", assets: int = 1, bars: int = 1500, seed: int = 1
) -> TaskBars:
    """Return the bars of a synthetic market: the same for ever for the same arguments.

    Raises :class:`UserError` for an unknown market or timeframe, or a number of assets (1 to 26) or bars
    (1 to 1,000,000) that cannot be made.
    """
    if market not in MARKETS:
        raise UserError(f"no market '{market}'", mend=f"one of {', '.join(MARKETS)}")
    if timeframe not in MINUTES:
        raise UserError(f"no timeframe '{timeframe}'", mend=f"one of {', '.join(MINUTES)}")
    if not 1 <= assets <= len(LABELS):
        raise UserError(f"{assets} assets cannot be made", mend=f"ask for 1 to {len(LABELS)}")
    if not 1 <= bars <= 1_000_000:
        raise UserError(f"{bars} bars cannot be made", mend="ask for 1 to 1,000,000")
    return _made(market, timeframe, assets, bars, seed)


def bars_from_snapshot(
    snapshot: Snapshot, symbols: tuple[str, ...], *, first: str | None = None, last: str | None = None
) -> TaskBars:
    """Return daily bars of stored data, adjusted for splits, on the sessions on which all ``symbols`` traded.

    The symbols become assets A, B and so on, in their order. Raises :class:`UserError` for an unknown symbol or
    when they have no session in common.
    """
    from tradeassay.code.bars_snapshot import read_bars

    feeds = read_bars(snapshot, symbols, first, last)
    clock: Clock = "always" if snapshot.calendar == "24/7" else "exchange"
    named = dict(zip(LABELS, feeds, strict=False))
    return TaskBars(MappingProxyType(named), "1d", clock, f"{snapshot.name}:{','.join(symbols)}")


@lru_cache(maxsize=64)
def _made(market: str, timeframe: Timeframe, assets: int, bars: int, seed: int) -> TaskBars:
    spec = MARKETS[market]
    times = bar_times(spec.clock, timeframe, bars)
    feeds: dict[str, Feed] = {}
    for label, path in zip(LABELS, make_paths(spec, timeframe, assets, bars, seed), strict=False):
        columns = {"time": times, **{name: getattr(path, name) for name in FIELDS[1:]}}
        for values in columns.values():
            values.flags.writeable = False
        feeds[label] = MappingProxyType(columns)
    return TaskBars(MappingProxyType(feeds), timeframe, spec.clock, f"{market}/{timeframe}/seed {seed}")


def _check_feed(label: str, feed: Feed, times: NDArray[Any]) -> None:
    missing = [name for name in FIELDS if name not in feed]
    if missing:
        raise UserError(f"asset '{label}' has no column '{missing[0]}'")
    if any(feed[name].shape != times.shape for name in FIELDS) or not times.size:
        raise UserError(f"asset '{label}' has columns of different lengths, or no bars")
    if feed["time"] is not times and not np.array_equal(feed["time"], times):
        raise UserError(f"asset '{label}' has bars at other times", mend="keep the times that all assets share")
