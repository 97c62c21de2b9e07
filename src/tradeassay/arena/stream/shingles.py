"""How alike are two texts in their words? Runs of two words, as sets."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

_LEAST = 6
"""Shingles a text needs before being within another means anything."""

_WORD = re.compile(r"[a-z0-9À-ɏ]+(?:[.,]\d+)*%?|[\u3400-\u9fff]")
_FURNITURE = re.compile(
    r"^(?:recap|update\s?\d*|breaking|in case you missed it|correction|快讯|最新|更新)\s*:\s*"
    r"|\s*-\s*what we know\s*$",
    re.I | re.M,
)
_SMALL = frozenset(
    "a an the of to in on at for and or as its it is was were has have had that by with said".split()
)


@lru_cache(maxsize=4096)
def shingles(text: str) -> frozenset[tuple[str, ...]]:
    """Return the runs of two telling words of a text; Chinese is cut into characters."""
    plain = _FURNITURE.sub("", text.lower())
    words = [word for word in _WORD.findall(plain) if word not in _SMALL]
    if len(words) < 2:
        return frozenset({tuple(words)})
    return frozenset(pairwise(words))


def similarity(one: str, other: str) -> tuple[float, float]:
    """Return (Jaccard similarity, share of the smaller set inside the larger one)."""
    a, b = shingles(one), shingles(other)
    both = len(a & b)
    smaller = min(len(a), len(b))
    return both / len(a | b), both / smaller if smaller >= _LEAST else 0.0
