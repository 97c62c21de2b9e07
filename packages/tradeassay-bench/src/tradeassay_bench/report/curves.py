"""Select the points of a chart of accounts: few enough to draw, including the extremes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tradeassay.report.charts import Curve, Equity, picked

_LIMIT = 150
"""The maximum number of points per line, which always include its extremes."""


def curve_chart(
    sessions: Sequence[str],
    places: Sequence[int],
    lines: Iterable[tuple[str, str, bool, Sequence[float]]],
) -> Equity:
    """Return lines as a chart.

    A line is (id, label, whether it is the baseline, values). The values begin before the first
    session.
    """
    if not sessions:
        return Equity(days=(), curves=(), sessions=0)
    axis = [str(np.datetime64(sessions[0][:10]) - np.timedelta64(1, "D")), *sessions]
    curves = tuple(
        Curve(entry=entry, label=label, baseline=baseline, returns=picked(values, places))
        for entry, label, baseline, values in lines
    )
    days, thinned = tuple(axis[place] for place in places), len(places) <= len(sessions)
    return Equity(days=days, curves=curves, sessions=len(sessions), thinned=thinned)


def kept(n: int, paths: Sequence[Sequence[float]], limit: int = _LIMIT) -> list[int]:
    """Return the indices of the points to draw out of ``n``.

    If there are few points, all are drawn, else evenly spaced points. The highest and lowest point
    and the deepest drawdown of every path are always included, as are both ends.
    """
    if n <= limit:
        return list(range(n))
    places = {int(place) for place in np.linspace(0, n - 1, limit)}
    for path in paths:
        values = np.asarray(path, dtype=np.float64)
        if values.shape[0] == n:
            fall = values / np.maximum.accumulate(values)
            places |= {int(values.argmax()), int(values.argmin()), int(fall.argmin())}
    return sorted(places)


def since_start(path: Sequence[float]) -> list[float]:
    values = np.asarray(path, dtype=np.float64)
    return list((values / values[0] - 1.0).tolist())
