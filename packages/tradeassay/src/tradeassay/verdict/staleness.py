"""Regressions over time, and whether returns come late: stale prices and smoothed values hide market exposure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.measure import Measure
from tradeassay.metrics.cosine import cosine_terms, cosine_variance
from tradeassay.metrics.intervals import between, significant, student_reach

_LAGS = 20
"""Sessions by which a stale price may be late."""
_SESSIONS_PER_LAG = 20
"""Sessions that every tested lag needs."""


class Regression:
    """Ordinary least squares over time with intervals that allow for dependence."""

    def __init__(self, y: Floats, columns: Sequence[Floats]) -> None:
        self._design = np.column_stack([np.ones(y.size), *columns])
        self.coefficients = np.linalg.lstsq(self._design, y, rcond=1e-12)[0]
        self.rest: Floats = y - self._design @ self.coefficients
        gap = y - y.mean()
        whole = float(gap @ gap)
        self.explained = 1.0 - float(self.rest @ self.rest) / whole if whole > 0 else 0.0

    def coefficient(
        self, place: int, *, scale: float = 1.0, level: float = 0.95, least: int = 20
    ) -> Measure:
        """Return a coefficient (0 is the constant) times ``scale`` with its interval."""
        n = self.rest.size
        value = float(self.coefficients[place]) * scale
        if n < least:
            return Measure(value=significant(value), n=n, note=f"no interval: {n} sessions")
        # A coefficient is the mean of its influence function: the t interval of that mean is the coefficient's.
        # A session that pulls the line to itself hides its own error: residuals are of lines drawn without it.
        whole = np.linalg.pinv(self._design.T @ self._design / n)
        pull = np.einsum("ij,jk,ik->i", self._design, whole, self._design) / n
        influence = (self._design @ whole[place]) * self.rest / np.maximum(1.0 - pull, 0.05) * scale
        error = math.sqrt(float(cosine_variance(influence)) / n)
        if not error > 0.0:
            return Measure(
                value=significant(value), n=n, note="no interval: nothing is left to explain"
            )
        reach = student_reach(cosine_terms(n), level) * error
        return between(value, (value - reach, value + reach), level, n)


def lagged(series: Floats, lags: int) -> list[Floats]:
    """Return a series and itself 1 to ``lags`` sessions late, the missing first values being its mean."""
    found = [series]
    for lag in range(1, lags + 1):
        late = np.full(series.size, series.mean())
        late[lag:] = series[:-lag]
        found.append(late)
    return found


def stale_lags(total: Floats, market: Floats) -> int:
    """Return by how many sessions a series is late behind the market: 0 where lags explain nothing (Dimson 1979).
    A joint F test of :data:`_LAGS` lags at one in a thousand, so that a real account is rarely called stale."""
    n = total.size
    lags = min(_LAGS, n // _SESSIONS_PER_LAG)
    if lags < 1 or not np.ptp(market) > 0.0 or not np.ptp(total) > 0.0:
        return 0
    late = [series[lags:] for series in lagged(market, lags)]
    plain, full = Regression(total[lags:], late[:1]), Regression(total[lags:], late)
    inside = float(full.rest @ full.rest)
    if not inside > 0.0:
        return lags
    freedom = n - 2 * lags - 2
    ratio = (float(plain.rest @ plain.rest) - inside) / lags / (inside / freedom)
    from scipy.special import fdtrc

    return lags if float(fdtrc(lags, freedom, max(ratio, 0.0))) < 1e-3 else 0
