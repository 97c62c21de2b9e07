"""Critical differences, agreement of raters, and ratings from comparisons."""

from itertools import product

import numpy as np
import pytest
import scipy
from hypothesis import given, settings, strategies as st

from tradeassay.core.errors import UserError
from tradeassay.metrics import agreement as raters, critical_difference
from tradeassay.metrics.ranks import Pairing, ratings, tied_ranks


def test_friedman_is_scipys_and_the_difference_is_the_books():
    scores = np.random.default_rng(3).normal(size=(14, 4))
    for table in (np.round(scores), scores):  # with ties and without
        found = critical_difference(table, list("abcd"))
        statistic, p = scipy.stats.friedmanchisquare(*table.T)
        assert (found.statistic, found.p_value) == pytest.approx((statistic, p))
    # Demsar (2006): q is 2.569 for four classifiers; 14 data sets give a critical difference of 1.25.
    assert found.difference == pytest.approx(1.25, abs=0.005)
    assert sum(found.mean_ranks.values()) == pytest.approx(10.0)


def test_groups_are_neighbours_that_cannot_be_told_apart():
    scores = np.tile([10.0, 9.0, 1.0], (40, 1)) + np.random.default_rng(5).normal(0, 2.0, (40, 3))
    found = critical_difference(scores, ["best", "next", "last"])
    assert found.groups == (("best", "next"),)
    assert list(found.mean_ranks)[-1] == "last"
    alike = critical_difference(np.ones((5, 3)), ["a", "b", "c"])
    assert alike.p_value == 1.0 and alike.groups == (("a", "b", "c"),)
    with pytest.raises(UserError, match="markets"):
        critical_difference(np.ones((1, 3)), ["a", "b", "c"])


# Four observers, twelve units, "." is no rating: the example of Krippendorff, Computing Alpha-Reliability (2011).
_ROWS = {
    "A": "1 2 3 3 2 1 4 1 2 . . .",
    "B": "1 2 3 3 2 2 4 1 2 5 . 3",
    "C": ". 3 3 3 2 3 4 2 2 5 1 .",
    "D": "1 2 3 3 2 4 4 1 2 5 1 .",
}
UNITS = [
    {name: int(rating) for name, rating in zip(_ROWS, column, strict=True) if rating != "."}
    for column in zip(*map(str.split, _ROWS.values()), strict=True)
]


@pytest.mark.parametrize(("level", "printed"), [("nominal", 0.743), ("interval", 0.849)])
def test_the_worked_example(level, printed):
    found = raters.krippendorff_alpha(UNITS, level)
    assert found.value == pytest.approx(printed, abs=5e-4)
    assert found.n == 11  # the last unit has one rating
    one, two = (raters.krippendorff_alpha(UNITS, level, draws=200, seed=3) for _ in range(2))
    assert one == two and one.low <= one.value <= one.high


def test_two_raters_by_hand_and_nothing_to_measure():
    # yes/yes, yes/yes, no/no, yes/no: coincidences yy 4, nn 2, yn + ny 2; margins 5 and 3 of 8.
    # observed 2/8; expected 2*5*3/(8*7) = 30/56; alpha = 1 - (2/8)/(30/56) = 8/15.
    units = [
        {"a": "yes", "b": "yes"},
        {"a": "yes", "b": "yes"},
        {"a": "no", "b": "no"},
        {"a": "yes", "b": "no"},
    ]
    assert raters.krippendorff_alpha(units).value == pytest.approx(8 / 15)
    assert raters.krippendorff_alpha([{"a": 1}, {"b": 2}]).reason == "no unit has two ratings"
    assert raters.krippendorff_alpha([{"a": 1, "b": 1}]).value is None


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=4), min_size=2, max_size=12))
def test_full_agreement_is_one_and_order_of_units_is_nothing(ratings):
    units = [dict(zip("abcd", row, strict=False)) for row in ratings]
    perfect = raters.krippendorff_alpha(
        [dict.fromkeys(unit, next(iter(unit.values()))) for unit in units]
    ).value
    assert perfect is None or perfect == pytest.approx(1.0)
    found, again = (
        raters.krippendorff_alpha(each, "interval").value for each in (units, units[::-1])
    )
    assert found == again if found is None else found == pytest.approx(again)
    assert found is None or found <= 1.0 + 1e-12


def games(first: str, second: str, won: int, lost: int) -> list[Pairing]:
    return [
        Pairing(first=first, second=second, won=w, group="g") for w in [1.0] * won + [0.0] * lost
    ]


def test_two_players_by_hand_and_one_who_never_lost() -> None:
    # 30 of 40 won, plus half a win and half a loss against an average opponent each.
    found = ratings(games("a", "b", 30, 10))
    assert found["a"].value - found["b"].value == pytest.approx(400 * np.log10(3), rel=0.05)
    assert found["a"].value + found["b"].value == pytest.approx(3000)
    assert found["a"].low is None and "five groups" in found["a"].note
    assert np.isfinite(ratings(games("a", "b", 5, 0))["a"].value) and ratings([]) == {}


def test_the_order_of_strength_is_found_with_intervals():
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
def test_ratings_maximise_the_likelihood(seed):
    """Against a general optimiser, with somebody who wins everything among them."""
    wins = np.random.default_rng(seed).integers(0, 6, (4, 4)).astype(float)
    np.fill_diagonal(wins, 0.0)
    wins[0, 1:], wins[1:, 0] = 5.0 * (1 + 20 * seed), 0.0

    def against(level: np.ndarray) -> float:
        gap = level[:, None] - level[None, :]
        average = np.logaddexp(0, -level).sum() + np.logaddexp(0, level).sum()
        return float((wins * np.logaddexp(0, -gap)).sum() + 0.5 * average)

    best = scipy.optimize.minimize(against, np.zeros(4), tol=1e-10).x
    pairs = product(enumerate("abcd"), repeat=2)
    found = ratings([one for (i, a), (j, b) in pairs for one in games(a, b, int(wins[i, j]), 0)])
    expected = 1500 + 400 / np.log(10) * (best - best.mean())
    assert [found[name].value for name in "abcd"] == pytest.approx(expected, abs=0.05)


def counted_tau(x: np.ndarray, y: np.ndarray) -> float:
    """Tau-b by counting pairs."""
    rows, columns = np.triu_indices(x.size, 1)
    s, t = np.sign(x[rows] - x[columns]), np.sign(y[rows] - y[columns])
    return float((s * t).sum() / np.sqrt(np.abs(s).sum() * np.abs(t).sum()))


def test_rank_correlations_are_counted_or_scipys_and_carry_intervals():
    generator = np.random.default_rng(1)
    for _ in range(10):
        x, y = (
            generator.integers(0, 6, 12).astype(float),
            generator.integers(0, 6, 12).astype(float),
        )
        assert raters._kendall_tau(x, y) == pytest.approx(counted_tau(x, y), abs=1e-9)
        assert raters.spearman_rho(x, y) == pytest.approx(
            scipy.stats.spearmanr(x, y).statistic, abs=1e-9
        )
    assert np.isnan(raters._kendall_tau(np.ones(4), np.arange(4.0)))
    assert raters._kendall_tau(np.array([1, 2, np.nan]), np.array([1, 2, 0.0])) == 1.0
    x = np.arange(12.0)
    found = raters.correlation_measure(
        raters.spearman_rho, x, -x + np.random.default_rng(0).normal(0, 3, 12)
    )
    assert found.low < found.value < found.high < 0
    assert raters.correlation_measure(raters.spearman_rho, x[:1], x[:1]).value is None


def test_reviewers_agreement():
    # Of the fifteen pairs of items one is turned round: (14 - 1) / 15.
    scores = np.array([[1, 2, 3, 4, 5, 6], [2, 3, 4, 5, 6, 7], [1, 3, 2, 4, 5, 6.0]])
    assert raters.agreement(scores).value == pytest.approx((1 + 2 * (13 / 15)) / 3)
    assert raters.agreement(scores[:1]).value is None


@given(st.lists(st.integers(-3, 3) | st.floats(-2, 2), max_size=30))
def test_ranks_are_scipys(values):
    assert tied_ranks(np.array(values)).tolist() == scipy.stats.rankdata(values).tolist()
