"""How much can be seen with so many sessions and seeds?"""

import math

import numpy as np
import pytest
import scipy
from hypothesis import given, strategies as st

from tradeassay import metrics as m
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure
from tradeassay.metrics.intervals import choose_block, content_seed, seed_resamples


def test_by_hand_and_as_statsmodels_has_it():
    from statsmodels.stats.power import NormalIndPower

    theirs = NormalIndPower(ddof=0).power(1.0 / math.sqrt(252), 600, 0.05, ratio=0)
    assert m.power_of(1.0, m.Design(sessions=600)) == pytest.approx(theirs, rel=1e-9)
    # An information ratio of one half: (1.95996 + 0.84162)^2 x 252 / 0.25 = 7,911.7 sessions: more than 31 years.
    assert m.sessions_needed(0.5, m.Design()) == 7912
    assert m.power_of(0.5, m.Design(sessions=7912)) == pytest.approx(0.8, abs=1e-4)
    assert m.power_of(0.0, m.Design()) == pytest.approx(0.05)


def test_seeds_help_until_they_repeat_each_other():
    assert m.seeds_needed(3.0, m.Design(sessions=252)) == 1
    four = m.seeds_needed(2.3, m.Design(sessions=252, seed_correlation=0.3))
    assert four is not None and four > 1
    assert m.power_of(2.3, m.Design(sessions=252, seed_correlation=0.3, seeds=four)) >= 0.8
    assert m.power_of(2.3, m.Design(sessions=252, seed_correlation=0.3, seeds=four - 1)) < 0.8
    assert m.seeds_needed(0.5, m.Design(sessions=252)) is None
    assert m.minimum_detectable_ratio(
        m.Design(seeds=50, seed_correlation=1.0)
    ) == m.minimum_detectable_ratio(m.Design())


def test_dependence_and_company_cost_sessions():
    plain = m.sessions_needed(1.0, m.Design())
    assert m.sessions_needed(1.0, m.Design(inflation=m.ar1_inflation(0.2))) == pytest.approx(
        1.5 * plain, abs=1
    )
    assert m.sessions_needed(1.0, m.Design(comparisons=10)) > 1.6 * plain


@given(
    st.floats(0.1, 5.0),
    st.integers(20, 5000),
    st.integers(1, 20),
    st.floats(0.0, 1.0),
    st.integers(1, 30),
)
def test_the_answers_fit_each_other(ir, sessions, seeds, shared, company):
    design = m.Design(sessions=sessions, seeds=seeds, seed_correlation=shared, comparisons=company)
    smallest = m.minimum_detectable_ratio(design)
    assert m.power_of(smallest, design) == pytest.approx(0.8, abs=1e-3)
    needed = m.sessions_needed(ir, design)
    assert (needed <= sessions) == (ir >= smallest * (1 - 1e-12)) or needed == pytest.approx(
        sessions, abs=1
    )


@pytest.mark.slow_for("1-250-0.2-400", "3-250-0.2-400")
@pytest.mark.parametrize(
    ("seeds", "sessions", "carry", "worlds"),
    [(1, 120, 0.1, 50), (3, 120, 0.1, 40), (1, 250, 0.2, 400), (3, 250, 0.2, 400)],
)
def test_simulation_agrees_with_the_formula(seeds, sessions, carry, worlds):
    design = m.Design(
        sessions=sessions, seeds=seeds, inflation=m.ar1_inflation(carry), seed_correlation=0.5
    )
    smallest = m.minimum_detectable_ratio(design)
    found = simulated_power(smallest, design, worlds=worlds)
    assert m.power_of(smallest, design) == pytest.approx(0.8, abs=1e-3)
    # A percentile interval is a little too narrow, so its power is a little high.
    assert found.low - (0.03 if worlds > 50 else 0.0) <= m.power_of(smallest, design) <= found.high


@pytest.mark.slow
@pytest.mark.parametrize(("carry", "most"), [(0.0, 0.075), (0.2, 0.115)])
def test_false_alarms_are_what_the_page_says(carry, most):
    """Nominal for independent sessions; for ones that resemble their neighbours up to twice
    that, and no more.
    """
    design = m.Design(sessions=250, inflation=m.ar1_inflation(carry))
    found = simulated_power(0.0, design, worlds=700, seed=1)
    assert found.low <= most and 0.035 <= found.value <= most


def test_the_design_of_a_result_is_measured():
    rng = np.random.default_rng(0)
    common = rng.normal(size=400)
    active = math.sqrt(0.7) * common + math.sqrt(0.3) * rng.normal(size=(4, 400))
    found = m.measured_design(active, comparisons=3)
    assert found.seed_correlation == pytest.approx(0.7, abs=0.06)
    assert found.inflation == pytest.approx(1.0, abs=0.35)
    assert (found.sessions, found.seeds, found.comparisons) == (400, 4, 3)
    assert m.measured_design(np.zeros((2, 30))).seed_correlation == 1.0


def test_what_is_said_and_what_cannot_be_asked():
    short, long = (
        m.power_summary(m.Design(sessions=83, seeds=3, comparisons=5)),
        m.power_summary(m.Design(sessions=5000)),
    )
    assert (
        short.hopeless and "can hardly show skill" in short.sentence and "among 5" in short.sentence
    )
    assert not long.hopeless and "show an alpha ratio of" in long.sentence
    assert short.sessions > 83
    for said, wrong in (
        ("needs sessions", lambda: m.Design(sessions=0)),
        ("level 1.0", lambda: m.Design(level=1.0)),
        ("correlation of 1.5", lambda: m.Design(seed_correlation=1.5)),
        ("inflation of 0.0", lambda: m.Design(inflation=0.0)),
        ("no effect", lambda: m.sessions_needed(0.0, m.Design())),
        ("ratio of nan", lambda: m.power_summary(m.Design(), ratio=math.nan)),
        ("two sessions", lambda: m.measured_design(np.ones(1))),
    ):
        with pytest.raises(UserError, match=said):
            wrong()


_ANY = m.BootstrapConfig()
_SPREAD = 0.005


def simulated_power(ir: float, design: m.Design, *, worlds: int = 200, seed: int = 0) -> Measure:
    """Return how often a test of the mean difference finds agents with a true information ratio of
    ``ir``.

    Active returns are a first-order autoregression with the design's inflation, and share as much
    between seeds as the design says; the market they are added to is noise that both sides share.
    The test resamples, as the formula assumes; the cosine test, which estimates the variance more
    carefully, finds somewhat less in short windows. An ``ir`` of 0 gives the rate of false alarms.
    The interval is Wilson's, over ``worlds``.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    carry = (design.inflation - 1.0) / (design.inflation + 1.0)
    shared, n, draws = design.seed_correlation, design.sessions, 500
    found = 0
    for _ in range(worlds):
        # Autoregressions of variance one, from their stationary law.
        noise = [rng.normal(size=(count, n)) for count in (1, design.seeds)]
        for one in noise:
            one[:, 1:] *= math.sqrt(1.0 - carry * carry)
        common, own = (scipy.signal.lfilter([1.0], [1.0, -carry], one) for one in noise)
        active = _SPREAD * (math.sqrt(shared) * common + math.sqrt(1.0 - shared) * own)
        active += ir / math.sqrt(design.periods_per_year) * _SPREAD
        market = rng.normal(0.0003, 0.01, n)
        gaps = np.log1p(market + active) - np.log1p(market)
        # Two-sided, sessions and seeds redrawn.
        start = content_seed(_ANY, gaps)
        block, chosen = (
            choose_block(gaps.mean(axis=0), _ANY),
            seed_resamples(design.seeds, draws, start),
        )
        each = np.concatenate(
            [gaps[:, rows].mean(axis=-1).T for rows in m.resamples(n, draws, block, start)]
        )
        means = np.take_along_axis(each, chosen, axis=1).mean(axis=1)
        least = min(int((means <= 0).sum()), int((means >= 0).sum()))
        found += 2.0 * (1 + least) / (draws + 1) <= (1.0 - design.level) / design.comparisons
    return m.rate_measure(found, worlds, nothing="no world was simulated")
