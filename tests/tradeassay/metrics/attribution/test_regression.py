"""The daily regression against numpy's least squares, and who is in it."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tradeassay.core.errors import UserError
from tradeassay.factors import standardise
from tradeassay.metrics import attribution

FACTORS = ("a", "b", "c")


def market(
    seed: int = 0, days: int = 6, names: int = 40, factors: tuple[str, ...] = FACTORS
) -> attribution.CrossSection:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(days, len(factors), names))
    premia = rng.normal(0, 0.004, (days, len(factors), 1))
    returns = 0.001 + (values * premia).sum(axis=1) + rng.normal(0, 0.02, (days, names))
    return attribution.CrossSection(
        returns,
        values,
        np.exp(rng.normal(20, 1, (days, names))),
        np.ones((days, names), dtype=bool),
        factors,
    )


def test_every_day_is_weighted_least_squares():
    cross = market()
    cross.investable[2, :7] = False
    model = attribution.fit(cross)
    for day in range(6):
        inside = cross.investable[day]
        exposures = standardise(np.where(inside, cross.values[day], np.nan))[:, inside]
        design = np.column_stack([np.ones(inside.sum()), exposures.T])
        root = cross.size[day, inside] ** 0.25  # least squares on rows times the root of the weight
        solved = np.linalg.lstsq(
            design * root[:, None], cross.returns[day, inside] * root, rcond=None
        )[0]
        assert np.allclose(
            np.r_[model.common[day], model.premia[day]], solved, rtol=1e-10, atol=1e-14
        )
        left = cross.returns[day, inside] - design @ solved
        assert np.allclose(model.residuals[day, inside], left, atol=1e-14)
    assert (model.fitted == attribution.FULL).all()
    assert ((model.explained > 0) & (model.explained < 1)).all()


def test_a_name_without_a_value_is_outside_and_a_factor_few_names_have_is_left_out():
    cross = market()
    cross.values[1, 0, 3] = np.nan
    cross.values[4, 1, 5:] = np.nan
    model = attribution.fit(cross)
    # A name outside gets no exposure and keeps its return less the market.
    assert not model.covered[1, 3] and model.covered[1].sum() == 39
    assert (model.exposures[1, :, 3] == 0).all()
    assert model.residuals[1, 3] == pytest.approx(cross.returns[1, 3] - model.common[1], abs=1e-15)
    assert model.covered[4].all() and (model.exposures[4, 1] == 0).all()
    assert model.premia[4, 1] == 0.0 != model.premia[3, 1]


def test_few_names_leave_the_intercept_and_very_few_leave_nothing():
    cross = market(names=7)
    cross.investable[0, 2:] = False
    model = attribution.fit(cross)
    assert model.fitted.tolist() == [attribution.NONE] + [attribution.MARKET] * 5
    root = np.sqrt(cross.size[1])
    assert model.common[1] == pytest.approx((root * cross.returns[1]).sum() / root.sum())
    assert not (model.premia.any() or model.common[0] or model.covered[0].any())
    assert np.allclose(model.residuals[0], cross.returns[0])


def test_two_factors_that_say_the_same_share_one_return_and_one_without_spread_earns_nothing():
    cross = market()
    cross.values[:, 2] = cross.values[:, 0]
    model = attribution.fit(cross)
    single = attribution.fit(
        attribution.CrossSection(
            cross.returns, cross.values[:, :2], cross.size, cross.investable, FACTORS[:2]
        )
    )
    assert np.allclose(model.premia[:, 0], model.premia[:, 2])
    assert np.allclose(model.residuals, single.residuals, atol=1e-12)
    cross.values[:, 1] = 5.0
    assert not attribution.fit(cross).premia[:, 1].any()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 5), st.integers(0, 39), st.floats(-0.5, 0.5))
def test_a_day_depends_on_itself_alone(seed, day, name, shock):
    cross = market(seed)
    before = attribution.fit(cross)
    cross.returns[day, name] += shock
    cross.values[day, 1, name] += shock
    after = attribution.fit(cross)
    others = [other for other in range(6) if other != day]
    assert np.array_equal(before.premia[others], after.premia[others])
    assert np.array_equal(before.residuals[others], after.residuals[others])


def test_known_before_moves_values_on():
    values = np.arange(6.0).reshape(3, 2)
    assert np.array_equal(
        attribution.known_before(values), [[np.nan, np.nan], [0, 1], [2, 3]], equal_nan=True
    )
    assert np.array_equal(attribution.known_before(values, 2)[2], [0.0, 1.0])
    assert np.isnan(attribution.known_before(values, 3)).all()


def test_shapes_that_do_not_fit_are_refused():
    two = np.zeros((2, 3))
    for said, wrong in (
        ("'values' has shape", lambda: attribution.CrossSection(two, two, two, two == 0, FACTORS)),
        ("not a share", lambda: attribution.AttributionConfig(present=0.0)),
        ("VIF", lambda: attribution.AttributionConfig(vif_limit=1.0)),
        ("one name per", lambda: attribution.AttributionConfig(names_per_term=0.5)),
    ):
        with pytest.raises(UserError, match=said):
            wrong()


def test_vif_is_the_textbook_one():
    cross = market(days=1, names=200)
    screen = attribution.vif_screen(attribution.exposures_of(cross), FACTORS)
    exposures = attribution.exposures_of(cross).values[0]
    for k, name in enumerate(FACTORS):
        others = np.column_stack([np.ones(200), np.delete(exposures, k, axis=0).T])
        error = exposures[k] - others @ np.linalg.lstsq(others, exposures[k], rcond=None)[0]
        share = 1 - error @ error / ((exposures[k] - exposures[k].mean()) ** 2).sum()
        assert screen.vif[name].value == pytest.approx(1 / (1 - share), rel=1e-9)
    assert (screen.kept, screen.dropped, screen.sessions) == (FACTORS, (), 1)


def test_the_screen_drops_what_the_others_tell_and_without_a_day_there_is_no_vif():
    cross = market(days=5, names=300)
    noise = np.random.default_rng(3).normal(0, 0.05, cross.values[:, 2].shape)
    cross.values[:, 2] = cross.values[:, 0] + cross.values[:, 1] + noise
    screen = attribution.vif_screen(attribution.exposures_of(cross), FACTORS)
    assert len(screen.dropped) == 1
    assert screen.vif[screen.dropped[0]].value > 10
    screen = attribution.vif_screen(attribution.exposures_of(market(names=5)), FACTORS)
    assert screen.kept == FACTORS
    assert all(
        found.value is None and "no session" in str(found.reason) for found in screen.vif.values()
    )
