"""Parts of a whole window: linked daily parts that sum to the total (Carino 1999), with intervals.

Daily returns compound, so plain sums of daily parts differ from the total. Each day's part is
scaled by (log(1 + r) / r) / (log(1 + R) / R), which makes the sum over days and parts exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from tradeassay.core.arrays import Floats, Ints
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.anytime import watched_interval
from tradeassay.metrics.attribution.decompose import DailyParts
from tradeassay.metrics.cosine import cosine_interval, growth_interval
from tradeassay.metrics.intervals import BootstrapConfig, significant

RUINED = "a session returned -100 % or less, where linking is not defined"


def _slope(returns: Floats) -> Floats:
    """Return log(1 + r) / r, which is 1 at 0, or NaN if r <= -1."""
    safe = np.where((returns == 0.0) | ~(returns > -1.0), 1.0, returns)
    ratio = np.where(returns == 0.0, 1.0, np.log1p(safe) / safe)
    result: Floats = np.where(returns > -1.0, ratio, np.nan)
    return result


def compounded(returns: Floats) -> Floats:
    """Return the total return along the last axis, or NaN if a return is -1 or less."""
    logs = np.log1p(np.where(returns > -1.0, returns, np.nan))
    result: Floats = np.expm1(logs.sum(axis=-1))
    return result


def link(parts: Floats, returns: Floats) -> Floats | None:
    """Return the linked sums of daily ``parts`` (..., T) over the window.

    If the parts of each day sum to its return, the linked parts sum to the total return, up to
    rounding. Returns None if a return of ``returns`` (T,) is <= -1.
    """
    if not (returns > -1.0).all():
        return None
    whole = _slope(compounded(returns))
    linked: Floats = (parts * _slope(returns)).sum(axis=-1) / whole
    return linked


def link_difference(parts: Floats, returns: Floats, benchmark: Floats) -> Floats | None:
    """Return the linked sums of daily parts of the difference ``returns`` - ``benchmark`` (T,).

    They sum to the difference of the two total returns. Returns None if either return is <= -1.
    """
    if not ((returns > -1.0).all() and (benchmark > -1.0).all()):
        return None
    daily = _gap_slope(returns, benchmark)
    whole = _gap_slope(compounded(returns), compounded(benchmark))
    linked: Floats = (parts * daily).sum(axis=-1) / whole
    return linked


def _gap_slope(one: Floats, other: Floats) -> Floats:
    """Return (log(1 + a) - log(1 + b)) / (a - b), or its limit 1 / (1 + a) if a = b."""
    gap = (one - other) / (1.0 + other)
    result: Floats = _slope(gap) / (1.0 + other)
    return result


MAIN = ("common", "style", "selection", "trading")
"""Parts that sum to the total. Single styles belong to ``style``, ``uncovered`` to
``selection``."""


class Totals(msgspec.Struct, frozen=True):
    """A window's parts by name.

    ``linked`` parts sum to the total return. If the sum is undefined, ``linked`` is None and the
    reason is given. ``intervals`` are the linked parts as measures. ``per_year`` is the mean daily
    part times the sessions of a year.
    """

    linked: dict[str, float] | None
    reason: str | None
    intervals: dict[str, Measure]
    per_year: dict[str, Measure]


def rows_of(daily: DailyParts, extra: Mapping[str, Floats] | None = None) -> dict[str, Floats]:
    """Return the daily parts by name, together with ``extra``.

    They are the total, its four parts, the single styles and the uncovered part.
    """
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
    watched: bool = False,
) -> Totals:
    """Link daily parts (:func:`rows_of`, including ``total``) and compute their intervals.

    Intervals are intervals of means at the level of ``bootstrap``
    (:mod:`tradeassay.metrics.cosine`). A part's contribution to the window is the sum of its days,
    each with its weight in the linked return. The interval of the total return is the same as on
    all other pages. With ``watched`` the intervals remain valid under repeated looks. There are no
    totals without sessions, or if a session returned -100 % or less. The reason is then given.
    """
    level, least = (bootstrap or BootstrapConfig()).level, (bootstrap or BootstrapConfig()).least
    total = rows["total"]
    if total.size == 0 or not (total > -1.0).all():
        reason = RUINED if total.size else "there are no sessions"
        none = dict.fromkeys(rows, not_scored(reason))
        return Totals(linked=None, reason=reason, intervals=none, per_year=dict(none))
    weight = _slope(total) / _slope(compounded(total))
    linked = {name: float((row * weight).sum()) for name, row in rows.items()}

    def spanned(row: Floats, scale: float, value: float) -> Measure:
        if watched:
            measure = watched_interval(row, periods_per_year=scale, level=level)
        else:
            measure = cosine_interval(
                row,
                "mean",
                periods_per_year=scale,
                level=level,
                least=least,
                rows_per_year=periods_per_year,
            )
        return replace(measure, value=significant(value), reason=None)

    window = {name: spanned(row * weight, total.size, linked[name]) for name, row in rows.items()}
    whole = growth_interval(
        total, periods=total.size, level=level, least=least, rows_per_year=periods_per_year
    )
    window["total"] = replace(whole, value=significant(linked["total"]), reason=None)
    yearly = {
        name: spanned(row, periods_per_year, float(row.mean()) * periods_per_year)
        for name, row in rows.items()
    }
    return Totals(linked=linked, reason=None, intervals=window, per_year=yearly)


# By group (Brinson and Fachler 1985): effects of choosing groups and of choosing names in them.

CASH = "cash"
_NOTHING = 1e-12
"""A smaller group weight is treated as zero: its names offset each other, and their gain is
selection."""


class GroupParts(msgspec.Struct, frozen=True):
    """``allocation``, ``selection`` and ``interaction`` for every day and group, shape (T, G).

    Their sum over groups is ``portfolio`` - ``benchmark`` (T,), both held from close to close. The
    last group is cash, which has a return of 0 and no weight in the benchmark.
    """

    groups: tuple[str, ...]
    allocation: Floats
    selection: Floats
    interaction: Floats
    portfolio: Floats
    benchmark: Floats

    def error(self) -> float:
        """Return the largest daily error of the sum of parts; 0 without days."""
        parts = (self.allocation + self.selection + self.interaction).sum(axis=1)
        return float(np.max(np.abs(parts - (self.portfolio - self.benchmark)), initial=0.0))


def brinson(
    weights: Floats, benchmark: Floats, returns: Floats, group: Ints, groups: Sequence[str]
) -> GroupParts:
    """Split a portfolio's return against a benchmark whose weights sum to 1 every day.

    ``weights``, ``benchmark`` and ``returns`` have shape (T, N). ``group`` (N,) is the index of a
    name's group in ``groups``. A group that the benchmark does not have only has an allocation
    effect. Raises :class:`UserError` for inconsistent shapes, and for a benchmark that does not sum
    to 1.
    """
    if not weights.shape == benchmark.shape == returns.shape or group.shape != weights.shape[1:]:
        raise UserError(
            "weights, benchmark and returns differ in shape", hint="give (sessions, names) for each"
        )
    if not np.allclose(benchmark.sum(axis=1), 1.0, rtol=0.0, atol=1e-9):
        raise UserError("the benchmark's weights do not sum to 1", hint="divide them by their sum")
    member = np.zeros((group.size, len(groups) + 1))
    member[np.arange(group.size), group] = 1.0
    mine, theirs = weights @ member, benchmark @ member
    gained, passive = (weights * returns) @ member, (benchmark * returns) @ member
    # Cash fills the portfolio up to 1. For a leveraged portfolio it is negative.
    mine[:, -1] = 1.0 - weights.sum(axis=1)
    theirs[:, -1] = 1.0 - benchmark.sum(axis=1)
    level = passive.sum(axis=1, keepdims=True)
    held, known = np.abs(mine) > _NOTHING, np.abs(theirs) > _NOTHING
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.where(held, gained / mine, 0.0)
        base = np.where(known, passive / theirs, own)
    base[:, -1] = 0.0
    allocation = (mine - theirs) * (base - level)
    interaction = np.where(held & known, (mine - theirs) * (own - base), 0.0)
    selection = gained - mine * base - interaction
    return GroupParts(
        groups=(*groups, CASH),
        allocation=allocation,
        selection=selection,
        interaction=interaction,
        portfolio=gained.sum(axis=1),
        benchmark=level[:, 0],
    )
