"""What else a result can be made of: a passive portfolio, timing, tails, one half, one day, one name, many tries.

Everything is computed from daily parts and from the passive portfolios of the same market. Coefficients of a
regression over time are tested like means: through their influence function, by :mod:`tradeassay.metrics.cosine`.
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
    minimum_track_record,
    significant,
)
from tradeassay.metrics.cosine import cosine_t, cosine_terms
from tradeassay.verdict.evidence import EDGE, HALF, MeanTest
from tradeassay.verdict.record import (
    CASH,
    AccountCurve,
    CapacityEvidence,
    ConcentrationEvidence,
    Edge,
    PassiveEvidence,
    StabilityEvidence,
    TailEvidence,
    TimingEvidence,
    TrialsEvidence,
)
from tradeassay.verdict.staleness import Regression, lagged

if TYPE_CHECKING:
    from tradeassay.verdict.attribution import Attribution

_BEST = 5
"""Sessions that are left out to see whether an edge rests on a few."""
_STILL, _INTEREST = 0.005, 0.06
"""Yearly standard deviation below which an account does not move, and the most that cash earns in a year."""
_TRACKED = 20
"""Sessions in which it can be seen that one account follows another; what is left beyond needs more of them."""
_POINTS = 250
"""Sessions of a curve that are drawn."""
_CRASH = -0.10
_PUTS, _CALLS = (0.0, 1.0, 2.0), (0.0, 1.0)
"""How many standard deviations a market's move must be below, or above, its mean before an option pays."""
_LEAST_PAID, _LEAST_MOVES = 3, 30
"""Moves that an option must have paid for, and all moves: a session or two say nothing about its shape."""
_OPTION_LEVEL = 0.001
_DEAREST = 4.0
"""How many times what they pay on average options far from the money may cost (Coval and Shumway 2001)."""
_SPANS = (1, 5, 21)
"""Sessions over which options are sold: a day, a week, a month."""
_RISES = 0.98
"""The share of rows on which cash does not fall."""


def is_cash(returns: Floats, year: int) -> bool:
    """Return whether returns are those of cash: they hardly ever fall, and each is close to the one before."""
    if (
        returns.size < _TRACKED
        or float(returns.mean()) * year > 0.25
        or (returns > -1e-4).mean() < _RISES
    ):
        return False
    gap = returns - returns.mean()
    whole = float(gap @ gap)
    return whole <= 1e-12 or float(gap[1:] @ gap[:-1]) / whole > 0.5


def passive_evidence(
    total: Floats,
    references: Mapping[str, Floats],
    test: MeanTest,
    *,
    lags: int,
    invested: Floats | None = None,
) -> PassiveEvidence | None:
    """Return the passive portfolio that explains the account best; None without any that moves. What moves by less
    than :data:`_STILL`, or as cash does, and earns no more than interest is cash; an account that never moves and
    was never ``invested``, as far as that is known, is cash however short it is."""
    year, least = test.year, test.config.least
    idle = invested is None or not invested.any()
    if idle and total.size > 0 and not total.any():
        return PassiveEvidence(
            portfolio=CASH, explained=1.0, beta=1.0, beyond=not_scored("it never moves")
        )
    enough = total.size >= _TRACKED and abs(float(total.mean())) * year < _INTEREST
    if enough and (float(total.std()) * math.sqrt(year) < _STILL or is_cash(total, year)):
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
        # The first sessions lack what came before them.
        tried = Regression(total[lags:], [late[lags:] for late in lagged(series, lags)])
        if best is None or tried.explained > best[1].explained:
            best = name, tried
    if best is None:
        return None
    name, found = best
    betas = found.coefficients[1:]
    whole = float(np.abs(betas).sum())
    return PassiveEvidence(
        portfolio=name,
        explained=found.explained,
        beta=float(betas.sum()),
        beyond=found.coefficient(0, scale=year, level=test.level, least=least),
        lagged=float(np.abs(betas[1:]).sum()) / whole if whole > 0 else 0.0,
    )


def timing_evidence(
    total: Floats, market: Floats, claim: Floats | None, test: MeanTest, *, returns_only: bool
) -> TimingEvidence | None:
    """Return what timing was worth; None where there is no market, or too few sessions. ``claim`` is what being
    invested brought each session beyond its mean, None where that never changed."""
    config = test.config
    if market.size != total.size or market.size < config.least or not np.ptp(market) > 0.0:
        return None
    gap = market - market.mean()
    bent = Regression(total, [market, gap * gap])
    split = Regression(total, [market, np.maximum(market, 0.0)])
    if returns_only:
        variance = float(gap @ gap) / gap.size
        level = 1.0 - config.tail(test.comparisons)
        per_year = bent.coefficient(2, scale=variance * test.year, level=level, least=config.least)
    elif claim is not None:
        per_year = test.of(claim, HALF)
    else:
        per_year = not_scored("the share invested never changes")
    return TimingEvidence(
        by="returns" if returns_only else "holdings",
        per_year=per_year,
        curvature=bent.coefficient(2, level=config.level, least=config.least),
        upside=split.coefficient(2, level=config.level, least=config.least),
        intercept=bent.coefficient(0, scale=test.year, level=config.level, least=config.least),
    )


def tail_evidence(
    rows: Mapping[str, Floats], sessions: Sequence[str], test: MeanTest, *, returns_only: bool
) -> TailEvidence:
    """Return what the tails of an account look like, and whether it pays like a seller of options."""
    total, market, edge, year = rows["total"], rows.get("market"), rows[EDGE], test.year
    worst = int(np.argmin(total))
    skew = _skew(total)
    crash, like = None, False
    rare = _rare_losses(edge, year, test.config.tail(test.comparisons)) if returns_only else None
    if market is not None and market.size == total.size and np.ptp(market) > 0.0:
        crash = bool(float(drawdowns(growth(market)).min()) <= _CRASH)
        if returns_only:
            like = _sells_options(total, market, float(edge.mean()) * year, year)
    return TailEvidence(
        skew=None if skew is None else significant(skew),
        worst=significant(float(total[worst])),
        worst_session=sessions[worst] if worst < len(sessions) else None,
        drawdown=significant(float(drawdowns(growth(total)).min())),
        crash=crash,
        option_like=like,
        rare_losses=rare is not None,
        edge_skew=None if rare is None else significant(rare[0]),
        edge_span=None if rare is None else rare[1],
    )


def _skew(series: Floats) -> float | None:
    centred = series - series.mean()
    spread = float((centred * centred).mean())
    return float((centred**3).mean() / spread**1.5) if spread > 1e-18 else None


def _moves(series: Floats, span: int, year: int) -> list[Floats]:
    """Return sums over so many sessions that do not overlap, once for every session on which they may begin."""
    if series.size < _LEAST_MOVES * span or (span > 1 and year < 100):
        return []
    counts = [(series.size - first) // span for first in range(span)]
    return [
        series[first : first + count * span].reshape(count, span).sum(axis=1)
        for first, count in enumerate(counts)
    ]


def _rare_losses(edge: Floats, year: int, error: float) -> tuple[float, int] | None:
    """Return the skew that makes a certain edge uncertain once it is allowed for (Johnson 1978), and the sessions
    over which it was taken. Return None where no skew does. An account that earns a little on most days, and loses
    much on few, has a mean that looks certain until more of the losses have come than a short window holds.
    ``error`` is what the edge was tested with, on one side."""
    from scipy.special import stdtrit

    t, freedom = cosine_t(edge)
    if not t > (least := -float(stdtrit(freedom, error))):
        return None
    for span in _SPANS[:2]:
        found = [((_skew(moves) or 0.0), moves.size) for moves in _moves(edge, span, year)]
        if not found:
            continue
        allowed = np.mean([skew / math.sqrt(count) for skew, count in found])
        if t + allowed / 6.0 * (1.0 + 2.0 * t * t) < least:
            return float(np.mean([skew for skew, _ in found])), span
    return None


def _sells_options(total: Floats, market: Floats, gained: float, year: int) -> bool:
    """Return whether what is earned over a day, a week or a month falls with the square of the market's move over
    it, or with what a put or a call on it pays, for certain, and selling these may be all that was gained. Options
    end on a day of the week that nobody knows, so that sums from every day are tried. What they pay is known from
    the few moves that they paid for: errors allow for unequal ones (MacKinnon and White 1985), degrees of freedom
    are those moves, and more of them may be to come."""
    from scipy.special import gammaincinv, stdtr

    for span in _SPANS:
        for account, moved in zip(
            _moves(total, span, year), _moves(market, span, year), strict=True
        ):
            gap = moved - moved.mean()
            far = float(gap.std())
            pays = [gap * gap]
            pays += [np.maximum(-gap - times * far, 0.0) for times in _PUTS]
            pays += [np.maximum(gap - times * far, 0.0) for times in _CALLS]
            payoff = np.column_stack([one for one in pays if (one > 0.0).sum() >= _LEAST_PAID])
            paid = (payoff > 0.0).sum(axis=0)
            # What the constant and the market explain of both is taken out first: then each shape is one slope.
            line = np.column_stack(
                [np.full(gap.size, gap.size**-0.5), gap / math.sqrt(float(gap @ gap))]
            )
            bent, rest = payoff - line @ (line.T @ payoff), account - line @ (line.T @ account)
            whole = (bent * bent).sum(axis=0)
            slope = bent.T @ rest / whole
            pull = (line * line).sum(axis=1)[:, None] + bent * bent / whole
            missed = (rest[:, None] - bent * slope) / np.maximum(1.0 - pull, 0.05)
            error = np.sqrt((bent * bent * missed * missed).sum(axis=0)) / whole
            alike = whole * whole / (bent**4).sum(axis=0)
            freedom = np.maximum(np.minimum(np.minimum(paid, gap.size - 3) - 2, alike - 1), 1.0)
            certain = stdtr(freedom, slope / np.maximum(error, 1e-300)) < _OPTION_LEVEL
            worth = -slope * payoff.mean(axis=0) * year / span
            most = _DEAREST * worth * gammaincinv(paid + 1.0, 0.95) / paid
            if (certain & (gained > 0.0) & (gained + worth <= most)).any():
                return True
    return False


def curve_of(total: Floats, market: Floats | None, sessions: Sequence[str]) -> AccountCurve | None:
    """Return the account's and the market's growth, thinned to :data:`_POINTS`; None without sessions."""
    if total.size < 2 or len(sessions) != total.size or not (total > -1.0).all():
        return None
    places = np.unique(np.linspace(0, total.size - 1, min(_POINTS, total.size)).round().astype(int))
    path = growth(total)
    fall = drawdowns(path)[1:]
    places = np.union1d(places, [int(np.argmin(fall))])

    def shown(values: Floats) -> tuple[float, ...]:
        return tuple(round(float(one), 5) for one in values[places])

    beside = market if market is not None and market.size == total.size else None
    return AccountCurve(
        sessions=tuple(sessions[place] for place in places.tolist()),
        account=shown(path[1:] - 1.0),
        market=None if beside is None else shown(growth(beside)[1:] - 1.0),
        drawdown=shown(fall),
    )


_SIZES = (0.001, 0.01, 0.1, 0.3, 1.0, 3.0)
"""Of the power of ten nearest to the size at which an edge is gone."""
_LARGEST = 1e15
_KNOWN = 0.9
"""Share of what was traded whose usual amounts must be known."""


def capacity_evidence(
    edge: Floats, taken: Sequence[Attribution], test: MeanTest
) -> CapacityEvidence | None:
    """Return at what size the edge is gone; None below the floor, or where amounts of what was traded are unknown.
    The edge of an account of size A is the measured one less the root of A times what one unit pays for impact."""
    known = [one.impact_known for one in taken if one.impact_known is not None]
    if (
        len(known) < len(taken)
        or not known
        or min(known) < _KNOWN
        or edge.size <= test.config.least
    ):
        return None
    rate = np.mean([one.impact for one in taken], axis=0)
    net = edge[:-1]
    if not (net.mean() * test.year >= test.config.floor and rate.mean() > 0.0):
        return None

    def at(size: float) -> Measure:
        return test.of(net - math.sqrt(size) * rate)

    def crossing(bound: Callable[[Measure], float | None]) -> float | None:
        """Return the size at which a bound of the edge is zero; None beyond the largest, 0 where it always is."""
        low, high = 0.0, math.log(_LARGEST)
        if (bound(at(0.0)) or 0.0) <= 0.0:
            return 0.0
        if (bound(at(_LARGEST)) or 0.0) > 0.0:
            return None
        for _ in range(40):  # halvings of the logarithm: more digits than a size is shown with
            middle = (low + high) / 2.0
            low, high = (
                (middle, high) if (bound(at(math.exp(middle))) or 0.0) > 0.0 else (low, middle)
            )
        return math.exp(low)

    dies = float((net.mean() / rate.mean()) ** 2)
    sizes = tuple(one * 10.0 ** round(math.log10(dies)) for one in _SIZES)
    return CapacityEvidence(
        sizes=sizes,
        edges=tuple(at(size) for size in sizes),
        dies=dies,
        low=crossing(lambda one: one.low) or 0.0,
        high=crossing(lambda one: one.high),
        traded=min(known),
    )


def stability_evidence(edge: Floats, test: MeanTest) -> StabilityEvidence | None:
    """Return the edge in both halves and without its best sessions; None for fewer than 2 x ``least`` sessions."""
    config = test.config
    if edge.size < 2 * config.least or not np.ptp(edge) > 0.0:
        return None
    middle = edge.size // 2
    rest = np.delete(edge, np.argsort(edge)[-_BEST:])
    first, second, without = (
        cosine_interval(
            part, "mean", periods_per_year=test.year, level=config.level, least=config.least
        )
        for part in (edge[:middle], edge[middle:], rest)
    )
    return StabilityEvidence(first=first, second=second, without_best=without)


def concentration_of(
    edge: Floats, sessions: Sequence[str], by_name: Mapping[str, float], selection: Floats
) -> ConcentrationEvidence:
    """Return how much one session and one name brought; ``by_name`` is what each name added to selection."""
    whole, chosen = float(edge.sum()), float(selection.sum())
    best = int(np.argmax(edge))
    name = max(by_name, key=lambda one: by_name[one]) if by_name else None
    return ConcentrationEvidence(
        name=name if chosen > 0 else None,
        name_share=by_name[name] / chosen if name is not None and chosen > 0 else None,
        session=sessions[best] if whole > 0 and best < len(sessions) else None,
        session_share=float(edge[best]) / whole if whole > 0 else None,
    )


def trials_evidence(
    edge: Floats, tested: Edge, test: MeanTest, *, here: int, tried: Tried
) -> TrialsEvidence:
    """Return what the number of tries leaves of an edge."""
    year, config, count = test.year, test.config, max(1.0, float(test.comparisons))
    p = float(mean_p_value(edge)) if edge.size >= config.least and np.ptp(edge) > 0.0 else math.nan
    positive = (tested.tested.value or 0.0) > 0.0
    void_at, haircut = None, None
    if math.isfinite(p) and positive:
        from scipy.special import stdtrit

        if p <= (1.0 - config.level) / count:
            void_at = int((1.0 - config.level) / p) + 1 if p > 1e-9 else 10**9
        freedom = cosine_terms(edge.size)
        plain, after = (
            -float(stdtrit(freedom, min(1.0, max(q, 1e-300)) / 2.0)) for q in (p, p * count)
        )
        haircut = significant(1.0 - after / plain) if 0.0 < plain < math.inf else None
    if edge.size > 2 and np.ptp(edge) > 0.0:
        # What worthless tries differ by: the variance of a yearly ratio over so many sessions.
        variance = year / edge.size
        quiet = BootstrapConfig(draws=200, level=config.level)
        deflated = deflated_sharpe(
            edge, trials=count, trial_variance=variance, periods_per_year=year, bootstrap=quiet
        )
        probability, track = deflated.probability, minimum_track_record(edge, periods_per_year=year)
    else:
        probability = not_scored("it never moves")
        track = probability
    return TrialsEvidence(
        here=here,
        declared=config.trials,
        found=tried.found,
        effective=float(tried.effective),
        deflated=probability,
        haircut=haircut,
        track_record=track,
        void_at=void_at,
    )


@dataclass(frozen=True, slots=True)
class Tried:
    """``found`` tries in other runs of the folder, which amount to ``effective`` different ones."""

    found: int = 0
    effective: int = 0


NO_TRIES = Tried()
