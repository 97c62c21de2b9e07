"""The points of a chart of accounts: few enough to draw, the extremes among them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tradeassay.report.charts import Curve, Equity, picked

_LIMIT = 150
"""Points of a line that are drawn; its highest and lowest and its deepest fall are always among them."""


def curve_chart(
    sessions: Sequence[str],
    places: Sequence[int],
    lines: Iterable[tuple[str, str, bool, Sequence[float]]],
) -> Equity:
    """Return lines (id, label, whether it is the baseline, values from before the first session on) as a chart."""
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
    """Return which of ``n`` points to draw: all when there are few, else evenly spaced ones.

    The highest and lowest point and the deepest drawdown of every path are always among them, as are both ends."""
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
