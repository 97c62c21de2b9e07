"""Live sources of the stream: feeds of news and filings, collected before a decision, never after it."""

from __future__ import annotations

from tradeassay.arena.stream.connectors.collecting import (
    Collected,
    Connector,
    Fetch,
    collect,
    keep_collecting,
)
from tradeassay.arena.stream.connectors.edgar import EdgarFilings
from tradeassay.arena.stream.connectors.named import connectors_of
from tradeassay.arena.stream.connectors.rss import RssNews
from tradeassay.arena.stream.connectors.web import WebReader

__all__ = [
    "Collected",
    "Connector",
    "EdgarFilings",
    "Fetch",
    "RssNews",
    "WebReader",
    "collect",
    "connectors_of",
    "keep_collecting",
]
