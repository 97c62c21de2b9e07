"""The S&P 500 names of 2006-2021 with dated news (93 tickers) and earnings dates: a real news-driven US task."""

from __future__ import annotations

import sqlite3
import tempfile
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from tradeassay.core.errors import SourceError
from tradeassay.core.hashing import sha256_bytes
from tradeassay.core.instruments import Fundamental, NewsItem
from tradeassay.core.time import DAY, midnight, parse_day
from tradeassay.data.catalogue.download import Archive
from tradeassay.data.catalogue.entries import portfolio_backtester
from tradeassay.data.catalogue.entry import Built, Entry, Package, Recipe, catalogue
from tradeassay.data.files.bars import to_utc
from tradeassay.data.panel import Panel

_NEWS = "nasdaq_news/data/*.json"
_EARNINGS = "stocks_earnings_dates/data/earnings.db"
_RENAMED = {"META": "FB", "WBD": "DISCA"}
"""Tickers of today whose company stands under another one in the prices."""

ENTRY = Entry(
    name="sp500-news",
    title="503 S&P 500 names with news of 90 of them and earnings dates",
    packages=(
        portfolio_backtester.PACKAGE,
        Package(
            name="nasdaq-news",
            version="0.1.1",
            files=(_NEWS,),
            sha256="fd65e919a86e96bb0edaa917ee634cfc6f03915ba9ee7b9e4ce69adb5e4d15e7",
        ),
        Package(
            name="stocks-earnings-dates",
            version="0.1.9",
            files=(_EARNINGS,),
            sha256="2ad61e4311838ea567977be0bffad39af4ca9569640ec5fa4de958ef5b955e14",
        ),
    ),
    content="503 stocks, daily closes; news; earnings dates as the figure 'earnings_reported'",
    span="2006-08-31..2021-10-14; news from 2015, dense from 2019",
    columns="as portfolio-backtester; symbol, publishedDate, title, text, site, url; Ticker, Earnings_Date",
    flaws=(
        *portfolio_backtester.FLAWS,
        "news carry no time zone: New York is assumed, where their daily peak is at 9 to 10 in the morning",
        "an earnings date counts as known from the end of that day (24:00 UTC)",
    ),
    licence="packages MIT and others; prices and news texts have vendors of their own: do not pass them on",
    megabytes=57.3,
    accepts=portfolio_backtester.ENTRY.accepts,
)


class _Item(msgspec.Struct):
    symbol: str
    publishedDate: str
    title: str | None = None
    text: str | None = None
    site: str | None = None
    url: str | None = None


def build(entry: Entry, archive: Archive) -> Built:
    """Join prices, news and earnings dates."""
    panel = portfolio_backtester.make_panel(entry, archive)
    return Built(replace(panel, news=_news(panel, archive), fundamentals=_earnings(panel, archive)))


def _news(panel: Panel, archive: Archive) -> tuple[NewsItem, ...]:
    known = set(panel.symbols)
    last = int(panel.close_time[-1])
    found: list[tuple[str, _Item]] = []
    for name in archive.names(_NEWS):
        try:
            items = msgspec.json.decode(archive.read(name), type=list[_Item])
        except msgspec.DecodeError as error:
            raise SourceError(f"'{name}' in the package has another form: {error}") from error
        for item in items:
            symbol = _RENAMED.get(item.symbol, item.symbol)
            if symbol in known:
                found.append((symbol, item))
    stamps = np.array([item.publishedDate for _, item in found], dtype="datetime64[s]").astype(np.int64) * 10**9
    published = to_utc(stamps, "America/New_York").tolist()
    merged: dict[tuple[int, str, str], tuple[_Item, list[str]]] = {}
    for at, (symbol, item) in zip(published, found, strict=True):
        if at <= last:
            _, symbols = merged.setdefault((at, item.title or "", item.url or ""), (item, []))
            symbols.append(symbol)
    return tuple(
        NewsItem(
            id=sha256_bytes(f"{at}\x1f{title}\x1f{url}".encode())[:16],
            published_at=at,
            symbols=tuple(dict.fromkeys(symbols)),
            title=title,
            body=item.text or "",
            source=item.site or "",
            url=url,
        )
        for (at, title, url), (item, symbols) in merged.items()
    )


def _earnings(panel: Panel, archive: Archive) -> tuple[Fundamental, ...]:
    known = set(panel.symbols)
    with tempfile.TemporaryDirectory(prefix="tradeassay-") as temporary:
        path = Path(temporary) / "earnings.db"
        path.write_bytes(archive.read(_EARNINGS))
        connection = sqlite3.connect(path)
        try:
            rows = connection.execute("SELECT DISTINCT Ticker, Earnings_Date FROM earnings").fetchall()
        except sqlite3.Error as error:
            raise SourceError(f"'{_EARNINGS}' in the package has another form: {error}") from error
        finally:
            connection.close()
    figures = []
    for ticker, day in rows:
        symbol = _RENAMED.get(ticker, ticker)
        if symbol in known and day <= str(panel.sessions[-1]):
            figures.append(
                Fundamental(
                    symbol=symbol,
                    field="earnings_reported",
                    period_end=day,
                    known_at=midnight(parse_day(day)) + DAY,
                    value=1.0,
                )
            )
    return tuple(figures)


catalogue.add(ENTRY.name, Recipe(ENTRY, build))
