"""Is it the same story again? Word shingles, compared exactly; a changed figure makes another story.

The windows are small (one asset, a few days), so sets are compared as they are instead of being sketched.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from functools import lru_cache

from tradeassay.arena.stream.checks import dates, numbers
from tradeassay.arena.stream.checks.claims import claims

ALIKE = 0.5
"""Jaccard similarity of shingles from which two texts tell one story."""

WITHIN = 0.8
"""Share of the shorter text's shingles in the longer one from which it is an abridged copy."""

_LEAST = 6
"""Shingles a text needs before being within another means anything."""

_WORD = re.compile(r"[a-z0-9À-ɏ]+(?:[.,]\d+)*%?|[\u3400-\u9fff]")
_FURNITURE = re.compile(
    r"^(?:recap|update\s?\d*|breaking|in case you missed it|correction|快讯|最新|更新)\s*:\s*|\s*-\s*what we know\s*$",
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
    return frozenset(zip(words, words[1:], strict=False))


def similarity(one: str, other: str) -> tuple[float, float]:
    """Return (Jaccard similarity, share of the smaller set inside the larger one)."""
    a, b = shingles(one), shingles(other)
    both = len(a & b)
    smaller = min(len(a), len(b))
    return both / len(a | b), both / smaller if smaller >= _LEAST else 0.0


def same_story(one: str, other: str, published: date) -> bool:
    """Return whether two texts tell the same story: alike in words, and not differing in a figure or a date."""
    jaccard, within = similarity(one, other)
    if jaccard < ALIKE and within < WITHIN:
        return False
    return _same_facts(one, other, published)


def first_of(texts: Sequence[str], text: str, published: date) -> int | None:
    """Return the place of the earliest text that tells the same story, or None."""
    return next((place for place, other in enumerate(texts) if same_story(other, text, published)), None)


def _same_facts(one: str, other: str, published: date) -> bool:
    """The figures and dates of one text must all be in the other; directions must not be opposite."""
    first, second = claims(one, published), claims(other, published)
    if len(first) > len(second):
        first, second = second, first
    units = frozenset(claim.number.unit for claim in second)
    for claim in first:
        same = [
            c
            for c in second
            if numbers.agree(claim.number, c.number, units) or _agree_back(claim.number, c.number)
        ]
        if not same:
            return False
        if claim.direction and all(c.direction == -claim.direction for c in same):
            return False
    return _same_days(one, other, published)


def _agree_back(one: numbers.Number, other: numbers.Number) -> bool:
    return numbers.agree(other, one, frozenset({one.unit}))


def _same_days(one: str, other: str, published: date) -> bool:
    """Days of the text with fewer of them must be in the other; relative words depend on when it came out."""
    found = [
        {(f.year, f.month, f.day) for f in dates.find(text, published) if f.day and any(map(str.isdigit, f.words))}
        for text in (one, other)
    ]
    fewer, more = sorted(found, key=len)
    return fewer <= more
