"""The numbers of a summary must be its source's: the value, the unit, the direction, and what they are said of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from tradeassay.arena.stream.checks.claims import Claim, claims
from tradeassay.arena.stream.checks.numbers import agree


def issues(summary: str, source: str, published: date) -> tuple[str, ...]:
    """Return what is wrong with the numbers of a summary.

    A number is compared with all numbers of the source, so one that belongs to somebody else passes unless the
    quantity it is said of has other numbers there.
    """
    told = claims(source, published)
    units = frozenset(claim.number.unit for claim in told)
    found = []
    for claim in claims(summary, published):
        same = [other for other in told if agree(claim.number, other.number, units)]
        words = claim.number.words
        if not same:
            found.append(f"number '{words}' is not in the source")
        elif claim.direction and all(other.direction == -claim.direction for other in same):
            found.append(f"'{words}' goes the other way in the source")
        elif _other_period(claim, same, told):
            found.append(f"'{words}' is of another period in the source")
        elif swapped := _swapped(claim, same, told):
            found.append(f"'{words}' is the source's {swapped}, not its {claim.quantity}")
    return tuple(found)


def _other_period(claim: Claim, same: Sequence[Claim], told: Sequence[Claim]) -> bool:
    """Return whether a number is of another period; one the source does not know is left to the check of dates."""
    known = any(other.part == claim.part for other in told)
    return claim.part is not None and known and all(claim.other_period(other) for other in same)


def _swapped(claim: Claim, same: Sequence[Claim], told: Sequence[Claim]) -> str | None:
    """Return whose number it is when the source gives this quantity another number of the same unit."""
    owners = {other.quantity for other in same}
    if claim.quantity is None or claim.quantity in owners or None in owners:
        return None
    rivals = [c for c in told if c.quantity == claim.quantity and _alike(c, claim)]
    return "/".join(sorted(name for name in owners if name)) if rivals else None


def _alike(one: Claim, other: Claim) -> bool:
    """Return whether two numbers could stand for each other: one unit, or money and no unit."""
    pair = (one.number, other.number)
    return pair[0].unit == pair[1].unit or all(number.money or number.unit is None for number in pair)
