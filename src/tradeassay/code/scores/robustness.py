"""D4: what remains out of sample, after costs, and after accounting for the number of trials."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from tradeassay.account.shares import COSTS_BP, DecisionList, price_decisions
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats
from tradeassay.metrics.bootstrap import BootstrapConfig
from tradeassay.metrics.measures import sharpe
from tradeassay.metrics.multiple import superior
from tradeassay.metrics.overfitting import overfitting
from tradeassay.metrics.sharpe_inference import deflated_sharpe, probabilistic_sharpe

WORST_BP = 1000.0
"""A break-even cost above this is reported as this."""


class CostPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One cost level over the whole test year. ``sharpe`` is None where returns do not vary.

    From the second version on (B.7 of the paper): ``per_turnover`` is the year's return over its turnover at this
    cost, None where nothing was traded; ``break_even_turnover`` how often the capital could have been traded a
    year before this cost had eaten the return before costs, None where there was none.
    """

    cost_bp: float
    total: float
    sharpe: float | None
    fees: float
    per_turnover: float | msgspec.UnsetType | None = msgspec.UNSET
    break_even_turnover: float | msgspec.UnsetType | None = msgspec.UNSET


class Robustness(msgspec.Struct, frozen=True, kw_only=True):
    """The test year of one submission.

    ``turnover`` is traded value per year over the starting capital at no cost; ``break_even_bp`` the cost at
    which the year earns nothing (None with a reason where it never earned). ``deflated`` is the probability that
    the true Sharpe ratio beats the best of so many worthless trials. ``excess`` is the year's return over buy and
    hold, ``daily`` the returns of its sessions at the middle cost level.
    """

    costs: tuple[CostPoint, ...]
    turnover: float
    break_even_bp: Measure
    deflated: Measure
    excess: float
    quarters: tuple[float, ...]
    daily: tuple[float, ...]
    score: Measure


class Cohort(msgspec.Struct, frozen=True, kw_only=True):
    """What can only be said about several submissions for one strategy together."""

    pbo: Measure
    spa_p: Measure
    better: tuple[str, ...]


def daily_curve(curve: Floats, session: Floats | None) -> Floats:
    """Return equity at each session's end, the start first. Without ``session`` every bar is one."""
    if session is None:
        return np.concatenate(([1.0], curve))
    ends = np.flatnonzero(np.diff(session, append=session[-1] + 1))
    return np.concatenate(([1.0], curve[ends]))


def robustness(
    decisions: DecisionList,
    closes: Floats,
    session: Floats | None,
    *,
    trials: int,
    year: int = 252,
    per_turnover: bool = False,
) -> Robustness:
    """Return the test year of a decision list on closes of shape (legs, bars).

    ``trials`` is how many submissions and iterations were scored on this split; the variance of their yearly
    Sharpe ratios is taken to be the sampling variance of one ratio over the year. ``per_turnover`` adds the return
    by turnover to every cost level.
    """
    bootstrap = BootstrapConfig(draws=300)
    priced = price_decisions(decisions, closes, (0.0, *COSTS_BP), curve=True)
    assert priced.curve is not None
    navs = [daily_curve(path, session) for path in priced.curve]
    returns = [nav[1:] / np.where(nav[:-1] > 0, nav[:-1], np.nan) - 1.0 for nav in navs]
    points = tuple(
        CostPoint(
            cost_bp=cost,
            total=float(navs[n + 1][-1] - 1.0),
            sharpe=_finite(float(sharpe(np.nan_to_num(returns[n + 1]), year))),
            fees=float(priced.fees[n + 1]),
        )
        for n, cost in enumerate(COSTS_BP)
    )
    middle = np.nan_to_num(returns[1 + len(COSTS_BP) // 2])
    years = max(middle.size / year, 1e-9)
    if per_turnover:
        gross = float(navs[0][-1] - 1.0) / years
        points = tuple(
            _by_turnover(point, years, float(priced.traded[n + 1]), gross) for n, point in enumerate(points)
        )
    if trials > 1:
        deflated = deflated_sharpe(
            middle, trials=trials, trial_variance=1.0 / years, periods_per_year=year, bootstrap=bootstrap
        ).probability
    else:
        deflated = probabilistic_sharpe(middle, 0.0, periods_per_year=year, bootstrap=bootstrap)
    quarters = tuple(float(np.prod(1 + part) - 1) for part in np.array_split(middle, 4) if part.size)
    held = closes / closes[:, :1]
    even = _break_even(decisions, closes)
    return Robustness(
        costs=points,
        turnover=float(priced.traded[0] / years),
        break_even_bp=even,
        deflated=deflated,
        excess=float(points[len(points) // 2].total - (held.mean(axis=0)[-1] - 1.0)),
        quarters=quarters,
        daily=tuple(float(value) for value in middle),
        score=_score(deflated, even, quarters, points),
    )


def _by_turnover(point: CostPoint, years: float, traded: float, gross: float) -> CostPoint:
    """Return a cost level with what a unit of turnover earned; ``traded`` is over the whole time, in capitals."""
    return msgspec.structs.replace(
        point,
        per_turnover=point.total / traded if traded > 0.0 else None,
        break_even_turnover=gross / (point.cost_bp / 1e4) if gross > 0.0 and traded > 0.0 else None,
    )


def cohort(names: Sequence[str], returns: Floats, benchmark: Floats) -> Cohort:
    """Return PBO and SPA over submissions' daily returns, shape (sessions, submissions); none for one alone."""
    if returns.shape[1] < 2:
        none = not_scored("one submission cannot be overfitted among itself")
        return Cohort(pbo=none, spa_p=none, better=())
    found = overfitting(returns)
    test = superior(returns, benchmark, names, bootstrap=BootstrapConfig(draws=500))
    p = not_scored(test.reason or "nothing to test") if test.p_value is None else Measure(value=test.p_value)
    return Cohort(pbo=found.probability, spa_p=p, better=test.better)


def _break_even(decisions: DecisionList, closes: Floats) -> Measure:
    """Return the cost at which the final equity is 1, by bisection: final equity falls as costs rise."""
    if not len(decisions):
        return not_scored("it never traded")

    def gain(cost: float) -> float:
        return float(price_decisions(decisions, closes, (cost,)).final[0]) - 1.0

    if gain(0.0) <= 0.0:
        return not_scored("it earned nothing even without costs")
    if gain(WORST_BP) > 0.0:
        return Measure(value=WORST_BP, note="at least this much")
    low, high = 0.0, WORST_BP
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (middle, high) if gain(middle) > 0.0 else (low, middle)
    return Measure(value=low)


def _score(
    deflated: Measure, even: Measure, quarters: tuple[float, ...], points: tuple[CostPoint, ...]
) -> Measure:
    """Return D4, 0 to 10: the mean of what is known of deflated Sharpe, cost headroom and steadiness."""
    parts = {
        "cost room": 0.0 if even.value is None else min(1.0, even.value / points[-1].cost_bp),
        "quarters that earned": float(np.mean([q > 0 for q in quarters])) if quarters else 0.0,
    }
    if deflated.value is not None:
        parts["deflated Sharpe"] = deflated.value
    note = ", ".join(f"{name} {value:.2f}" for name, value in sorted(parts.items()))
    return Measure(value=10.0 * float(np.mean(list(parts.values()))), n=len(parts), note=note)


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
