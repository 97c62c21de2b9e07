"""Sellers of options are known by how they move before they lose, and nobody else is taken for
one.
"""

import math

import numpy as np
import pytest

from tradeassay.metrics.option_selling import _put, option_selling


def quiet_market(rng: np.random.Generator, n: int) -> np.ndarray:
    """Spells of 8 and 16 % volatility, without a crash."""
    while True:
        wild = np.repeat(np.where(rng.random(n // 40 + 1) < 0.35, 0.16, 0.08), 40)[:n]
        market = wild / math.sqrt(252) * rng.standard_normal(n) + 0.10 / 252
        path = np.cumprod(1.0 + market)
        if (path / np.maximum.accumulate(path)).min() > 0.9 and market.min() > -0.05:
            return market


def sold(market: np.ndarray, strike: float, rows: int, premium: float = 1.2) -> np.ndarray:
    """Return daily gains of one put sold again and again, at a slower volatility than the test
    assumes.
    """
    variance = np.empty(market.size + 1)
    variance[0] = market.var()
    for row, move in enumerate(market):
        variance[row + 1] = 0.97 * variance[row] + 0.03 * move * move
    volatility = premium * np.sqrt(variance)
    path = np.concatenate([[1.0], np.cumprod(1.0 + market)])
    gains = np.empty(market.size)
    for row in range(market.size):
        sale = row - row % rows
        left = rows - row % rows
        levels = path[[row, row + 1]] / path[sale]
        spread = volatility[[row, row + 1]] * np.sqrt([left, left - 1])
        value, _ = _put(levels, np.array([1.0 + strike]), spread)
        gains[row] = value[0, 0] - value[1, 0]
    return gains


def beyond(total: np.ndarray, market: np.ndarray) -> np.ndarray:
    return total - np.cov(total, market)[0, 1] / market.var(ddof=1) * market


def test_puts_by_hand():
    # At the market, a deviation of 0.2 until the end: 2 N(0.1) - 1 = 0.0796557, and N(-0.1) is sold as exposure.
    value, down = _put(np.array([1.0]), np.array([1.0]), np.array([0.2 / 1.1]))
    assert value[0, 0] == pytest.approx(0.0796557, abs=1e-7)
    assert down[0, 0] == pytest.approx(0.4601722, abs=1e-7)
    # At the end it is what it pays.
    value, _ = _put(np.array([0.8, 1.1]), np.array([1.0]), np.array([0.0, 0.0]))
    assert value[:, 0].tolist() == pytest.approx([0.2, 0.0])


@pytest.mark.parametrize(
    ("strike", "rows", "size"), [(-0.10, 21, 8.0), (-0.05, 21, 2.0), (0, 5, 1)]
)
def test_sellers_are_found_before_they_lose(strike, rows, size):
    found = 0
    for seed in range(6):
        rng = np.random.default_rng([rows, seed])
        market = quiet_market(rng, 756)
        gains = size * sold(market, strike, rows)
        total = 0.3 * market + gains + 0.3 * gains.std() * rng.standard_normal(756) + 0.03 / 252
        made = option_selling(total, market, beyond(total, market), 252)
        found += made.like
        if made.like:
            assert made.shape
            assert made.loss_at_20 < made.loss_at_10 < -0.03
            assert made.worst_at_20 <= made.loss_at_20
        assert not made.crash_in_record
    assert found >= 5


def test_the_loss_of_a_straddle_is_about_right():
    rng = np.random.default_rng(4)
    market = quiet_market(rng, 1260)
    total = sold(market, 0.0, 21) + 0.0005 * rng.standard_normal(1260) + 0.02 / 252
    made = option_selling(total, market, beyond(total, market), 252)
    # A put at the market loses the fall less what it was worth already.
    assert made.like
    assert made.loss_at_20 == pytest.approx(-0.19, abs=0.03)


def test_nobody_else_is_called_a_seller():
    called = 0
    for seed in range(12):
        rng = np.random.default_rng([9, seed])
        market = quiet_market(rng, 756)
        noise = rng.standard_t(3, 756) / math.sqrt(3.0)
        local = np.sqrt(np.convolve(market**2, np.full(10, 0.1), "same")) * rng.standard_normal(756)
        path = np.cumsum(market)
        behind = np.sign(np.concatenate([np.zeros(21), path[20:-1] - path[:-21]]))
        for total in (
            0.5 * market + 0.005 * (noise + 2.0 / math.sqrt(252)),
            0.5 * market + local + 0.05 / 252,
            behind * market + 0.001 * noise + 0.05 / 252,
            0.05 / 252 - behind * market + 0.001 * noise,
            0.05 / 252 - 5.0 * sold(market, -0.05, 21),
        ):
            made = option_selling(total, market, beyond(total, market), 252)
            called += made.like
    assert called == 0


def test_holding_less_while_the_market_is_volatile_sells_nothing():
    for seed in range(8):
        rng = np.random.default_rng([12, seed])
        market = quiet_market(rng, 1000)
        variance, path = market.var(), []
        for move in market:
            path.append(variance)
            variance = 0.9 * variance + 0.1 * move * move
        held = np.minimum(0.10 / math.sqrt(252) / np.sqrt(path), 2.0)
        total = held * market + 0.001 * rng.standard_normal(1000) + 0.03 / 252
        assert not option_selling(total, market, beyond(total, market), 252).shape


def test_what_falls_more_than_the_market_in_a_crash_sells_nothing():
    for seed in range(8):
        rng = np.random.default_rng([13, seed])
        market = quiet_market(rng, 1000)
        market[500:520] -= 0.012
        falls = np.where(market < -0.015, 0.3 * market, 0.0)
        total = market + falls + 0.005 * rng.standard_normal(1000) + 0.06 / 252
        made = option_selling(total, market, beyond(total, market), 252)
        assert made.crash_in_record
        assert not made.shape


def test_a_hedged_seller_is_found():
    rng = np.random.default_rng(5)
    market = quiet_market(rng, 756)
    total = 0.03 / 252 + 3.0 * (market.var() - market**2) + 0.0004 * rng.standard_normal(756)
    made = option_selling(total, market, beyond(total, market), 252)
    assert made.like
    assert "hedged" in made.shape


def test_a_seller_who_books_losses_when_options_end_is_found():
    rng = np.random.default_rng(8)
    market = quiet_market(rng, 1260)
    total = np.full(1260, 0.0004)
    for first in range(3, 1255, 5):
        week = np.prod(1.0 + market[first : first + 5]) - 1.0
        total[first + 4] -= max(-week - 0.01, 0.0)
    total += 0.0005 * rng.standard_normal(1260)
    made = option_selling(total, market, beyond(total, market), 252)
    assert made.like
    assert made.loss_at_10 < -0.06


def test_calls_sold_on_an_index_are_found_on_monthly_rows():
    found = 0
    for seed in range(20):
        rng = np.random.default_rng([10, seed])
        months = 0.04 * rng.standard_normal(120) + 0.006
        total = np.minimum(months, 0.0) + 0.018 + 0.004 * rng.standard_normal(120)
        made = option_selling(total, months, beyond(total, months), 12)
        found += made.like
        assert not option_selling(months - total, months, beyond(months - total, months), 12).like
    assert found >= 18


def test_an_index_fund_loses_what_its_market_does():
    market = quiet_market(np.random.default_rng(6), 504)
    made = option_selling(0.5 * market, market, np.zeros(504), 252)
    assert not made.like
    assert made.loss_at_10 == pytest.approx(-0.05, abs=1e-3)
    assert made.loss_at_20 == pytest.approx(-0.10, abs=1e-3)
    falls = market.copy()
    falls[100] = -0.06
    assert option_selling(falls, falls, np.zeros(504), 252).crash_in_record


def test_odd_series_raise_nothing():
    rng = np.random.default_rng(11)
    market = quiet_market(rng, 504)
    rare = np.where(np.arange(504) % 50 == 0, market, 0.0)
    constant = np.where(np.arange(504) % 2 == 0, 0.01, -0.01)
    for account in (market, rare, constant, rng.standard_normal(504)):
        for against in (market, rare, constant):
            for year in (252, 52, 12, 4, 1):
                option_selling(account, against, account, year)


def test_nothing_is_said_without_a_market_or_rows():
    market = quiet_market(np.random.default_rng(7), 504)
    assert option_selling(market, np.zeros(504), market, 252) is None
    assert option_selling(market[:20], market[:20], market[:20], 252) is None
    assert option_selling(np.zeros(504), market, market, 252) is None
