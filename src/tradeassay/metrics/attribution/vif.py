"""The VIF screen: whether the factors tell different things."""

from __future__ import annotations

import msgspec
import numpy as np

from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats
from tradeassay.metrics.attribution.cross_section import AttributionConfig, Exposures
from tradeassay.metrics.intervals import significant


class VifScreen(msgspec.Struct, frozen=True, kw_only=True):
    """Variance inflation of each factor: mean over ``sessions`` days of 1 / (1 - R squared on the others).

    ``kept`` are the factors left when the worst is dropped until none is above ``limit``; when they are all of
    them, the set is justified on this window.
    """

    vif: dict[str, Measure]
    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    limit: float
    sessions: int


def vif_screen(
    exposures: Exposures, factors: tuple[str, ...], config: AttributionConfig | None = None
) -> VifScreen:
    """Screen the factors on a window that lies before the evaluation.

    Days count that use every factor and have ``names_per_term`` names per coefficient. Without such a day no
    factor has a VIF, and none is dropped.
    """
    config = config or AttributionConfig()
    names = exposures.covered.sum(axis=1)
    good = exposures.used.all(axis=1) & (names >= config.names_per_term * (len(factors) + 1))
    days = int(good.sum())
    if not days:
        reason = "no session before the window has every factor for enough names"
        vifs = dict.fromkeys(factors, not_scored(reason))
        return VifScreen(vif=vifs, kept=factors, dropped=(), limit=config.vif_limit, sessions=0)
    correlation = _correlations(exposures.values[good], exposures.covered[good])
    first = _mean_vif(correlation)
    spread = _vifs(correlation)
    measures = {
        name: Measure(
            value=significant(float(first[k])),
            low=significant(float(np.quantile(spread[:, k], 0.025))),
            high=significant(float(np.quantile(spread[:, k], 0.975))),
            n=days,
            note="interval: the middle 95 % of the sessions",
        )
        for k, name in enumerate(factors)
    }
    left = list(range(len(factors)))
    dropped: list[str] = []
    while len(left) > 1:
        values = _mean_vif(correlation[:, left][:, :, left])
        worst = int(np.argmax(values))
        if values[worst] <= config.vif_limit:
            break
        dropped.append(factors[left.pop(worst)])
    kept = tuple(factors[k] for k in left)
    return VifScreen(vif=measures, kept=kept, dropped=tuple(dropped), limit=config.vif_limit, sessions=days)


def _correlations(values: Floats, covered: Floats) -> Floats:
    inside = covered[:, None, :].astype(np.float64)
    n = inside.sum(axis=2, keepdims=True)
    gap = (values - (values * inside).sum(axis=2, keepdims=True) / n) * inside
    scale = np.sqrt((gap * gap).sum(axis=2, keepdims=True))
    unit = gap / np.where(scale > 0, scale, 1.0)
    correlation: Floats = np.matmul(unit, unit.transpose(0, 2, 1))
    return correlation


def _vifs(correlation: Floats) -> Floats:
    """Return the diagonals of the inverses; a factor told wholly by the others gets a huge number."""
    values, vectors = np.linalg.eigh(correlation)
    inverse = 1.0 / np.maximum(values, 1e-12)
    result: Floats = np.einsum("tik,tk->ti", vectors * vectors, inverse)
    return result


def _mean_vif(correlation: Floats) -> Floats:
    mean: Floats = _vifs(correlation).mean(axis=0)
    return mean
