"""Leaky and honest strategies to measure the leak check, or any other, on: which check finds what."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final, Literal

import msgspec
import numpy as np

from tradeassay.code.leak.check import check_leaks
from tradeassay.code.leak.futures import PRICES, TIME, Feeds
from tradeassay.code.leak.report import LeakConfig, WholeSeries
from tradeassay.code.leak.source_rules import guard_objects, paper_rules, source_advice
from tradeassay.code.leak.subject import FunctionSubject
from tradeassay.code.leak.trace import Array, Columns, Trace

Data = Literal["daily", "hourly"]
BARS: Final[dict[Data, int]] = {"daily": 2_500, "hourly": 1_750}
_HOURS: Final = 7
_SEEDS: Final[dict[Data, int]] = {"daily": 20, "hourly": 21}


@lru_cache(maxsize=4)
def bench_columns(data: Data) -> dict[str, Array]:
    """Return time, open, high, low, close, volume and a sparse ``score`` (missing on three rows of four).

    Daily bars are business days that end in December 2024; hourly ones are seven a day. Prices wander with quiet
    and nervous spells.
    """
    bars = BARS[data]
    rng = np.random.default_rng(_SEEDS[data])
    spell = np.exp(0.4 * np.sin(np.arange(bars) / 90) + 0.2 * rng.standard_normal(bars))
    close = 100 * np.exp(np.cumsum(0.0002 + 0.01 * spell * rng.standard_normal(bars)))
    opened = np.concatenate([[100.0], close[:-1]]) * np.exp(0.003 * rng.standard_normal(bars))
    high = np.maximum(opened, close) * np.exp(np.abs(0.004 * rng.standard_normal(bars)))
    low = np.minimum(opened, close) * np.exp(-np.abs(0.004 * rng.standard_normal(bars)))
    score = np.where(rng.random(bars) < 0.25, rng.standard_normal(bars), np.nan)
    volume = 1e6 * spell * rng.uniform(0.5, 1.5, bars)
    return {
        "time": _times(data, bars),
        "open": opened,
        "high": high,
        "low": low,
        "close": close,
        "volume": volume,
        "score": score,
    }


def _times(data: Data, bars: int) -> Array:
    days = bars if data == "daily" else -(-bars // _HOURS)
    end = np.busday_offset(np.datetime64("2024-12-31"), 0, roll="backward")
    dates = np.busday_offset(end, np.arange(1 - days, 1)).astype("M8[ns]")
    if data == "daily":
        return np.asarray(dates)
    hours = np.timedelta64(10, "h") + np.arange(_HOURS) * np.timedelta64(1, "h")
    return np.asarray((dates[:, None] + hours).ravel()[:bars])


class BenchCase(msgspec.Struct, frozen=True, kw_only=True):
    """One strategy as source text: ``run(frame)`` returns the position after each row. ``what`` says why it is
    leaky, or why it is not. ``length`` marks honest code that depends on how long the table is.
    """

    name: str
    what: str
    source: str
    leaky: bool
    data: Data = "daily"
    length: bool = False

    def share(self, columns: Columns) -> float | None:
        """Return the share of rows on which it decides otherwise than the same code without its leak; None where
        there is no such code.
        """
        if "def honest(frame):" not in self.source:
            return None
        honest = msgspec.structs.replace(self, source=f"{self.source}\n\nrun = honest\n")
        one, two = (next(iter(case.decide()(columns).values())) for case in (self, honest))
        return float(np.mean(np.abs(np.asarray(one, dtype=float) - np.asarray(two, dtype=float)) > 1e-12))

    def subject(self) -> FunctionSubject:
        """Return the strategy, to be run in this process: it ships with the project."""
        decide = self.decide()
        return FunctionSubject(lambda columns: Trace.of_rows(decide(columns)))

    def decide(self) -> Callable[[Columns], dict[str, Array]]:
        """Return a function from columns to decisions by row."""
        from tradeassay.sandbox.strategy import StrategyCall, parse, run_code

        code, parsed = parse(self.source, None)
        if code is None:
            raise ValueError(f"bench case '{self.name}': {parsed.syntax}")

        def decide(columns: Columns) -> dict[str, Array]:
            returned = run_code(code, StrategyCall(), columns, None)
            return {name: np.asarray(values) for name, values in returned.items()}

        return decide


@lru_cache(maxsize=1)
def load_bench() -> tuple[BenchCase, ...]:
    """Return all cases, leaky ones first."""
    return _cases("leaky", leaky=True) + _cases("honest", leaky=False)


def _cases(file: str, *, leaky: bool) -> tuple[BenchCase, ...]:
    text = files("tradeassay.code.leak").joinpath(f"bench_{file}.toml").read_text(encoding="utf-8")
    return tuple(msgspec.convert({**one, "leaky": leaky}, BenchCase) for one in tomllib.loads(text)["case"])


LENGTHS: Final = (252, 2_500, 525_600)


@lru_cache(maxsize=3)
def long_columns(bars: int) -> dict[str, Array]:
    """Return so many bars with two decimals: business days, or minutes of 2025 for more than 10,000."""
    rng = np.random.default_rng(bars)
    spell = np.exp(0.4 * np.sin(np.arange(bars) / 90) + 0.2 * rng.standard_normal(bars))
    step = 0.01 if bars <= 10_000 else 0.0008
    close = np.round(100 * np.exp(np.cumsum(step * spell * rng.standard_normal(bars))), 2)
    opened = np.round(np.concatenate([[100.0], close[:-1]]) * np.exp(0.1 * step * rng.standard_normal(bars)), 2)
    high = np.round(np.maximum(opened, close) * np.exp(np.abs(0.4 * step * rng.standard_normal(bars))), 2)
    low = np.round(np.minimum(opened, close) * np.exp(-np.abs(0.4 * step * rng.standard_normal(bars))), 2)
    if bars <= 10_000:
        first = np.datetime64("2016-01-04")
        times = np.busday_offset(first, np.arange(bars)).astype("M8[ns]")
    else:
        times = (np.datetime64("2025-01-01T00:00") + np.arange(bars)).astype("M8[ns]")
    return {
        "time": np.asarray(times),
        "open": opened,
        "high": np.maximum.reduce([high, opened, close]),
        "low": np.minimum.reduce([low, opened, close]),
        "close": close,
        "volume": np.rint(1e5 * spell * rng.uniform(0.5, 1.5, bars)),
    }


@lru_cache(maxsize=1)
def load_long_bench() -> tuple[BenchCase, ...]:
    """Return the cases for long series, leaky ones first. All of them run on any number of bars."""
    return _cases("long_leaky", leaky=True) + _cases("long_honest", leaky=False)


class LongLine(msgspec.Struct, frozen=True, kw_only=True):
    """One case on one length: the share of bars that leak, what the check said, and its bound."""

    name: str
    bars: int
    leaky: bool
    length: bool
    share: float | None
    verdict: str
    cause: str
    method: str
    bound: int | None
    runs: int

    @property
    def right(self) -> bool:
        """Whether the verdict is what it should be: leaks of 0.1 % of the bars or more are not passed, honest code
        is, and code that depends on the length is told so.
        """
        if self.leaky:
            small = self.share is not None and self.bound is not None and self.share * self.bars < self.bound
            return self.verdict in ("leaky", "not_cleared") or (small and (self.share or 0.0) < 0.001)
        if self.length:
            return self.cause == "length"
        return self.verdict == "clean"


def measure_long(
    bars: int, seed: int, cases: Iterable[BenchCase] | None = None, config: LeakConfig | None = None
) -> Iterator[LongLine]:
    """Yield a line for each case on so many bars."""
    columns = long_columns(bars)
    config = config or LeakConfig(whole=WholeSeries())
    for case in load_long_bench() if cases is None else cases:
        record = check_leaks(case.subject(), columns, config, seed=seed).record
        yield LongLine(
            name=case.name,
            bars=bars,
            leaky=case.leaky,
            length=case.length,
            share=case.share(columns) if case.leaky else None,
            verdict=record.verdict,
            cause=record.cause,
            method=record.evidence[0].method if record.evidence else "",
            bound=record.bound if isinstance(record.bound, int) else None,
            runs=record.runs,
        )


def replay(decide: Callable[[Columns], dict[str, Any]], columns: Columns, rows: Iterable[int]) -> dict[str, Array]:
    """Return what the code decides on each of ``rows`` when it knows only that row and those before it.

    One flat bar follows, at the time of the true next one: closing out at the end of the data happens there, and
    it reveals nothing new. ``rows`` must leave out the last row.
    """
    feeds = Feeds.of(columns)
    decided: dict[str, list[Any]] = {}
    for row in rows:
        for name, values in decide(_with_flat_bar(feeds, row)).items():
            decided.setdefault(name, []).append(values[row])
    return {name: np.asarray(values) for name, values in decided.items()}


def _with_flat_bar(feeds: Feeds, row: int) -> dict[str, Array]:
    grown = {name: values.copy() for name, values in feeds.head(row + 2).items()}
    for feed, group in feeds.groups.items():
        prefix = f"{feed}/" if feed else ""
        for name in group:
            if name == TIME:
                continue
            known = f"{prefix}close" if name in PRICES and "close" in group else f"{prefix}{name}"
            grown[f"{prefix}{name}"][-1] = grown[known][-2]
    return grown


class BenchLine(msgspec.Struct, frozen=True, kw_only=True):
    """One case: whether it leaks, and which checks say so.

    ``method`` is what convicted it, ``runs`` and ``bars`` are what it took.
    """

    name: str
    what: str
    leaky: bool
    check: bool
    method: str
    runs: int
    bars: int
    rules: bool
    paper_rules: bool
    paper_guard: bool


def measure_bench(
    seed: int, config: LeakConfig | None = None, cases: Iterable[BenchCase] | None = None
) -> list[BenchLine]:
    """Return a line for each case. A case that cannot be checked counts as not found."""
    lines = []
    for case in load_bench() if cases is None else cases:
        columns = bench_columns(case.data)
        report = check_leaks(case.subject(), columns, config, seed=seed)
        lines.append(
            BenchLine(
                name=case.name,
                what=case.what,
                leaky=case.leaky,
                check=report.leaky,
                method=report.evidence[0].method if report.evidence else "",
                runs=report.record.runs,
                bars=report.record.bars,
                rules=bool(source_advice(case.source)),
                paper_rules=bool(paper_rules(case.source)),
                paper_guard=guard_objects(case.source, columns),
            )
        )
    return lines
