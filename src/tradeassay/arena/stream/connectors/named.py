"""The live sources that a season's file names."""

from __future__ import annotations

from urllib.parse import urlsplit

from tradeassay.arena.season import Asset, Season
from tradeassay.arena.stream.connectors.collecting import Connector, Fetch
from tradeassay.arena.stream.connectors.edgar import EdgarFilings
from tradeassay.arena.stream.connectors.rss import RssNews
from tradeassay.arena.stream.connectors.web import WebReader
from tradeassay.core.errors import UserError


def connectors_of(season: Season, fetch: Fetch | None = None) -> tuple[Connector, ...]:
    """Return a season's live sources: every feed for every asset, and EDGAR for those with a number there.

    Raises :class:`UserError` for an address that is none, and for filings that are wanted of nobody.
    """
    found: list[Connector] = []
    reader = fetch or WebReader()
    for url in season.news.rss:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UserError(f"[news] rss: '{url[:80]}' is not a web address", hint="write https://host/feed.xml")
        for asset in season.assets:
            found.append(
                RssNews(
                    asset=asset.symbol,
                    url=url,
                    source=parts.hostname,
                    words=_words(asset),
                    zone=season.news.zone,
                    fetch=reader,
                )
            )
    if season.filings.edgar:
        named = [asset for asset in season.assets if asset.cik is not None]
        if not named:
            raise UserError("[filings] edgar: no asset has a cik", hint="add cik = 1318605 to TSLA, say")
        reader = fetch or WebReader(f"tradeassay {season.filings.contact}")
        address = season.filings.address.rstrip("/")
        found += [
            EdgarFilings(asset=a.symbol, cik=a.cik, fetch=reader, address=address)
            for a in named
            if a.cik is not None
        ]
    return tuple(found)


def _words(asset: Asset) -> tuple[str, ...]:
    """Return what an item about an asset holds: its symbol (the coin alone of a pair) or one of its names."""
    return (asset.symbol.partition("/")[0], *asset.names)
