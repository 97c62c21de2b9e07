"""The information stream: what agents may read, where it came from, and what was held back and why.

``stream_publisher`` plugs into a season's runner; ``collect`` fills the inbox of a live one. Pages read through
``quality``, ``items`` and ``item_page``; experts speak through ``confirm``.
"""

from __future__ import annotations

from tradeassay.arena.stream.checks import check_summary
from tradeassay.arena.stream.editing import stream_publisher
from tradeassay.arena.stream.items import CHECKS, ItemCheck, RawItem, StreamItem
from tradeassay.arena.stream.reviews import (
    VERDICTS,
    CheckAccuracy,
    ItemPage,
    ItemReview,
    Provenance,
    SourceQuality,
    StreamQuality,
    confirm,
    item_page,
    quality,
    reviews,
)
from tradeassay.arena.stream.store import ItemsWanted, items

__all__ = [
    "CHECKS",
    "VERDICTS",
    "CheckAccuracy",
    "ItemCheck",
    "ItemPage",
    "ItemReview",
    "ItemsWanted",
    "Provenance",
    "RawItem",
    "SourceQuality",
    "StreamItem",
    "StreamQuality",
    "check_summary",
    "confirm",
    "item_page",
    "items",
    "quality",
    "reviews",
    "stream_publisher",
]
