"""The information stream: what agents may read, where it came from, and what was held back and why.

``stream_publisher`` plugs into a season's runner; ``collect`` fills the inbox of a live one. Pages read through
``quality``, ``items`` and ``item_page``; experts speak through ``confirm``.
"""

from __future__ import annotations

from tradeassay.arena.stream.checks import check_summary
from tradeassay.arena.stream.items import CHECKS, ItemCheck, RawItem, StreamItem
from tradeassay.arena.stream.publishing import stream_publisher
from tradeassay.arena.stream.quality import (
    VERDICTS,
    CheckQuality,
    ItemReview,
    Miss,
    SourceQuality,
    StreamQuality,
    confirm,
    expert_agreement,
    labelled_items,
    measure_checks,
    quality,
    reviews,
)
from tradeassay.arena.stream.reading import ItemPage, ItemsWanted, Provenance, count_items, item_page, items

__all__ = [
    "CHECKS",
    "VERDICTS",
    "CheckQuality",
    "ItemCheck",
    "ItemPage",
    "ItemReview",
    "ItemsWanted",
    "Miss",
    "Provenance",
    "RawItem",
    "SourceQuality",
    "StreamItem",
    "StreamQuality",
    "check_summary",
    "confirm",
    "count_items",
    "expert_agreement",
    "item_page",
    "items",
    "labelled_items",
    "measure_checks",
    "quality",
    "reviews",
    "stream_publisher",
]
