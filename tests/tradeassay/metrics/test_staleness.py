"""Series that trail their market are found, and liquid ones with noise of all kinds are not."""

import numpy as np
import pytest

from tradeassay.metrics.staleness import Regression, lagged, late_share, lateness, stale_lags


def market_of(rng: np.random.Generator, n: int, deviation: float = 0.01) -> np.ndarray:
    """Volatility that comes in spells of fifty rows, twice as high in every second one."""
    wild = np.repeat(rng.uniform(0.5, 2.0, n // 50 + 1), 50)[:n]
    return deviation * wild * rng.standard_normal(n)


def priced_every(total: np.ndarray, rows: int) -> np.ndarray:
    path = np.cumsum(total)
    priced = np.zeros(total.size)
    priced[::rows] = np.diff(path[::rows], prepend=0.0)
    return priced


def test_lags_by_hand():
    series = np.array([1.0, 2.0, 3.0, 6.0])
    same, late = lagged(series, 1)
    assert same.tolist() == [1.0, 2.0, 3.0, 6.0]
    assert late.tolist() == [3.0, 1.0, 2.0, 3.0]
    fit = Regression(2.0 + 3.0 * series, [series])
    assert fit.coefficients == pytest.approx([2.0, 3.0])
    assert fit.explained == pytest.approx(1.0)


def test_half_of_the_exposure_a_row_late_is_seen_exactly():
    market = market_of(np.random.default_rng(1), 300)
    total = 0.6 * market
    total[1:] += 0.6 * market[:-1]
    late = lateness(total, market, 252)
    assert late.lags == 1
    assert late.share == pytest.approx(0.5)
    assert late.full_beta == pytest.approx(1.2)
    assert late.beta == pytest.approx(0.6, abs=0.15)


@pytest.mark.parametrize("rows", [2, 3, 5, 10, 20])
def test_averages_over_days_and_rare_prices_are_found(rows):
    for seed in range(10):
        rng = np.random.default_rng([rows, seed])
        market = market_of(rng, 756)
        fund = 0.8 * market + 0.004 * rng.standard_t(4, 756)
        smooth = np.convolve(fund, np.full(rows, 1.0 / rows))[:756]
        assert stale_lags(smooth, market, 252) > 0
        assert stale_lags(priced_every(fund, rows), market, 252) > 0
        assert late_share(smooth, market, 252) == pytest.approx(1.0 - 1.0 / rows, abs=0.3)


@pytest.mark.parametrize("months", [60, 200])
def test_appraisals_a_quarter_are_found_on_monthly_rows(months):
    found = 0
    for seed in range(20):
        rng = np.random.default_rng([months, seed])
        market = market_of(rng, months, 0.045)
        fund = 0.7 * market + 0.012 * rng.standard_normal(months)
        appraised = np.convolve(fund, [0.4, 0.3, 0.2, 0.1])[:months]
        found += stale_lags(appraised, market, 12) > 0
        assert stale_lags(appraised, market, 12) <= max(3, months // 20)
    assert found >= 19


def test_noise_with_the_markets_volatility_is_not_late():
    found = 0
    for seed in range(60):
        rng = np.random.default_rng([7, seed])
        market = market_of(rng, 756)
        size = np.sqrt(np.convolve(market**2, np.full(10, 0.1), "same"))
        found += stale_lags(0.5 * market + size * rng.standard_normal(756), market, 252) > 0
    assert found == 0


def test_an_account_that_is_invested_one_day_a_week_is_not_late():
    rng = np.random.default_rng(3)
    market = market_of(rng, 756)
    assert stale_lags(np.where(np.arange(756) % 5 == 0, market, 0.0), market, 252) == 0


def test_a_small_real_lag_of_a_liquid_stock_is_no_staleness():
    market = market_of(np.random.default_rng(2), 5000)
    total = market.copy()
    total[1:] += 0.05 * market[:-1]
    assert stale_lags(total, market, 252) == 0


def test_nothing_to_see_without_moves_or_with_few_rows():
    market = market_of(np.random.default_rng(0), 300)
    assert stale_lags(np.zeros(300), market, 252) == 0
    assert stale_lags(market, np.zeros(300), 252) == 0
    assert stale_lags(market[:10], market[:10], 252) == 0
    assert lateness(market, market, 252).share == 0.0
