"""Test the look-ahead check on strategies that are known to be leaky or honest.

``tradeassay code validate --look-ahead`` runs this test.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib.resources import files
from typing import Final, Literal, NamedTuple

import msgspec
import numpy as np

from tradeassay_programs.code.lookahead.grow import FunctionSubject, check_leaks
from tradeassay_programs.code.lookahead.trace import Array, Columns, Trace

Data = Literal["daily", "hourly"]
BARS: Final[dict[Data, int]] = {"daily": 2_500, "hourly": 1_750}
KEPT: Final[dict[Data, int]] = {"daily": 600, "hourly": 420}
"""Number of bars, counted from the end of the table.

The check tests every bar, and its time grows with the square of this number.
"""
_HOURS: Final = 7
_SEEDS: Final[dict[Data, int]] = {"daily": 20, "hourly": 21}


@lru_cache(maxsize=2)
def bench_columns(data: Data) -> dict[str, Array]:
    """Return the bars on which the strategies run: daily or hourly prices, volume and a score."""
    bars, rng = BARS[data], np.random.default_rng(_SEEDS[data])
    spell = np.exp(0.4 * np.sin(np.arange(bars) / 90) + 0.2 * rng.standard_normal(bars))
    close = 100 * np.exp(np.cumsum(0.0002 + 0.01 * spell * rng.standard_normal(bars)))
    opened = np.concatenate([[100.0], close[:-1]]) * np.exp(0.003 * rng.standard_normal(bars))
    high = np.maximum(opened, close) * np.exp(np.abs(0.004 * rng.standard_normal(bars)))
    low = np.minimum(opened, close) * np.exp(-np.abs(0.004 * rng.standard_normal(bars)))
    score = np.where(rng.random(bars) < 0.25, rng.standard_normal(bars), np.nan)
    volume = 1e6 * spell * rng.uniform(0.5, 1.5, bars)
    end = np.busday_offset(np.datetime64("2024-12-31"), 0, roll="backward")
    days = bars if data == "daily" else -(-bars // _HOURS)
    times = np.asarray(np.busday_offset(end, np.arange(1 - days, 1)).astype("M8[ns]"))
    if data == "hourly":
        hours = np.timedelta64(10, "h") + np.arange(_HOURS) * np.timedelta64(1, "h")
        times = (times[:, None] + hours).ravel()[:bars]
    prices = {"open": opened, "high": high, "low": low, "close": close}
    made = {"time": times, **prices, "volume": volume, "score": score}
    return {name: values[-KEPT[data] :] for name, values in made.items()}


class BenchCase(msgspec.Struct, frozen=True, kw_only=True):
    """One strategy as source text, in which ``run(frame)`` returns the position after each row.

    ``what`` is the reason why it is leaky or honest. ``length`` marks honest code that depends on
    the length of the table.
    """

    name: str
    what: str
    source: str
    leaky: bool
    data: Data = "daily"
    length: bool = False

    def subject(self) -> FunctionSubject:
        decide = self.decide()
        return FunctionSubject(lambda columns: Trace.of_rows(decide(columns)))

    def decide(self) -> Callable[[Columns], dict[str, Array]]:
        from tradeassay_programs.sandbox.strategy import StrategyCall, parse, run_code

        code, parsed = parse(self.source, None)
        if code is None:
            raise ValueError(f"bench case '{self.name}': {parsed.syntax}")

        def decide(columns: Columns) -> dict[str, Array]:
            returned = run_code(code, StrategyCall(), columns, None)
            return {name: np.asarray(values) for name, values in returned.items()}

        return decide


@lru_cache(maxsize=1)
def load_bench() -> tuple[BenchCase, ...]:
    folder = files("tradeassay_programs.code.lookahead")
    cases = []
    for kind in ("leaky", "honest"):
        text = folder.joinpath(f"bench_{kind}.toml").read_text(encoding="utf-8")
        for case in tomllib.loads(text)["case"]:
            cases.append(msgspec.convert({**case, "leaky": kind == "leaky"}, BenchCase))
    return tuple(cases)


class BenchLine(NamedTuple):
    """The result of one case: whether it leaks, and whether the check reports a leak.

    ``method`` is the method that found the leak, and ``runs`` the number of runs.
    """

    name: str
    what: str
    leaky: bool
    check: bool
    method: str
    runs: int


def measure_bench(seed: int, cases: Iterable[BenchCase] | None = None) -> list[BenchLine]:
    lines = []
    for case in load_bench() if cases is None else cases:
        found = check_leaks(case.subject(), bench_columns(case.data), seed=seed, deterministic=True)
        how = found.evidence[0].method if found.evidence else ""
        lines.append(BenchLine(case.name, case.what, case.leaky, found.leaky, how, found.runs))
    return lines
