"""The two numerical parts of the minimum-variance rule, against their definitions."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tradeassay.agents.rules import least_variance, onto_capped_simplex, shrunk_covariance


@given(st.integers(1, 12), st.integers(0, 10_000), st.floats(0.05, 1.0))
def test_projection_is_feasible_and_nearest(n: int, seed: int, cap: float) -> None:
    cap = max(cap, 1.0 / n)
    rng = np.random.default_rng(seed)
    point = rng.normal(size=n)
    found = onto_capped_simplex(point, cap)
    assert abs(found.sum() - 1.0) < 1e-9 and found.min() >= 0.0 and found.max() <= cap + 1e-12
    # Nearest: moving a little from any name to any other never comes closer (the optimality condition).
    pull = point - found
    free_to_rise, free_to_fall = found < cap - 1e-9, found > 1e-9
    if free_to_rise.any() and free_to_fall.any():
        assert pull[free_to_rise].max() <= pull[free_to_fall].min() + 1e-8


def test_projection_by_hand() -> None:
    assert np.allclose(onto_capped_simplex(np.array([0.5, 0.5]), 1.0), [0.5, 0.5])
    assert np.allclose(onto_capped_simplex(np.array([2.0, 0.0]), 1.0), [1.0, 0.0])
    assert np.allclose(onto_capped_simplex(np.array([2.0, 0.0, 0.0]), 0.5), [0.5, 0.25, 0.25])


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 30), st.integers(0, 10_000), st.sampled_from([0.1, 0.3, 1.0]))
def test_no_shift_between_two_names_lowers_the_variance(n: int, seed: int, cap: float) -> None:
    returns = np.random.default_rng(seed).normal(size=(60, n)) * np.linspace(0.005, 0.05, n)
    covariance = shrunk_covariance(returns)
    weights = least_variance(covariance, cap)
    cap = max(cap, 1.0 / n)
    gradient = covariance @ weights
    rise, fall = weights < cap - 1e-7, weights > 1e-7
    assert abs(weights.sum() - 1.0) < 1e-9
    if rise.any():
        assert gradient[rise].min() >= gradient[fall].max() - 1e-5 * np.abs(gradient).max()


def test_shrinkage_by_hand() -> None:
    returns = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    # The sample covariance is diag(0.5, 2), the mean variance 1.25.
    assert np.allclose(shrunk_covariance(returns, 0.0), np.diag([0.5, 2.0]))
    assert np.allclose(shrunk_covariance(returns, 1.0), np.diag([1.25, 1.25]))
    assert np.allclose(shrunk_covariance(returns, 0.5), np.diag([0.875, 1.625]))
    # Ledoit-Wolf: distance = (0.25 + 4)/2 - 1.25^2 = 0.5625; noise = ((1+1+16+16)/4 - 4.25) / (4 x 2) = 0.53125.
    assert np.allclose(
        shrunk_covariance(returns),
        0.53125 / 0.5625 * 1.25 * np.eye(2) + (1 - 0.53125 / 0.5625) * np.diag([0.5, 2.0]),
    )


def test_shrinkage_agrees_with_the_textbook_sum() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(40, 8)) * np.linspace(1, 2, 8)
    x -= x.mean(axis=0)
    n, p = x.shape
    sample = x.T @ x / n
    mean = np.trace(sample) / p
    distance = np.sum((sample - mean * np.eye(p)) ** 2) / p
    noise = sum(np.sum((np.outer(row, row) - sample) ** 2) for row in x) / n**2 / p
    weight = min(noise, distance) / distance
    assert np.allclose(shrunk_covariance(x), weight * mean * np.eye(p) + (1 - weight) * sample)


def test_a_missing_return_counts_as_the_mean() -> None:
    returns = np.array([[1.0, 1.0], [-1.0, np.nan], [0.0, -1.0]])
    assert np.allclose(np.diag(shrunk_covariance(returns, 0.0)), [2 / 3, 2 / 3])
