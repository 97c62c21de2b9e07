"""The account, its performance, and the headlines, as a model is shown them."""

import math
from collections.abc import Iterable

import msgspec

from tradeassay.benchmarks.ktdfin.desk import Desk
from tradeassay.benchmarks.ktdfin.wire import Day, Prose, Stock, rounded
from tradeassay.core.events import Event, Filled, Rejected, Trimmed
from tradeassay.core.time import DAY, moment
from tradeassay.core.view import Position


class PositionShown(msgspec.Struct, frozen=True, kw_only=True):
    """A holding. ``sellable`` leaves out what T+1 locks; ``profit`` is against the average price paid."""

    stock_id: Stock
    board: str
    shares: float
    sellable: float
    price: float | None
    value: float
    weight: float
    profit: float | None
    held_days: int


class AccountShown(msgspec.Struct, frozen=True, kw_only=True):
    """Cash, value and holdings."""

    cash: float
    nav: float
    cash_ratio: float
    positions: tuple[PositionShown, ...]


class FillShown(msgspec.Struct, frozen=True, kw_only=True):
    """A trade of the last session."""

    stock_id: Stock
    side: str
    shares: float
    price: float | None
    costs: float


class RefusalShown(msgspec.Struct, frozen=True, kw_only=True):
    """An order of the last session that was refused or cut, and why."""

    stock_id: Stock
    reason: str


class Performance(msgspec.Struct, frozen=True, kw_only=True):
    """Returns since the start and over the last session, and the index's over the same sessions."""

    total_return: float | None
    index_return: float | None
    excess_return: float | None
    last_return: float | None
    last_index_return: float | None


def show_account(desk: Desk) -> AccountShown:
    """Return today's account."""
    account = desk.account
    return AccountShown(
        cash=desk.money(account.cash),
        nav=desk.money(account.nav),
        cash_ratio=desk.share(account.cash / account.nav) if account.nav > 0 else 0.0,
        positions=tuple(_position(desk, position) for position in account.positions.values()),
    )


def _position(desk: Desk, position: Position) -> PositionShown:
    stock = Stock(position.symbol)
    column = desk.column(stock)
    return PositionShown(
        stock_id=stock,
        board=desk.roster.boards[column],
        shares=desk.shares_shown(column, position.quantity),
        sellable=desk.shares_shown(column, position.sellable),
        price=desk.price(column, position.mark, "close"),
        value=desk.money(position.value),
        weight=desk.share(desk.account.weight(position.symbol)),
        profit=desk.share(position.mark / position.cost - 1.0) if position.cost > 0 else None,
        held_days=position.held,
    )


def show_fills(desk: Desk, events: Iterable[Event]) -> tuple[FillShown, ...]:
    """Return the trades among events."""
    shown = []
    for event in events:
        if isinstance(event, Filled):
            column = desk.column(Stock(event.symbol))
            shown.append(
                FillShown(
                    stock_id=Stock(event.symbol),
                    side="BUY" if event.quantity > 0 else "SELL",
                    shares=desk.shares_shown(column, abs(event.quantity)),
                    price=desk.price(column, event.price, "open"),
                    costs=desk.money(event.fee + event.tax),
                )
            )
    return tuple(shown)


def show_refusals(desk: Desk, events: Iterable[Event]) -> tuple[RefusalShown, ...]:
    """Return the refused and cut orders among events, without those that would have changed nothing."""
    return tuple(
        RefusalShown(stock_id=Stock(event.symbol), reason=event.reason)
        for event in events
        if isinstance(event, Rejected | Trimmed) and event.reason != "no_change"
    )


def show_performance(desk: Desk, started: float | None, yesterday: float | None) -> Performance:
    """Return the account beside the index.

    ``started`` is the index level before the first session of the episode, ``yesterday`` the account's value a
    session ago; None where unknown.
    """
    account = desk.account
    total = account.nav / account.initial - 1.0 if account.initial > 0 else float("nan")
    levels = desk.index_levels(2).tolist()
    market = levels[-1] / started - 1.0 if levels and started else float("nan")
    last_market = levels[-1] / levels[-2] - 1.0 if len(levels) == 2 and yesterday else float("nan")
    return Performance(
        total_return=_part(desk, total),
        index_return=rounded(market),
        excess_return=_part(desk, total - market),
        last_return=_part(desk, account.nav / yesterday - 1.0) if yesterday else None,
        last_index_return=rounded(last_market),
    )


def _part(desk: Desk, value: float) -> float | None:
    return desk.share(value) if math.isfinite(value) else None


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """One item: the day it appeared, the names it is about (those in reach only) and its title."""

    day: Day
    stock_ids: tuple[Stock, ...]
    title: Prose


def headlines(desk: Desk, stock: Stock | None) -> tuple[Headline, ...]:
    """Return the newest items about a stock, or about the market as a whole; nothing later than the clock."""
    since = desk.view.clock - desk.config.news_days * DAY
    most = desk.config.news_items
    if stock is not None:
        items = desk.view.news(since, symbols=(stock.symbol,), limit=most)
    else:
        items = tuple(item for item in desk.view.news(since, limit=50 * most) if not item.symbols)[:most]
    return tuple(
        Headline(
            day=Day(moment(item.published_at).date().isoformat()),
            stock_ids=tuple(Stock(symbol) for symbol in item.symbols if desk.in_reach(Stock(symbol))),
            title=Prose(item.title),
        )
        for item in items
    )
