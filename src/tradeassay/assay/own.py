"""Somebody's own account: tables of weights and returns that no run of ours recorded, read and taken apart."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from tradeassay.assay.attribution import Account, Attribution, Taking, build, record
from tradeassay.assay.inputs import MarketInputs, MarketQuery, market_inputs
from tradeassay.assay.luck.luck import USUAL, Luck, LuckConfig, StatedTrades, luck_of_returns
from tradeassay.assay.staleness import stale_lags
from tradeassay.core.errors import UserError
from tradeassay.core.registry import refuse_unknown
from tradeassay.core.view import Floats, Instrument
from tradeassay.data import Snapshot, load_dataset
from tradeassay.data.tables.account import LongTable, OwnSeries, TableReading, columns_of, read_long, read_series
from tradeassay.factors import FACTOR_NAMES
from tradeassay.metrics import BootstrapConfig
from tradeassay.metrics.attribution import AttributionConfig, CrossSection, Exposures, fit, fit_returns, vif_screen

WEIGHT, RETURN, SIZE = "weight", "return", "size"
"""Columns of tables whose ``date`` is the session in which a weight is held, or a return earned."""
Between = Literal["cash", "hold"]
_REBALANCED = 1.0 / 3.0
"""Up to this share of the sessions, rows of weights are days of rebalancing."""


class OwnAccount(msgspec.Struct, frozen=True, kw_only=True):
    """Where somebody's own tables are and how they are to be read.

    ``weights`` is a table of ``date``, ``symbol``, ``weight``: shares of the account held into that session (known
    at the close before), shorts negative. ``returns`` is the account's (``date``, ``return``, net of costs), or
    those of the names (``date``, ``symbol``, ``return``, optionally ``size`` and columns named like the
    factors, all known before the date). Prices and factors come from ``dataset`` (a stored data set or a
    snapshot's folder) unless the names' returns are given. Where weights are given on at most a third of the
    sessions, the account held what it had in between; where on more but not all, ``between`` must say whether it
    did or was in cash. A luck baseline needs the account's returns, a
    ``benchmark`` for the market's rules, and how many ``names`` were held with which yearly one-way ``turnover``.

    An account's returns may also be a pandas or polars table, hold its value instead, and be compared with
    ``against``: another table of returns, or a column of the same. ``cash`` is a table of what cash earned,
    ``factors`` one with the returns of styles, a column each (``RF`` in it is cash, ``Mkt-RF`` the market); both
    may be ``french``. ``reading`` says what cannot be told from the account's table.

    ``returns`` may also name a log of trades, whose account is made with the prices of ``dataset`` or of the file
    ``prices``. It began with ``cash_at_start``, by default the least that pays for every trade, and is judged
    ``until`` its last trade; ``symbol`` is what was traded where the log does not say."""

    weights: str | None = None
    returns: str | object | None = None
    against: str | object | None = None
    cash: str | object | None = None
    factors: str | object | None = None
    reading: TableReading = TableReading()
    dataset: str | None = None
    universe: str = "all"
    between: Between | None = None
    benchmark: str | None = None
    names: int | None = None
    turnover: float | None = None
    home: str | None = None
    title: str | None = None
    prices: str | None = None
    cash_at_start: float | None = None
    until: str | None = None
    symbol: str | None = None

    def opened(self, dataset: str) -> Snapshot:
        """Open a data set of the store that ``home`` names, or of the usual one."""
        return load_dataset(dataset, None if self.home is None else Path(self.home))

    def market(self, days: tuple[str, str], *, beside: bool = True) -> tuple[MarketInputs, int]:
        """Return what the market did from the first to the last of ``days``, and how many sessions make a year.
        Without ``beside``, exposures are to the nine factors alone."""
        if self.dataset is None:
            raise UserError(
                "no data set is named", hint="name one with prices of these names (tradeassay data list)"
            )
        snapshot = self.opened(self.dataset)
        config = AttributionConfig(beside=beside)
        query = MarketQuery(first=days[0], last=days[1], universe=self.universe, config=config)
        return market_inputs(snapshot, query), 365 if snapshot.calendar == "24/7" else 252


def attribute_tables(own: OwnAccount, *, bootstrap: BootstrapConfig | None = None) -> Attribution:
    """Take somebody's own account apart. Returns of an account without weights are explained over time (``method``
    is ``returns``), which is weaker: exposures are constants and trading cannot be seen. Raises :class:`UserError`
    with one line for whatever does not fit together."""
    table = None if own.weights is None else read_long(Path(own.weights), (WEIGHT,))
    given = own.returns if own.returns is None or not isinstance(own.returns, str) else Path(own.returns)
    series: OwnSeries | None = None
    if isinstance(given, Path) and "symbol" in columns_of(given):
        if table is None:
            raise UserError(f"{given} holds returns of names", hint="give the weights too")
        inputs, year = _inputs_from(given, table.dates), 252
    else:
        series = None if given is None else read_series(given, own.reading, alone=True)
        dates = table.dates if table is not None else () if series is None else tuple(series.returns)
        if not dates:
            raise UserError("nothing to take apart is given", hint="give weights, or returns of an account")
        # Over time, a score of factors would explain anything.
        inputs, year = own.market((dates[0], dates[-1]), beside=table is not None)
    name = str(given) if isinstance(given, Path) else "the table"
    earned = None
    if series is not None:
        days = inputs.sessions
        missing = next((day for day in days if day not in series.returns), None)
        if missing is not None:
            hint = "give one for every session, 0 without a change"
            raise UserError(f"{name} has no return on {missing}", hint=hint)
        inside = sorted(day for day in set(series.returns) - set(days) if days[0] <= day <= days[-1])
        if inside:
            raise UserError(f"{name}: {inside[0]} is not a session of the data set", hint="leave it out")
        earned = np.array([series.returns[day] for day in days])
    notes, doubts = ((), ()) if series is None else (series.notes, series.doubts)
    taking = Taking(convention="sound", year=year, bootstrap=bootstrap or BootstrapConfig())
    if table is None:
        title = own.title or (str(given) if isinstance(given, Path) else "returns")
        assert earned is not None, "without weights there are returns"
        late = stale_lags(earned, inputs.model.common)
        found = fit_returns(inputs.model, earned, lags=late)
        note = f"holdings are unknown: constant exposures explain {found.explained:.0%} of the variance"
        if late:
            note += f"; the returns come up to {late} sessions late, which is allowed for"
        nothing = np.zeros(inputs.model.returns.shape)
        account = Account(source=title, weights=nothing, returns=earned, notes=(note, *notes), doubts=doubts)
        return record(inputs, account, found.daily, taking)
    said = []
    if len(table.dates) < len(inputs.sessions):
        rest = "was in cash" if own.between == "cash" else "held what it had"
        few = f"{len(table.dates)} of {len(inputs.sessions)} sessions"
        said.append(f"weights are given on {few}: on the others the account {rest}")
    if earned is None:
        said.append("the account's own returns are not given: there is no trading part")
    account = Account(
        source=str(own.weights),
        weights=_weights(table, inputs, str(own.weights), own.between),
        returns=earned,
        rest="rest",
        notes=(*said, *notes),
        doubts=doubts,
    )
    return build(inputs, account, taking)[0]


def _inputs_from(path: Path, dates: tuple[str, ...]) -> MarketInputs:
    """Return a market made of the names' own returns; the sessions are the dates of that table."""
    table = read_long(path, (RETURN,), (SIZE, *FACTOR_NAMES), gaps=True)
    days = tuple(day for day in table.dates if dates[0] <= day <= dates[-1])
    if not days:
        raise UserError(f"{path} has no date from {dates[0]} to {dates[-1]}", hint="give both for the same dates")
    columns = {name: table.placed(name, days, table.symbols) for name in table.columns}
    returns = columns[RETURN]
    values = np.full((len(days), len(FACTOR_NAMES), len(table.symbols)), np.nan)
    for k, name in enumerate(FACTOR_NAMES):
        if name in columns:
            values[:, k] = columns[name]
    size = columns.get(SIZE, np.ones(returns.shape))
    nothing = Exposures(values[:0], np.zeros((0, returns.shape[1]), bool), np.zeros((0, len(FACTOR_NAMES)), bool))
    return MarketInputs(
        query=MarketQuery(first=days[0], last=days[-1]),
        dataset=path.name,
        sessions=days,
        instruments=tuple(Instrument(symbol=symbol) for symbol in table.symbols),
        model=fit(CrossSection(returns, values, size, np.isfinite(returns))),
        screen=vif_screen(nothing, FACTOR_NAMES),
        size=size,
        sized_by=SIZE if SIZE in columns else "nothing",
        investable=np.isfinite(returns),
        futures=np.zeros(len(table.symbols), dtype=np.bool_),
    )


def _weights(table: LongTable, inputs: MarketInputs, path: str, between: Between | None) -> Floats:
    known = set(inputs.sessions)
    for date in table.dates:
        if date not in known:
            raise UserError(
                f"{path}: {date} is not a session of '{inputs.dataset}'", hint="give weights for sessions"
            )
    symbols, lacking = dict.fromkeys(inputs.symbols), f"'{inputs.dataset}' does not have it"
    for symbol in table.symbols:
        refuse_unknown(symbol, symbols, f"{path}: no name '{symbol}' in '{inputs.dataset}'", lacking)
    held = np.nan_to_num(table.placed(WEIGHT, inputs.sessions, inputs.symbols), nan=0.0)
    if between is None and _REBALANCED * len(inputs.sessions) < len(table.dates) < len(inputs.sessions):
        raise UserError(
            f"{path}: weights on {len(table.dates)} of {len(inputs.sessions)} sessions: was the account in cash "
            "on the others, or did it hold what it had?",
            hint="say which: between='cash' or between='hold'",
        )
    if between != "cash":
        given = set(table.dates)
        for row in range(1, len(inputs.sessions)):
            if inputs.sessions[row] not in given:
                grown = held[row - 1] * (1.0 + inputs.model.returns[row - 1])
                whole = 1.0 + float((held[row - 1] * inputs.model.returns[row - 1]).sum())
                held[row] = grown / whole if whole > 0 else 0.0
    if held[:, inputs.futures].any():
        raise UserError(f"{path} holds futures", hint="weights are shares of the account's money; leave them out")
    return held


def luck_of_file(own: OwnAccount, config: LuckConfig = USUAL) -> Luck:
    """Return the luck of the returns in a Parquet or CSV file (columns ``date`` and ``return``). The market and
    its rules are a benchmark's; how many names were held and how much was traded must be stated. Raises
    :class:`UserError` when one of these is missing or does not fit the file."""
    if not isinstance(own.returns, str | OwnSeries):
        raise UserError("a luck baseline needs a file of returns", hint="write them as CSV or Parquet")
    source = Path(own.returns) if isinstance(own.returns, str) else own.returns
    title = own.title or (source.stem if isinstance(source, Path) else "the account")
    if own.benchmark is None or own.names is None or own.turnover is None:
        hint = "say it, e.g. benchmark='daily-us-v1', names=20, turnover=4"
        raise UserError(f"{title} does not say how it was traded", hint=hint)
    # Only this needs the benchmarks, which take a fifth of a second to load.
    from tradeassay.benchmarks import benchmarks

    chosen = benchmarks.get(own.benchmark)
    return luck_of_returns(
        read_series(source, own.reading, alone=True).returns,
        chosen,
        own.opened(own.dataset or chosen.dataset),
        StatedTrades(names=own.names, turnover=own.turnover),
        config=config,
        title=title,
    )
