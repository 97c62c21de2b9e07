"""Is it the same story again? Word shingles, compared exactly; a changed figure makes another story.

The windows are small (one asset, a few days), so sets are compared as they are instead of being sketched.
"""

from __future__ import annotations

from datetime import date

from tradeassay.arena.stream.checks import dates, numbers
from tradeassay.arena.stream.checks.claims import claims
from tradeassay.arena.stream.contradictions import opposite
from tradeassay.arena.stream.shingles import similarity

ALIKE = 0.5
"""Jaccard similarity of shingles from which two texts tell one story."""

WITHIN = 0.8
"""Share of the shorter text's shingles in the longer one from which it is an abridged copy."""


def same_story(one: str, other: str, published: date) -> bool:
    """Return whether two texts tell the same story: alike in words, and not differing in a figure or a date."""
    jaccard, within = similarity(one, other)
    if jaccard < ALIKE and within < WITHIN:
        return False
    return not opposite(one, other) and _same_facts(one, other, published)


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
