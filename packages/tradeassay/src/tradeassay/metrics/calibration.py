"""Test whether stated confidences match the actual share of correct orders.

``confidence`` has shape (n,) with values from 0 to 1. ``right`` has shape (n,) and is 0/1 or bool.
A NaN input gives a NaN result. Without any orders the value is NaN.

Confidences stated in one session share that session's market and are not independent. So the
intervals resample whole sessions in blocks, like all bootstrap intervals here. The expected
calibration error is never negative. It is biased upwards for few orders: with 30 orders in 10 bins
a perfect forecaster scores about 0.1.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.core.arrays import Floats, Ints
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.intervals import (
    DEFAULT,
    BootstrapConfig,
    choose_block,
    content_seed,
    measure_from,
    resamples,
)

_BINS = 10
_Right = NDArray[Any]


class Bin(msgspec.Struct, frozen=True, kw_only=True):
    """One bin of a calibration curve.

    ``confidence`` and ``accuracy`` are means, None in an empty bin.
    """

    low: float
    high: float
    n: int
    confidence: float | None
    accuracy: float | None


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """Calibration of stated confidences. ``bins`` is empty if there were no usable orders."""

    ece: Measure
    brier: Measure
    bins: tuple[Bin, ...] = ()


def brier(confidence: Floats, right: _Right) -> float:
    """Return the mean of (confidence - right) ** 2. 0 is perfect; always stating 0.5 gives 0.25."""
    confidence, hit = _checked(confidence, right)
    return float(np.mean((confidence - hit) ** 2)) if confidence.size else float("nan")


def expected_calibration_error(confidence: Floats, right: _Right, bins: int = _BINS) -> float:
    """Return the mean of abs(mean confidence - accuracy) over equal-width bins.

    Bins are weighted by their number of orders. A bin includes its lower edge. The last bin
    includes 1 too.
    """
    confidence, hit = _checked(confidence, right)
    if not confidence.size or np.isnan(confidence).any():
        return float("nan")
    # The weights of the bins cancel the division in their means. The summed gaps remain.
    gaps = np.bincount(_bin_of(confidence, bins), weights=confidence - hit, minlength=bins)
    return float(np.abs(gaps).sum() / confidence.size)


def calibration_curve(confidence: Floats, right: _Right, bins: int = _BINS) -> tuple[Bin, ...]:
    """Return the bins behind :func:`expected_calibration_error`."""
    confidence, hit = _checked(confidence, right)
    at = _bin_of(confidence, bins)
    curve = []
    for k in range(bins):
        inside = at == k
        n = int(inside.sum())
        curve.append(
            Bin(
                low=k / bins,
                high=(k + 1) / bins,
                n=n,
                confidence=float(confidence[inside].mean()) if n else None,
                accuracy=float(hit[inside].mean()) if n else None,
            )
        )
    return tuple(curve)


def calibration(
    confidence: Floats,
    right: _Right,
    session: Ints,
    *,
    bins: int = _BINS,
    bootstrap: BootstrapConfig = DEFAULT,
) -> dict[str, Measure]:
    """Return ``ece`` and ``brier`` with intervals.

    ``session`` is the session of each confidence.
    """
    confidence, hit = _checked(confidence, right)
    if not confidence.size:
        nothing = not_scored("no order with a confidence and a known next return")
        return {"ece": nothing, "brier": nothing}
    values = {
        "ece": expected_calibration_error(confidence, hit, bins),
        "brier": brier(confidence, hit),
    }
    if not np.isfinite(confidence).all():
        return {name: not_scored("a confidence is missing") for name in values}
    sessions, place = np.unique(session, return_inverse=True)
    n, count = int(confidence.size), int(sessions.size)
    if count < bootstrap.least:
        few = f"no interval: orders in {count} sessions, at least {bootstrap.least} are needed"
        return {
            name: measure_from(value, None, level=bootstrap.level, n=n, note=few)
            for name, value in values.items()
        }
    # Per session: sums of confidence - right by bin, the sum of squared errors, and the number of
    # orders.
    cells = np.bincount(
        place * bins + _bin_of(confidence, bins), confidence - hit, minlength=count * bins
    )
    gaps, orders = (
        cells.reshape(count, bins),
        np.bincount(place, minlength=count).astype(np.float64),
    )
    missed = np.bincount(place, (confidence - hit) ** 2, minlength=count)
    block = choose_block(missed / orders, bootstrap)
    drawn: dict[str, list[Floats]] = {"ece": [], "brier": []}
    for rows in resamples(count, bootstrap.draws, block, content_seed(bootstrap, confidence, hit)):
        order_counts = orders[rows].sum(axis=1)
        drawn["ece"].append(np.abs(gaps[rows].sum(axis=1)).sum(axis=-1) / order_counts)
        drawn["brier"].append(missed[rows].sum(axis=1) / order_counts)
    note = "interval over resampled sessions"
    return {
        name: measure_from(
            value, np.concatenate(drawn[name]), level=bootstrap.level, n=n, note=note
        )
        for name, value in values.items()
    }


def _bin_of(confidence: Floats, bins: int) -> Ints:
    return np.minimum((confidence * bins).astype(np.int64), bins - 1)


def _checked(confidence: Floats, right: _Right) -> tuple[Floats, Floats]:
    confidence, hit = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.float64)
    if confidence.shape != hit.shape or confidence.ndim != 1:
        raise UserError(
            f"{confidence.shape} confidences for {hit.shape} outcomes", hint="give one for each"
        )
    if ((confidence < 0) | (confidence > 1)).any():
        raise UserError("a confidence outside 0 to 1", hint="confidences are probabilities")
    return confidence, hit
