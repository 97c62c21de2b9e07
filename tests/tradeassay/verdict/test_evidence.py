"""What is tested of a series: at the level of comparisons, at that of all tries, and against
luck's best of them.
"""

import math
from statistics import NormalDist

import msgspec
import numpy as np
import pytest

from tradeassay.core.errors import UserError
from tradeassay.metrics.cosine import cosine_interval
from tradeassay.metrics.likelihood import equal_tries, likelihood_ratio, normal_score
from tradeassay.verdict.diagnostics import timing_evidence
from tradeassay.verdict.evidence import ALPHA, TIMING_ERROR_MULTIPLE, MeanTest, alpha_of
from tradeassay.verdict.record import VerdictConfig
from tradeassay.verdict.returns import power_of_record

CONFIG = VerdictConfig()
NORMAL = NormalDist()


def daily(score, rows=756, seed=0):
    """Return daily rows whose mean has this normal score."""
    values = np.random.default_rng(seed).normal(0.0, 0.005, rows)
    low, high = -0.01, 0.01
    for _ in range(60):
        middle = (low + high) / 2.0
        if normal_score(values + middle) < score:
            low = middle
        else:
            high = middle
    return values + low


def found(score, tries=20, comparisons=1, **changes):
    return alpha_of({ALPHA: daily(score, **changes)}, MeanTest(252, CONFIG, comparisons, tries))


def test_more_comparisons_make_a_wider_interval():
    values = np.random.default_rng(1).normal(0.0005, 0.005, 252)
    asked = [MeanTest(252, CONFIG, count).of(values) for count in (1, 10, 1000)]
    widths = [measure.high - measure.low for measure in asked]
    assert widths == sorted(widths)
    assert widths[2] > 1.4 * widths[0]
    assert MeanTest(252, CONFIG).of(np.zeros(50)).low is None


def test_tries_widen_no_interval_but_their_own():
    one, many = found(3.5, tries=1), found(3.5, tries=1000)
    assert one.tested == many.tested and one.ratio == many.ratio
    assert one.at_tries == one.tested
    assert many.at_tries.high - many.at_tries.low > 1.3 * (one.at_tries.high - one.at_tries.low)


@pytest.mark.parametrize("tries", [1, 2, 20, 400])
def test_at_the_level_shared_among_the_tries_p_times_their_number_is_at_most_the_error(tries):
    # The score whose one-sided chance, times the number of tries, is exactly 2.5 %.
    edge = -NORMAL.inv_cdf(0.025 / tries)
    assert not found(edge - 0.01, tries).at_tries.low > 0.0
    assert found(edge + 0.01, tries).at_tries.low > 0.0
    values = daily(edge)
    shared = cosine_interval(values, "mean", level=1.0 - 0.05 / tries, least=60)
    assert found(edge, tries).at_tries.low == pytest.approx(shared.low, abs=1e-9)
    assert found(edge, tries).at_tries.low == pytest.approx(0.0, abs=1e-4)


def test_agents_judged_together_count_as_tries():
    alone, together = found(3.3, tries=20, comparisons=1), found(3.3, tries=20, comparisons=400)
    assert alone.survives and not together.survives
    assert together.at_tries == together.tested


def test_the_likelihood_ratio_is_that_of_score_years_and_tries():
    made = found(2.5, tries=20)
    assert made.likelihood == pytest.approx(likelihood_ratio(2.5, 3.0, 20), rel=1e-3)
    assert made.equal_tries == equal_tries(2.5, 3.0)
    below = found(-2.5, tries=20)
    assert below.likelihood == pytest.approx(made.likelihood, rel=1e-3)
    assert below.equal_tries is None


@pytest.mark.parametrize(
    ("score", "rows", "level", "likelier"),
    [
        (
            2.9,
            756,
            False,
            True,
        ),  # likelier under skill, and zero is not excluded at the shared level
        (3.05, 252, True, False),  # the other way round, in a year
        (3.3, 756, True, True),
        (2.0, 756, False, False),
    ],
)
def test_skill_needs_the_shared_level_and_a_ratio_above_one(score, rows, level, likelier):
    for sign in (1.0, -1.0):
        made = found(sign * score, rows=rows)
        bound = made.at_tries.low if sign > 0.0 else made.at_tries.high
        assert (sign * bound > 0.0) is level
        assert (made.likelihood > 1.0) is likelier
        survives = made.survives if sign > 0.0 else made.survives_below
        assert survives is (level and likelier)
        assert not (made.survives_below if sign > 0.0 else made.survives)


def test_what_cannot_be_tested_has_no_likelihood_ratio():
    test = MeanTest(252, CONFIG, tries=20)
    for values in (np.zeros(252), np.full(252, 0.001), daily(3.0)[:59]):
        made = alpha_of({ALPHA: values}, test)
        assert made.likelihood is made.equal_tries is None
        assert not made.survives and not made.survives_below


def test_timing_by_holdings_is_tested_at_its_own_error_and_at_that_of_all_tries():
    rng = np.random.default_rng(2)
    market = rng.normal(0.0, 0.01, 756)
    claim, test = daily(3.4), MeanTest(252, CONFIG, tries=20)
    timed = timing_evidence(0.5 * market, market, claim, test, returns_only=False)
    assert timed.per_year == test.of(claim, TIMING_ERROR_MULTIPLE)
    assert timed.at_tries.low == pytest.approx(
        cosine_interval(claim, "mean", level=1.0 - 0.025 / 20, least=60).low, abs=1e-9
    )
    assert timed.likelihood == test.likelihood(claim)
    by_returns = timing_evidence(0.5 * market, market, None, test, returns_only=True)
    assert by_returns.likelihood is None  # paid from alpha, which is tested
    assert by_returns.at_tries.level == pytest.approx(1.0 - 0.025 / 20)


def test_watched_results_are_tested_by_a_band_that_allows_for_every_look():
    watched = msgspec.structs.replace(CONFIG, watched=True)
    values = daily(4.0)
    once = alpha_of({ALPHA: values}, MeanTest(252, CONFIG, tries=20))
    often = alpha_of({ALPHA: values}, MeanTest(252, watched, tries=20))
    for name in ("tested", "at_tries"):
        narrow, wide = getattr(once, name), getattr(often, name)
        assert wide.high - wide.low > narrow.high - narrow.low


@pytest.mark.parametrize(
    ("tries", "sessions", "chance"),
    [
        # A ratio of 1 over three years lies sqrt(3) errors from zero: 1.96 are asked of one try, 3.02 of twenty.
        (1, 756, NORMAL.cdf(math.sqrt(3.0) - 1.960)),
        (20, 756, NORMAL.cdf(math.sqrt(3.0) - 3.023)),
        (20, 2520, NORMAL.cdf(math.sqrt(10.0) - 3.023)),
    ],
)
def test_what_a_record_can_show_allows_for_its_tries(tries, sessions, chance):
    values = np.random.default_rng(3).normal(0.0001, 0.005, sessions)
    test = MeanTest(252, CONFIG, tries=tries)
    made = alpha_of({ALPHA: values}, test)
    power = power_of_record(values, made, test)
    assert power.chance == pytest.approx(chance, abs=0.06)
    assert power.needed > 0
    short = power_of_record(values[:59], made, test)
    assert (short.chance, short.hopeless, short.needed) == (None, True, None)


def test_more_tries_take_longer_to_allow_for():
    values = daily(1.5)
    needed = []
    for tries in (1, 20, 1000):
        test = MeanTest(252, CONFIG, tries=tries)
        needed.append(power_of_record(values, alpha_of({ALPHA: values}, test), test).needed)
    assert needed == sorted(needed) and needed[0] < needed[2]


@pytest.mark.parametrize(
    "wrong",
    [
        {"level": 2.0},
        {"tries": 0},
        {"tries": 10**10},
        {"assumed_tries": 0},
        {"portfolios": 5},
        {"draws": 1},
        {"least": 5},
    ],
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(UserError):
        VerdictConfig(**wrong)


def test_disclosed_tries_replace_the_assumed_ones():
    assert VerdictConfig().known_tries == 20
    assert VerdictConfig(tries=1).known_tries == 1
    assert VerdictConfig(assumed_tries=7).known_tries == 7
    assert VerdictConfig(tries=500, assumed_tries=7).known_tries == 500
