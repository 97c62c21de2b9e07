"""pass^k and the split of a spread, by numbers worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tradeassay.metrics.intervals import wilson_interval
from tradeassay.metrics.reliability import (
    Play,
    PlayWords,
    pass_all,
    reliability,
    spread_shares,
)


def play(model: str, window: str, seed: int, score: float | None, wording: str = "plain") -> Play:
    passed = score is not None and score > 0
    return Play(model=model, wording=wording, window=window, seed=seed, passed=passed, score=score)


def test_all_of_k_is_counted_without_putting_back():
    """3 of 4: two of them both pass in 3 of 6 pairs, three in 1 of 4, four never; 2 of 4: 1 of 6
    pairs.
    """
    once = [[True, True, True, False]]
    assert [pass_all(once, k).value for k in (1, 2, 3, 4)] == pytest.approx([0.75, 0.5, 0.25, 0.0])
    both = [*once, [True, False, True, False]]
    assert pass_all(both, 2, units=2).value == pytest.approx((3 / 6 + 1 / 6) / 2)
    assert pass_all(once, 5).value is None and "5 plays" in str(pass_all(once, 5).reason)
    # The interval is Wilson's.
    low, high = wilson_interval(3, 4, 0.95)
    alone = pass_all([[True, True, True, False]], 2)
    assert (alone.low, alone.high) == pytest.approx((low**2, high**2))
    spread = pass_all([[True, True], [True, False], [False, False]], 2, units=3)
    assert spread.value == pytest.approx(1 / 3)
    assert (spread.low, spread.high) == pytest.approx(wilson_interval(1.0, 3, 0.95))


@given(st.integers(0, 2**31))
def test_all_of_k_is_what_a_power_of_the_chance_expects(seed):
    """Drawing k of n plays at random, as often as one likes, passes as often as the formula
    says.
    """
    group = list(np.random.default_rng(seed).random(6) < 0.7)
    picks = [(a, b, c) for a in range(6) for b in range(a) for c in range(b)]
    by_hand = np.mean([group[a] and group[b] and group[c] for a, b, c in picks])
    assert pass_all([group], 3).value == pytest.approx(by_hand)


def test_components_by_hand():
    """Models at 0 and 4, seeds 1 apart around them, nothing else varied.

    Within a cell the squares are 2 * 0.25 each and one degree of freedom: MS of seeds 0.5. Between
    models 2 * ((2 - 0) ** 2 + (2 - 4) ** 2) = 16, one degree: the component is (16 - 0.5) / 2 =
    7.75.
    """
    table = np.array([[-0.5, 0.5], [3.5, 4.5]]).reshape(2, 1, 1, 2)
    shares = spread_shares(table)
    assert shares[0] == pytest.approx(7.75 / 8.25) and shares[4] == pytest.approx(0.5 / 8.25)
    assert np.isnan(shares[1:4]).all()


def test_what_models_and_windows_do_together_is_no_merit_of_either():
    """Means 1 and -1 crossed: no model and no window is better than another, all is together
    (seeds alike).
    """
    crossed = np.array([[[1.0, -1.0]], [[-1.0, 1.0]]])[..., None].repeat(2, axis=-1)
    assert spread_shares(crossed) == pytest.approx([0.0, np.nan, 0.0, 1.0, 0.0], nan_ok=True)
    # Played once, the rest of the table is all that effects are measured by; it cannot be told from seeds.
    once = np.array([[[1.0, 2.0, 3.0]], [[5.0, 6.0, 7.0]]])[..., None]
    model, _, window, together, seed = spread_shares(once)
    assert (model, window, together) == pytest.approx((8 / 9, 1 / 9, 0.0)) and np.isnan(seed)


def test_components_are_unbiased_over_many_tables():
    rng = np.random.default_rng(3)
    shape, sizes = (4, 3, 5, 3), np.array([2.0, 1.0, 3.0, 0.5, 1.0])
    sums = np.zeros(5)
    for _ in range(300):
        table = rng.normal(0, sizes[0] ** 0.5, (4, 1, 1, 1)) + rng.normal(
            0, sizes[1] ** 0.5, (1, 3, 1, 1)
        )
        table = (
            table
            + rng.normal(0, sizes[2] ** 0.5, (1, 1, 5, 1))
            + rng.normal(0, sizes[3] ** 0.5, (4, 3, 5, 1))
        )
        sums += spread_shares(table + rng.normal(0, 1.0, shape))
    assert sums / 300 == pytest.approx(sizes / sizes.sum(), abs=0.05)


def test_a_record_says_what_was_repeated_and_what_was_left_out():
    plays = [
        play(model, window, seed, base + bump + 0.1 * seed)
        for model, base in (("a", 1.0), ("b", -1.0))
        for window, bump in (("w1", 0.5), ("w2", -0.5))
        for seed in (0, 1)
    ]
    found = reliability([*plays, play("a", "w3", 0, 9.0)], called=PlayWords(score="growth"))
    assert found is not None and found.left_out == 1
    assert found.levels == {"model": 2, "wording": 1, "window": 2, "seed": 2}
    assert [one.value for one in found.passes["a"]["seed"]] == [1.0, 1.0]
    assert [one.value for one in found.passes["b"]["window"]] == [0.0, 0.0]
    assert found.spread["wording"].reason == "there is one wording"
    assert "no interval" in str(found.spread["model"].note)
    assert sum(one.value or 0.0 for one in found.spread.values()) == pytest.approx(1.0)
    assert any(
        line.startswith("The spread of growth by source: model 79.8%") for line in found.sentences
    )
    rules = reliability(plays, called=PlayWords(score="growth", model="agent"))
    assert rules is not None and "by source: agent 79.8%" in rules.of_spread


def test_a_failed_play_passes_nothing_and_one_play_says_nothing():
    assert reliability([play("a", "w", 0, 1.0), play("b", "w", 0, 1.0)]) is None
    found = reliability([play("a", "w", 0, 1.0), play("a", "w", 1, None)])
    assert found is not None and found.passes["a"]["seed"][1].value == 0.0
    assert found.spread["seed"].value is None
    many = reliability(
        [play(m, f"w{w}", s, m == "a" or s) for m in "ab" for w in range(6) for s in (0, 1)]
    )
    assert many is not None and many.spread["model"].low is not None
    known = [
        (one.low, one.value, one.high) for one in many.spread.values() if one.value is not None
    ]
    assert all(0.0 <= low <= value <= high <= 1.0 for low, value, high in known)


def test_a_play_given_twice_is_one_and_reasons_are_those_of_the_plays():
    def play(window: str, seed: int, score: float | None = 0.1, passed: bool = True) -> Play:
        return Play(model="m", wording="a", window=window, seed=seed, passed=passed, score=score)

    twice = reliability([play("w", 0), play("w", 0), play("w", 1)])
    assert (
        twice is not None
        and list(twice.passes["m"]) == ["seed"]
        and len(twice.passes["m"]["seed"]) == 2
    )
    assert twice.spread["seed"].reason == "all scores are the same"
    failed = reliability(
        [play(window, seed, None, passed=False) for window in "vw" for seed in (0, 1)]
    )
    assert failed is not None and failed.spread["window"].reason == "no play has a score"
    endless = reliability(
        [play(w, s, math.inf if s == 2 else 0.1 * s) for w in "vw" for s in range(3)]
    )
    assert endless is not None and endless.left_out == 2 and endless.spread["seed"].value == 1.0


def test_all_plays_are_all_of_them():
    """9 of 10 passed: never all ten, and any eight of them in C(9, 8) / C(10, 8) = 9 / 45 of all
    choices.
    """
    found = reliability([play("a", "w", seed, 1.0 if seed else -1.0) for seed in range(10)])
    assert found is not None and found.counts == {"a": {"seed": 10}}
    first, *_, eight, every = found.passes["a"]["seed"]
    assert len(found.passes["a"]["seed"]) == 9
    assert [first.value, eight.value, every.value] == pytest.approx([0.9, 0.2, 0.0])
    assert found.sentences[0].startswith(
        "a passes in 90.0% of plays; in all 10 seeds at once: 0.0% ("
    )
