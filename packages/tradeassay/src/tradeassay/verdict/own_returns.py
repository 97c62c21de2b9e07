"""Judge a user's own account by its returns and by the returns of a benchmark, cash and factors.

An account with holdings is judged by the registered ``holdings_judge``. It needs prices, which this
package does not store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import msgspec

from tradeassay.core.errors import UserError
from tradeassay.core.registry import Registry, did_you_mean
from tradeassay.reference import (
    BENCHMARKS,
    FRENCH,
    FactorTable,
    offer,
    read_benchmark,
    read_factors,
    refuse_other_days,
)
from tradeassay.tables.account import (
    THE_BENCHMARK,
    OwnSeries,
    benchmark_name,
    beside,
    columns_of,
    compounded,
    read_series,
    with_benchmark,
)
from tradeassay.tables.cells import CellTable, read_cells
from tradeassay.tables.columns import plain_title
from tradeassay.tables.trades import TradeLog, is_statement, read_trades
from tradeassay.verdict.own_account import OwnAccount
from tradeassay.verdict.record import AgentAssay, Assay, VerdictConfig
from tradeassay.verdict.returns import WATCHED, assay_series

WEIGHT = "weight"


class HoldingsJudge(Protocol):
    """Function that judges an account by its holdings: a table of weights, or a trade log."""

    def __call__(self, own: OwnAccount, log: TradeLog | None, config: VerdictConfig) -> Assay: ...


holdings_judges: Registry[HoldingsJudge] = Registry("holdings_judge")


def assay_own(own: OwnAccount, config: VerdictConfig) -> Assay:
    """Return the assay of a user's own account.

    Raises :class:`UserError` for a missing file, an invalid table, or a field without an effect.
    """
    cells: CellTable | None = None
    if own.returns is not None and not isinstance(own.returns, OwnSeries) and own.weights is None:
        source = Path(own.returns) if isinstance(own.returns, str) else own.returns
        if isinstance(source, Path) and not source.is_file():
            raise UserError(f"no file {source}", hint="give a Parquet or CSV file")
        if isinstance(source, Path) and not is_statement(source):
            cells = read_cells(source, str(source))
        log = read_trades(cells or source, own.reading.dates)
        if log is not None:
            return _holdings_judge()(own, log, config)
        if cells is not None and {"symbol", WEIGHT} <= columns_of(cells):
            # The user passed a table of weights as returns.
            own = msgspec.structs.replace(own, weights=own.returns, returns=None)
    if own.returns is None and own.weights is None:
        raise UserError("no table is given", hint="give weights.parquet, returns.parquet, or both")
    # Reject a field without an effect, because the user expects one.
    from_trade_log = isinstance(own.returns, OwnSeries)
    unused: dict[str, str] = {}
    if not from_trade_log:
        unused |= dict.fromkeys(("prices", "cash_at_start", "until", "symbol"), "a log of trades")
    if own.weights is None:
        unused["between"] = "weights"
    if own.weights is None and own.dataset is None:
        unused |= dict.fromkeys(("suite", "names", "turnover"), "a data set")
    for name, needed in unused.items():
        if getattr(own, name) is not None:
            raise UserError(
                f"'{name}' is valid only with {needed}", hint=f"give {needed}, or leave it out"
            )
    if own.weights is not None or own.dataset is not None:
        return _holdings_judge()(own, None, config)
    title = title_of(own)
    if cells is not None:
        own = msgspec.structs.replace(own, returns=cells)  # the file has already been read
    series = _read_inputs(own)
    benchmark_includes_dividends = _is_french(own.factors) and own.benchmark is None
    if isinstance(own.benchmark, str) and own.benchmark in BENCHMARKS:
        benchmark_includes_dividends |= BENCHMARKS[own.benchmark].dividends
    config = msgspec.structs.replace(
        config,
        dividends=0.0 if benchmark_includes_dividends else config.dividends,
        interest=config.interest if series.cash is None else 0.0,
    )
    judged, notes = assay_series(series, config, agent=title)
    return one_account(title, config, judged, notes)


def _holdings_judge() -> HoldingsJudge:
    """Return the registered judge of holdings.

    Raises :class:`UserError` if tradeassay-bench is not installed.
    """
    if not holdings_judges.names():
        problem = (
            "weights, trade logs and data sets are judged with prices, which tradeassay-bench keeps"
        )
        raise UserError(problem, hint="pip install 'tradeassay[bench]'")
    return holdings_judges.get("prices")


def title_of(own: OwnAccount) -> str:
    """Return the account's title, its file name without the suffix, or "your account"."""
    if own.title:
        return own.title
    table = own.returns if own.returns is not None else own.weights
    return Path(table).stem if isinstance(table, str) else "your account"


def one_account(
    title: str, config: VerdictConfig, judged: AgentAssay, notes: Sequence[str]
) -> Assay:
    """Return an assay with a single account."""
    notes = (*notes, WATCHED) if config.watched else tuple(notes)
    return Assay(title=title, source="own", config=config, agents=(judged,), notes=notes)


def _read_inputs(own: OwnAccount) -> OwnSeries:
    """Return the returns of the account, its benchmark, cash and the factors as one record."""
    if own.factors is None and own.cash is None:
        return _read_account_and_benchmark(own)
    table = None if own.factors is None else read_factors(own.factors)
    cash = None if table is None else table.cash
    # Returns may already be in excess of cash, for example the returns of a long-short portfolio.
    in_excess_of_cash = isinstance(own.cash, str) and own.cash == "none"
    if own.cash is not None and not in_excess_of_cash:
        cash = read_factors(own.cash, cash=True).cash
    first = None if table is None else next(iter(table.factors.values()))
    if (
        first is not None
        and own.benchmark is None
        and table is not None
        and table.market is not None
    ):
        account = _read_account_and_benchmark(
            msgspec.structs.replace(own, reading=replace(own.reading, benchmark=None))
        )
        _refuse_other_days(own, account, table, cash)
        notes = tuple(
            note for note in account.notes if not note.startswith("no benchmark was given")
        )
        account = replace(account, benchmark=None, notes=notes)
        bills = {} if cash is None else beside(table.market, cash)
        whole = {day: value + bills.get(day, 0.0) for day, value in table.market.returns.items()}
        series = with_benchmark(
            account, replace(table.market, returns=whole, notes=("the market is the factors' own",))
        )
    else:
        series = _read_account_and_benchmark(own)
        _refuse_other_days(own, series, table, cash)
    if first is not None and first.year < series.year:
        benchmark_series = (
            None
            if series.benchmark is None
            else OwnSeries(returns=series.benchmark, year=series.year)
        )
        series = compounded(series, first)
        series = series if benchmark_series is None else with_benchmark(series, benchmark_series)
    interest = None if cash is None else beside(series, replace(cash, notes=()))
    if in_excess_of_cash and series.benchmark is not None:
        # The account's returns are in excess of cash, so the benchmark's must be too.
        excess = {
            day: value - (interest or {}).get(day, 0.0) for day, value in series.benchmark.items()
        }
        series, interest = replace(series, benchmark=excess), dict.fromkeys(series.returns, 0.0)
    if table is None:
        return replace(series, cash=interest, factors={})
    factors = {name: beside(series, factor) for name, factor in table.factors.items()}
    notes = (*series.notes, *table.notes)
    return replace(series, cash=interest, factors=factors, notes=notes)


def _refuse_other_days(
    own: OwnAccount, account: OwnSeries, table: FactorTable | None, cash: OwnSeries | None
) -> None:
    """Raise :class:`UserError` if the factors or cash lack most of the account's days."""
    if table is not None:
        subject = f"'{FRENCH}' is" if _is_french(own.factors) else "the factors are"
        factor = next(iter(table.factors.values()))
        hint = "give factors of the account's days (factors=FILE), or leave them out"
        refuse_other_days(subject, factor.returns, account.returns, hint)
    if cash is not None:
        subject = f"'{FRENCH}' is" if _is_french(own.cash) else "cash is"
        hint = "give what cash earned on the account's days (cash=FILE), or leave it out"
        refuse_other_days(subject, cash.returns, account.returns, hint)


def _is_french(source: object) -> bool:
    """Return whether a source is the word ``french``, which names Kenneth French's table."""
    return isinstance(source, str) and source == FRENCH


def _read_account_and_benchmark(own: OwnAccount) -> OwnSeries:
    """Return the returns of the account with the returns of its benchmark.

    The benchmark is a column of the account's table, a separate table, or a named benchmark. Raises
    :class:`UserError` if ``own.benchmark`` is not one of these.
    """
    benchmark, reading = own.benchmark, own.reading
    source = Path(own.returns) if isinstance(own.returns, str) else own.returns
    if isinstance(benchmark, str) and not Path(benchmark).is_file():
        columns = columns_of(source)
        if benchmark in BENCHMARKS and benchmark not in columns:
            series = read_series(source, reading, alone=True)
            home = None if own.home is None else Path(own.home)
            named_benchmark = read_benchmark(benchmark, series.returns, home)
            return replace(with_benchmark(series, named_benchmark), benchmark_name=benchmark)
        names = ", ".join(BENCHMARKS)
        kind = ""
        if any(
            (parent / benchmark / "manifest.json").is_file() for parent in (Path(), Path("runs"))
        ):
            kind = "a recorded run"
        elif Path(benchmark).is_dir():
            kind = "a folder"
        if kind and plain_title(benchmark) not in columns:
            hint = (
                f"give the benchmark's file, a column of the table, or a named benchmark: {names}"
            )
            raise UserError(f"'{benchmark}' is {kind}, not a benchmark", hint=hint)
        if Path(benchmark).suffix.lower() in _FILES:
            hint = (
                f"give the benchmark's file, a column of the table, or a named benchmark: {names}"
            )
            raise UserError(f"no file {benchmark}", hint=hint)
        if plain_title(benchmark) not in columns:
            near = did_you_mean(
                benchmark, (*columns, *BENCHMARKS), f"columns: {', '.join(sorted(columns))}"
            )
            raise UserError(
                f"no file, column or named benchmark '{benchmark}'",
                hint=f"{near}; named benchmarks: {names}",
            )
        return read_series(source, replace(reading, benchmark=benchmark))
    series = read_series(source, reading, alone=benchmark is not None)
    if benchmark is None:
        if series.benchmark is not None:
            return series
        return replace(series, notes=(*series.notes, offer(series.returns)))
    benchmark_source = Path(benchmark) if isinstance(benchmark, str) else benchmark
    other = read_series(benchmark_source, replace(reading, column=None), alone=True)
    return replace(with_benchmark(series, other), benchmark_name=_name_of(benchmark))


def _name_of(benchmark: object) -> str:
    """Return the name of a benchmark from a separate table: the name of its file or series."""
    if isinstance(benchmark, str):
        return benchmark_name(Path(benchmark).stem)
    name = getattr(benchmark, "name", None)
    return benchmark_name(name) if isinstance(name, str) else THE_BENCHMARK


_FILES = (".csv", ".tsv", ".txt", ".parquet", ".pq", ".xlsx", ".xls")
"""Suffixes of table files, for an error message about a missing file."""
