"""Probability of backtest overfitting."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tradeassay.core.errors import UserError
from tradeassay.metrics import overfitting


def slow(returns: np.ndarray, splits: int) -> tuple[float, float]:
    """The definition, word for word."""
    n, count = returns.shape
    blocks = np.array_split(returns[n - n // splits * splits :], splits)
    below, losses, ways = 0.0, 0, 0
    for half in combinations(range(splits), splits // 2):
        past = np.concatenate([blocks[k] for k in half])
        future = np.concatenate([blocks[k] for k in range(splits) if k not in half])
        best = int(np.argmax(past.mean(0) / past.std(0, ddof=1)))
        ahead = future.mean(0) / future.std(0, ddof=1)
        rank = 1 + (ahead < ahead[best]).sum()
        odds = rank / (count + 1)
        below += 0.5 if rank == (count + 1) / 2 else float(odds < 0.5)
        losses += ahead[best] < 0
        ways += 1
    return below / ways, losses / ways


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 6), st.sampled_from([4, 6, 8]))
def test_it_is_the_definition(seed: int, count: int, splits: int) -> None:
    returns = np.random.default_rng(seed).normal(0.0002, 0.01, (97, count))
    found = overfitting(returns, splits=splits)
    assert (found.probability.value, found.loss.value) == pytest.approx(slow(returns, splits), rel=1e-10)
    assert found.best.sum() == found.logits.size


@pytest.mark.parametrize("count", [2, 3, 5, 10])
def test_noise_is_overfitted_half_of_the_time(count: int) -> None:
    rng = np.random.default_rng(1)
    noise = [overfitting(rng.normal(0, 1, (160, count)), splits=8).probability.value for _ in range(60)]
    assert np.mean(noise) == pytest.approx(0.5, abs=0.12)


def test_skill_is_not_overfitted() -> None:
    rng = np.random.default_rng(1)
    skilled = rng.normal(0, 1, (800, 10))
    skilled[:, 3] += 0.3
    found = overfitting(skilled)
    assert found.probability.value < 0.01 and found.best[3] == found.logits.size == 12870
    assert found.probability.low is None and "share sessions" in str(found.probability.note)


def test_no_value_and_nonsense() -> None:
    assert "two strategies" in str(overfitting(np.ones((50, 1))).probability.reason)
    assert "too few" in str(overfitting(np.ones((20, 3))).probability.reason)
    assert overfitting(np.zeros((64, 3))).slope is None
    with pytest.raises(UserError, match="splits"):
        overfitting(np.ones((50, 2)), splits=7)
    with pytest.raises(UserError, match="two-dimensional"):
        overfitting(np.ones(50))
