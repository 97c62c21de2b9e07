"""Make the bars for code tasks: synthetic markets by name and seed, or stored data.

The time of a bar is its opening time in the exchange's local time, without a zone (UTC for crypto).
A daily bar has the midnight of its day. A bar is known when the next bar opens.

Drift spells are counted in bars, and drifts in standard deviations of a bar. A rule with a period
of twenty bars therefore gets the same kind of market on days as on minutes. Only the four basic
operations and a fixed stream of bits are used, so that the same seed gives the same prices on every
machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_bytes, sha256_of
from tradeassay_bench.core.view import Field
from tradeassay_bench.data.synthetic.universe import Draws
from tradeassay_programs.code.task import Timeframe
from tradeassay_programs.sandbox.strategy import by_table

if TYPE_CHECKING:
    from tradeassay_bench.data.snapshot import Snapshot


Clock = Literal["exchange", "futures", "always"]

MINUTES: Final[dict[Timeframe, int]] = {
    "1d": 1440,
    "1h": 60,
    "30m": 30,
    "15m": 15,
    "5m": 5,
    "1m": 1,
}
"""Number of minutes from the open of a bar to the open of the next bar."""

OPEN_MINUTE: Final[dict[Clock, int]] = {"exchange": 570, "futures": 1080, "always": 0}
"""The minute of the day at which a session opens.

It is 09:30 for exchanges, 18:00 on the previous evening for futures, and 00:00 for crypto.
"""

SESSION_MINUTES: Final[dict[Clock, int]] = {"exchange": 390, "futures": 1380, "always": 1440}

_FIRST: Final[dict[bool, dict[Clock, str]]] = {
    True: {"exchange": "2016-01-04", "futures": "2016-01-04", "always": "2018-01-01"},
    False: {"exchange": "2023-01-03", "futures": "2023-01-03", "always": "2023-01-01"},
}


def bars_per_session(clock: Clock, timeframe: Timeframe) -> int:
    """Return the number of bars of a session."""
    return 1 if timeframe == "1d" else -(-SESSION_MINUTES[clock] // MINUTES[timeframe])


def _sessions(clock: Clock, first: str, count: int) -> NDArray[np.datetime64]:
    """Return the first ``count`` session days from a day on. Exchanges have US-like holidays."""
    start = np.datetime64(first, "D")
    if clock == "always":
        return start + np.arange(count)
    free = []
    for year in range(start.astype(object).year, start.astype(object).year + count // 240 + 2):
        fixed = [date(year, 1, 1), date(year, 6, 19), date(year, 7, 4), date(year, 12, 25)]
        # A holiday on a weekend moves to the nearest weekday.
        free += [day + timedelta({5: -1, 6: 1}.get(day.weekday(), 0)) for day in fixed]
        # The nth weekday (Monday is 0) of a month. Memorial Day is a week before the first Monday
        # of June.
        for month, weekday, nth, back in (
            (1, 0, 3, 0),
            (2, 0, 3, 0),
            (6, 0, 1, 7),
            (9, 0, 1, 0),
            (11, 3, 4, 0),
        ):
            day = date(year, month, 1)
            free.append(day + timedelta((weekday - day.weekday()) % 7 + 7 * (nth - 1) - back))
    closed = np.array(free, dtype="M8[D]")
    days: NDArray[np.datetime64] = np.busday_offset(
        start, np.arange(count), roll="forward", holidays=closed
    )
    return days


SESSIONS_PER_YEAR: Final[dict[Clock, int]] = {"exchange": 252, "futures": 252, "always": 365}
_CUT: Final = 6.0
"""Maximum move of a bar, in its standard deviations."""


class MarketSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a synthetic market.

    - ``volatility`` is annual.
    - ``spell`` is the shortest and the longest number of bars of a drift, and ``drift`` the
      possible drifts in standard deviations of a bar.
    - ``pull`` is the share of the distance to its mean that a price closes on every bar.
    - ``gap`` is the overnight share of a session's variance.
    - ``common`` is the correlation of two assets. With ``tied`` all assets follow the first asset,
      with a spread that returns to zero.
    """

    title: str
    clock: Clock = "exchange"
    price: float = 100.0
    tick: float = 0.01
    volatility: float = 0.25
    cluster: float = 0.10
    spell: tuple[int, int] = (40, 160)
    drift: tuple[float, ...] = (-0.06, 0.0, 0.08, 0.12)
    pull: float = 0.0
    gap: float = 0.2
    common: float = 0.45
    tied: bool = False
    volume: float = 1_000_000.0


def make_paths(
    spec: MarketSpec, timeframe: Timeframe, assets: int, bars: int, seed: int
) -> list[dict[str, Floats]]:
    """Return open, high, low, close and volume of every asset."""
    daily = spec.volatility / math.sqrt(SESSIONS_PER_YEAR[spec.clock])
    gap = 0.0 if spec.clock == "always" else spec.gap
    count = bars_per_session(spec.clock, timeframe)
    # The standard deviations of every bar, and of the gap before each bar.
    within, before = np.full(1, daily * math.sqrt(1.0 - gap)), np.full(1, daily * math.sqrt(gap))
    if timeframe != "1d":
        share = MINUTES[timeframe] / SESSION_MINUTES[spec.clock]
        place = (np.arange(count) + 0.5) / count - 0.5
        # Moves are larger at the ends of a session than in its middle, most of all on an exchange.
        shape = 1.0 + (1.2 if spec.clock == "exchange" else 0.3) * 4.0 * place * place
        shape /= math.sqrt(math.fsum((shape * shape).tolist()) / count)
        within = daily * math.sqrt((1.0 - gap) * share) * shape
        before = np.append(before, np.zeros(count - 1))
    sessions = -(-bars // count)
    sigma, opens = np.tile(within, sessions)[:bars], np.tile(before, sessions)[:bars]
    shared = _shocks(spec, Draws(seed, "bars", spec.title, timeframe, "common"), bars)
    paths: list[dict[str, Floats]] = []
    for asset in range(assets):
        draws = Draws(seed, "bars", spec.title, timeframe, str(asset))
        own = _shocks(spec, draws, bars)
        shocks = math.sqrt(spec.common) * shared + math.sqrt(1.0 - spec.common) * own
        lead = paths[0] if spec.tied and paths else None
        paths.append(_path(spec, draws, shocks, sigma, opens, lead))
    return paths


def _shocks(spec: MarketSpec, draws: Draws, bars: int) -> Floats:
    """Return shocks of unit long-run variance, with volatility clusters."""
    variance, path = 1.0, []
    for shock in draws.student(bars, 5).tolist():
        value = math.sqrt(variance) * min(max(shock, -_CUT), _CUT)
        path.append(value)
        variance = min(0.03 + spec.cluster * value * value + (0.97 - spec.cluster) * variance, 9.0)
    return np.array(path)


def _path(
    spec: MarketSpec,
    draws: Draws,
    shocks: Floats,
    sigma: Floats,
    before: Floats,
    lead: dict[str, Floats] | None,
) -> dict[str, Floats]:
    """Return the columns of one asset. With ``lead`` it follows the first asset."""
    bars = shocks.size
    drift, start = np.empty(bars), 0
    while start < bars:
        # Each round of spells has every drift once, in a random order.
        for which in draws.order(len(spec.drift)).tolist():
            stop = start + draws.integer(*spec.spell)
            drift[start:stop] = spec.drift[which]
            start = stop
    moves = sigma * (np.clip(shocks, -_CUT, _CUT) + drift)
    gaps = before * np.clip(draws.student(bars, 5), -_CUT, _CUT)
    price = spec.price * (0.6 + 0.8 * float(draws.uniform(1)[0]))
    opens, closes = [], []
    if lead is not None:
        # The asset follows the first asset with a spread that returns to zero.
        spread, scale = 0.0, price / float(lead["open"][0])
        for move, gap in zip((moves * 0.7).tolist(), (gaps * 0.3).tolist(), strict=True):
            opens.append(1.0 + spread + gap)
            spread = 0.93 * spread + move
            closes.append(1.0 + spread)
        opened = lead["open"] * scale * np.maximum(np.array(opens), 0.2)
        close = lead["close"] * scale * np.maximum(np.array(closes), 0.2)
    elif spec.pull:
        # The price is pulled back to its mean on every bar.
        last = price
        for move, gap in zip(moves.tolist(), gaps.tolist(), strict=True):
            opens.append(last * (1.0 + gap))
            last = opens[-1] * (1.0 + move + spec.pull * (price / opens[-1] - 1.0))
            closes.append(last)
        opened, close = np.array(opens), np.array(closes)
    else:
        steps = np.multiply.accumulate(np.stack([1.0 + gaps, 1.0 + moves], axis=1).ravel()) * price
        opened, close = steps[0::2], steps[1::2]
    reach = np.abs(draws.normal((2, bars))) * (0.6 * sigma)
    top, bottom = np.maximum(opened, close), np.minimum(opened, close)
    busy = 1.0 + np.abs(shocks) * 0.5 + np.abs(draws.normal(bars)) * 0.4
    mean = math.fsum(sigma.tolist()) / bars
    volume = np.maximum(np.rint(spec.volume * busy * 0.5 * (sigma / mean)), 1.0)
    # Prices are rounded by the number of ticks per unit, which is exact even if the tick is not.
    unit = float(round(1.0 / spec.tick))
    exact = (opened, top * (1.0 + reach[0]), bottom / (1.0 + reach[1]), close)
    opened, high, low, close = (np.maximum(np.rint(part * unit), 1.0) / unit for part in exact)
    high = np.maximum(high, np.maximum(opened, close))
    low = np.minimum(low, np.minimum(opened, close))
    return {"open": opened, "high": high, "low": low, "close": close, "volume": volume}


PRICES: Final[tuple[Field, ...]] = ("open", "high", "low", "close", "volume")
FIELDS: Final = ("time", "open", "high", "low", "close", "volume")
LABELS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""The labels of assets: A, B, C and so on."""

Feed = Mapping[str, NDArray[Any]]

MARKETS: Final[dict[str, MarketSpec]] = {
    "us": MarketSpec(title="us"),
    "crypto": MarketSpec(
        title="crypto",
        clock="always",
        price=300.0,
        volatility=0.70,
        cluster=0.14,
        common=0.65,
        drift=(-0.08, -0.02, 0.06, 0.12),
        volume=40_000.0,
    ),
    "futures": MarketSpec(
        title="futures",
        clock="futures",
        price=1_200.0,
        tick=0.25,
        volatility=0.22,
        gap=0.08,
        common=0.30,
        drift=(-0.07, 0.0, 0.07),
        volume=200_000.0,
    ),
    "trend": MarketSpec(
        title="trend",
        volatility=0.22,
        cluster=0.06,
        spell=(70, 220),
        drift=(-0.20, 0.24),
        common=0.30,
    ),
    "range": MarketSpec(
        title="range",
        volatility=0.28,
        cluster=0.06,
        spell=(20, 60),
        drift=(-0.10, 0.10),
        pull=0.05,
        common=0.20,
    ),
    "volatile": MarketSpec(
        title="volatile",
        volatility=0.65,
        cluster=0.16,
        spell=(15, 60),
        drift=(-0.15, 0.0, 0.15),
        gap=0.35,
    ),
    "pairs": MarketSpec(title="pairs", volatility=0.25, common=0.20, tied=True),
}
"""The synthetic markets by name.

``crypto`` trades around the clock and ``futures`` from 18:00 to 17:00. All other markets trade on
weekdays from 09:30 to 16:00.
"""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class TaskBars:
    """Bars of one or more assets with the same times.

    ``feeds`` maps the label of an asset to its columns: ``time`` (M8[ns], the opening time) and
    ``open``, ``high``, ``low``, ``close``, ``volume`` (f8). Raises :class:`UserError` for feeds
    that are empty, lack a column or have different times.
    """

    feeds: Mapping[str, Feed]
    timeframe: Timeframe
    clock: Clock = "exchange"
    name: str = ""

    def __post_init__(self) -> None:
        if not self.feeds:
            raise UserError("bars need at least one asset")
        _check_timeframe(self.timeframe)
        for label, feed in self.feeds.items():
            missing = [name for name in FIELDS if name not in feed]
            if missing:
                raise UserError(f"asset '{label}' has no column '{missing[0]}'")
            if any(feed[name].shape != self.times.shape for name in FIELDS) or not self.times.size:
                raise UserError(f"asset '{label}' has columns of different lengths, or no bars")
            if feed["time"] is not self.times and not np.array_equal(feed["time"], self.times):
                hint = "keep the times that all assets share"
                raise UserError(f"asset '{label}' has bars at other times", hint=hint)

    def __reduce__(self) -> tuple[type[TaskBars], tuple[object, ...]]:
        # The feeds may be read-only mappings, which cannot be pickled.
        feeds = {label: dict(feed) for label, feed in self.feeds.items()}
        return TaskBars, (feeds, self.timeframe, self.clock, self.name)

    @property
    def assets(self) -> tuple[str, ...]:
        """The labels of the assets."""
        return tuple(self.feeds)

    @property
    def times(self) -> NDArray[np.datetime64]:
        """The times at which the bars open."""
        return next(iter(self.feeds.values()))["time"]

    @property
    def rows(self) -> int:
        """The number of bars."""
        return int(self.times.size)

    @property
    def sessions(self) -> NDArray[np.datetime64]:
        """The day of each bar's session.

        A session of futures belongs to the day after the evening on which it opens.
        """
        shift = 1440 - OPEN_MINUTE["futures"] if self.clock == "futures" else 0
        days: NDArray[np.datetime64] = (self.times + np.timedelta64(shift, "m")).astype("M8[D]")
        return days

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return all columns under sandbox names such as ``A/time`` and ``A/open``."""
        columns: dict[str, NDArray[Any]] = {}
        for label, feed in self.feeds.items():
            columns |= {f"{label}/{name}": feed[name] for name in FIELDS}
        return columns

    @property
    def sha256(self) -> str:
        """The hash of the name and of all values."""
        content = sha256_bytes(b"".join(column.tobytes() for column in self.columns().values()))
        return sha256_of([self.name, self.rows, content])

    def with_columns(self, columns: Mapping[str, NDArray[Any]]) -> TaskBars:
        """Return a copy with other columns, named as in :meth:`columns`."""
        return replace(self, feeds=by_table(columns))

    def first(self, rows: int) -> TaskBars:
        """Return the first ``rows`` bars."""
        return self.with_columns({name: values[:rows] for name, values in self.columns().items()})


def make_bars(
    market: str, timeframe: Timeframe = "1d", assets: int = 1, bars: int = 1500, seed: int = 1
) -> TaskBars:
    """Return the bars of a synthetic market. The same arguments give the same bars.

    Raises UserError for arguments that are not valid.
    """
    if market not in MARKETS:
        raise UserError(f"unknown market '{market}'", hint=f"use one of {', '.join(MARKETS)}")
    _check_timeframe(timeframe)
    if not 1 <= assets <= len(LABELS):
        raise UserError(f"{assets} assets are not possible", hint=f"use 1 to {len(LABELS)}")
    if not 1 <= bars <= 1_000_000:
        raise UserError(f"{bars} bars are not possible", hint="use 1 to 1,000,000")
    return _make_bars(market, timeframe, assets, bars, seed)


def _check_timeframe(timeframe: str) -> None:
    if timeframe not in MINUTES:
        raise UserError(f"unknown timeframe '{timeframe}'", hint=f"use one of {', '.join(MINUTES)}")


def bars_from_snapshot(
    snapshot: Snapshot,
    symbols: tuple[str, ...],
    *,
    first: str | None = None,
    last: str | None = None,
) -> TaskBars:
    """Return split-adjusted daily bars of stored data.

    Only sessions on which all ``symbols`` traded are included.
    """
    if not 1 <= len(symbols) <= len(LABELS):
        raise UserError(f"{len(symbols)} symbols are not possible", hint=f"use 1 to {len(LABELS)}")
    rows = snapshot.rows(first, last)
    view = snapshot.at(rows[-1], "close")
    places = [view.column(symbol) for symbol in symbols]
    tables = {name: view.bars(name, len(rows))[:, places] for name in PRICES}
    complete = np.all([np.isfinite(table).all(axis=1) for table in tables.values()], axis=0)
    complete &= (tables["low"] > 0.0).all(axis=1)
    if not complete.any():
        raise UserError(f"{', '.join(symbols)} have no session in common in '{snapshot.name}'")
    times = view.sessions(len(rows)).astype("M8[ns]")[complete]
    feeds: dict[str, Feed] = {}
    for k, label in enumerate(LABELS[: len(symbols)]):
        prices: Feed = {name: np.ascontiguousarray(tables[name][complete, k]) for name in PRICES}
        feeds[label] = MappingProxyType({"time": times, **prices})
    clock: Clock = "always" if snapshot.calendar == "24/7" else "exchange"
    return TaskBars(MappingProxyType(feeds), "1d", clock, f"{snapshot.name}:{','.join(symbols)}")


@lru_cache(maxsize=64)
def _make_bars(market: str, timeframe: Timeframe, assets: int, bars: int, seed: int) -> TaskBars:
    spec = MARKETS[market]
    per_session = bars_per_session(spec.clock, timeframe)
    days = _sessions(spec.clock, _FIRST[timeframe == "1d"][spec.clock], -(-bars // per_session))
    if timeframe == "1d":
        times = days[:bars].astype("M8[ns]")
    else:
        # A session of futures opens on the evening before its day.
        minute = OPEN_MINUTE[spec.clock] - (1440 if spec.clock == "futures" else 0)
        start = days.astype("M8[m]") + minute
        within = np.arange(per_session) * MINUTES[timeframe]
        times = (start[:, None] + within).ravel()[:bars].astype("M8[ns]")
    feeds: dict[str, Feed] = {}
    for label, path in zip(LABELS, make_paths(spec, timeframe, assets, bars, seed), strict=False):
        columns: dict[str, NDArray[Any]] = {"time": times, **path}
        for values in columns.values():
            values.flags.writeable = False
        feeds[label] = MappingProxyType(columns)
    return TaskBars(
        MappingProxyType(feeds), timeframe, spec.clock, f"{market}/{timeframe}/seed {seed}"
    )
