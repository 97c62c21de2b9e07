"""Two texts about one asset: do they tell the same story, or contradict each other?

Texts that tell one story share most of their words, and so do texts that say the opposite: "inflows" for
"outflows", 批准 for 否决. So the places where the words differ are looked at before two items are merged. A missed
repeat shows agents something twice; a wrong merge hides news from them, so a doubt counts against merging. A
contradiction about one quantity is flagged, never decided.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import date
from functools import lru_cache
from typing import Any

from tradeassay.arena.stream.checks import names_of
from tradeassay.arena.stream.facts import Claim, agree, claims, find_mentions, named_days, pattern
from tradeassay.arena.stream.items import HAN, sentences, vocabulary
from tradeassay.core.errors import require

REPEAT_DAYS = 14
"""A story is told again within days. The same words a month later ("beats estimates") are another event."""

ALIKE, ONE_THING = 80.0, 60.0
"""Similarity (0 to 100) at which two texts may be one story, and two first sentences are about one thing."""

EXCHANGED, HAN_EXCHANGED = 3, 4
"""How many telling words (Chinese: characters) may be exchanged in one place; more is another wording."""

_WORD = re.compile(r"[a-z0-9À-ɏ]+(?:['’][a-z]+)?(?:[.,]\d+)*%?|[\u3400-\u9fff]")
_FURNITURE = re.compile(
    r"^(?:recap|update\s?\d*|breaking|in case you missed it|correction|快讯|最新|更新)\s*:\s*"
    r"|\s*-\s*what we know\s*$",
    re.I | re.M,
)
_SMALL = frozenset(vocabulary()["small"])
_NEUTRAL = frozenset(part for word in vocabulary()["neutral"] for part in (word if HAN.match(word) else (word,)))


@lru_cache(maxsize=4096)
def _words(text: str) -> tuple[str, ...]:
    """Return the words, figures and Chinese characters of a text, without what wires put around a repeat."""
    return tuple(_WORD.findall(_FURNITURE.sub("", text.lower().replace("’", "'"))))


@lru_cache(maxsize=4096)
def _telling(text: str) -> str:
    return " ".join(word for word in _words(text) if word not in _SMALL)


def similarity(one: str, other: str) -> float:
    """Return how many words two texts share, 0 to 100; a text that is part of the other has 100."""
    fuzz: Any = require("rapidfuzz.fuzz", "arena")
    return float(fuzz.token_set_ratio(_telling(one), _telling(other)))


def same_story(one: str, other: str, published: date) -> bool:
    """Return whether two texts tell the same story: alike in words, not differing in a figure, a date or a denial,
    and no telling word exchanged for another.
    """
    return (
        similarity(one, other) >= ALIKE
        and _same_figures(one, other, published)
        and _same_days(one, other, published)
        and _negations(one) == _negations(other)
        and not _exchanged(_words(one), _words(other))
    )


def _same_figures(one: str, other: str, published: date) -> bool:
    """The figures of the text with fewer of them must be in the other, and must not go the other way.

    A text that was cut short has the other's figures; the last may have lost its unit ("rose by 75", "August 27").
    """
    short, whole = sorted((_words(one), _words(other)), key=len)
    if whole[: len(short)] == short:
        return True
    fewer, more = sorted((claims(one, published), claims(other, published)), key=len)
    units = frozenset(claim.number.unit for claim in more)
    for claim in fewer:
        unit = frozenset({claim.number.unit})
        same = [c for c in more if agree(claim.number, c.number, units) or agree(c.number, claim.number, unit)]
        if not same or (claim.direction and all(c.direction == -claim.direction for c in same)):
            return False
    return True


def _same_days(one: str, other: str, published: date) -> bool:
    """Days of the text with fewer of them must be in the other; relative words depend on when it came out."""
    found = [
        {(m.year, m.month, m.day) for m in find_mentions(text, published) if m.day and re.search(r"\d", m.words)}
        for text in (one, other)
    ]
    fewer, more = sorted(found, key=len)
    return fewer <= more


def _negations(text: str) -> int:
    return len(pattern("negators").findall(_lead(text)))


def _lead(text: str) -> str:
    return " ".join(sentences(text)[:1])


def _exchanged(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether telling words stand in the place of others that are neither forms of them nor neutral.

    A story that is told again is cut, reordered or dressed up; a few words exchanged in an otherwise equal
    sentence change what is told. English words that the other text has as often were moved, not exchanged.
    """
    more, fewer = Counter(one) - Counter(other), Counter(other) - Counter(one)
    for left, right in _differences(one, other):
        han = [HAN.match(word) is not None for word in (*left, *right)]
        if all(han):
            mine, theirs = set(left) - set(right), set(right) - set(left)
        else:
            mine, theirs = {word for word in left if more[word]}, {word for word in right if fewer[word]}
            stems = {word[:4] for word in mine} & {word[:4] for word in theirs}
            mine, theirs = ({word for word in words if word[:4] not in stems} for words in (mine, theirs))
        mine, theirs = mine - _NEUTRAL, theirs - _NEUTRAL
        most = HAN_EXCHANGED if all(han) else EXCHANGED
        mixed = any(han) and not all(han)
        figures = any(word[0].isdigit() for word in mine | theirs)  # the figures have been compared already
        if mine and theirs and len(mine) <= most and len(theirs) <= most and not mixed and not figures:
            return True
    return False


def _differences(one: tuple[str, ...], other: tuple[str, ...]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the stretches of words between those that both texts have, in order."""
    indel: Any = require("rapidfuzz.distance.Indel", "arena")
    blocks = indel.editops(one, other).as_matching_blocks()
    behind = [(0, 0), *((block.a + block.size, block.b + block.size) for block in blocks)]
    between = ((one[a : block.a], other[b : block.b]) for (a, b), block in zip(behind, blocks, strict=False))
    return [(left, right) for left, right in between if left or right]


# -- contradictions ----------------------------------------------------------------------------------------------


def contradiction(one: str, other: str, published: date) -> str | None:
    """Return what two texts disagree about, or None.

    Both must speak of the same quantity, and not of different periods, yardsticks or companies. They disagree when
    they give it opposite directions, or different numbers of one unit that no rounding explains.
    """
    first, second = (next(iter(names_of(text)), None) for text in (one, other))
    if first and second and first not in other and second not in one:
        if not {word.lower() for word in first.split()} & {word.lower() for word in second.split()}:
            return None  # each begins with the name of another company
    theirs = claims(other, published)
    for claim in claims(one, published):
        rivals = [c for c in theirs if _comparable(claim, c)]
        if rivals and claim.quantity is not None and all(_differ(claim, c) for c in theirs):
            return f"{claim.quantity}: '{claim.number.words}' here, '{rivals[0].number.words}' there"
    denials = [pattern("denials").search(_lead(text)) for text in (one, other)]
    denied = next((found for found in denials if found), None)
    name = first if first == second else None
    if denied and None in denials and _one_thing(one, other, name) and not _other_days(one, other, published):
        return f"what happened: '{denied[0]}'"
    return None


def _one_thing(one: str, other: str, name: str | None) -> bool:
    """Return whether two first sentences are about one thing. The name of whom both are about says nothing of
    that: half of the other telling words of the shorter must be in the longer.
    """
    leads = [pattern("denials").sub(" ", _lead(text).replace(name or "\n", " ")) for text in (one, other)]
    told = [{word[:4] for word in _telling(lead).split() if word not in _NEUTRAL} for lead in leads]
    if name is None:
        return similarity(_lead(one), _lead(other)) >= ONE_THING
    return 2 * len(told[0] & told[1]) >= min(map(len, told)) > 0


def _other_days(one: str, other: str, published: date) -> bool:
    """Return whether both first sentences name days, and no day is in both."""
    days, others = (named_days(find_mentions(_lead(text), published)) for text in (one, other))
    return bool(days and others and not days & others)


def _comparable(one: Claim, other: Claim) -> bool:
    if one.quantity != other.quantity or one.number.unit != other.number.unit or one.other_period(other):
        return False
    # A price is another one every day: only what two items say of the same day can disagree.
    if one.other_matter(other) or (one.quantity == "price" and not one.days & other.days):
        return False
    if one.basis and other.basis and one.basis != other.basis:
        return False
    # A change ("rose 5%") and a level ("a margin of 31%") do not answer the same question.
    return bool(one.direction) == bool(other.direction) or one.number.money


def _differ(one: Claim, other: Claim) -> bool:
    if one.direction and other.direction and one.direction != other.direction:
        return True
    units = frozenset({one.number.unit, other.number.unit})
    return not (agree(one.number, other.number, units) or agree(other.number, one.number, units))
