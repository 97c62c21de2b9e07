"""The assay of somebody's own tables: returns with a market and factors, weights, or a log of trades."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tradeassay.assay import run_evidence
from tradeassay.assay.holdings import (
    WEIGHT,
    attribute_tables,
    attribute_trades,
    luck_of_file,
    opened,
    own_prices,
    priced,
)
from tradeassay.assay.luck.luck import LuckConfig
from tradeassay.assay.verdict.attribution import Attribution
from tradeassay.assay.verdict.decide import judge
from tradeassay.assay.verdict.own_account import OwnAccount
from tradeassay.assay.verdict.record import (
    AgentAssay,
    Assay,
    LuckEvidence,
    VerdictConfig,
)
from tradeassay.assay.verdict.returns import (
    CONSTANT,
    WATCHED,
    TrialSetting,
    assay_series,
    own_findings,
    with_daily,
    with_history,
)
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.registry import did_you_mean
from tradeassay.data.markets import (
    FRENCH,
    MARKETS,
    FactorTable,
    offer,
    read_factors,
    read_market,
    refuse_other_days,
)
from tradeassay.data.tables.account import OwnSeries, beside, columns_of, compounded, read_series, with_benchmark
from tradeassay.data.tables.columns import plain_title
from tradeassay.data.tables.trades import TradeLog, read_trades
from tradeassay.metrics import (
    BootstrapConfig,
)
from tradeassay.runs.store.run import folder_of

if TYPE_CHECKING:
    pass


def assay_tables(own: OwnAccount, config: VerdictConfig) -> Assay:
    """Return the assay of an own account. Raises :class:`UserError` with one line for what does not fit."""
    if own.returns is not None and not isinstance(own.returns, OwnSeries) and own.weights is None:
        source = Path(own.returns) if isinstance(own.returns, str) else own.returns
        if isinstance(source, Path) and not source.is_file():
            raise UserError(f"no file {source}", hint="give a Parquet or CSV file")
        log = read_trades(source, own.reading.dates)
        if log is not None:
            return _assay_log(own, log, config)
        if isinstance(source, Path) and {"symbol", WEIGHT} <= columns_of(source):
            own = msgspec.structs.replace(own, weights=own.returns, returns=None)  # weights, given as returns
    if own.returns is None and own.weights is None:
        raise UserError("no table is given", hint="give weights.parquet, returns.parquet, or both")
    given = own.returns if own.returns is not None else own.weights
    title = own.title or (Path(given).stem if isinstance(given, str) else "your account")
    # What was said of an account and would change nothing was meant to.
    logged = isinstance(own.returns, OwnSeries)
    unused = {} if logged else dict.fromkeys(("prices", "cash_at_start", "until", "symbol"), "a log of trades")
    unused |= {"between": "weights"} if own.weights is None else {}
    if own.weights is None and own.dataset is None:
        unused |= dict.fromkeys(("benchmark", "names", "turnover"), "a data set")
    for name, needed in unused.items():
        if getattr(own, name) is not None:
            raise UserError(f"'{name}' has no use without {needed}", hint=f"give {needed}, or leave it out")
    if own.weights is None and own.dataset is None:
        series = _explained(own)
        french = isinstance(own.factors, str) and own.factors == FRENCH and own.against is None
        named = isinstance(own.against, str) and own.against in MARKETS and MARKETS[own.against].dividends
        config = msgspec.structs.replace(
            config,
            dividends=0.0 if named or french else config.dividends,
            interest=config.interest if series.cash is None else 0.0,
        )
        judged, notes = assay_series(series, config, agent=title)
    else:
        taken = attribute_tables(own, bootstrap=BootstrapConfig(level=config.level, draws=config.draws))
        judged, notes = _judged(own, taken, config, title), taken.notes
    return _own_assay(title, config, judged, notes)


def _own_assay(title: str, config: VerdictConfig, judged: AgentAssay, notes: Sequence[str]) -> Assay:
    notes = (*notes, WATCHED) if config.watched else tuple(notes)
    return Assay(title=title, source="own", config=config, agents=(judged,), notes=notes)


def _assay_log(own: OwnAccount, log: TradeLog, config: VerdictConfig) -> Assay:
    """Return the assay of an account made of a log of trades, by its holdings where there are prices of them."""
    title = own.title or (Path(log.name).stem if isinstance(own.returns, str) else "your account")
    own = msgspec.structs.replace(own, title=title)
    with priced(own) as snapshot:
        if snapshot is None:
            return assay_tables(msgspec.structs.replace(own, returns=own_prices(own, log)), config)
        own = msgspec.structs.replace(own, dataset=str(snapshot.folder))
        drawn = BootstrapConfig(level=config.level, draws=config.draws)
        taken, trades = attribute_trades(own, log, snapshot, drawn)
        own = msgspec.structs.replace(
            own,
            returns=OwnSeries(returns=dict(zip(taken.daily.sessions, taken.daily.total, strict=True))),
            names=own.names or trades.names,
            turnover=own.turnover or trades.turnover,
        )
        return _own_assay(title, config, _judged(own, taken, config, title), taken.notes)


def _explained(own: OwnAccount) -> OwnSeries:
    """Return the account's returns with those of its market, of cash and of factors, as far as they are given."""
    if own.factors is None and own.cash is None:
        return _series(own)
    table = None if own.factors is None else read_factors(own.factors)
    cash = None if table is None else table.cash
    # Returns may be beyond cash already, as those of one side less another are.
    beyond_it = isinstance(own.cash, str) and own.cash == "none"
    if own.cash is not None and not beyond_it:
        cash = read_factors(own.cash, cash=True).cash
    first = None if table is None else next(iter(table.factors.values()))
    if first is not None and own.against is None and table is not None and table.market is not None:
        account = _series(msgspec.structs.replace(own, reading=replace(own.reading, against=None)))
        _refuse_other_days(own, account, table, cash)
        told = tuple(note for note in account.notes if not note.startswith("no market was given"))
        account = replace(account, against=None, notes=told)
        bills = {} if cash is None else beside(table.market, cash)
        whole = {day: value + bills.get(day, 0.0) for day, value in table.market.returns.items()}
        series = with_benchmark(
            account, replace(table.market, returns=whole, notes=("the market is the factors' own",))
        )
    else:
        series = _series(own)
        _refuse_other_days(own, series, table, cash)
    if first is not None and first.year < series.year:
        market = None if series.against is None else OwnSeries(returns=series.against, year=series.year)
        series = compounded(series, first)
        series = series if market is None else with_benchmark(series, market)
    earned = None if cash is None else beside(series, replace(cash, notes=()))
    if beyond_it and series.against is not None:
        # The account's returns are beyond cash as they are, and the market's must be.
        beyond = {day: value - (earned or {}).get(day, 0.0) for day, value in series.against.items()}
        series, earned = replace(series, against=beyond), dict.fromkeys(series.returns, 0.0)
    return replace(
        series,
        cash=earned,
        factors={} if table is None else {name: beside(series, one) for name, one in table.factors.items()},
        notes=(*series.notes, *(() if table is None else table.notes)),
    )


def _refuse_other_days(
    own: OwnAccount, account: OwnSeries, table: FactorTable | None, cash: OwnSeries | None
) -> None:
    """Raise :class:`UserError` if the factors, or cash, lie outside most of the account's days."""
    if table is not None:
        subject = f"'{FRENCH}' is" if own.factors == FRENCH else "the factors are"
        factor = next(iter(table.factors.values()))
        hint = "give factors of the account's days (factors=FILE), or leave them out"
        refuse_other_days(subject, factor.returns, account.returns, hint)
    if cash is not None:
        subject = f"'{FRENCH}' is" if own.cash == FRENCH else "cash is"
        hint = "give what cash earned on the account's days (cash=FILE), or leave it out"
        refuse_other_days(subject, cash.returns, account.returns, hint)


def _series(own: OwnAccount) -> OwnSeries:
    """Return the account's returns with those it is compared with, from its own table or another."""
    given, against, reading = own.returns, own.against, own.reading
    source = Path(given) if isinstance(given, str) else given
    if isinstance(against, str) and not Path(against).is_file():
        columns = columns_of(source)
        if against in MARKETS and against not in columns:
            series = read_series(source, reading, alone=True)
            market = read_market(against, series.returns, None if own.home is None else Path(own.home))
            return with_benchmark(series, market)
        markets = ", ".join(MARKETS)
        kind = ""
        if (folder_of(against) / "manifest.json").is_file():
            kind = "a recorded run"
        elif Path(against).is_dir():
            kind = "a folder"
        if kind and plain_title(against) not in columns:
            hint = f"give the benchmark's file, a column of the table, or a market by name: {markets}"
            raise UserError(f"'{against}' is {kind}, not a benchmark", hint=hint)
        if Path(against).suffix.lower() in _FILES:
            hint = f"give the benchmark's file, a column of the table, or a market by name: {markets}"
            raise UserError(f"no file {against}", hint=hint)
        if plain_title(against) not in columns:
            near = did_you_mean(against, (*columns, *MARKETS), f"columns: {', '.join(sorted(columns))}")
            raise UserError(f"no file, column or market '{against}'", hint=f"{near}; markets: {markets}")
        return read_series(source, replace(reading, against=against))
    series = read_series(source, reading, alone=against is not None)
    if against is None:
        noted = series.against is not None
        return series if noted else replace(series, notes=(*series.notes, offer(series.returns)))
    beside_it = Path(against) if isinstance(against, str) else against
    return with_benchmark(series, read_series(beside_it, replace(reading, column=None), alone=True))


_FILES = (".csv", ".tsv", ".txt", ".parquet", ".pq", ".xlsx", ".xls")


def _judged(own: OwnAccount, taken: Attribution, config: VerdictConfig, agent: str) -> AgentAssay:
    """Return the verdict on an own account that was taken apart."""
    exposures = dict(taken.preferences)
    if taken.method == "returns":
        # Where only returns are known: the constant exposures that explain them best.
        known = taken.daily.exposures
        exposures = {name: Measure(value=values[0], note=CONSTANT) for name, values in known.items() if values}
    luck = LuckEvidence(percentile=not_scored("not asked for"), p=None)
    if config.portfolios and (own.returns is None or own.benchmark is None):
        reason = "returns, a benchmark, the number of names and the turnover are needed for it"
        luck = LuckEvidence(percentile=not_scored(reason), p=None)
    elif config.portfolios:
        drawn = LuckConfig(portfolios=config.portfolios, seed=config.seed)
        luck = run_evidence.luck_evidence([luck_of_file(own, drawn)])
    found = own_findings(
        agent,
        taken.daily.sessions,
        dataset=taken.dataset,
        method=taken.method,
        failure=taken.reason,
        total=not_scored(taken.reason or "nothing was played"),
        market=not_scored(taken.reason or "returns of the names are given, and none of a market"),
        exposures=exposures,
        luck=luck,
        biases=() if own.dataset is None else opened(own, own.dataset).facts.biases,
        notes=taken.notes,
        doubts=taken.doubts,
    )
    if taken.linked is not None and taken.daily.sessions:
        daily = run_evidence.rows_of_seeds([taken])
        found = with_daily(found, daily, taken.year, config, TrialSetting(taken=(taken,)))
        found = with_history(found, daily["total"], taken.daily.sessions, taken.year, config)
    if own.returns is None:
        unseen = not_scored("weights alone do not say what trading cost")
        found = msgspec.structs.replace(found, parts={**found.parts, "trading": unseen})
    return judge(found, config)
