"""Parts that add up: daily, linked, by group."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tradeassay.core.errors import UserError
from tradeassay.metrics import BootstrapConfig, attribution, growth, score, series_from_nav


def worked() -> attribution.StyleModel:
    """Two days, three names, one factor; the third name is outside on the second day."""
    return attribution.StyleModel(
        factors=("f",),
        returns=np.array([[0.02, -0.01, 0.03], [0.01, 0.00, 0.05]]),
        exposures=np.array([[[1.0, -1.0, 0.0]], [[1.0, -1.0, 0.0]]]),
        covered=np.array([[True, True, True], [True, True, False]]),
        common=np.array([0.005, 0.004]),
        premia=np.array([[0.01], [0.002]]),
        residuals=np.array([[0.005, -0.005, 0.025], [0.004, -0.002, 0.046]]),
        explained=np.zeros(2),
        fitted=np.array([2, 2], dtype=np.int8),
    )


def test_a_day_worked_by_hand():
    weights = np.array([[0.5, -0.2, 0.3], [0.5, -0.2, 0.3]])
    daily = attribution.decompose(worked(), weights, np.array([0.020, 0.021]))
    assert daily.invested == pytest.approx([0.6, 0.6])
    assert daily.gross == pytest.approx([1.0, 1.0])
    assert daily.common == pytest.approx([0.003, 0.0024])
    assert daily.exposures[:, 0] == pytest.approx([0.7, 0.7])
    assert daily.style[:, 0] == pytest.approx([0.007, 0.0014])
    assert daily.selection == pytest.approx([0.0025 + 0.001 + 0.0075, 0.002 + 0.0004 + 0.0138])
    assert daily.uncovered == pytest.approx([0.0, 0.0138])
    assert daily.covered_share == pytest.approx([1.0, 0.7])
    assert daily.trading == pytest.approx([0.020 - 0.021, 0.021 - 0.020])
    assert daily.error() < 1e-15
    # On paper there are three parts, of the weights' own return.
    weights = np.array([[0.5, -0.2, 0.3], [0.0, 0.0, 0.0]])
    daily = attribution.decompose(worked(), weights)
    assert daily.total == pytest.approx([0.021, 0.0]) and not daily.trading.any()
    assert np.isnan(daily.covered_share[1]) and daily.error() < 1e-15


def test_carino_worked_by_hand():
    returns = np.array([0.10, -0.05, 0.0])
    parts = np.array([[0.06, -0.01, 0.02], [0.04, -0.04, -0.02]])
    total = 1.1 * 0.95 - 1
    scale = [np.log(1.1) / 0.1, np.log(0.95) / -0.05, 1.0]
    whole = np.log(1 + total) / total
    linked = attribution.link(parts, returns)
    assert linked == pytest.approx((parts * scale).sum(axis=1) / whole)
    assert linked.sum() == pytest.approx(total, abs=1e-16)
    assert attribution.link(parts, np.array([0.1, -1.0, 0.0])) is None


MOVES = st.lists(st.floats(-0.9, 3.0), min_size=1, max_size=60)


@given(MOVES, st.integers(0, 2**32 - 1), st.booleans())
def test_linked_parts_sum_to_the_total_and_linked_differences_to_the_difference(moves, seed, same):
    returns, rng = np.array(moves), np.random.default_rng(seed)
    other = returns.copy() if same else np.clip(rng.normal(0, 0.2, returns.size), -0.8, 2)
    total, theirs = (float(np.prod(1 + one)) for one in (returns, other))
    parts, gaps = rng.normal(0, 0.1, (2, 4, returns.size))
    parts[3], gaps[3] = returns - parts[:3].sum(axis=0), returns - other - gaps[:3].sum(axis=0)
    linked, apart = (
        attribution.link(parts, returns).sum(),
        attribution.link_difference(gaps, returns, other).sum(),
    )
    assert linked == pytest.approx(total - 1, abs=1e-12 * (1 + abs(total - 1)), rel=1e-11)
    assert apart == pytest.approx(total - theirs, abs=1e-11 * (1 + total), rel=1e-9)


def test_tiny_returns_link_without_loss():
    returns = np.array([1e-17, -1e-300, 5e-324, 0.0])
    assert attribution.link(returns[None, :], returns)[0] == pytest.approx(1e-17, rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.floats(-3, 3), st.booleans())
def test_any_portfolio_adds_up_every_day_and_in_total(seed, scale, account):
    rng = np.random.default_rng(seed)
    days, names = 30, 24
    returns = rng.normal(0, 0.03, (days, names))
    values = rng.normal(size=(days, 2, names))
    values[rng.random(values.shape) < 0.1] = np.nan
    inside = rng.random((days, names)) < 0.9
    model = attribution.fit(
        attribution.CrossSection(returns, values, np.ones((days, names)), inside, ("x", "y"))
    )
    weights = rng.normal(0, 1, (days, names)) * scale / names
    total = (weights * returns).sum(axis=1) + rng.normal(0, 0.001, days) if account else None
    daily = attribution.decompose(model, weights, total)
    assert daily.error() <= 1e-12
    totals = attribution.total_parts(
        attribution.rows_of(daily), bootstrap=BootstrapConfig(draws=20)
    )
    whole = float(np.prod(1 + daily.total) - 1)
    assert sum(totals.linked[name] for name in attribution.MAIN) == pytest.approx(whole, abs=1e-12)
    styles = sum(value for name, value in totals.linked.items() if name.startswith("style."))
    assert styles == pytest.approx(totals.linked["style"], abs=1e-14)


def test_totals_have_intervals_that_hold_the_value():
    rng = np.random.default_rng(5)
    common, rest = rng.normal(0.0005, 0.01, 300), rng.normal(0.0, 0.002, 300)
    rows = {"total": common + rest, "common": common, "selection": rest}
    totals = attribution.total_parts(rows, bootstrap=BootstrapConfig(draws=400))
    for name, found in totals.intervals.items():
        assert found.value == pytest.approx(totals.linked[name], rel=1e-10)
        assert found.low < found.value < found.high
    yearly = totals.per_year["common"]
    assert yearly.value == pytest.approx(common.mean() * 252, rel=1e-10)
    again = attribution.total_parts(rows, bootstrap=BootstrapConfig(draws=400))
    assert again.intervals == totals.intervals
    # The whole return has the interval that its score has.
    total = np.random.default_rng(8).normal(0, 0.02, 90)
    scored = score(series_from_nav(growth(total)))["cumulative_return"]
    found = attribution.total_parts({"total": total, "common": total * 0.3}).intervals["total"]
    assert (found.low, found.high) == pytest.approx((scored.low, scored.high), rel=1e-9)


def test_ruin_and_emptiness_have_a_reason():
    gone = attribution.total_parts({"total": np.array([0.1, -1.0])})
    assert (
        gone.linked is None
        and "-100 %" in str(gone.reason)
        and gone.intervals["total"].value is None
    )
    assert attribution.total_parts({"total": np.zeros(0)}).reason == "there are no sessions"
    found = attribution.total_parts({"total": np.array([0.1, 0.1])}).intervals["total"]
    assert (found.value, found.low) == (pytest.approx(0.21), None) and "at least 20" in str(
        found.note
    )


def test_brinson_worked_by_hand():
    weights = np.array([[0.6, 0.2, 0.0]])
    benchmark = np.array([[0.5, 0.0, 0.5]])
    returns = np.array([[0.10, 0.02, -0.02]])
    parts = attribution.brinson(weights, benchmark, returns, np.array([0, 0, 1]), ("tech", "oil"))
    level = 0.04
    own = (0.06 + 0.004) / 0.8
    assert parts.groups == ("tech", "oil", "cash")
    assert parts.allocation[0] == pytest.approx(
        [0.3 * (0.10 - level), -0.5 * (-0.02 - level), 0.2 * (0 - level)]
    )
    assert parts.selection[0] == pytest.approx([0.5 * (own - 0.10), 0.0, 0.0])
    assert parts.interaction[0] == pytest.approx([0.3 * (own - 0.10), 0.0, 0.0])
    assert parts.error() < 1e-16


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_brinson_is_exact_with_shorts_leverage_and_missing_groups(seed, neutral, absent):
    rng = np.random.default_rng(seed)
    weights, returns = rng.normal(0, 0.4, (9, 12)), rng.normal(0, 0.05, (9, 12))
    group = np.arange(12) % 4
    if neutral:
        weights[:, 8] = -weights[:, 0] - weights[:, 4]  # group 0 nets out
    base = rng.random((9, 12))
    if absent:
        base[:, group == 2] = 0.0
    parts = attribution.brinson(
        weights, base / base.sum(axis=1, keepdims=True), returns, group, ("a", "b", "c", "d")
    )
    assert parts.error() <= 1e-12
    assert np.isfinite(parts.selection).all()


def test_shapes_must_fit_weights_be_numbers_and_a_benchmark_whole():
    two, none = np.ones((1, 2)), np.array([0, 0])
    for said, wrong in (
        ("shape", lambda: attribution.decompose(worked(), np.zeros((2, 2)))),
        ("not a number", lambda: attribution.decompose(worked(), np.full((2, 3), np.nan))),
        ("sum to 1", lambda: attribution.brinson(two, two, two, none, ("a",))),
        ("shape", lambda: attribution.brinson(two, np.ones((1, 3)), two, none, ("a",))),
    ):
        with pytest.raises(UserError, match=said):
            wrong()


def test_returns_alone_find_constant_exposures():
    rng = np.random.default_rng(1)
    days, names = 400, 60
    values = rng.normal(size=(days, 2, names))
    premia = rng.normal(0, 0.01, (days, 2, 1))
    moved = rng.normal(0.0, 0.01, (days, 1)) + (values * premia).sum(axis=1)
    returns, ones = moved + rng.normal(0, 0.005, (days, names)), np.ones((days, names))
    model = attribution.fit(attribution.CrossSection(returns, values, ones, ones > 0, ("x", "y")))
    total = 0.0004 + 0.9 * model.common + model.premia @ np.array([0.5, -0.3])
    found = attribution.fit_returns(model, total)
    assert found.market == pytest.approx(0.9, abs=1e-9)
    assert found.betas == pytest.approx([0.5, -0.3], abs=1e-9)
    assert found.daily.selection == pytest.approx(np.full(days, 0.0004), abs=1e-11)
    assert found.daily.error() < 1e-15
    with pytest.raises(UserError, match="one per session"):
        attribution.fit_returns(model, total[1:])
    short = attribution.fit(
        attribution.CrossSection(returns[:8], values[:8], ones[:8], ones[:8] > 0, ("x", "y"))
    )
    with pytest.raises(UserError, match="too few"):
        attribution.fit_returns(short, np.zeros(8))
