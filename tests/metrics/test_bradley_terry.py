from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

from tradeassay.metrics.agreement import agreement, correlation_measure, kendall_tau, spearman_rho
from tradeassay.metrics.ranks import Pairing, ratings


def games(first: str, second: str, won: int, lost: int, group: str = "g") -> list[Pairing]:
    made = [1.0] * won + [0.0] * lost
    return [Pairing(first=first, second=second, won=w, group=group) for w in made]


def test_two_players_by_hand() -> None:
    # 30 of 40 won, plus half a win and half a loss against an average opponent each.
    found = ratings(games("a", "b", 30, 10))
    gap = found["a"].value - found["b"].value
    assert gap == pytest.approx(400 * np.log10(3), rel=0.05)
    assert found["a"].value + found["b"].value == pytest.approx(3000)
    assert found["a"].low is None and "five groups" in found["a"].note


def test_the_order_of_strength_is_found_with_intervals() -> None:
    generator = np.random.default_rng(0)
    strength = {"a": 4.0, "b": 2.0, "c": 1.0}
    made = []
    for group in range(40):
        for first, second in (("a", "b"), ("a", "c"), ("b", "c")):
            chance = strength[first] / (strength[first] + strength[second])
            won = float(generator.random() < chance)
            made.append(Pairing(first=first, second=second, won=won, group=str(group)))
    found = ratings(made, draws=200)
    assert found["a"].value > found["b"].value > found["c"].value
    for name in strength:
        truth = 1500 + 400 * np.log10(strength[name] / 2.0)
        width = found[name].high - found[name].low  # some four standard errors
        assert abs(found[name].value - truth) < width < 200


@pytest.mark.parametrize("seed", range(4))
def test_ratings_maximise_the_likelihood(seed: int) -> None:
    """Against a general optimiser, with somebody who wins everything among them."""
    wins = np.random.default_rng(seed).integers(0, 6, (4, 4)).astype(float)
    np.fill_diagonal(wins, 0.0)
    wins[0, 1:], wins[1:, 0] = 5.0 * (1 + 20 * seed), 0.0

    def against(level: np.ndarray) -> float:
        gap = level[:, None] - level[None, :]
        average = np.logaddexp(0, -level).sum() + np.logaddexp(0, level).sum()
        return float((wins * np.logaddexp(0, -gap)).sum() + 0.5 * average)

    best = optimize.minimize(against, np.zeros(4), tol=1e-10).x
    names = "abcd"
    made = [
        comparison
        for i in range(4)
        for j in range(4)
        for comparison in games(names[i], names[j], int(wins[i, j]), 0)
    ]
    found = ratings(made)
    assert [found[name].value for name in names] == pytest.approx(
        1500 + 400 / np.log(10) * (best - best.mean()), abs=0.05
    )


def test_somebody_who_never_lost_has_a_rating() -> None:
    found = ratings(games("a", "b", 5, 0))
    assert np.isfinite(found["a"].value)
    assert ratings([]) == {}


def counted_tau(x: np.ndarray, y: np.ndarray) -> float:
    """Tau-b by counting pairs."""
    rows, columns = np.triu_indices(x.size, 1)
    s, t = np.sign(x[rows] - x[columns]), np.sign(y[rows] - y[columns])
    return float((s * t).sum() / np.sqrt(np.abs(s).sum() * np.abs(t).sum()))


def test_tau_and_rho_agree_with_scipy_and_with_counting() -> None:
    generator = np.random.default_rng(1)
    for _ in range(10):
        x, y = generator.integers(0, 6, 12).astype(float), generator.integers(0, 6, 12).astype(float)
        assert kendall_tau(x, y) == pytest.approx(counted_tau(x, y), abs=1e-9)
        assert spearman_rho(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)
    assert np.isnan(kendall_tau(np.ones(4), np.arange(4.0)))
    assert kendall_tau(np.array([1, 2, np.nan]), np.array([1, 2, 0.0])) == 1.0


def test_correlations_carry_intervals() -> None:
    x = np.arange(12.0)
    found = correlation_measure(spearman_rho, x, -x + np.random.default_rng(0).normal(0, 3, 12))
    assert found.low < found.value < found.high < 0
    assert correlation_measure(spearman_rho, x[:1], x[:1]).value is None


def test_reviewers_agreement() -> None:
    scores = np.array([[1, 2, 3, 4, 5, 6], [2, 3, 4, 5, 6, 7], [1, 3, 2, 4, 5, 6.0]])
    found = agreement(scores)
    assert found.value == pytest.approx((1 + 2 * (13 / 15)) / 3)
    assert agreement(scores[:1]).value is None
