"""Power by simulation: the house's own test on made-up agents whose skill is known."""

from __future__ import annotations

import math

import numpy as np

from tradeassay.core.measure import Measure
from tradeassay.metrics.baseline import compare_to_baseline
from tradeassay.metrics.bootstrap import BootstrapConfig
from tradeassay.metrics.power import Design
from tradeassay.metrics.rates import rate_measure
from tradeassay.metrics.returns import growth

DRAWS = BootstrapConfig(draws=100)
_SPREAD = 0.005
"""Standard deviation of an active return in the simulation; the result does not depend on it."""


def simulated_power(ir: float, design: Design, *, worlds: int = 200, seed: int = 0) -> Measure:
    """Return how often :func:`compare_to_baseline` finds agents with a true information ratio of ``ir``.

    Active returns are a first-order autoregression with the design's inflation, and share as much between seeds as
    the design says; the market they are added to is noise that both sides share. An ``ir`` of 0 gives the rate of
    false alarms. The interval is Wilson's, over ``worlds``.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    carry = (design.inflation - 1.0) / (design.inflation + 1.0)
    alarm = (1.0 - design.level) / design.comparisons
    shared = design.seed_correlation
    found = 0
    for _ in range(worlds):
        common, own = _series(rng, 1, design.sessions, carry), _series(rng, design.seeds, design.sessions, carry)
        active = _SPREAD * (math.sqrt(shared) * common + math.sqrt(1.0 - shared) * own)
        active += ir / math.sqrt(design.periods_per_year) * _SPREAD
        market = rng.normal(0.0003, 0.01, design.sessions)
        verdict = compare_to_baseline(growth(market + active), growth(market), bootstrap=DRAWS)
        found += verdict.p_value is not None and verdict.p_value <= alarm
    return rate_measure(found, worlds, nothing="no world was simulated")


def _series(
    rng: np.random.Generator, count: int, n: int, carry: float
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return unit-variance autoregressions of shape (count, n), from their stationary law."""
    noise = rng.normal(size=(count, n))
    if carry == 0.0:
        return noise
    series = np.empty((count, n))
    series[:, 0] = noise[:, 0]
    scale = math.sqrt(1.0 - carry * carry)
    for t in range(1, n):
        series[:, t] = carry * series[:, t - 1] + scale * noise[:, t]
    return series
