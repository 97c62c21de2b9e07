"""Dated index membership from a vendor that answers "who is in it on this day?"."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from tradeassay.data.calendars import Sessions
from tradeassay.data.panel import Membership

STRIDE = 20
"""Sessions between two looks; where they differ, the days between are searched for the change."""


def dated_members(index: str, sessions: Sessions, ask: Callable[[str], frozenset[str]]) -> tuple[Membership, ...]:
    """Return who was in ``index`` when, asking as few days as it takes to find every change to the day.

    A name that leaves and comes back between two looks (:data:`STRIDE` sessions) would go unseen.
    """
    known: dict[int, frozenset[str]] = {}

    def at(row: int) -> frozenset[str]:
        if row not in known:
            known[row] = ask(str(sessions.days[row]))
        return known[row]

    def search(low: int, high: int) -> None:
        if high - low > 1 and at(low) != at(high):
            middle = (low + high) // 2
            at(middle)
            search(low, middle)
            search(middle, high)

    last = sessions.days.size - 1
    looks = [*range(0, last, STRIDE), last]
    at(0)
    for low, high in pairwise(looks):
        search(low, high)
        at(high)
    return _intervals(index, sessions, known)


def _intervals(index: str, sessions: Sessions, known: dict[int, frozenset[str]]) -> tuple[Membership, ...]:
    found: list[Membership] = []
    since: dict[str, int] = {}
    for row in sorted(known):
        for symbol in known[row]:
            since.setdefault(symbol, row)
        for symbol in [name for name in since if name not in known[row]]:
            start = since.pop(symbol)
            found.append(_membership(index, symbol, sessions, start, row - 1))
    found += [_membership(index, symbol, sessions, start, None) for symbol, start in since.items()]
    return tuple(sorted(found, key=lambda one: (one.symbol, one.start)))


def _membership(index: str, symbol: str, sessions: Sessions, start: int, end: int | None) -> Membership:
    return Membership(
        index=index,
        symbol=symbol,
        start=str(sessions.days[start]),
        end=None if end is None else str(sessions.days[end]),
    )
