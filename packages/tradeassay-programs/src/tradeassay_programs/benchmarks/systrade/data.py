"""Provide the data of SysTradeBench: splits, synthetic and stored years, and instruments."""

from collections.abc import Sequence
from datetime import timedelta
from functools import reduce
from itertools import pairwise, product
from typing import Any, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.core.arrays import Days
from tradeassay.core.errors import DataError, UserError
from tradeassay_bench.core.run_secret import seed_from
from tradeassay_bench.core.time import parse_day
from tradeassay_bench.data import AsOfView, Snapshot, load_dataset
from tradeassay_bench.data.synthetic import MinuteConfig, generate_minutes
from tradeassay_programs.benchmarks.systrade.loading import MINUTES
from tradeassay_programs.code.bars import (
    FIELDS,
    LABELS,
    MINUTES as BAR_MINUTES,
    TaskBars,
    bars_from_snapshot,
    make_bars,
)
from tradeassay_programs.code.submission import StrategySpec

SplitName = Literal["develop", "test"]
YEAR: Final = 252


class DaySpan(msgspec.Struct, frozen=True, kw_only=True):
    """A range of days. The first day is included, and the last day is not."""

    name: SplitName
    first: str
    last: str


DAYS: Final = ("2024-01-01", "2025-01-01", "2026-01-01")
"""The days on which the paper's splits begin and end."""


def splits_of(days: Sequence[str] = DAYS) -> dict[SplitName, DaySpan]:
    """Return both splits from three days: the start of development, the start of the test, and its
    end.

    Raises :class:`UserError` for days that cannot be read or are not in order.
    """
    if len(days) != 3 or sorted({str(parse_day(day)) for day in days}) != [
        str(parse_day(day)) for day in days
    ]:
        raise UserError(
            f"{','.join(days)} are not splits", hint="give three days in order, YYYY-MM-DD each"
        )
    first, middle, last = days
    return {
        "develop": DaySpan(name="develop", first=first, last=middle),
        "test": DaySpan(name="test", first=middle, last=last),
    }


SPLITS: Final = splits_of()
"""The paper's splits. Synthetic years have the same lengths, and no recognisable dates."""


INSTRUMENTS: Final[dict[str, tuple[str, ...]]] = {
    "us": ("AAPL", "MSFT", "GOOGL", "AMZN", "TSLA"),
    "crypto": ("BTC/USDT", "ETH/USDT", "BNB/USDT"),
    "ashare": ("510300.SH", "600519.SH", "300750.SZ", "600036.SH", "000333.SZ", "002594.SZ"),
}
"""The paper's fourteen instruments: five large caps, three coins, the CSI 300 and five of its
members.

An index has no tradable bars, so the largest fund that follows it replaces it.
"""


def recipe() -> tuple[str, ...]:
    """Return the commands that load the paper's fourteen instruments, one for each market."""
    connectors = {"us": "yfinance", "crypto": "ccxt", "ashare": "baostock"}
    last = parse_day(DAYS[2]) - timedelta(days=1)
    return tuple(
        f"tradeassay data get {connectors[market]} --name systrade-{market} --symbols "
        f"{','.join(symbols)} "
        f"--first {DAYS[0]} --last {last}{' -p minutes=true' if market == 'crypto' else ''}"
        for market, symbols in INSTRUMENTS.items()
    )


def synthetic_year(
    spec: StrategySpec, split: SplitName = "test", seed: int = 1, *, minutes: int = 0
) -> TaskBars:
    """Return a synthetic year of bars for a strategy.

    Bars are daily. A strategy without a daily version gets quarter hours over 60 sessions. The
    development year and the test year are the two halves of one path. With ``minutes``, a strategy
    on one leg with a minute version gets that number of round-the-clock minutes instead.
    """
    timeframes = spec.semantics.inputs.timeframes
    legs = len(spec.semantics.inputs.legs)
    if minutes:
        if "1m" not in timeframes or legs != 1:
            raise UserError(
                f"strategy '{spec.id}' has no minute version", hint="ask for its daily year"
            )
        return minute_year(minutes, seed if split == "test" else seed + 10_000)
    daily = "1d" in timeframes
    rows = 2 * YEAR if daily else 2 * 60 * 26
    market = {1: "us", 2: "pairs"}.get(legs, "trend")
    bars = make_bars(market, "1d" if daily else "15m", legs, rows, 5000 + seed)
    half = rows // 2
    taken = slice(0, half) if split == "develop" else slice(half, rows)
    feeds = {
        asset: {name: column[taken] for name, column in f.items()}
        for asset, f in bars.feeds.items()
    }
    return TaskBars(feeds, bars.timeframe, bars.clock, f"synthetic {market}:{seed} {split}")


DRAWS: Final = 40
"""Maximum number of draws of a year until every rule of its strategy fires in it."""


def drawn_year(spec: StrategySpec, secret: str, number: int = 1, *, minutes: int = 0) -> int:
    """Return the seed of the synthetic year that a secret determines for a strategy.

    The seed is the first draw in whose test half every rule of the frozen semantics fires. If there
    is no such draw among :data:`DRAWS`, it is the draw with the most firing rules. The year cannot
    be known without the secret. With ``minutes`` the first draw is used, because a year of minutes
    exercises every rule that can fire.
    """
    best, most = 0, -1
    for draw in range(DRAWS):
        seed = seed_from(secret, "year", spec.id, number, draw) % 2**31
        if minutes:
            return seed
        year = synthetic_year(spec, seed=seed)
        fired = len(set(spec.frozen_decisions(year).signal.tolist()))
        if fired > most:
            best, most = seed, fired
        if fired == len(spec.signals):
            break
    return best


def minute_year(minutes: int = MINUTES, seed: int = 1) -> TaskBars:
    """Return minute bars of one synthetic asset that trades round the clock."""
    panel = generate_minutes(MinuteConfig(seed=seed, minutes=minutes))
    times = (np.datetime64("2025-01-01T00:00") + np.arange(minutes)).astype("M8[ns]")
    feed: dict[str, NDArray[Any]] = {"time": times}
    feed |= {
        str(name): np.ascontiguousarray(table[:, 0])
        for name, table in panel.bars.items()
        if name != "amount"
    }
    return TaskBars({"A": feed}, "1m", "always", f"synthetic minutes:{seed}")


def covered_days(datasets: Sequence[str]) -> tuple[str, str, str]:
    """Return the three days of the splits that data sets cover.

    These are the paper's splits if the data sets have sessions in both. Otherwise they are halves
    of the common days, at most a year each.
    """
    days = [load_dataset(name).sessions for name in datasets]
    edges = [np.datetime64(day) for day in DAYS]
    windows = product(days, pairwise(edges))
    if all(((one >= low) & (one < high)).any() for one, (low, high) in windows):
        return DAYS
    common = reduce(np.intersect1d, days)[-2 * YEAR :]
    if common.size < 2:
        raise UserError(
            f"{', '.join(datasets)} have no days in common", hint="name data sets of the same years"
        )
    return str(common[0]), str(common[common.size // 2]), str(common[-1] + np.timedelta64(1, "D"))


def instrument_groups(
    dataset: str, symbols: Sequence[str], legs: int, *, minutes: bool = False
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the data set and symbols of every instrument on which a strategy can run.

    Each symbol is the first leg once, followed by the next symbols of its data set. ``dataset`` may
    name several data sets, joined by commas. ``minutes`` keeps only symbols with minute bars.
    Raises :class:`UserError` for a symbol that no data set has.
    """
    groups, left = [], list(symbols)
    for name in dataset.split(","):
        snapshot = load_dataset(name)
        view = snapshot.at(len(snapshot.sessions) - 1, "close")
        mine = [symbol for symbol in left if symbol in view.symbols]
        left = [symbol for symbol in left if symbol not in mine]
        if minutes:
            mine = [symbol for symbol in mine if _has_minutes(view, symbol)]
        if len(mine) >= legs:
            groups += [(name, tuple((mine * 2)[k : k + legs])) for k in range(len(mine))]
    if left:
        raise UserError(f"{dataset} has no '{left[0]}'", hint="name symbols of the data set")
    return tuple(groups)


def _has_minutes(view: AsOfView, symbol: str) -> bool:
    try:
        return view.minutes(symbol, 1)[0].size > 0
    except DataError:
        return False


def stored_year(dataset: str, symbols: tuple[str, ...], split: DaySpan) -> TaskBars:
    """Return daily bars of a stored data set within a split.

    The bars are read through the as-of view of the split's last session, so no later data can be
    read.
    """
    snapshot = load_dataset(dataset)
    inside = _sessions_in(snapshot, split)
    return bars_from_snapshot(snapshot, symbols, first=str(inside[0]), last=str(inside[-1]))


def _sessions_in(snapshot: Snapshot, split: DaySpan) -> Days:
    days = snapshot.sessions
    inside = days[(days >= np.datetime64(split.first)) & (days < np.datetime64(split.last))]
    if not inside.size:
        problem = f"'{snapshot.name}' has no session in {split.first} to {split.last}"
        raise UserError(problem, hint=f"it has {days[0]} to {days[-1]}")
    return inside


def stored_minutes(
    dataset: str, symbols: tuple[str, ...], split: DaySpan, *, most: int = 0
) -> TaskBars:
    """Return the minute bars of a stored data set within a split.

    Only minutes with bars of all symbols are included, at most ``most`` minutes unless it is 0.
    They are read through the as-of view of the split's last session. The time of a bar is its
    opening time. Raises :class:`UserError` if there is no such minute, and DataError for a symbol
    without minutes.
    """
    snapshot = load_dataset(dataset)
    days = _sessions_in(snapshot, split)
    row = snapshot.rows(str(days[0]), str(days[-1]))[-1]
    view = snapshot.at(row, "close")
    found = {symbol: view.minutes(symbol, np.iinfo(np.int64).max // 2) for symbol in symbols}
    common = reduce(np.intersect1d, (times for times, _ in found.values()))
    length = snapshot.facts.minutes_per_bar
    timeframe = next((name for name, minutes in BAR_MINUTES.items() if minutes == length), None)
    if timeframe is None:
        raise UserError(
            f"'{dataset}' has bars of {length} minutes", hint="1, 5, 15 or 60 are known"
        )
    opens = common.astype("M8[ns]") - np.timedelta64(length, "m")
    keep = opens >= np.datetime64(str(days[0])).astype("M8[ns]")
    keep &= opens < (np.datetime64(str(days[-1])) + 1).astype("M8[ns]")
    common, opens = common[keep][: most or None], opens[keep][: most or None]
    if not common.size:
        raise UserError(f"{', '.join(symbols)} have no minute in common in '{dataset}'")
    feeds = {}
    for label, (times, fields) in zip(LABELS, found.values(), strict=False):
        places = np.searchsorted(times, common)
        bars = {
            name: np.ascontiguousarray(fields[name][places])  # type: ignore[index]  # names of fields
            for name in FIELDS
            if name != "time"
        }
        feeds[label] = {"time": opens, **bars}
    return TaskBars(feeds, timeframe, "always", f"{dataset} minutes {split.name}")
