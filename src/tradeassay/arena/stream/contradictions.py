"""Do two texts about one asset say different things of one quantity? Flagged, never decided."""

from __future__ import annotations

from datetime import date

from tradeassay.arena.stream.checks import numbers
from tradeassay.arena.stream.checks.claims import Claim, claims
from tradeassay.arena.stream.checks.names import name_runs
from tradeassay.arena.stream.checks.vocabulary import pattern, vocabulary
from tradeassay.arena.stream.shingles import similarity
from tradeassay.arena.stream.text import sentences

_ONE_THING = 0.4
"""Similarity of two first sentences from which they speak of one thing."""


def contradiction(one: str, other: str, published: date) -> str | None:
    """Return what two texts disagree about, or None.

    Both must speak of the same quantity, and of no different period, yardstick or company. They disagree when
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
    # A change ("rose 5%") and a level ("a margin of 31%") are no answers to one question.
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
