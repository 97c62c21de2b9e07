"""What must hold for any bars."""

import numpy as np
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from tradeassay.factors import FACTOR_NAMES, FactorBars, compute_all, latest, standardise, winsorise, zscore

SESSIONS = 290
prices = st.floats(1.0, 1000.0, width=32) | st.just(float("nan"))


@st.composite
def worlds(draw) -> FactorBars:
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    arrays = [np.exp(rng.normal(3.0, draw(st.sampled_from([0.01, 0.5])), (SESSIONS, 2))) for _ in range(5)]
    holes = draw(st.floats(0.0, 0.25))
    for array in arrays:
        array[rng.random(array.shape) < holes] = np.nan
    return FactorBars(*arrays)


@settings(max_examples=25, deadline=None)
@given(bars=worlds(), t=st.integers(0, SESSIONS - 1), seed=st.integers(0, 99))
def test_later_rows_never_change_a_value(bars, t, seed):
    before = compute_all(bars)
    rng = np.random.default_rng(seed)
    changed = []
    for array in (bars.open, bars.high, bars.close, bars.volume, bars.amount):
        other = array.copy()
        other[t + 1 :] = rng.choice([np.nan, 1e-9, 1e12, 5.0], other[t + 1 :].shape)
        changed.append(other)
    after = compute_all(FactorBars(*changed))
    for name in FACTOR_NAMES:
        assert before[name][: t + 1].tobytes() == after[name][: t + 1].tobytes(), name


@settings(max_examples=20, deadline=None)
@given(bars=worlds(), extra=st.integers(1, 200))
def test_older_rows_than_the_window_never_matter(bars, extra):
    junk = np.full((extra, 2), 1e9)
    longer = FactorBars(
        *(np.vstack([junk, array]) for array in (bars.open, bars.high, bars.close, bars.volume, bars.amount))
    )
    for name in FACTOR_NAMES:
        assert np.array_equal(latest(name, bars), latest(name, longer), equal_nan=True), name


@settings(max_examples=20, deadline=None)
@given(bars=worlds(), split=st.sampled_from([2.0, 4.0, 0.5]))
def test_the_unit_of_a_share_does_not_matter(bars, split):
    scaled = FactorBars(bars.open / split, bars.high / split, bars.close / split, bars.volume * split, bars.amount)
    for name, value in compute_all(bars).items():
        assert np.array_equal(value, compute_all(scaled)[name], equal_nan=True), name


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 40)), elements=prices))
def test_standardised_rows_have_mean_0_and_deviation_1(values):
    scored = zscore(values)
    assert np.array_equal(np.isnan(scored), np.isnan(values))
    for row, raw in zip(scored, values, strict=True):
        present = row[~np.isnan(row)]
        if present.size == 0:
            continue
        assert abs(present.mean()) < 1e-9
        if np.nanmax(raw) > np.nanmin(raw) * (1 + 1e-9):
            assert abs(present.std() - 1.0) < 1e-9
        else:
            assert np.all(np.abs(present) <= 1.0 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 120)), elements=prices))
def test_winsorising_equals_numpy_quantiles(values):
    cut = winsorise(values)
    for row, raw in zip(cut, values, strict=True):
        present = raw[~np.isnan(raw)]
        if present.size:
            low, high = np.quantile(present, [0.01, 0.99])
            np.testing.assert_allclose(row, np.clip(raw, low, high), rtol=1e-9)
        else:
            assert np.isnan(row).all()


def test_standardise_cuts_then_scores():
    values = np.concatenate([np.linspace(-1, 1, 199), [1e6]])
    scored = standardise(values)
    assert scored.max() < 5.0 and abs(scored.mean()) < 1e-12
    assert np.array_equal(standardise(np.empty((2, 0))), np.empty((2, 0)))
    assert np.array_equal(zscore(np.full(5, 3.3)), np.zeros(5))
