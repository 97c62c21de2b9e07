"""Read benchmarks and factors by name from the package ``arch`` or a stored data set.

A stored data set is used if it has a longer span.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError, absent
from tradeassay.core.registry import Registry
from tradeassay.tables.account import OwnSeries, read_columns
from tradeassay.tables.cells import other_than_file
from tradeassay.tables.columns import plain_title


class IndexReader(Protocol):
    """Function that returns the days and levels of an index of a data set.

    It raises :class:`UserError` if the data set is not stored.
    """

    def __call__(
        self, dataset: str, index: str, home: Path | str | None
    ) -> tuple[list[str], Floats]: ...


index_readers: Registry[IndexReader] = Registry("index_reader")
"""Registered index readers. Its only name is ``store``, if tradeassay-bench is installed."""


class _NamedBenchmark(msgspec.Struct, frozen=True, kw_only=True):
    """A named benchmark with data in the package ``arch``.

    ``module`` is the module of ``arch`` with the data. The other fields are the benchmark's title,
    span and bias. ``dividends`` is true if the returns include dividends. ``stored`` is a data set
    with a longer span, which is used if it is downloaded: its name, index, first day and last day.
    """

    module: str
    title: str
    first: str = "1999-01-04"
    last: str = "2018-12-31"
    bias: str = "a price index, without its dividends of about 2% a year"
    dividends: bool = False
    stored: tuple[str, str, str, str] | None = None


BENCHMARKS = {
    "sp500": _NamedBenchmark(
        module="sp500", title="S&P 500", stored=("skfolio-sp500", "SPX", "1990-01-02", "2022-12-28")
    ),
    "nasdaq": _NamedBenchmark(module="nasdaq", title="Nasdaq Composite"),
    "us-market": _NamedBenchmark(
        module="frenchdata",
        title="all US stocks by size, monthly (Kenneth French)",
        first="1926-07-31",
        last="2018-11-30",
        bias="dividends included; holding it would have costs",
        dividends=True,
    ),
}


def read_benchmark(name: str, days: Iterable[str], home: Path | str | None = None) -> OwnSeries:
    """Return the returns of a named benchmark, with a note on its span and source.

    Raises :class:`UserError` if the benchmark covers less than half of the account's days.
    """
    benchmark, account_days = BENCHMARKS[name], sorted(days)
    benchmark_days, levels, source = _packaged(benchmark)
    alternative = ""
    if (
        benchmark.stored is not None
        and not benchmark.first <= account_days[0] <= account_days[-1] <= benchmark.last
    ):
        dataset, _, first, last = benchmark.stored
        try:
            benchmark_days, levels = index_readers.get("store")(dataset, benchmark.stored[1], home)
            source = f"the data set {benchmark.stored[0]}"
        except UserError:
            if first <= account_days[0] <= account_days[-1] <= last:
                alternative = f", or get a data set that has them: tradeassay data get {dataset}"
    hint = "give the benchmark's prices or returns on these days as a file (benchmark=FILE)"
    hint += alternative
    refuse_other_days(f"'{name}' is", benchmark_days, account_days, hint)
    note = (
        f"the market is '{name}': {benchmark.title}, {benchmark_days[0]} to {benchmark_days[-1]}, "
        f"from {source}; {benchmark.bias}"
    )
    returns = dict(zip(benchmark_days[1:], (levels[1:] / levels[:-1] - 1.0).tolist(), strict=True))
    return OwnSeries(
        returns=returns,
        year=12 if benchmark.module == "frenchdata" else 252,
        notes=(note,),
        since=benchmark_days[0],
    )


def refuse_other_days(subject: str, known: Iterable[str], days: Iterable[str], hint: str) -> None:
    """Raise :class:`UserError` if ``known`` covers less than half of an account's days."""
    spanned, asked = sorted(known), sorted(days)
    first, last = spanned[0], spanned[-1]
    if 2 * sum(first <= day <= last for day in asked) < len(asked):
        problem = (
            f"{subject} known from {first} to {last}, the account from {asked[0]} to {asked[-1]}"
        )
        raise UserError(problem, hint=hint)


def _packaged(benchmark: _NamedBenchmark) -> tuple[list[str], Floats, str]:
    table = _arch_table(benchmark.module)
    if benchmark.module != "frenchdata":
        parts = (day.split("/") for day in table["Date"])
        days = [f"{year}-{int(month):02d}-{int(day):02d}" for month, day, year in parts]
        return days, np.array(table["Adj Close"], dtype=np.float64), "the package arch"
    earned = np.array(table["Mkt-RF"], dtype=np.float64) + np.array(table["RF"], dtype=np.float64)
    return (
        _months(table),
        np.concatenate([[1.0], np.cumprod(1.0 + earned / 100.0)]),
        "the package arch",
    )


def _arch_table(name: str) -> dict[str, tuple[str, ...]]:
    """Return the columns of a data table of the package ``arch``, read from the package's files.

    Importing ``arch`` would take 4 seconds because it loads statsmodels.
    """
    spec = find_spec("arch")
    if spec is None or spec.origin is None:
        raise absent("arch", "search", "a market by name")
    with gzip.open(
        Path(spec.origin).parent / "data" / name / f"{name}.csv.gz", "rt", encoding="utf-8"
    ) as file:
        titles, *rows = csv.reader(file)
    return dict(zip(titles, zip(*rows, strict=True), strict=True))


def _months(table: dict[str, tuple[str, ...]]) -> list[str]:
    """Return the last days of the months in French's table, and of the month before the first one.

    The table contains months as numbers such as 192607.
    """
    starts = np.array(
        [f"{month[:4]}-{month[4:]}" for month in table["Date"]], dtype="datetime64[M]"
    )
    ends = ((starts + 1).astype("datetime64[D]") - 1).astype(str).tolist()
    return [str(starts[0].astype("datetime64[D]") - 1), *ends]


FRENCH = "french"
"""Name of Kenneth French's monthly factors: SMB and HML, with the market and the Treasury bill."""
_CASH = ("rf", "cash", "risk free", "bills", "t bills")
_MARKET = ("mkt rf", "mktrf")


class FactorTable(msgspec.Struct, frozen=True):
    """Returns of style factors by name.

    ``market`` (in excess of cash) and ``cash`` are set if the table contains these columns.
    """

    factors: dict[str, OwnSeries]
    market: OwnSeries | None
    cash: OwnSeries | None
    notes: tuple[str, ...]


def read_factors(what: str | object, *, cash: bool = False) -> FactorTable:
    """Return the factors of a table, one per column, or French's factors by name.

    With ``cash`` the table needs only the column of cash. Raises :class:`UserError` if the file
    does not exist or contains no factors.
    """
    if isinstance(what, str) and what == FRENCH:
        table = _arch_table("frenchdata")
        since, *ends = _months(table)
        note = f"French's monthly factors, {ends[0]} to {ends[-1]}, from the package arch"
        each = {
            name: OwnSeries(
                returns=dict(zip(ends, (float(value) / 100.0 for value in column), strict=True)),
                year=12,
                notes=(note,),
                since=since,
            )
            for name, column in table.items()
            if name != "Date"
        }
    elif isinstance(what, str) and not Path(what).is_file():
        kind = other_than_file(Path(what))
        said = f"'{what}' is {kind}, not a table of returns" if kind else f"no file {what}"
        raise UserError(said, hint=f"give a file of returns, or '{FRENCH}' for Kenneth French's")
    else:
        each = read_columns(Path(what) if isinstance(what, str) else what)
    plain = {plain_title(name).replace("-", " "): name for name in each}
    found = [
        next((plain[one] for one in words if one in plain), None) for words in (_CASH, _MARKET)
    ]
    if cash and found[0] is None and len(each) == 1:
        found[0] = next(iter(each))
    factors = {name: series for name, series in each.items() if name not in found}
    if not factors and not cash:
        raise UserError(
            "the table contains no factor", hint="give one column per factor, and a date column"
        )
    if cash and found[0] is None:
        raise UserError("no column of the table is clearly cash", hint="call it 'cash' or 'RF'")
    held, market = (None if name is None else each[name] for name in found)
    notes = next(iter(each.values())).notes
    return FactorTable(factors=factors, market=market, cash=held, notes=notes)


def offer(days: Iterable[str]) -> str:
    """Return a note that no benchmark was given.

    The note lists the named benchmarks that cover these days.
    """
    asked = sorted(days)
    fits = []
    for name, one in BENCHMARKS.items():
        if asked and one.first <= asked[0] and asked[-1] <= one.last:
            fits.append(f"--benchmark {name}")
        elif (
            asked
            and one.stored is not None
            and one.stored[2] <= asked[0]
            and asked[-1] <= one.stored[3]
        ):
            fits.append(f"--benchmark {name} (after tradeassay data get {one.stored[0]})")
    if fits:
        return f"no benchmark was given; named benchmarks for these days: {', '.join(fits)}"
    spans = ", ".join(
        f"{name} {one.first[:4]} to {one.last[:4]}" for name, one in BENCHMARKS.items()
    )
    return (
        f"no benchmark was given, and no named benchmark covers these days ({spans}): give "
        "--benchmark FILE"
    )
