"""Two texts about one asset: do they tell the same story, or contradict each other?

Texts are compared as sets of two-word runs; a changed figure makes another story, and so does, in seasons of
``ama-v1``, a word that is turned into its opposite (:mod:`~tradeassay.arena.stream.polarity`). Within the window
of a few days the sets are compared as they are; for older items a MinHash sketch (:func:`bands`) finds the
candidates. A contradiction about one quantity is flagged, never decided.
"""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise

from tradeassay.arena.stream.checks import dates, numbers
from tradeassay.arena.stream.checks.claims import Claim, claims
from tradeassay.arena.stream.checks.names import name_runs
from tradeassay.arena.stream.checks.vocabulary import pattern, vocabulary
from tradeassay.arena.stream.items import sentences
from tradeassay.arena.stream.polarity import turned

_LEAST = 6
"""Shingles a text needs before being contained in another means anything."""

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


_ONE_THING = 0.4
"""Similarity at which two first sentences count as being about one thing."""


def contradiction(one: str, other: str, published: date) -> str | None:
    """Return what two texts disagree about, or None.

    Both must speak of the same quantity, and not of different periods, yardsticks or companies. They disagree when
    they give it opposite directions, or different numbers of one unit that no rounding explains.
    """
    if _other_company(one, other):
        return None
    mine, theirs = claims(one, published), claims(other, published)
    for claim in mine:
        rivals = [c for c in theirs if _comparable(claim, c)]
        if not rivals or claim.quantity is None or any(not _differ(claim, c) for c in theirs):
            continue
        return f"{claim.quantity}: '{claim.number.words}' here, '{rivals[0].number.words}' there"
    denied = _denied(one, other)
    return None if denied is None else f"what happened: '{denied}'"


def opposite(one: str, other: str) -> bool:
    """Return whether exactly one of two texts begins by saying that a thing did not happen."""
    return (_denial(one) is None) != (_denial(other) is None)


def _denied(one: str, other: str) -> str | None:
    """Return the words of denial when two texts speak of one thing and only one of them denies it."""
    if not opposite(one, other) or max(similarity(_lead(one), _lead(other))) < _ONE_THING:
        return None
    return _denial(one) or _denial(other)


def _denial(text: str) -> str | None:
    found = pattern(vocabulary().denials).search(_lead(text))
    return None if found is None else found[0]


def _lead(text: str) -> str:
    return " ".join(sentences(text)[:1])


def _comparable(one: Claim, other: Claim) -> bool:
    if one.quantity != other.quantity or one.number.unit != other.number.unit:
        return False
    if one.basis and other.basis and one.basis != other.basis:
        return False
    if one.other_period(other):
        return False
    # A change ("rose 5%") and a level ("a margin of 31%") do not answer the same question.
    return bool(one.direction) == bool(other.direction) or one.number.money


def _differ(one: Claim, other: Claim) -> bool:
    if one.direction and other.direction and one.direction != other.direction:
        return True
    units = frozenset({one.number.unit, other.number.unit})
    return not (numbers.agree(one.number, other.number, units) or numbers.agree(other.number, one.number, units))


def _other_company(one: str, other: str) -> bool:
    """Return whether both texts begin with a company's name and not with the same one."""
    first, second = (next(iter(name_runs(text)), None) for text in (one, other))
    if first is None or second is None:
        return False
    words = {word.lower() for word in first.split()}
    return first not in other and second not in one and not words & {word.lower() for word in second.split()}


ALIKE = 0.5
"""Jaccard similarity of shingles at which two texts tell one story."""

WITHIN = 0.8
"""Share of the shorter text's shingles in the longer one at which it is an abridged copy."""


def same_story(one: str, other: str, published: date) -> bool:
    """Return whether two texts tell the same story: alike in words, and not differing in a figure or a date.

    Words that are turned into their opposites tell another story.
    """
    jaccard, within = similarity(one, other)
    if jaccard < ALIKE and within < WITHIN:
        return False
    if opposite(one, other) or not _same_facts(one, other, published):
        return False
    return turned(one, other) is None


ROWS, BANDS = 2, 16
_PRIME = (1 << 61) - 1
_SEEDS = [
    int.from_bytes(blake2b(f"minhash-v1/{n}".encode(), digest_size=8).digest(), "big") % _PRIME
    for n in range(2 * ROWS * BANDS)
]


@lru_cache(maxsize=4096)
def bands(text: str) -> tuple[int, ...]:
    """Return the sixteen keys of a text's MinHash sketch; two texts with one in common may tell one story.

    With bands of two rows half of the texts' shingles in common are found with 99 %, a third with 85 %.
    """
    pieces = [
        int.from_bytes(blake2b(" ".join(run).encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
        for run in shingles(text)
    ]
    low = [
        min((_SEEDS[2 * n] * piece + _SEEDS[2 * n + 1]) % _PRIME for piece in pieces) for n in range(ROWS * BANDS)
    ]
    made = []
    for band in range(BANDS):
        body = f"{band}/{low[band * ROWS : (band + 1) * ROWS]}".encode()
        made.append(int.from_bytes(blake2b(body, digest_size=8).digest(), "big") >> 1)  # fits a signed column
    return tuple(made)


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
