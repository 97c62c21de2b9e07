"""Made-up findings about an account: one that is skilled and fully examined, and pieces that change
it.

Numbers fit together as they do in real findings. An alpha is given by its value and by how far its
95 % interval reaches. Its alpha ratio, its interval at all tries and its likelihood ratio follow
from the normal score of both.
"""

import math
from statistics import NormalDist

import msgspec

from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.likelihood import equal_tries, likelihood_ratio
from tradeassay.metrics.option_selling import OptionSelling
from tradeassay.metrics.smoothness import Smoothness
from tradeassay.verdict import judge
from tradeassay.verdict.record import (
    AgentFindings,
    Alpha,
    Contrast,
    LeakEvidence,
    LuckEvidence,
    MemoryEvidence,
    PassiveEvidence,
    Ranks,
    StyleEvidence,
    TimingEvidence,
    TriesEvidence,
    VerdictConfig,
)

CONFIG = VerdictConfig()
TRIES = CONFIG.assumed_tries
_NORMAL = NormalDist()
_REACH = _NORMAL.inv_cdf(0.975)
"""Standard errors that a 95 % interval reaches to both sides."""


def span(value, half):
    return Measure(value=value, low=value - half, high=value + half)


def span_at_tries(value, half, tries=TRIES):
    """Return the interval that allows for all tries, of a value whose own reaches ``half`` to
    both sides.
    """
    return span(value, half * -_NORMAL.inv_cdf(0.025 / tries) / _REACH)


def alpha(value, half, *, tries=TRIES, comparisons=1, years=1.0):
    """Return an alpha without known costs."""
    score = value * _REACH / half
    ratio, error = score / math.sqrt(years), _REACH / math.sqrt(years)
    return Alpha(
        tested=span(value, half),
        ratio=span(ratio, error),
        gross=span(value, half),
        comparisons=comparisons,
        tries=tries,
        at_tries=span_at_tries(value, half, tries),
        likelihood=likelihood_ratio(abs(score), years, tries),
        equal_tries=equal_tries(score, years) if value > 0.0 else None,
    )


def alpha_after_costs(gross, net, *, most=True):
    """Return an alpha before and after costs, each +- 5 %; ``most`` is whether costs are most of
    it.
    """
    costs = Measure(value=net - gross)
    return msgspec.structs.replace(
        alpha(net, 0.05),
        gross=span(gross, 0.05),
        costs=costs,
        most_of_gain=most,
        most_of_loss=most,
    )


def follows(explained, beyond, half=0.01, **changes):
    return PassiveEvidence(
        **{
            "portfolio": "all names in equal parts",
            "explained": explained,
            "beta": 1.0,
            "beyond": span(beyond, half),
            **changes,
        }
    )


def timing(value, half=0.02, *, tries=TRIES):
    """Return timing of the market that holdings show."""
    nothing = span(0.0, 1.0)
    return TimingEvidence(
        by="holdings",
        per_year=span(value, half),
        curvature=nothing,
        upside=nothing,
        at_tries=span_at_tries(value, half, tries),
    )


def convexity(per_year, intercept):
    """Return returns that bend up with the market's moves, and what they earn where it does not
    move.
    """
    return TimingEvidence(
        by="returns",
        per_year=span(per_year, 0.02),
        curvature=span(3.0, 1.0),
        upside=span(0.5, 0.2),
        intercept=span(intercept, 0.02),
    )


def style_timing(value, half=0.03, *, tries=TRIES, **changes):
    return StyleEvidence(
        tilt=span(0.01, 0.05),
        timing=span(value, half),
        at_tries=span_at_tries(value, half, tries),
        **changes,
    )


def memory(gap, masked, **changes):
    return MemoryEvidence(against="blinded", gap=gap, masked=masked, **changes)


def tries(*, disclosed=None, here=1, found=0, effective=0.0):
    return TriesEvidence(
        here=here,
        disclosed=disclosed,
        found=found,
        effective=effective,
        deflated=span(0.9, 0.05),
        haircut=None,
    )


GOOD, NOTHING, BAD = alpha(0.1, 0.05), alpha(0.02, 0.05), alpha(-0.1, 0.05)
FEW = alpha(0.06, 0.05)
"""Significant, and no more than luck's best of a few tries."""
CLEAN = LeakEvidence(tested=True, sentence="No leak was found.")
LUCKY = LuckEvidence(percentile=span(0.99, 0.005), p=0.01, p_low=0.99, portfolios=10_000)
UNLUCKY = LuckEvidence(percentile=span(0.01, 0.005), p=0.99, p_low=0.01, portfolios=10_000)
BARELY = LuckEvidence(percentile=span(0.9, 0.05), p=0.1, portfolios=10_000)
MIDDLING = LuckEvidence(percentile=span(0.4, 0.05), p=0.6, p_low=0.4, portfolios=10_000)
NO_LUCK = LuckEvidence(percentile=not_scored("futures have none"), p=None)
LEANS = {"style_variance": 0.6, "exposures": {"MOM_12_1": span(1.2, 0.2), "ROC_20": span(0.1, 0.2)}}
PARTS = {"common": 0.1, "style": 0.01, "selection": 0.1, "trading": -0.01, "alpha": 0.09}


def contrast(gap, masked, **changes):
    return Contrast(gap=gap, masked=masked, **changes)


def account(**changes):
    """Return findings about a skilled account: certain, examined, and beyond luck's best of the
    assumed tries.
    """
    fields = {
        "setting": "c",
        "benchmark": "b",
        "dataset": "d",
        "agent": "one",
        "by_model": False,
        "baseline": False,
        "seeds": 1,
        "failed_seeds": 0,
        "sessions": 252,
        "first": "2024-01-02",
        "last": "2024-12-31",
        "total": span(0.2, 0.1),
        "market": span(0.05, 0.1),
        "parts": {name: span(value, 0.02) for name, value in PARTS.items()},
        "style_variance": 0.1,
        "active_variance": 0.2,
        "alpha": GOOD,
        "luck": LUCKY,
        "leaks": CLEAN,
        "failure_rate": Measure(value=0.0),
        "ranks": Ranks(of=3, by_return=1, by_selection=2),
    }
    return AgentFindings(**(fields | changes))


def table(**changes):
    """Return findings about an account of which only returns are known, and those of the market
    and of styles.
    """
    fields = {
        "method": "returns",
        "setting": "own",
        "benchmark": "",
        "dataset": "",
        "styled": 1.0,
        "luck": LuckEvidence(percentile=not_scored("returns alone do not say"), p=None),
        "leaks": LeakEvidence(tested=False),
        "failure_rate": not_scored("no run was recorded"),
        "ranks": Ranks(of=1, by_return=None, by_selection=None),
    }
    return account(**(fields | changes))


def verdict_on(found, config=CONFIG):
    return judge(found, config).verdict


def smooth(**changes):
    """Return how smooth a record without any sign of smoothing is."""
    fields = {
        "autocorrelation": span(0.0, 0.1),
        "positive": 0.55,
        "normal_positive": 0.55,
        "sharpe": span(1.0, 0.5),
        "unsmoothed_sharpe": 1.0,
        "discontinuity": None,
        "repeats": None,
        "signs": (),
        "too_smooth": False,
    }
    return Smoothness(**(fields | changes))


def seller(**changes):
    """Return an account that pays as a seller of puts does."""
    fields = {
        "like": True,
        "shape": "short puts",
        "explained": 0.4,
        "loss_at_10": -0.2,
        "loss_at_20": -0.45,
        "worst_at_10": -0.25,
        "worst_at_20": -0.6,
        "crash_in_record": False,
    }
    return OptionSelling(**(fields | changes))
