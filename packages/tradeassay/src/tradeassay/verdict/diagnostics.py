"""Tests for explanations of a return other than skill.

They are a passive portfolio, timing, the tails of the returns, a single half, day, month or name,
and many tries. They use the daily parts of the return and passive portfolios of the same market.
A coefficient of a regression over time is tested like a mean, with its influence function, by
:mod:`tradeassay.metrics.cosine`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics import (
    BootstrapConfig,
    cosine_interval,
    deflated_sharpe,
    drawdowns,
    growth,
    mean_p_value,
    significant,
)
from tradeassay.metrics.cosine import cosine_t, cosine_terms, cosine_variance
from tradeassay.metrics.horizon import TOO_SHORT
from tradeassay.metrics.staleness import Regression, lagged
from tradeassay.verdict.evidence import ALPHA, TIMING_ERROR_MULTIPLE, MeanTest
from tradeassay.verdict.record import (
    CASH,
    AccountCurve,
    Alpha,
    CapacityEvidence,
    ConcentrationEvidence,
    PassiveEvidence,
    StabilityEvidence,
    TailEvidence,
    TimingEvidence,
    TriesEvidence,
)

if TYPE_CHECKING:
    from tradeassay.verdict.attribution import Attribution

_BEST = 5
"""Number of best sessions that are left out to test whether alpha depends on few sessions."""
_STILL = 0.005
"""Annual standard deviation below which an account hardly moves."""
_TRACKED = 20
"""Minimum number of sessions to detect that an account follows a portfolio.

A test of the remaining return needs more sessions.
"""
_POINTS = 250
"""Maximum number of sessions on a drawn curve."""
_CRASH = -0.10
"""Fall of the market from a peak that counts as a crash."""
_LEAST_MOVES = 30
"""Minimum number of moves for estimating a skew."""
_RARE = -1.0
"""Skew at or below which losses are called rare and large.

A milder skew makes alpha insignificant only if alpha is barely significant anyway.
"""
_SPANS = (1, 5, 21)
"""Lengths of the moves for a skew in sessions: a day, a week, a month. The first two are tested."""
_RISES = 0.98
"""Minimum share of rows without a fall, for returns of cash."""
_CARRY = 0.01
"""Largest annual loss of cash, from a fee or from negative interest."""
_CREDITS, _REGULAR = 0.45, 0.9
"""Two minimum shares for cash whose interest is credited every week or month.

The first is the share of rows without interest. The second is the share of gaps between credits
that differ by at most a third from the median gap.
"""


def is_cash(returns: Floats, year: int) -> bool:
    """Return whether returns look like the returns of cash.

    Such returns hardly ever fall, and their autocorrelation is high.
    """
    if (
        returns.size < _TRACKED
        or float(returns.mean()) * year > 0.25
        or (returns > -max(1e-4, _CARRY / year)).mean() < _RISES
    ):
        return False
    gap = returns - returns.mean()
    whole = float(gap @ gap)
    return whole <= 1e-12 or float(gap[1:] @ gap[:-1]) / whole > 0.5


def _is_still(returns: Floats, year: int) -> bool:
    """Return whether returns hardly move, or look like cash.

    The interest of cash may be credited on every row or at regular intervals.
    """
    if float(returns.std()) * math.sqrt(year) < _STILL or is_cash(returns, year):
        return True
    credited = np.flatnonzero(returns)
    if credited.size < _TRACKED or credited.size > (1.0 - _CREDITS) * returns.size:
        return False
    if (returns[credited] < 0.0).any():
        return False
    gaps = np.diff(credited)
    usual = float(np.median(gaps))
    if float((np.abs(gaps - usual) <= usual / 3.0).mean()) < _REGULAR:
        return False
    credits = returns[credited]
    by_credit = round(year / usual)
    return float(credits.std()) * math.sqrt(by_credit) < _STILL or is_cash(credits, by_credit)


def passive_evidence(
    total: Floats,
    references: Mapping[str, Floats],
    test: MeanTest,
    *,
    lags: int,
    interest: float,
    invested: Floats | None = None,
) -> PassiveEvidence | None:
    """Return the passive portfolio that explains the account best, or None without candidates.

    ``references`` are the returns of passive portfolios by name. ``lags`` is the number of lagged
    returns in the regression. An account that hardly moves, or moves like cash, is cash if it earns
    less than ``interest`` per year. An account that never moves and was not ``invested`` on any
    session is cash at any length of its record. None for ``invested`` means unknown.
    """
    year, least = test.year, test.config.rows_needed(test.year)
    idle = invested is None or not invested.any()
    if idle and total.size > 0 and not total.any():
        return PassiveEvidence(
            portfolio=CASH, explained=1.0, beta=1.0, beyond=not_scored("it never moves")
        )
    enough = total.size >= _TRACKED and abs(float(total.mean())) * year < interest
    if enough and _is_still(total, year):
        return PassiveEvidence(
            portfolio=CASH, explained=1.0, beta=1.0, beyond=not_scored("it hardly moves")
        )
    best: tuple[str, Regression] | None = None
    for name, series in references.items():
        if (
            series.size != total.size
            or not np.ptp(series) > 0.0
            or total.size < (least if lags else _TRACKED)
        ):
            continue
        # The first sessions have no lagged values.
        candidate = Regression(total[lags:], [late[lags:] for late in lagged(series, lags)])
        if best is None or candidate.explained > best[1].explained:
            best = name, candidate
    if best is None:
        return None
    name, fit = best
    betas = fit.coefficients[1:]
    whole = float(np.abs(betas).sum())
    beyond = not_scored(TOO_SHORT)
    if total.size >= least:
        beyond = fit.coefficient(0, scale=year, level=test.level, least=least, year=year)
    return PassiveEvidence(
        portfolio=name,
        explained=fit.explained,
        beta=float(betas.sum()),
        beyond=beyond,
        lagged=float(np.abs(betas[1:]).sum()) / whole if whole > 0 else 0.0,
    )


def timing_evidence(
    total: Floats,
    benchmark: Floats,
    timing_gain: Floats | None,
    test: MeanTest,
    *,
    returns_only: bool,
) -> TimingEvidence | None:
    """Return the annual return from timing, or None without a moving benchmark or enough rows.

    ``timing_gain`` is the return of each session from being invested more or less than on average,
    None if the share invested never changed. With ``returns_only`` timing is estimated from the
    curvature of the returns.
    """
    config, year = test.config, test.year
    least = config.rows_needed(year)
    if benchmark.size != total.size or benchmark.size < least or not np.ptp(benchmark) > 0.0:
        return None
    gap = benchmark - benchmark.mean()
    quadratic = Regression(total, [benchmark, gap * gap])
    piecewise = Regression(total, [benchmark, np.maximum(benchmark, 0.0)])
    at_tries, likelihood = None, None
    if returns_only:
        variance = float(gap @ gap) / gap.size
        level = 1.0 - config.tail(test.comparisons)
        scale = variance * year
        per_year = quadratic.coefficient(2, scale=scale, level=level, least=least, year=year)
        strict = 1.0 - config.tail(max(test.comparisons, test.tries))
        at_tries = quadratic.coefficient(2, scale=scale, level=strict, least=least, year=year)
    elif timing_gain is not None:
        per_year = test.of(timing_gain, TIMING_ERROR_MULTIPLE)
        at_tries = test.at_tries(timing_gain, TIMING_ERROR_MULTIPLE)
        likelihood = test.likelihood(timing_gain)
    else:
        per_year = not_scored("the share invested never changes")
    return TimingEvidence(
        by="returns" if returns_only else "holdings",
        per_year=per_year,
        at_tries=at_tries,
        likelihood=likelihood,
        curvature=quadratic.coefficient(2, level=config.level, least=least, year=year),
        upside=piecewise.coefficient(2, level=config.level, least=least, year=year),
        intercept=quadratic.coefficient(0, scale=year, level=config.level, least=least, year=year),
    )


def tail_evidence(
    rows: Mapping[str, Floats], sessions: Sequence[str], test: MeanTest, *, returns_only: bool
) -> TailEvidence:
    """Return the skew, the worst session and the drawdown of an account, and its rare losses.

    Rare losses are tested only with ``returns_only``.
    """
    total, benchmark, alpha, year = rows["total"], rows.get("market"), rows[ALPHA], test.year
    worst = int(np.argmin(total))
    skew = _skew(total)
    crash = None
    rare = _rare_losses(alpha, year, test.config.tail(test.comparisons)) if returns_only else None
    if benchmark is not None and benchmark.size == total.size and np.ptp(benchmark) > 0.0:
        crash = bool(float(drawdowns(growth(benchmark)).min()) <= _CRASH)
    return TailEvidence(
        skew=None if skew is None else significant(skew),
        worst=significant(float(total[worst])),
        worst_session=sessions[worst] if worst < len(sessions) else None,
        drawdown=significant(float(drawdowns(growth(total)).min())),
        crash=crash,
        rare_losses=rare is not None,
        alpha_skew=None if rare is None else significant(rare[0]),
        alpha_span=None if rare is None else rare[1],
    )


def _skew(series: Floats) -> float | None:
    """Return the skewness of a series, or None if the series does not vary."""
    centred = series - series.mean()
    spread = float((centred * centred).mean())
    return float((centred**3).mean() / spread**1.5) if spread > 1e-18 else None


def _moves(series: Floats, span: int, year: int) -> list[Floats]:
    """Return sums over ``span`` sessions that do not overlap, one array per possible start.

    The list is empty for too few sessions, and for longer spans than one if rows are not days.
    """
    if series.size < _LEAST_MOVES * span or (span > 1 and year < 100):
        return []
    counts = [(series.size - first) // span for first in range(span)]
    return [
        series[first : first + count * span].reshape(count, span).sum(axis=1)
        for first, count in enumerate(counts)
    ]


def _rare_losses(alpha: Floats, year: int, error: float) -> tuple[float, int] | None:
    """Return the skew that makes a significant alpha insignificant, and its span in sessions.

    The correction is Johnson's (1978). Returns None if alpha is not significant, or if it remains
    significant. With small gains on most days and rare large losses, the mean of a short record
    looks significant because the record contains too few of the losses. ``error`` is the one-sided
    error level of alpha's test.
    """
    from scipy.special import stdtrit

    t, freedom = cosine_t(alpha, year)
    if not t > (least := -float(stdtrit(freedom, error))):
        return None
    for span in _SPANS[:2]:
        skews = [((_skew(moves) or 0.0), moves.size) for moves in _moves(alpha, span, year)]
        if not skews:
            continue
        allowed = np.mean([skew / math.sqrt(count) for skew, count in skews])
        skew = float(np.mean([skew for skew, _ in skews]))
        if skew <= _RARE and t + allowed / 6.0 * (1.0 + 2.0 * t * t) < least:
            return skew, span
    return None


def curve_of(
    total: Floats, benchmark: Floats | None, sessions: Sequence[str]
) -> AccountCurve | None:
    """Return the growth of the account and the benchmark on at most 251 sessions.

    The deepest drawdown is always included. Returns None with fewer than two sessions, or if the
    account lost everything.
    """
    if total.size < 2 or len(sessions) != total.size or not (total > -1.0).all():
        return None
    places = np.unique(np.linspace(0, total.size - 1, min(_POINTS, total.size)).round().astype(int))
    path = growth(total)
    fall = drawdowns(path)[1:]
    places = np.union1d(places, [int(np.argmin(fall))])

    def shown(values: Floats) -> tuple[float, ...]:
        return tuple(round(float(value), 5) for value in values[places])

    market = benchmark if benchmark is not None and benchmark.size == total.size else None
    return AccountCurve(
        sessions=tuple(sessions[place] for place in places.tolist()),
        account=shown(path[1:] - 1.0),
        market=None if market is None else shown(growth(market)[1:] - 1.0),
        drawdown=shown(fall),
    )


_SIZES = (0.001, 0.01, 0.1, 0.3, 1.0, 3.0)
"""Account sizes, relative to the power of ten nearest to the size at which alpha is zero."""
_LARGEST = 1e15
"""Largest account size that is examined."""
_KNOWN = 0.9
"""Minimum share of the traded value for which the usual daily traded amount is known."""


def capacity_evidence(
    alpha: Floats, attributions: Sequence[Attribution], test: MeanTest
) -> CapacityEvidence | None:
    """Return the account size at which alpha is zero, with its interval.

    Returns None if alpha is below the floor, if there are too few rows, or if the usual traded
    amounts are mostly unknown. The alpha of an account of size A is the measured alpha minus
    sqrt(A) times the impact cost of an account of size 1.
    """
    known = [
        attribution.impact_known
        for attribution in attributions
        if attribution.impact_known is not None
    ]
    if (
        len(known) < len(attributions)
        or not known
        or min(known) < _KNOWN
        or alpha.size <= test.config.rows_needed(test.year)
    ):
        return None
    rate = np.mean([attribution.impact for attribution in attributions], axis=0)
    net = alpha[:-1]
    if not (net.mean() * test.year >= test.config.floor and rate.mean() > 0.0):
        return None

    def at(size: float) -> Measure:
        return test.of(net - math.sqrt(size) * rate)

    def crossing(bound: Callable[[Measure], float | None]) -> float | None:
        """Return the size at which an end of alpha's interval is zero.

        Returns 0 if the end is not positive at any size, and None if it is positive at all sizes.
        """
        low, high = 0.0, math.log(_LARGEST)
        if (bound(at(0.0)) or 0.0) <= 0.0:
            return 0.0
        if (bound(at(_LARGEST)) or 0.0) > 0.0:
            return None
        # 40 halvings of the logarithm give more digits than are displayed.
        for _ in range(40):
            middle = (low + high) / 2.0
            low, high = (
                (middle, high) if (bound(at(math.exp(middle))) or 0.0) > 0.0 else (low, middle)
            )
        return math.exp(low)

    dies = float((net.mean() / rate.mean()) ** 2)
    sizes = tuple(size * 10.0 ** round(math.log10(dies)) for size in _SIZES)
    return CapacityEvidence(
        sizes=sizes,
        alphas=tuple(at(size) for size in sizes),
        dies=dies,
        low=crossing(lambda measure: measure.low) or 0.0,
        high=crossing(lambda measure: measure.high),
        traded=min(known),
    )


def stability_evidence(
    alpha: Floats, sessions: Sequence[str], test: MeanTest
) -> StabilityEvidence | None:
    """Return alpha by period, or None for fewer than twice the number of rows for a test."""
    config, year = test.config, test.year
    least = config.rows_needed(year)
    if alpha.size < 2 * least or not np.ptp(alpha) > 0.0:
        return None

    def mean_of(part: Floats, level: float = config.level) -> Measure:
        return cosine_interval(part, "mean", periods_per_year=year, level=level, least=least)

    middle = alpha.size // 2
    first, second = mean_of(alpha[:middle]), mean_of(alpha[middle:])
    month, rest = _best_month(alpha, sessions, year)
    return StabilityEvidence(
        first=first,
        second=second,
        latest=mean_of(alpha[-(alpha.size // 3) :]),
        without_best=mean_of(np.delete(alpha, np.argsort(alpha)[-_BEST:])),
        best_month=month,
        without_month=None if month is None else mean_of(rest),
        faded=_has_faded(alpha[:middle], alpha[middle:], year),
    )


_SUPPORTED = 0.025
"""One-sided level at which the second half contradicts the alpha of the whole record.

A constant alpha is contradicted in only 0.5 % of records, because the whole record contains the
second half.
"""
_FADED, _LITTLE_LEFT = 0.01, 0.25
"""Two conditions for calling alpha faded by comparison with the first half.

The first is the one-sided level at which the second half's alpha must be smaller. The second is the
share of the first half's alpha that the second half's alpha may not exceed.
"""


def _has_faded(first: Floats, second: Floats, year: int) -> bool:
    """Return whether the second half of alpha contradicts the whole.

    There are three cases. The second half's mean is not positive; or it is significantly smaller
    than the whole record's mean; or it is significantly smaller than the first half's mean and at
    most a quarter of it. For the second case, two standard errors are computed: the cosine error
    and the error of independent rows. The smaller bound is used, because the cosine error of few
    rows is uncertain.
    """
    from scipy.special import stdtrit

    later = float(second.mean())
    if later <= 0.0:
        return True
    n = second.size
    cosine_error = float(cosine_variance(second, year)) / n
    terms = cosine_terms(n, year)
    bounds = [
        -float(stdtrit(freedom, _SUPPORTED)) * math.sqrt(error)
        for error, freedom in ((cosine_error, terms), (float(second.var(ddof=1)) / n, n - 1))
    ]
    whole = (float(first.sum()) + float(second.sum())) / (first.size + n)
    if whole - later > min(bounds):
        return True
    if later > _LITTLE_LEFT * float(first.mean()):
        return False
    errors = float(cosine_variance(first, year)) / first.size + cosine_error
    freedom = terms + cosine_terms(first.size, year)
    reach = -float(stdtrit(freedom, _FADED)) * math.sqrt(errors)
    return float(first.mean()) - later > reach


_MONTHS = 12
"""Minimum number of calendar months for leaving out the best month."""


def _best_month(alpha: Floats, sessions: Sequence[str], year: int) -> tuple[str | None, Floats]:
    """Return the calendar month with the largest alpha, and alpha without this month's rows.

    The month is None if there are too few months, or if rows are months or longer.
    """
    if len(sessions) != alpha.size or year <= _MONTHS:
        return None, alpha
    months = np.array([session[:7] for session in sessions])
    names, places = np.unique(months, return_inverse=True)
    if names.size < _MONTHS:
        return None, alpha
    best = int(np.argmax(np.bincount(places, weights=alpha)))
    return str(names[best]), alpha[places != best]


def concentration_of(
    alpha: Floats, sessions: Sequence[str], by_name: Mapping[str, float], selection: Floats
) -> ConcentrationEvidence:
    """Return the share of alpha from the best session and of selection from the best name.

    ``by_name`` is the contribution of each name to selection.
    """
    total_alpha, total_selection = float(alpha.sum()), float(selection.sum())
    best = int(np.argmax(alpha))
    name, name_share, session, session_share = None, None, None, None
    if by_name and total_selection > 0:
        name = max(by_name, key=lambda key: by_name[key])
        name_share = by_name[name] / total_selection
    if total_alpha > 0:
        session = sessions[best] if best < len(sessions) else None
        session_share = float(alpha[best]) / total_alpha
    return ConcentrationEvidence(
        name=name, name_share=name_share, session=session, session_share=session_share
    )


def tries_evidence(
    series: Floats, alpha: Alpha, test: MeanTest, *, peers: int, tried: Tried
) -> TriesEvidence:
    """Return the number of tries, the deflated Sharpe ratio, and the haircut of the alpha ratio."""
    year, config, count = test.year, test.config, max(1.0, float(test.tries))
    moves = series.size > 2 and bool(np.ptp(series) > 0.0)
    haircut = None
    if moves and series.size >= config.rows_needed(year) and (alpha.tested.value or 0.0) > 0.0:
        haircut = _haircut(
            float(mean_p_value(series, year)), count, cosine_terms(series.size, year)
        )
    probability = not_scored("it never moves")
    if moves:
        # The annual ratios of worthless tries have this variance over the same number of rows.
        quiet = BootstrapConfig(draws=200, level=config.level)
        deflated = deflated_sharpe(
            series,
            trials=count,
            trial_variance=year / series.size,
            periods_per_year=year,
            bootstrap=quiet,
        )
        probability = deflated.probability
    return TriesEvidence(
        here=peers,
        disclosed=config.tries,
        found=tried.found,
        effective=float(tried.effective),
        deflated=probability,
        haircut=haircut,
    )


def _haircut(p: float, count: float, freedom: int) -> float | None:
    """Return the share of the alpha ratio lost by correction for tries (Harvey and Liu 2015)."""
    from scipy.special import stdtrit

    if not math.isfinite(p):
        return None
    plain = -float(stdtrit(freedom, min(1.0, max(p, 1e-300)) / 2.0))
    after = -float(stdtrit(freedom, min(1.0, max(p * count, 1e-300)) / 2.0))
    return significant(1.0 - after / plain) if 0.0 < plain < math.inf else None


@dataclass(frozen=True, slots=True)
class Tried:
    """The tries in other runs of the folder.

    ``found`` is the number of tries, ``effective`` the equivalent number of independent tries.
    """

    found: int = 0
    effective: int = 0


NO_TRIES = Tried()
