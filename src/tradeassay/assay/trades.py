"""An account made of a log of trades: fills are booked in the house's ledger, days priced by a data set."""

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

from tradeassay.account import Exchange, Ledger
from tradeassay.account.end_of_day import emit
from tradeassay.account.limits import Lots
from tradeassay.account.margin import Margin
from tradeassay.account.settlement import Shorting
from tradeassay.account.venue import Venue
from tradeassay.assay.attribute import account_days
from tradeassay.assay.attribution import Account, Attribution, Taking, build
from tradeassay.assay.luck.luck import StatedTrades
from tradeassay.assay.own import OwnAccount
from tradeassay.core.errors import DataRefused, UserError
from tradeassay.core.events import Event, Filled, MarginCalled, Marked, Rejected, StepRecord
from tradeassay.core.measure import plain_sum
from tradeassay.core.orders import Decision, Order
from tradeassay.core.registry import did_you_mean
from tradeassay.core.view import SessionBars
from tradeassay.data import Snapshot, import_files, load_dataset
from tradeassay.data.names import ashare_code
from tradeassay.data.tables.account import OwnSeries
from tradeassay.data.tables.bars import ZONES
from tradeassay.data.tables.columns import FilesConfig
from tradeassay.data.tables.trades import Fill, TradeLog, pair_of
from tradeassay.metrics import BootstrapConfig

_VENUE = Venue(
    id="trade-log",
    title="what a log says was traded: no rule but the account's identities",
    currency="",
    lots=Lots(lot=1e-8, step=1e-8),
    margin=Margin(initial=1.0, maintenance_long=0.0, maintenance_short=0.0, interest_per_year=0.0),
    shorting=Shorting(allowed=True),
)
_PLENTY = 1e9
"""With this an account can pay for everything; a list of decisions does not depend on what it begins with."""
_OTHER_PRICE = 1.5
"""A fill this far from its day's range was at the price of something else."""
_OUTSIDE = 0.005
OWN_PRICES = (
    "no prices were given: between its trades a holding counts at the price at which it last traded, so that the "
    "returns come late and hang on when it traded; --dataset or --prices gives what it was worth"
)


@contextmanager
def priced(own: OwnAccount) -> Iterator[Snapshot | None]:
    """Open the prices of a log: a data set, or a file that is read as one and forgotten; None without either."""
    if own.prices is None:
        yield None if own.dataset is None else own.opened(own.dataset)
        return
    with tempfile.TemporaryDirectory(prefix="tradeassay-") as folder:
        try:
            import_files(FilesConfig(path=own.prices, name="prices"), home=Path(folder))
        except DataRefused as refused:  # an import takes a calendar and accepts faults, an account does neither
            how = f"tradeassay data import {own.prices} --name NAME says how"
            raise DataRefused(refused.message, hint=f"mend or accept them ({how}), then dataset='NAME'") from None
        yield load_dataset("prices", Path(folder))


def attribute_trades(
    own: OwnAccount, log: TradeLog, snapshot: Snapshot, bootstrap: BootstrapConfig
) -> tuple[Attribution, StatedTrades]:
    """Take the account of a log apart, and say how much it held and traded. Raises :class:`UserError` for trades
    that its prices do not have."""
    log = replace(log, fills=tuple(_named(log, own.symbol, snapshot)))
    rows = [_row(fill, snapshot, log) for fill in log.fills]
    last = str(snapshot.sessions[max(rows)]) if own.until is None else own.until
    window = snapshot.rows(str(snapshot.sessions[rows[0]]), last)
    notes = list(log.notes)
    cash = _cash(own, log, lambda cash: _booked(log, rows, snapshot, window, cash, []), notes)
    records = list(_booked(log, rows, snapshot, window, cash, notes))
    query = msgspec.structs.replace(own, dataset=str(snapshot.folder))
    inputs, year = query.market((records[0].session, records[-1].session))
    days = account_days(records, inputs.symbols, inputs.futures)
    if days.ruined is not None:
        notes.append(f"the account was worth nothing or less on {days.ruined}")
    count, held = len(days.sessions), len(Ledger.replay(records).held())
    if held and own.until is None:
        notes.append(f"judged up to the last trade, with {held} names still held; --until DAY goes on from there")
    account = Account(
        source=log.name, weights=days.weights, returns=days.returns, parts=days.costs, notes=tuple(notes)
    )
    taking = Taking(convention="sound", year=year, bootstrap=bootstrap)
    held_names = (days.weights != 0.0).sum(axis=1)
    fills = [event for record in records for event in record.events if isinstance(event, Filled)]
    traded = plain_sum(abs(one.quantity) * one.price for one in fills) / 2.0 / float(days.nav.mean())
    trades = StatedTrades(
        names=max(1, round(float(held_names[held_names > 0].mean()))) if held_names.any() else 1,
        turnover=traded * year / max(1, count),
    )
    return build(inputs.until(count), account, taking)[0], trades


def own_prices(own: OwnAccount, log: TradeLog) -> OwnSeries:
    """Return what a log's account earned from one day with trades to the next, at the prices it traded at."""
    if log.decisions:
        raise UserError(f"{log.name} has no prices", hint="give dataset=NAME or prices=FILE")
    notes = list(log.notes)
    cash = _cash(own, log, lambda cash: _booked_alone(log, cash), notes)
    before, returns = cash, {}
    for ledger, record in Ledger.steps(_booked_alone(log, cash)):
        returns[record.session], before = ledger.nav() / before - 1.0, ledger.nav()
        if before <= 0.0:
            notes.append(f"the account was worth nothing or less on {record.session}")
            break
    days = np.array([*returns], dtype="datetime64[D]")
    years = max(1.0, float((days[-1] - days[0]).astype(int))) / 365.25
    year = max(1, min(365, round(len(returns) / years)))
    return OwnSeries(returns=returns, year=year, notes=(*notes, OWN_PRICES))


def _booked_alone(log: TradeLog, cash: float) -> Iterator[StepRecord]:
    """Yield the account of every day with trades, each holding marked where it last traded."""
    ledger = Ledger(cash, terms=_VENUE.terms)
    marks: dict[str, float] = {}
    for step, (day, fills) in enumerate(groupby(log.fills, key=lambda fill: fill.day)):
        events: list[Event] = []
        for n, fill in enumerate(fills):
            emit(_event(f"{step}.{n}", fill), ledger, events)
            marks[fill.symbol] = fill.price
        held = {symbol: marks[symbol] for symbol in ledger.held()}
        worth = plain_sum(ledger.quantity(symbol) * price for symbol, price in held.items())
        if ledger.cash + worth < 0.0:
            emit(MarginCalled(ledger.cash + worth, 0.0), ledger, events)
        emit(Marked(ledger.cash, worth, ledger.cash + worth, (), held), ledger, events)
        opening = (ledger.deposit,) if step == 0 else ()
        yield StepRecord(
            step=step, session=day, decided_at=0, opening=opening, decision=Decision(), events=tuple(events)
        )


def _cash(
    own: OwnAccount, log: TradeLog, booked: Callable[[float], Iterable[StepRecord]], notes: list[str]
) -> float:
    """Return what the account began with; notes say how it is known, and what was sold without being held."""
    if log.decisions:
        return own.cash_at_start or _PLENTY
    needed, short = 0.0, dict[str, None]()
    for ledger, _ in Ledger.steps(booked(_PLENTY)):
        sold = {symbol: one for symbol, one in ledger.holdings.items() if one.quantity < 0.0}
        short |= dict.fromkeys(sold)
        # What a short sale brings in is not spent, and the account answers for it with as much of its own.
        locked = plain_sum(-2.0 * one.quantity * one.cost for one in sold.values())
        needed = max(needed, _PLENTY - ledger.cash + locked)
    if short:
        names = f"{len(short)} name{'s were' if len(short) > 1 else ' was'}"
        notes.append(
            f"{names} sold beyond what the log had bought ({', '.join([*short][:3])}): that counts as a "
            "short sale; purchases before the log begins are not in it"
        )
    if own.cash_at_start is not None:
        return own.cash_at_start
    found = math.ceil(needed * 100.0) / 100.0
    notes.append(
        f"it began with {found:,.2f}: the least that pays for every day's trades (a short sale needs as much as "
        "it brings in), so that returns are as large as can be; --cash-at-start says otherwise"
    )
    return found


def _named(log: TradeLog, asked: str | None, snapshot: Snapshot) -> Iterator[Fill]:
    """Yield fills under the names that the prices have for them."""
    symbols = snapshot.at(len(snapshot.sessions) - 1, "close").symbols
    plain: dict[str, list[str]] = {}
    for symbol in symbols:
        plain.setdefault(_bare(symbol), []).append(symbol)
    found: dict[str, str] = {}
    for given in dict.fromkeys(fill.symbol for fill in log.fills):
        name = given or asked or (symbols[0] if len(symbols) == 1 else "")
        if not name:
            raise UserError(f"{log.name} does not say what was traded", hint="name it with symbol=")
        base, quote = pair_of(name)
        spelled = (name, base if quote else name, f"{base}USD" if quote else name, ashare_code(name) or name)
        exact = [name] if name in symbols else next((plain[_bare(x)] for x in spelled if _bare(x) in plain), [])
        if len(exact) != 1:
            hint = did_you_mean(name, symbols, "give the prices of everything that was traded")
            raise UserError(f"{log.name}: no name '{name}' in '{snapshot.name}'", hint=hint)
        found[given] = exact[0]
    return (replace(fill, symbol=found[fill.symbol]) for fill in log.fills)


def _bare(symbol: str) -> str:
    return re.sub(r"[^A-Z0-9]", "", symbol.upper())


def _row(fill: Fill, snapshot: Snapshot, log: TradeLog) -> int:
    """Return the session in which a fill is booked: the first that closes at its moment or later. A decision that
    names a day may have known its close: it is carried out in the session after it."""
    day = np.datetime64(fill.day)
    if log.decisions or fill.at is None:
        row = int(np.searchsorted(snapshot.sessions, day, side="right" if log.decisions else "left"))
    else:
        at = fill.at if fill.at.tzinfo is not None else fill.at.replace(tzinfo=ZoneInfo(ZONES[snapshot.calendar]))
        instant = round(at.astimezone(UTC).timestamp() * 10**6) * 1000
        count = len(snapshot.sessions)
        row = bisect_left(range(count), instant, key=lambda one: snapshot.at(one, "close").clock)
    if row >= len(snapshot.sessions) or day < snapshot.sessions[0] - np.timedelta64(7, "D"):
        holds = f"{snapshot.manifest.first_session} to {snapshot.manifest.last_session}"
        raise UserError(
            f"{log.name}: a trade of {fill.day} is outside the prices of '{snapshot.name}', {holds}",
            hint="give prices of the whole time, or leave those rows out",
        )
    return row


def _booked(
    log: TradeLog, rows: Sequence[int], snapshot: Snapshot, window: range, cash: float, notes: list[str]
) -> Iterator[StepRecord]:
    """Yield the account session by session: actions before the open, the log's fills, the mark at the close."""
    exchange, ledger = Exchange(_VENUE), Ledger(cash, terms=_VENUE.terms)
    by_row: dict[int, list[Fill]] = {}
    for row, fill in zip(rows, log.fills, strict=True):
        by_row.setdefault(row, []).append(fill)
    outside = large = idle = 0
    for step, row in enumerate(window):
        before, bars = snapshot.at(row, "pre_open"), snapshot.at(row, "close").session_bars()
        opening = exchange.open_session(bars, before.todays_actions(), ledger, delisted=before.delisted_now())
        fills, events, orders = by_row.get(row, []), list[Event](), list[tuple[str, Order]]()
        for n, fill in enumerate(fills):
            if not log.decisions:
                outside += _outside(fill, bars, log)
                large += 0.0 < float(bars.volume[bars.symbols.index(fill.symbol)]) < abs(fill.quantity)
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
        notes.append(f"{outside} of {len(log.fills)} fills are outside their day's range in '{snapshot.name}'")
    if large:
        notes.append(
            f"{large} of {len(log.fills)} fills are of more than '{snapshot.name}' says was traded that day"
        )
    if log.decisions:
        notes.append("a decision is carried out at the open after its day, with all that there is, without costs")
    if idle:
        notes.append(f"{idle} decisions could not be carried out: there was no price")


def _event(order: str, fill: Fill) -> Filled:
    cash = -(fill.quantity * fill.price) - fill.fee
    return Filled(order, fill.symbol, fill.quantity, fill.price, fill.price, fill.fee, 0.0, cash)


def _outside(fill: Fill, bars: SessionBars, log: TradeLog) -> bool:
    """Return whether a fill is outside its day's range; UserError where it is the price of something else."""
    if fill.symbol not in bars.symbols:
        raise UserError(f"{log.name}: {fill.symbol} is not listed on {bars.session}", hint="give its prices")
    column = bars.symbols.index(fill.symbol)
    if bars.instruments[column].kind == "future":
        raise UserError(f"{log.name} holds futures", hint="leave them out, or give the account's returns")
    low, high = float(bars.low[column]), float(bars.high[column])
    if fill.price > _OTHER_PRICE * high or fill.price < low / _OTHER_PRICE:
        raise UserError(
            f"{log.name}: {fill.symbol} traded at {fill.price:g} on {bars.session}, its prices are {low:g} to "
            f"{high:g}",
            hint="give prices as they were traded (not adjusted for later splits), in the log's currency",
        )
    return fill.price > high * (1.0 + _OUTSIDE) or fill.price < low * (1.0 - _OUTSIDE)
