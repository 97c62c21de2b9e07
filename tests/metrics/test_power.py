"""How much can be seen with so many sessions and seeds?"""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure
from tradeassay.metrics import (
    BootstrapConfig,
    Design,
    ar1_inflation,
    measured_design,
    minimum_detectable_ir,
    power_of,
    power_summary,
    rate_measure,
    resamples,
    seeds_needed,
    sessions_needed,
)
from tradeassay.metrics.intervals import choose_block, content_seed, seed_resamples


def test_by_hand_and_as_statsmodels_has_it():
    from statsmodels.stats.power import NormalIndPower

    theirs = NormalIndPower(ddof=0).power(1.0 / math.sqrt(252), 600, 0.05, ratio=0)
    assert power_of(1.0, Design(sessions=600)) == pytest.approx(theirs, rel=1e-9)
    # An information ratio of one half: (1.95996 + 0.84162)^2 x 252 / 0.25 = 7,911.7 sessions: more than 31 years.
    assert sessions_needed(0.5, Design()) == 7912
    assert power_of(0.5, Design(sessions=7912)) == pytest.approx(0.8, abs=1e-4)
    assert power_of(0.0, Design()) == pytest.approx(0.05)


def test_seeds_help_until_they_repeat_each_other():
    assert seeds_needed(3.0, Design(sessions=252)) == 1
    four = seeds_needed(2.3, Design(sessions=252, seed_correlation=0.3))
    assert four is not None and four > 1
    assert power_of(2.3, Design(sessions=252, seed_correlation=0.3, seeds=four)) >= 0.8
    assert power_of(2.3, Design(sessions=252, seed_correlation=0.3, seeds=four - 1)) < 0.8
    assert seeds_needed(0.5, Design(sessions=252)) is None
    assert minimum_detectable_ir(Design(seeds=50, seed_correlation=1.0)) == minimum_detectable_ir(Design())


def test_dependence_and_company_cost_sessions():
    plain = sessions_needed(1.0, Design())
    assert sessions_needed(1.0, Design(inflation=ar1_inflation(0.2))) == pytest.approx(1.5 * plain, abs=1)
    assert sessions_needed(1.0, Design(comparisons=10)) > 1.6 * plain


@given(st.floats(0.1, 5.0), st.integers(20, 5000), st.integers(1, 20), st.floats(0.0, 1.0), st.integers(1, 30))
def test_the_answers_fit_each_other(ir, sessions, seeds, shared, company):
    design = Design(sessions=sessions, seeds=seeds, seed_correlation=shared, comparisons=company)
    smallest = minimum_detectable_ir(design)
    assert power_of(smallest, design) == pytest.approx(0.8, abs=1e-3)
    needed = sessions_needed(ir, design)
    assert (needed <= sessions) == (ir >= smallest * (1 - 1e-12)) or needed == pytest.approx(sessions, abs=1)


@pytest.mark.parametrize(("seeds", "worlds"), [(1, 50), (3, 40)])
def test_simulation_agrees_with_the_formula(seeds, worlds):
    design = Design(sessions=120, seeds=seeds, inflation=ar1_inflation(0.1), seed_correlation=0.5)
    found = simulated_power(minimum_detectable_ir(design), design, worlds=worlds)
    assert found.low <= 0.8 <= found.high


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [1, 3])
def test_simulation_agrees_with_the_formula_closely(seeds):
    design = Design(sessions=250, seeds=seeds, inflation=ar1_inflation(0.2), seed_correlation=0.5)
    smallest = minimum_detectable_ir(design)
    found = simulated_power(smallest, design, worlds=400)
    # A percentile interval is a little too narrow, so its power is a little high.
    assert found.low - 0.03 <= power_of(smallest, design) <= found.high


@pytest.mark.slow
@pytest.mark.parametrize(("carry", "most"), [(0.0, 0.075), (0.2, 0.115)])
def test_false_alarms_are_what_the_page_says(carry, most):
    """Nominal for independent sessions; for ones that resemble their neighbours up to twice that, and no more."""
    design = Design(sessions=250, inflation=ar1_inflation(carry))
    found = simulated_power(0.0, design, worlds=700, seed=1)
    assert found.low <= most and 0.035 <= found.value <= most


def test_the_design_of_a_result_is_measured():
    rng = np.random.default_rng(0)
    common = rng.normal(size=400)
    active = math.sqrt(0.7) * common + math.sqrt(0.3) * rng.normal(size=(4, 400))
    found = measured_design(active, comparisons=3)
    assert found.seed_correlation == pytest.approx(0.7, abs=0.06)
    assert found.inflation == pytest.approx(1.0, abs=0.35)
    assert (found.sessions, found.seeds, found.comparisons) == (400, 4, 3)
    assert measured_design(np.zeros((2, 30))).seed_correlation == 1.0


def test_what_is_said():
    short = power_summary(Design(sessions=83, seeds=3, comparisons=5))
    assert short.hopeless and "can hardly show skill" in short.sentence and "among 5" in short.sentence
    long = power_summary(Design(sessions=5000))
    assert not long.hopeless and "show an information ratio of" in long.sentence
    assert short.sessions > 83


def test_nonsense():
    for wrong in ({"sessions": 0}, {"level": 1.0}, {"seed_correlation": 1.5}, {"inflation": 0.0}):
        with pytest.raises(UserError):
            Design(**wrong)
    with pytest.raises(UserError, match="no effect"):
        sessions_needed(0.0, Design())
    with pytest.raises(UserError, match="ratio of nan"):
        power_summary(Design(), ir=math.nan)
    with pytest.raises(UserError, match="two sessions"):
        measured_design(np.ones(1))


_ANY = BootstrapConfig()
_SPREAD = 0.005


def simulated_power(ir: float, design: Design, *, worlds: int = 200, seed: int = 0) -> Measure:
    """Return how often a test of the mean difference finds agents with a true information ratio of ``ir``.

    Active returns are a first-order autoregression with the design's inflation, and share as much between seeds as
    the design says; the market they are added to is noise that both sides share. The test resamples, as the
    formula assumes; the cosine test, which estimates the variance more carefully, finds somewhat less in short
    windows. An ``ir`` of 0 gives the rate of false alarms. The interval is Wilson's, over ``worlds``.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    carry = (design.inflation - 1.0) / (design.inflation + 1.0)
    alarm = (1.0 - design.level) / design.comparisons
    shared = design.seed_correlation
    found = 0
    for _ in range(worlds):
        common, own = _series(rng, 1, design.sessions, carry), _series(rng, design.seeds, design.sessions, carry)
        active = _SPREAD * (math.sqrt(shared) * common + math.sqrt(1.0 - shared) * own)
        active += ir / math.sqrt(design.periods_per_year) * _SPREAD
        market = rng.normal(0.0003, 0.01, design.sessions)
        found += _redrawn_p(np.log1p(market + active), np.log1p(market)) <= alarm
    return rate_measure(found, worlds, nothing="no world was simulated")


def _redrawn_p(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the two-sided p-value of a mean difference, sessions and the seeds of ``ours`` (k, n) redrawn."""
    gaps = ours - theirs
    n, draws = gaps.shape[-1], 500
    seed = content_seed(_ANY, gaps)
    block, chosen = choose_block(gaps.mean(axis=0), _ANY), seed_resamples(gaps.shape[0], draws, seed)
    each = np.concatenate([gaps[:, rows].mean(axis=-1).T for rows in resamples(n, draws, block, seed)])
    means = np.take_along_axis(each, chosen, axis=1).mean(axis=1)
    least = min(int((means <= 0).sum()), int((means >= 0).sum()))
    return min(1.0, 2.0 * (1 + least) / (draws + 1))


def _series(
    rng: np.random.Generator, count: int, n: int, carry: float
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return unit-variance autoregressions of shape (count, n), from their stationary law."""
    noise = rng.normal(size=(count, n))
    if carry == 0.0:
        return noise
    series = np.empty((count, n))
    series[:, 0] = noise[:, 0]
    scale = math.sqrt(1.0 - carry * carry)
    for t in range(1, n):
        series[:, t] = carry * series[:, t - 1] + scale * noise[:, t]
    return series
