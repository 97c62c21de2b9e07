"""Bands and e-values that hold at every look."""

import math

import numpy as np
import pytest

from tradeassay.metrics import (
    e_bh,
    e_value,
    lucky_share,
    watched_interval,
    watched_mean,
    watched_sign,
)
from tradeassay.metrics.anytime import FIRST_LOOK, level_at


def test_the_band_by_hand():
    """Twelve weeks of +1 and -1 in turn: S = 0, V = 12, and the scale of a week is 1."""
    weeks = np.array([1.0, -1.0] * 6)
    found = watched_mean(np.repeat(weeks, 5) / 5.0, level=0.95)
    assert found.sessions == (60,) and found.mean[0] == pytest.approx(0.0)
    prior = 378 / 5 / (2 * math.log(20) + math.log1p(2 * math.log(20)))
    end = 5.0 * float(found.high[0])
    whole = 12.0 + 12.0 * end**2 + prior
    assert (12.0 * end) ** 2 == pytest.approx(whole * math.log(whole / (prior * 0.05**2)))
    assert found.low[0] == pytest.approx(-found.high[0])
    assert e_value(np.repeat(weeks, 5) / 5.0) == pytest.approx(math.sqrt(prior / (12.0 + prior)))


def test_it_only_narrows_and_says_when_it_cannot():
    drawn = np.random.default_rng(4).standard_t(4, 500)
    found = watched_mean(drawn)
    assert (np.diff(found.low) >= 0).all() and (np.diff(found.high) <= 0).all()
    few, still = watched_interval(drawn[: FIRST_LOOK - 1], periods_per_year=252), np.zeros(300)
    assert few.low is None and "first look is after 60" in few.note
    assert watched_interval(still, periods_per_year=252).low is None and e_value(still) is None
    turned = np.concatenate([drawn[:250] * 0.1 + 1.0, drawn[250:] * 0.1 - 5.0])
    assert "no one mean fits" in watched_interval(turned, periods_per_year=252).note
    assert watched_interval(np.array([1.0, np.nan]), periods_per_year=252).value is None


def test_signs_are_those_of_the_bands():
    rng = np.random.default_rng(5)
    drawn = rng.standard_t(4, (200, 300)) + rng.normal(0.0, 0.2, (200, 1))
    signs = watched_sign(drawn, level=0.99).tolist()
    for row, sign in zip(drawn, signs, strict=True):
        found = watched_mean(row, level=0.99)
        assert sign == int(found.low[-1] > 0.0) - int(found.high[-1] < 0.0)
    assert set(signs) == {-1, 0, 1}


def test_whoever_has_no_edge_is_hardly_ever_called_ahead():
    drawn = np.random.default_rng(6).standard_t(3, (1000, 252))
    assert (watched_sign(drawn) != 0).mean() <= 0.05
    assert sum((e_value(row) or 0.0) >= 20.0 for row in drawn) <= 50


def test_a_look_costs_as_much_as_a_stricter_test():
    assert 0.99 < level_at(252, 0.95) < 0.999 and level_at(252, 0.995) > level_at(252, 0.95)


def test_e_bh_by_hand():
    """Of four, e-values from 80 are found alone, two from 40, three from 26.7."""
    assert e_bh([79.0, 1.0, 0.5, 0.1]) == [False] * 4
    assert e_bh([81.0, 1.0, None, 0.5, 0.1]) == [True, False, None, False, False]
    assert e_bh([41.0, 3.0, 45.0, 0.1]) == [True, False, True, False]
    assert e_bh([]) == []


def test_how_many_winners_were_lucky():
    rng = np.random.default_rng(7)
    nobody = lucky_share([*rng.normal(0.0, 0.01, (300, 250))])
    assert nobody.low < 1.0 <= nobody.high or nobody.value > 0.8
    half = [*rng.normal(0.0, 0.01, (150, 250)), *rng.normal(0.003, 0.01, (150, 250))]
    found = lucky_share(half)
    assert 0.05 < found.value < 0.2 and found.low < found.value < found.high
    assert "fewer than 20 agents" in lucky_share(half[:5]).reason
