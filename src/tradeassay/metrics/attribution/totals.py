"""Parts of a whole window: daily parts linked so that they add up (Carino 1999), each with an interval.

Daily returns compound, so that sums of daily parts do not add up to the total. A day's part is therefore scaled by
(log(1 + r) / r) / (log(1 + R) / R), which makes the sum over days and parts exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats
from tradeassay.metrics.attribution.decompose import DailyParts
from tradeassay.metrics.bootstrap import BootstrapConfig, choose_block, content_seed, resamples
from tradeassay.metrics.intervals import measure_from

RUINED = "a session returned -100 % or less, where linking is not defined"


def slope(returns: Floats) -> Floats:
    """Return log(1 + r) / r, which is 1 at 0; NaN where r <= -1."""
    safe = np.where((returns == 0.0) | ~(returns > -1.0), 1.0, returns)
    ratio = np.where(returns == 0.0, 1.0, np.log1p(safe) / safe)
    result: Floats = np.where(returns > -1.0, ratio, np.nan)
    return result


def compounded(returns: Floats) -> Floats:
    """Return the total return along the last axis; NaN where a return is -1 or less."""
    logs = np.log1p(np.where(returns > -1.0, returns, np.nan))
    result: Floats = np.expm1(logs.sum(axis=-1))
    return result


def link(parts: Floats, returns: Floats) -> Floats | None:
    """Return what daily ``parts`` (..., T) give over the window, None where a return of ``returns`` (T,) is <= -1.

    If the parts of each day sum to its return, the linked parts sum to the total return, to rounding.
    """
    if not (returns > -1.0).all():
        return None
    whole = slope(compounded(returns))
    linked: Floats = (parts * slope(returns)).sum(axis=-1) / whole
    return linked


def link_difference(parts: Floats, returns: Floats, benchmark: Floats) -> Floats | None:
    """Return what daily parts of the difference ``returns`` - ``benchmark`` (T,) give over the window.

    They sum to the difference of the two total returns. None where either return is <= -1.
    """
    if not ((returns > -1.0).all() and (benchmark > -1.0).all()):
        return None
    daily = _gap_slope(returns, benchmark)
    whole = _gap_slope(compounded(returns), compounded(benchmark))
    linked: Floats = (parts * daily).sum(axis=-1) / whole
    return linked


def _gap_slope(one: Floats, other: Floats) -> Floats:
    """Return (log(1 + a) - log(1 + b)) / (a - b), which is 1 / (1 + a) where they are equal."""
    gap = (one - other) / (1.0 + other)
    result: Floats = slope(gap) / (1.0 + other)
    return result


MAIN = ("common", "style", "selection", "trading")
"""The parts that add up to the total. Styles by factor are parts of ``style``, ``uncovered`` of ``selection``."""


@dataclass(frozen=True, slots=True)
class Totals:
    """A window's parts by name. ``linked`` sum to the total return; None, with the reason, where that is
    undefined.

    ``intervals`` are the linked parts as measures, ``per_year`` the mean daily part times the sessions of a year.
    """

    linked: dict[str, float] | None
    reason: str | None
    intervals: dict[str, Measure]
    per_year: dict[str, Measure]


def rows_of(daily: DailyParts, extra: Mapping[str, Floats] | None = None) -> dict[str, Floats]:
    """Return the daily parts by name: total, the four, styles by factor, uncovered, and ``extra``."""
    rows = {
        "total": daily.total,
        "common": daily.common,
        "style": daily.style.sum(axis=1),
        "selection": daily.selection,
        "trading": daily.trading,
        "uncovered": daily.uncovered,
    }
    rows |= {f"style.{name}": daily.style[:, k] for k, name in enumerate(daily.factors)}
    return rows | dict(extra or {})


def total_parts(
    rows: Mapping[str, Floats],
    *,
    periods_per_year: int = 252,
    bootstrap: BootstrapConfig | None = None,
    intervals: bool = True,
) -> Totals:
    """Link daily parts (:func:`rows_of`, ``total`` among them) and give each its interval, or none at all.

    Sessions are resampled in blocks, all parts together, as for every measure of a value path. Without sessions,
    or with one that returned -100 % or less, there are no totals, and the reason is given.
    """
    bootstrap = bootstrap or BootstrapConfig()
    total = rows["total"]
    if total.size == 0 or not (total > -1.0).all():
        reason = RUINED if total.size else "there are no sessions"
        none = dict.fromkeys(rows, not_scored(reason))
        return Totals(linked=None, reason=reason, intervals=none, per_year=dict(none))
    parts = np.stack(list(rows.values()))
    scaled = parts * slope(total)
    sums, whole = scaled.sum(axis=1), slope(compounded(total))
    linked = {name: float(value) for name, value in zip(rows, sums / whole, strict=True)}
    means = parts.mean(axis=1) * periods_per_year
    drawn = _resampled(parts, scaled, total, bootstrap) if intervals else None
    note = (
        None
        if drawn or not intervals
        else f"no interval: {total.size} sessions, at least {bootstrap.least} are needed"
    )
    whole_window, per_year = {}, {}
    for k, name in enumerate(rows):
        seen = (None, None) if drawn is None else (drawn[0][k], drawn[1][k] * periods_per_year)
        whole_window[name] = measure_from(linked[name], seen[0], level=bootstrap.level, n=total.size, note=note)
        per_year[name] = measure_from(float(means[k]), seen[1], level=bootstrap.level, n=total.size, note=note)
    return Totals(linked=linked, reason=None, intervals=whole_window, per_year=per_year)


def _resampled(
    parts: Floats, scaled: Floats, total: Floats, config: BootstrapConfig
) -> tuple[Floats, Floats] | None:
    """Return linked parts and mean parts of every resample, shape (parts, draws); None for too few sessions."""
    n = total.size
    if n < config.least:
        return None
    block, seed = choose_block(total, config), content_seed(config, total)
    logs = np.log1p(total)
    linked, means = [], []
    for chunk in resamples(n, config.draws, block, seed):
        # A resample is a count per session, and every sum over it a product with these counts.
        flat = chunk + n * np.arange(chunk.shape[0])[:, None]
        counts = np.bincount(flat.ravel(), minlength=chunk.size).reshape(chunk.shape).astype(np.float64)
        whole = slope(np.expm1(counts @ logs))
        linked.append(scaled @ counts.T / whole)
        means.append(parts @ counts.T / n)
    return np.concatenate(linked, axis=1), np.concatenate(means, axis=1)
