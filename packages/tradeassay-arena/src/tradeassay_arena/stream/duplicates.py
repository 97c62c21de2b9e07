"""Find items that repeat one another.

An item is a repeat only if an earlier item contains every word of its text, in order. Merging it
therefore hides nothing. Items that are only similar are marked on record, and all of them are
shown.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from tradeassay.core.errors import require
from tradeassay_arena.stream.items import RawItem

CLOSE = 90.0
"""Minimum similarity of two items that are marked as close."""

_WORD = re.compile(r"[a-z0-9À-ɏ]+(?:['’][a-z]+)?(?:[.,]\d+)*%?|[\u3400-\u9fff]|[^\W\d_]+")


@lru_cache(maxsize=4096)
def _words(text: str) -> str:
    """Return the words, figures and Chinese characters of a text, separated by single spaces."""
    return " ".join(_WORD.findall(text.lower()))


def similarity(one: RawItem, other: RawItem) -> float:
    """Return the share of words that two items have in common, from 0 to 100. An item that is part
    of the other scores 100.
    """
    fuzz: Any = require("rapidfuzz.fuzz", "arena")
    return float(fuzz.token_set_ratio(_words(one.words), _words(other.words)))


def repeats(item: RawItem, earlier: RawItem) -> bool:
    """Return whether an earlier item contains an item's text word for word."""
    words = _words(item.text or item.title)
    return bool(words) and f" {words} " in f" {_words(earlier.words)} "
