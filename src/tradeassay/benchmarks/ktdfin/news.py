"""Dated headlines, where a benchmark has news."""

from __future__ import annotations

import msgspec

from tradeassay.benchmarks.ktdfin.desk import Desk
from tradeassay.benchmarks.ktdfin.words import Day, Prose, Stock
from tradeassay.core.time import DAY, moment


class Headline(msgspec.Struct, frozen=True, kw_only=True):
    """One item: the day it appeared, whom it is about (names in reach only) and its title."""

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
