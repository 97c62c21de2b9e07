"""What a text claims: a number, of which quantity, in which direction, against what, for which period."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from functools import lru_cache

import msgspec

from tradeassay.arena.stream.checks import dates, numbers
from tradeassay.arena.stream.checks.vocabulary import pattern, vocabulary
from tradeassay.arena.stream.items import sentences

_REACH = 60
"""How far from a number its direction may stand, in characters."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One number and what it is said of. ``quantity`` and ``basis`` are None when the words are not known.

    ``direction`` is 1 for more, -1 for less, 0 when nothing is said. ``year`` and ``part`` are the period, each
    None when not told; a part is a quarter, a half, a month or the full year (``q1``, ``h2``, ``m5``, ``year``).
    """

    number: numbers.Number
    quantity: str | None
    direction: int
    basis: str | None
    year: int | None
    part: str | None

    def other_period(self, other: Claim) -> bool:
        """Return whether both state their period, and the periods differ."""
        years = self.year is not None and other.year is not None and self.year != other.year
        return years or (self.part is not None and other.part is not None and self.part != other.part)


@lru_cache(maxsize=2048)
def claims(text: str, published: date) -> tuple[Claim, ...]:
    """Return the claims of a text in order."""
    return tuple(claim for sentence in sentences(text) for claim in _of_sentence(sentence, published))


def directions(sentence: str) -> tuple[tuple[int, int, int], ...]:
    """Return (start, end, 1 or -1) of every word of direction."""
    up, down = _words()
    hits = [(m.start(), m.end(), 1) for m in up.finditer(sentence)]
    hits += [(m.start(), m.end(), -1) for m in down.finditer(sentence)]
    return tuple(sorted(hits))


def quantities(sentence: str) -> tuple[tuple[int, int, str], ...]:
    """Return (start, end, name) of every quantity that is named; of two that overlap, the longer one."""
    hits = sorted(
        ((m.start(), m.end(), name) for name, words in _quantities().items() for m in words.finditer(sentence)),
        key=lambda hit: (hit[0] - hit[1], hit[0]),
    )
    kept: list[tuple[int, int, str]] = []
    for hit in hits:
        if not any(start < hit[1] and hit[0] < end for start, end, _ in kept):
            kept.append(hit)
    return tuple(sorted(kept))


def _of_sentence(sentence: str, published: date) -> Iterator[Claim]:
    told = dates.find(sentence, published)
    found = numbers.find(sentence, tuple((fact.start, fact.end) for fact in told))
    if not found:
        return
    named, ways = quantities(sentence), directions(sentence)
    year, part = _period(sentence, told)
    for place, number in enumerate(found):
        start = found[place - 1].end if place else 0
        end = found[place + 1].start if place + 1 < len(found) else len(sentence)
        yield Claim(
            number=number,
            quantity=_quantity(sentence, number, named, start),
            direction=_direction(sentence, number, ways, start, end),
            basis=_basis(sentence[start:end]),
            year=year,
            part=part,
        )


def _period(sentence: str, told: Sequence[dates.DateFact]) -> tuple[int | None, str | None]:
    """Return the one period a sentence speaks of; a part is None when there are several or none."""
    year = next((fact.year for fact in told if fact.year and fact.day is None), None)
    found = {f"q{fact.quarter}" if fact.quarter else f"h{fact.half}" for fact in told if fact.quarter or fact.half}
    if not found and _full_year().search(sentence):
        found = {"year"}
    if not found:
        found = {f"m{fact.month}" for fact in told if fact.month is not None and fact.day is None}
    return year, found.pop() if len(found) == 1 else None


def _quantity(
    sentence: str, number: numbers.Number, named: tuple[tuple[int, int, str], ...], start: int
) -> str | None:
    """The quantity named last before the number, however far; else the first one after it in its clause."""
    before = [hit for hit in named if hit[1] <= number.start]
    # In "6% to 2 million" both numbers are of the same thing: what was named before the first one counts.
    near = [hit for hit in before if hit[0] >= start]
    if near:
        return near[-1][2]
    clause = re.split(r"[,;。]", sentence[number.end :])[0]
    behind = [hit for hit in named if number.end <= hit[0] < number.end + len(clause)]
    joined = re.search(r"^\s?(?:of|in|的|worth of|from)\b|^的", sentence[number.end :])
    if behind and (not before or joined):
        return behind[0][2]
    return before[-1][2] if before else None


def _direction(
    sentence: str, number: numbers.Number, ways: tuple[tuple[int, int, int], ...], start: int, end: int
) -> int:
    if number.value < 0:
        return -1
    before = [way for way in ways if start <= way[0] and way[1] <= number.start and number.start - way[1] < _REACH]
    behind = [way for way in ways if number.end <= way[0] < min(end, number.end + 30)]
    clause = re.split(r"[,;]| and | but | while ", sentence[number.end : end])[0]
    close = [way for way in behind if way[0] < number.end + len(clause) and way[0] - number.end <= 12]
    if close and not before:
        return close[0][2]
    if before:
        return before[-1][2]
    return behind[0][2] if behind and behind[0][0] < number.end + len(clause) else 0


def _basis(clause: str) -> str | None:
    return next((name for name, words in _bases().items() if words.search(clause)), None)


@lru_cache(maxsize=1)
def _words() -> tuple[re.Pattern[str], re.Pattern[str]]:
    return pattern(vocabulary().up), pattern(vocabulary().down)


@lru_cache(maxsize=1)
def _full_year() -> re.Pattern[str]:
    return pattern(vocabulary().full_year)


@lru_cache(maxsize=1)
def _quantities() -> dict[str, re.Pattern[str]]:
    return {name: pattern(words) for name, words in vocabulary().quantities.items()}


@lru_cache(maxsize=1)
def _bases() -> dict[str, re.Pattern[str]]:
    return {name: pattern(words) for name, words in vocabulary().bases.items()}
