"""The S&P 500 names of 2006-2021 with dated news (93 tickers) and earnings dates: a real news-driven US task."""

from __future__ import annotations

import sqlite3
import tempfile
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from tradeassay.core.errors import UNDECODABLE, SourceError
from tradeassay.core.hashing import sha256_bytes
from tradeassay.core.instruments import Fundamental, NewsItem
from tradeassay.core.time import DAY, midnight, parse_day
from tradeassay.data.catalogue.download import WheelFiles
from tradeassay.data.catalogue.entry import Built, CatalogueEntry, recipe
from tradeassay.data.catalogue.recipes import sp500_closes
from tradeassay.data.names import company_name
from tradeassay.data.panel import Panel
from tradeassay.data.tables.bars import to_utc

_replace = msgspec.structs.replace
_RENAMED = {"META": "FB", "WBD": "DISCA"}
"""Today's tickers whose company is listed under another one in the prices."""


class _Item(msgspec.Struct):
    symbol: str
    publishedDate: str
    title: str | None = None
    text: str | None = None
    site: str | None = None
    url: str | None = None


@recipe("sp500-news")
def build_sp500_news(entry: CatalogueEntry, archive: WheelFiles) -> Built:
    """Join prices, news and earnings dates."""
    panel = sp500_closes(entry, archive)
    news, earnings = entry.files[2:]
    # The price file knows tickers only: without names, no mask could hide a company in its headlines.
    listings = tuple(
        _replace(one, instrument=_replace(one.instrument, name=company_name(one.instrument.symbol)))
        for one in panel.listings
    )
    panel = replace(panel, listings=listings)
    return Built(
        replace(panel, news=_news(panel, archive, news), fundamentals=_earnings(panel, archive, earnings))
    )


def _news(panel: Panel, archive: WheelFiles, files: str) -> tuple[NewsItem, ...]:
    known = set(panel.symbols)
    last = int(panel.close_time[-1])
    found: list[tuple[str, _Item]] = []
    for name in archive.names(files):
        try:
            items = msgspec.json.decode(archive.read(name), type=list[_Item])
        except UNDECODABLE as error:
            raise SourceError(f"'{name}' in the package does not have the expected form: {error}") from error
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


def _earnings(panel: Panel, archive: WheelFiles, file: str) -> tuple[Fundamental, ...]:
    known = set(panel.symbols)
    with tempfile.TemporaryDirectory(prefix="tradeassay-") as temporary:
        path = Path(temporary) / "earnings.db"
        path.write_bytes(archive.read(file))
        connection = sqlite3.connect(path)
        try:
            rows = connection.execute("SELECT DISTINCT Ticker, Earnings_Date FROM earnings").fetchall()
        except sqlite3.Error as error:
            raise SourceError(f"'{file}' in the package does not have the expected form: {error}") from error
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
