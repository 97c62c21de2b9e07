"""Returns by month and year, from a value path."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class YearOfReturns(msgspec.Struct, frozen=True, kw_only=True):
    """``months`` has twelve entries, None where no session fell into the month; ``total`` compounds them."""

    year: str
    months: tuple[float | None, ...]
    total: float


def by_month(sessions: Sequence[str], path: Sequence[float]) -> tuple[YearOfReturns, ...]:
    """Return the returns by calendar month of ISO ``sessions``; ``path`` has the initial value first.

    A month's return runs from the last value before it to its last value. Empty when a value is not positive.
    """
    if len(path) != len(sessions) + 1 or min(path) <= 0:
        return ()
    years: dict[str, list[float | None]] = {}
    before = path[0]
    for place, session in enumerate(sessions):
        last = place + 1 == len(sessions) or sessions[place + 1][:7] != session[:7]
        if last:
            months = years.setdefault(session[:4], [None] * 12)
            months[int(session[5:7]) - 1] = path[place + 1] / before - 1.0
            before = path[place + 1]
    return tuple(
        YearOfReturns(year=year, months=tuple(months), total=_compound(months)) for year, months in years.items()
    )


def _compound(months: Sequence[float | None]) -> float:
    product = 1.0
    for month in months:
        product *= 1.0 + (month or 0.0)
    return product - 1.0
