"""History of an account's value: monthly returns, rolling Sharpe ratio, and deepest drawdowns.

``path`` has shape (n + 1,) with the initial value first. ``sessions`` are n ISO dates. A path that
touches zero has no history.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from tradeassay.metrics.intervals import significant
from tradeassay.metrics.measures import drawdowns, sharpe

ROLLING = 126
"""Length of the rolling window in sessions: half a year of trading days."""
_POINTS = 160
_DEEPEST = 5


class YearOfReturns(msgspec.Struct, frozen=True, kw_only=True):
    """Returns of one year. ``months`` has twelve entries, None for a month without sessions.

    ``total`` is the compounded return.
    """

    year: str
    months: tuple[float | None, ...]
    total: float


class Drawdown(msgspec.Struct, frozen=True, kw_only=True):
    """A fall below the last peak: the sessions after the peak, of the trough and of the recovery.

    ``recovered`` is None if the account has not recovered. ``sessions`` is the length from the peak
    to the recovery or to the end.
    """

    depth: float
    first: str
    deepest: str
    recovered: str | None
    sessions: int


class AccountHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The history of an account.

    ``rolling`` pairs a session with the Sharpe ratio of the ``ROLLING`` sessions up to it. It is
    thinned.
    """

    months: tuple[YearOfReturns, ...]
    drawdowns: tuple[Drawdown, ...]
    rolling: tuple[tuple[str, float], ...] = ()


def history_of(
    sessions: Sequence[str], path: Sequence[float], periods_per_year: int
) -> AccountHistory | None:
    """Return an account's history, or None without sessions or if a value is not positive."""
    if not sessions or len(path) != len(sessions) + 1 or min(path) <= 0:
        return None
    values = np.asarray(path, dtype=np.float64)
    rolling: tuple[tuple[str, float], ...] = ()
    if len(sessions) >= 1.5 * ROLLING:
        windows = np.lib.stride_tricks.sliding_window_view(values[1:] / values[:-1] - 1.0, ROLLING)
        places = np.unique(
            np.linspace(0, len(windows) - 1, min(_POINTS, len(windows))).round().astype(int)
        )
        ratios = sharpe(windows[places], periods_per_year)
        rolling = tuple(
            (sessions[place + ROLLING - 1], significant(float(one), 4))
            for place, one in zip(places.tolist(), ratios.tolist(), strict=True)
            if np.isfinite(one)
        )
    fall = drawdowns(values)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], fall < 0.0, [False])).astype(np.int8)))
    falls = []
    for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        low = start + int(np.argmin(fall[start:end]))
        falls.append(
            Drawdown(
                depth=significant(float(fall[low]), 6),
                # Index 0 of the path is before the first session, and never below a peak.
                first=sessions[start - 1],
                deepest=sessions[low - 1],
                recovered=sessions[end - 1] if end < values.size else None,
                sessions=min(end, values.size - 1) - start + 1,
            )
        )
    deepest = tuple(sorted(falls, key=lambda one: one.depth)[:_DEEPEST])
    return AccountHistory(months=_by_month(sessions, path), drawdowns=deepest, rolling=rolling)


def _by_month(sessions: Sequence[str], path: Sequence[float]) -> tuple[YearOfReturns, ...]:
    """Return the returns by calendar month of ISO ``sessions``.

    ``path`` has the initial value first. A month's return compares its last value with the last
    value before the month.
    """
    years: dict[str, list[float | None]] = {}
    before = path[0]
    for place, session in enumerate(sessions):
        last = place + 1 == len(sessions) or sessions[place + 1][:7] != session[:7]
        if last:
            months = years.setdefault(session[:4], [None] * 12)
            months[int(session[5:7]) - 1] = float(path[place + 1] / before - 1.0)
            before = path[place + 1]
    return tuple(
        YearOfReturns(
            year=year,
            months=tuple(months),
            total=float(np.prod([1.0 + (month or 0.0) for month in months])) - 1.0,
        )
        for year, months in years.items()
    )
