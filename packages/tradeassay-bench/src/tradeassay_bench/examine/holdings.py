"""Attribute a user's own account from tables of weights or returns, or from a log of trades.

The fills of a log are booked in tradeassay's ledger, and a data set provides prices.
"""

from __future__ import annotations

import math
import re
import tempfile
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC
from itertools import groupby
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import DataError, UserError
from tradeassay.core.registry import did_you_mean, refuse_unknown
from tradeassay.factors import FACTOR_NAMES
from tradeassay.metrics import BootstrapConfig
from tradeassay.metrics.attribution import (
    AttributionConfig,
    CrossSection,
    Exposures,
    fit,
    fit_returns,
    vif_screen,
)
from tradeassay.metrics.staleness import stale_lags
from tradeassay.tables.account import LongTable, OwnSeries, columns_of, read_long, read_series
from tradeassay.tables.trades import Fill, TradeLog, pair_of
from tradeassay.verdict.attribution import Attribution
from tradeassay.verdict.own_account import Between, OwnAccount
from tradeassay.verdict.own_returns import WEIGHT
from tradeassay_bench.account import Exchange, Ledger
from tradeassay_bench.account.end_of_day import emit
from tradeassay_bench.account.limits import Lots
from tradeassay_bench.account.margin import Margin
from tradeassay_bench.account.settlement import Shorting
from tradeassay_bench.account.venue import Venue
from tradeassay_bench.core.errors import DataRefused
from tradeassay_bench.core.events import Event, Filled, MarginCalled, Marked, Rejected, StepRecord
from tradeassay_bench.core.orders import Decision, Order
from tradeassay_bench.core.view import Instrument, SessionBars
from tradeassay_bench.data import Snapshot, import_files, load_dataset
from tradeassay_bench.data.names import ashare_code
from tradeassay_bench.data.tables.bars import ZONES
from tradeassay_bench.data.tables.files import FilesConfig
from tradeassay_bench.examine.attribute import Account, account_days, as_record, build
from tradeassay_bench.examine.luck.luck import (
    USUAL,
    Luck,
    LuckConfig,
    StatedTrades,
    luck_of_returns,
)
from tradeassay_bench.examine.market_window import MarketInputs, MarketQuery, market_inputs

RETURN, SIZE = "return", "size"
"""Date columns of tables.

The ``date`` is the session at which a weight is held or in which a return is earned.
"""


def opened(own: OwnAccount, dataset: str) -> Snapshot:
    """Open a data set in the store ``own.home``, or in the default store."""
    return load_dataset(dataset, None if own.home is None else Path(own.home))


def market_of(
    own: OwnAccount, days: tuple[str, str], *, beside: bool = True
) -> tuple[MarketInputs, int]:
    """Return the market from the first to the last of ``days``, and its sessions per year.

    If ``beside`` is False, the only exposures are the nine factors.
    """
    if own.dataset is None:
        hint = "give a data set with prices of these names (tradeassay data list)"
        raise UserError("no data set is given", hint=hint)
    snapshot = opened(own, own.dataset)
    config = AttributionConfig(beside=beside)
    query = MarketQuery(first=days[0], last=days[1], universe=own.universe, config=config)
    return market_inputs(snapshot, query), 365 if snapshot.calendar == "24/7" else 252


def attribute_tables(own: OwnAccount, *, bootstrap: BootstrapConfig | None = None) -> Attribution:
    """Return the attribution of a user's own account.

    Returns without weights are explained by a regression over time (``method`` is ``returns``).
    This method is weaker, because exposures are assumed constant and trading cannot be observed.
    Raises :class:`UserError` for tables that do not fit together.
    """
    table = None if own.weights is None else read_long(Path(own.weights), (WEIGHT,))
    source = (
        own.returns
        if own.returns is None or not isinstance(own.returns, str)
        else Path(own.returns)
    )
    series: OwnSeries | None = None
    if isinstance(source, Path) and "symbol" in columns_of(source):
        if table is None:
            raise UserError(f"{source} contains returns of names", hint="give the weights too")
        inputs, year = _inputs_from(source, table.dates), 252
    else:
        series = None if source is None else read_series(source, own.reading, alone=True)
        dates: tuple[str, ...] = ()
        if table is not None:
            dates = table.dates
        elif series is not None:
            dates = tuple(series.returns)
        if not dates:
            raise UserError("no account is given", hint="give weights, or returns of an account")
        # A regression over time with twenty factors would explain anything.
        inputs, year = market_of(own, (dates[0], dates[-1]), beside=table is not None)
    name = str(source) if isinstance(source, Path) else "the table"
    earned = None
    if series is not None:
        days = inputs.sessions
        missing = next((day for day in days if day not in series.returns), None)
        if missing is not None:
            hint = "give a return for every session, 0 without a change"
            raise UserError(f"{name} has no return on {missing}", hint=hint)
        inside = sorted(
            day for day in set(series.returns) - set(days) if days[0] <= day <= days[-1]
        )
        if inside:
            raise UserError(
                f"{name}: {inside[0]} is not a session of the data set", hint="leave it out"
            )
        earned = np.array([series.returns[day] for day in days])
    notes, doubts = ((), ()) if series is None else (series.notes, series.doubts)
    bootstrap = bootstrap or BootstrapConfig()
    if table is None:
        title = own.title or (str(source) if isinstance(source, Path) else "returns")
        assert earned is not None, "without weights there are returns"
        late = stale_lags(earned, inputs.model.common, year)
        fitted = fit_returns(inputs.model, earned, lags=late)
        note = (
            f"holdings are unknown: constant exposures explain {fitted.explained:.0%} of the "
            "variance"
        )
        if late:
            note += f"; the returns lag by up to {late} sessions, which is allowed for"
        nothing = np.zeros(inputs.model.returns.shape)
        account = Account(
            title, nothing, earned, year, bootstrap, notes=(note, *notes), doubts=doubts
        )
        return as_record(inputs, account, fitted.daily)
    gaps = []
    if len(table.dates) < len(inputs.sessions):
        rest = "was in cash" if own.between == "cash" else "kept its holdings"
        few = f"{len(table.dates)} of {len(inputs.sessions)} sessions"
        gaps.append(f"weights are given on {few}; on the remaining sessions the account {rest}")
    if earned is None:
        gaps.append("the account's own returns are not given: there is no trading part")
    account = Account(
        source=str(own.weights),
        weights=_weights(table, inputs, str(own.weights), own.between),
        returns=earned,
        year=year,
        bootstrap=bootstrap,
        rest="rest",
        notes=(*gaps, *notes),
        doubts=doubts,
    )
    return build(inputs, account)[0]


def _inputs_from(path: Path, dates: tuple[str, ...]) -> MarketInputs:
    """Return a market built from a table of the names' returns. Its dates are the sessions."""
    table = read_long(path, (RETURN,), (SIZE, *FACTOR_NAMES), gaps=True)
    days = tuple(day for day in table.dates if dates[0] <= day <= dates[-1])
    if not days:
        raise UserError(
            f"{path} has no date from {dates[0]} to {dates[-1]}",
            hint="give both for the same dates",
        )
    columns = {name: table.placed(name, days, table.symbols) for name in table.columns}
    returns = columns[RETURN]
    values = np.full((len(days), len(FACTOR_NAMES), len(table.symbols)), np.nan)
    for k, name in enumerate(FACTOR_NAMES):
        if name in columns:
            values[:, k] = columns[name]
    size = columns.get(SIZE, np.ones(returns.shape))
    nothing = Exposures(
        values[:0], np.zeros((0, returns.shape[1]), bool), np.zeros((0, len(FACTOR_NAMES)), bool)
    )
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
    """Return the weights of a table for every session, in the columns of the market.

    ``between`` states whether the account holds its positions or cash on sessions without weights.
    Raises :class:`UserError` for an unknown session or name, and if ``between`` is needed.
    """
    sessions = set(inputs.sessions)
    unknown_date = next((date for date in table.dates if date not in sessions), None)
    if unknown_date is not None:
        raise UserError(
            f"{path}: {unknown_date} is not a session of '{inputs.dataset}'",
            hint="give weights for sessions",
        )
    symbols, lacking = dict.fromkeys(inputs.symbols), f"'{inputs.dataset}' does not have it"
    for symbol in table.symbols:
        refuse_unknown(
            symbol, symbols, f"{path}: no name '{symbol}' in '{inputs.dataset}'", lacking
        )
    held = np.nan_to_num(table.placed(WEIGHT, inputs.sessions, inputs.symbols), nan=0.0)
    # If at most a third of the sessions have weights, the rows are rebalancing days.
    if between is None and len(inputs.sessions) / 3.0 < len(table.dates) < len(inputs.sessions):
        coverage = f"{path}: weights on {len(table.dates)} of {len(inputs.sessions)} sessions"
        question = "was the account in cash on the other sessions, or did it keep its holdings?"
        raise UserError(
            f"{coverage}: {question}", hint="choose one: between='cash' or between='hold'"
        )
    if between != "cash":
        dates = set(table.dates)
        for row in range(1, len(inputs.sessions)):
            if inputs.sessions[row] not in dates:
                grown = held[row - 1] * (1.0 + inputs.model.returns[row - 1])
                whole = 1.0 + float((held[row - 1] * inputs.model.returns[row - 1]).sum())
                held[row] = grown / whole if whole > 0 else 0.0
    if held[:, inputs.futures].any():
        raise UserError(
            f"{path} holds futures",
            hint="weights are shares of the account's money; leave them out",
        )
    return held


def luck_of_file(own: OwnAccount, config: LuckConfig = USUAL) -> Luck:
    """Return the luck of the returns in a Parquet or CSV file (columns ``date`` and ``return``).

    The benchmark suite defines the market and its rules. The suite, the number of names held and
    the turnover must be stated. Raises :class:`UserError` if one of the three is missing or does
    not fit the file.
    """
    if not isinstance(own.returns, str | OwnSeries):
        raise UserError(
            "a luck baseline needs a file of returns", hint="write them as CSV or Parquet"
        )
    source = Path(own.returns) if isinstance(own.returns, str) else own.returns
    title = own.title or (source.stem if isinstance(source, Path) else "the account")
    if own.suite is None or own.names is None or own.turnover is None:
        hint = "state it, e.g. suite='daily-us-v1', names=20, turnover=4"
        raise UserError(f"it is not stated how {title} was traded", hint=hint)
    # Only this function needs the benchmark suites, which take a fifth of a second to load.
    from tradeassay_bench.benchmarks import benchmarks

    chosen = benchmarks.get(own.suite)
    snapshot = opened(own, own.dataset or chosen.dataset)
    index = chosen.market.universe.partition(":")[0]
    if index != "all":
        try:
            snapshot.at(len(snapshot.sessions) - 1, "close").members(index)
        except DataError as error:
            problem = (
                f"{chosen.id} trades the members of the index '{index}', which the data set "
                "does not have"
            )
            raise UserError(problem, hint="suite='daily-us-real-v1' needs no index") from error
    return luck_of_returns(
        read_series(source, own.reading, alone=True).returns,
        chosen,
        snapshot,
        StatedTrades(names=own.names, turnover=own.turnover),
        config=config,
        title=title,
    )


_VENUE = Venue(
    id="trade-log",
    title="what a log says was traded: no rule but the account's identities",
    currency="",
    lots=Lots(lot=1e-8, step=1e-8),
    margin=Margin(initial=1.0, maintenance_long=0.0, maintenance_short=0.0, interest_per_year=0.0),
    shorting=Shorting(allowed=True),
)
_PLENTY = 1e9
"""An initial cash that is enough for all orders. The decisions in a list do not depend on it."""
_OTHER_PRICE = 1.5
"""The maximum plausible ratio of a fill's price to the limits of its day's price range.

The price of a fill further away must be from a different instrument.
"""
_OUTSIDE = 0.005
OWN_PRICES = (
    "no prices are given: between trades a holding is valued at its last trade price, so returns "
    "are "
    "recorded late and depend on the trading times; use --dataset or --prices to give its market "
    "values"
)


@contextmanager
def priced(own: OwnAccount) -> Iterator[Snapshot | None]:
    """Open the prices for a log: a data set, or a file that is read like a data set.

    Yields None if the account has no prices.
    """
    if own.prices is None:
        yield None if own.dataset is None else opened(own, own.dataset)
        return
    with tempfile.TemporaryDirectory(prefix="tradeassay-") as folder:
        try:
            import_files(FilesConfig(path=own.prices, name="prices"), home=Path(folder))
        # An import has options for the calendar and for accepting faults. An account has no such
        # options.
        except DataRefused as refused:
            how = f"tradeassay data import {own.prices} --name NAME explains how"
            raise DataRefused(
                refused.message, hint=f"fix or accept them ({how}), then use dataset='NAME'"
            ) from None
        yield load_dataset("prices", Path(folder))


def attribute_trades(
    own: OwnAccount, log: TradeLog, snapshot: Snapshot, bootstrap: BootstrapConfig
) -> tuple[Attribution, StatedTrades]:
    """Return the attribution of a log's account, with its holdings and turnover.

    Raises :class:`UserError` for trades whose prices are missing.
    """
    log = replace(log, fills=tuple(_named(log, own.symbol, snapshot)))
    rows = [_row(fill, snapshot, log) for fill in log.fills]
    last = str(snapshot.sessions[max(rows)]) if own.until is None else own.until
    window = snapshot.rows(str(snapshot.sessions[rows[0]]), last)
    notes = list(log.notes)
    cash = _cash(own, log, lambda cash: _booked(log, rows, snapshot, window, cash, []), notes)
    records = list(_booked(log, rows, snapshot, window, cash, notes))
    query = msgspec.structs.replace(own, dataset=str(snapshot.folder))
    inputs, year = market_of(query, (records[0].session, records[-1].session))
    days = account_days(records, inputs.symbols)
    if days.ruined is not None:
        notes.append(f"the account's value was zero or less on {days.ruined}")
    count, held = len(days.sessions), len(Ledger.replay(records).held())
    if held and own.until is None:
        notes.append(
            f"the period ends with the last trade, with {held} names still held; use --until DAY "
            "to extend it"
        )
    account = Account(
        log.name, days.weights, days.returns, year, bootstrap, parts=days.costs, notes=tuple(notes)
    )
    held_names = (days.weights != 0.0).sum(axis=1)
    fills = []
    for record in records:
        for event in record.events:
            if isinstance(event, Filled):
                fills.append(event)
    traded = (
        math.fsum(abs(one.quantity) * one.price for one in fills) / 2.0 / float(days.nav.mean())
    )
    trades = StatedTrades(
        names=max(1, round(float(held_names[held_names > 0].mean()))) if held_names.any() else 1,
        turnover=traded * year / max(1, count),
    )
    return build(inputs.until(count), account)[0], trades


def own_prices(own: OwnAccount, log: TradeLog) -> OwnSeries:
    """Return a log account's returns between days with trades, at the log's trade prices."""
    if log.decisions:
        raise UserError(f"{log.name} has no prices", hint="give dataset=NAME or prices=FILE")
    notes = list(log.notes)
    cash = _cash(own, log, lambda cash: _booked_alone(log, cash), notes)
    before, returns = cash, {}
    for ledger, record in Ledger.steps(_booked_alone(log, cash)):
        returns[record.session], before = ledger.nav() / before - 1.0, ledger.nav()
        if before <= 0.0:
            notes.append(f"the account's value was zero or less on {record.session}")
            break
    days = np.array([*returns], dtype="datetime64[D]")
    years = max(1.0, float((days[-1] - days[0]).astype(int))) / 365.25
    year = max(1, min(365, round(len(returns) / years)))
    return OwnSeries(returns=returns, year=year, notes=(*notes, OWN_PRICES))


def _booked_alone(log: TradeLog, cash: float) -> Iterator[StepRecord]:
    """Yield the record of every day with trades, without a data set.

    Each holding is valued at its last trade price.
    """
    ledger = Ledger(cash, terms=_VENUE.terms)
    marks: dict[str, float] = {}
    for step, (day, fills) in enumerate(groupby(log.fills, key=lambda fill: fill.day)):
        events: list[Event] = []
        for n, fill in enumerate(fills):
            emit(_event(f"{step}.{n}", fill), ledger, events)
            marks[fill.symbol] = fill.price
        held = {symbol: marks[symbol] for symbol in ledger.held()}
        worth = math.fsum(ledger.quantity(symbol) * price for symbol, price in held.items())
        if ledger.cash + worth < 0.0:
            emit(MarginCalled(ledger.cash + worth, 0.0), ledger, events)
        emit(Marked(ledger.cash, worth, ledger.cash + worth, (), held), ledger, events)
        opening = (ledger.deposit,) if step == 0 else ()
        yield StepRecord(
            step=step,
            session=day,
            decided_at=0,
            opening=opening,
            decision=Decision(),
            events=tuple(events),
        )


def _cash(
    own: OwnAccount,
    log: TradeLog,
    booked: Callable[[float], Iterable[StepRecord]],
    notes: list[str],
) -> float:
    """Return the initial cash of an account.

    Adds notes to ``notes``: the source of the amount, and sales of names that were not held.
    """
    if log.decisions:
        return own.cash_at_start or _PLENTY
    needed, short = 0.0, dict[str, None]()
    for ledger, _ in Ledger.steps(booked(_PLENTY)):
        sold = {symbol: one for symbol, one in ledger.holdings.items() if one.quantity < 0.0}
        short |= dict.fromkeys(sold)
        # The proceeds of a short sale are not spent, and the account needs the same amount of its
        # own money as collateral.
        locked = math.fsum(-2.0 * one.quantity * one.cost for one in sold.values())
        needed = max(needed, _PLENTY - ledger.cash + locked)
    if short:
        names = f"{len(short)} name{'s were' if len(short) > 1 else ' was'}"
        notes.append(
            f"{names} sold beyond the holdings in the log ({', '.join([*short][:3])}): this counts "
            "as a "
            "short sale; purchases before the log begins are not included"
        )
    if own.cash_at_start is not None:
        return own.cash_at_start
    found = math.ceil(needed * 100.0) / 100.0
    notes.append(
        f"the initial cash is {found:,.2f}, the smallest amount that pays for every day's trades "
        "(a short sale needs "
        "as much as its proceeds), so returns are as large as possible; use --cash-at-start to "
        "change it"
    )
    return found


def _named(log: TradeLog, asked: str | None, snapshot: Snapshot) -> Iterator[Fill]:
    """Yield the fills of a log, with each symbol in the spelling of the data set."""
    symbols = snapshot.at(len(snapshot.sessions) - 1, "close").symbols
    plain: dict[str, list[str]] = {}
    for symbol in symbols:
        plain.setdefault(_bare(symbol), []).append(symbol)
    found: dict[str, str] = {}
    for given in dict.fromkeys(fill.symbol for fill in log.fills):
        name = given or asked or (symbols[0] if len(symbols) == 1 else "")
        if not name:
            raise UserError(
                f"{log.name} has no column of the names traded", hint="give the name with symbol="
            )
        base, quote = pair_of(name)
        spelled = (
            name,
            base if quote else name,
            f"{base}USD" if quote else name,
            ashare_code(name) or name,
        )
        exact = (
            [name]
            if name in symbols
            else next((plain[_bare(x)] for x in spelled if _bare(x) in plain), [])
        )
        if len(exact) != 1:
            hint = did_you_mean(name, symbols, "give prices for every name that was traded")
            raise UserError(f"{log.name}: no name '{name}' in '{snapshot.name}'", hint=hint)
        found[given] = exact[0]
    return (replace(fill, symbol=found[fill.symbol]) for fill in log.fills)


def _bare(symbol: str) -> str:
    return re.sub(r"[^A-Z0-9]", "", symbol.upper())


def _row(fill: Fill, snapshot: Snapshot, log: TradeLog) -> int:
    """Return the session in which a fill is booked: the first session that closes after the fill.

    A decision without a time of day may have used the close of its day, so it is executed in the
    next session.
    """
    day = np.datetime64(fill.day)
    if log.decisions or fill.at is None:
        row = int(
            np.searchsorted(snapshot.sessions, day, side="right" if log.decisions else "left")
        )
    else:
        at = (
            fill.at
            if fill.at.tzinfo is not None
            else fill.at.replace(tzinfo=ZoneInfo(ZONES[snapshot.calendar]))
        )
        instant = round(at.astimezone(UTC).timestamp() * 10**6) * 1000
        count = len(snapshot.sessions)
        row = bisect_left(range(count), instant, key=lambda one: snapshot.at(one, "close").clock)
    if row >= len(snapshot.sessions) or day < snapshot.sessions[0] - np.timedelta64(7, "D"):
        holds = f"{snapshot.manifest.first_session} to {snapshot.manifest.last_session}"
        outside = (
            f"{log.name}: a trade of {fill.day} is outside the prices of '{snapshot.name}', {holds}"
        )
        raise UserError(outside, hint="give prices for the whole period, or leave those rows out")
    return row


def _booked(
    log: TradeLog,
    rows: Sequence[int],
    snapshot: Snapshot,
    window: range,
    cash: float,
    notes: list[str],
) -> Iterator[StepRecord]:
    """Yield the record of every session of an account.

    Each session applies corporate actions before the open, the fills of the log, and the mark at
    the close.
    """
    exchange, ledger = Exchange(_VENUE), Ledger(cash, terms=_VENUE.terms)
    by_row: dict[int, list[Fill]] = {}
    for row, fill in zip(rows, log.fills, strict=True):
        by_row.setdefault(row, []).append(fill)
    outside = 0
    large = 0
    idle = 0
    for step, row in enumerate(window):
        before, bars = snapshot.at(row, "pre_open"), snapshot.at(row, "close").session_bars()
        opening = exchange.open_session(
            bars, before.todays_actions(), ledger, delisted=before.delisted_now()
        )
        fills, events, orders = by_row.get(row, []), list[Event](), list[tuple[str, Order]]()
        for n, fill in enumerate(fills):
            if not log.decisions:
                outside += _outside(fill, bars, log)
                large += (
                    0.0 < float(bars.volume[bars.symbols.index(fill.symbol)]) < abs(fill.quantity)
                )
                emit(_event(f"{step}.{n}", fill), ledger, events)
            elif fill.side and (fill.side > 0) != (ledger.quantity(fill.symbol) > 0.0):
                order = Order(symbol=fill.symbol, amount=max(0.0, fill.side), unit="target_weight")
                orders.append((f"{step}.{n}", order))
        events += exchange.execute(orders, bars, ledger)
        idle += sum(isinstance(event, Rejected) for event in events)
        events += exchange.close_session(bars, ledger)
        yield StepRecord(
            step=step,
            session=bars.session,
            decided_at=before.clock,
            opening=(ledger.deposit, *opening) if step == 0 else tuple(opening),
            decision=Decision(),
            events=tuple(events),
        )
    if outside:
        notes.append(
            f"{outside} of {len(log.fills)} fills are outside their day's range in "
            f"'{snapshot.name}'"
        )
    if large:
        notes.append(
            f"{large} of {len(log.fills)} fills exceed the day's volume in '{snapshot.name}'"
        )
    if log.decisions:
        notes.append(
            "a decision is executed at the open after its day, with the whole account, without "
            "costs"
        )
    if idle:
        notes.append(f"{idle} decisions could not be executed, because there was no price")


def _event(order: str, fill: Fill) -> Filled:
    cash = -(fill.quantity * fill.price) - fill.fee
    return Filled(order, fill.symbol, fill.quantity, fill.price, fill.price, fill.fee, 0.0, cash)


def _outside(fill: Fill, bars: SessionBars, log: TradeLog) -> bool:
    """Return whether a fill is outside its day's price range.

    Raises :class:`UserError` if the price must be from a different instrument.
    """
    if fill.symbol not in bars.symbols:
        raise UserError(
            f"{log.name}: {fill.symbol} is not listed on {bars.session}", hint="give its prices"
        )
    column = bars.symbols.index(fill.symbol)
    if bars.instruments[column].kind == "future":
        raise UserError(
            f"{log.name} holds futures", hint="leave them out, or give the account's returns"
        )
    low, high = float(bars.low[column]), float(bars.high[column])
    if fill.price > _OTHER_PRICE * high or fill.price < low / _OTHER_PRICE:
        traded = f"{log.name}: {fill.symbol} traded at {fill.price:g} on {bars.session}"
        hint = (
            "give prices as they were traded (not adjusted for later splits), in the log's currency"
        )
        raise UserError(f"{traded}, its prices are {low:g} to {high:g}", hint=hint)
    return fill.price > high * (1.0 + _OUTSIDE) or fill.price < low * (1.0 - _OUTSIDE)
