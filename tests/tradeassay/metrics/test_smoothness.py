"""Records that are smoother than markets are, and honest ones that look a little like them."""

import numpy as np
import pytest

from tradeassay.core.measure import Measure
from tradeassay.metrics.smoothness import smoothness


def drawn(*seed: int) -> np.random.Generator:
    return np.random.default_rng(list(seed))


def fat(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.standard_t(5, n) / np.sqrt(5.0 / 3.0)


def has(record: np.ndarray, year: int, word: str) -> bool:
    return any(word in sign for sign in smoothness(record, year).signs)


def test_autocorrelation_and_shares_by_hand():
    # Around a mean of 1 %: gaps +1, -1, +1, -1 %, so neighbours' products are -1, three of them over four squares.
    made = smoothness(np.array([0.02, 0.0, 0.02, 0.0]), 12)
    assert made.autocorrelation.value == pytest.approx(-0.75)
    assert made.positive == 0.5
    assert made.normal_positive == pytest.approx(0.8413, abs=1e-4)
    assert made.signs == ()


def test_geltner_takes_out_what_a_first_order_smoother_put_in():
    rng = drawn(1)
    true = 0.01 + 0.03 * rng.standard_normal(20_000)
    shown = np.empty(true.size)
    shown[0] = true[0]
    for row in range(1, true.size):
        shown[row] = 0.5 * shown[row - 1] + 0.5 * true[row]
    made = smoothness(shown, 12)
    honest = true.mean() / true.std() * np.sqrt(12.0)
    assert made.sharpe.value > 1.6 * honest
    assert made.unsmoothed_sharpe == pytest.approx(honest, rel=0.05)
    assert any("follow each other (autocorrelation 0." in sign for sign in made.signs)


def test_a_record_of_small_steady_gains_is_too_smooth():
    flagged = sum(
        smoothness(0.009 + 0.007 * drawn(2, seed).standard_normal(180), 12).too_smooth
        for seed in range(40)
    )
    assert flagged >= 38
    assert has(0.009 + 0.007 * drawn(2, 0).standard_normal(180), 12, "higher than audited")


def test_interest_is_not_too_smooth_until_it_is_taken_off():
    quiet = 0.004 + 0.001 * drawn(3).standard_normal(120)
    assert not smoothness(quiet, 12).too_smooth
    assert smoothness(quiet, 12, beyond_cash=True).too_smooth


def test_an_alpha_ratio_can_be_too_smooth_where_the_sharpe_ratio_is_not():
    record = 0.01 + 0.03 * drawn(4).standard_normal(120)
    assert not smoothness(record, 12).too_smooth
    ratio = Measure(value=5.0, low=4.0, high=6.0, level=0.95, n=120)
    assert smoothness(record, 12, alpha_ratio=ratio).too_smooth


def test_smoothed_private_funds_follow_each_other():
    found = 0
    for seed in range(40):
        rng = drawn(5, seed)
        fund = 0.006 + 0.025 * fat(rng, 123)
        found += has(np.convolve(fund, [0.4, 0.3, 0.2, 0.1])[3:123], 12, "follow")
    assert found >= 38


def test_losses_moved_above_zero_leave_a_gap():
    found = 0
    for seed in range(40):
        rng = drawn(6, seed)
        fund = 0.008 + 0.02 * fat(rng, 240)
        small = (fund < 0.0) & (fund > -0.01)
        found += has(np.where(small, -fund, fund), 12, "small losses")
    assert found >= 36


def test_numbers_made_by_hand():
    rng = drawn(7)
    record = np.round(0.005 + 0.02 * fat(rng, 180), 4)
    assert smoothness(record, 12).signs == ()
    copied = record.copy()
    copied[60:72] = record[12:24]
    assert has(copied, 12, "12 rows in a row are repeated")
    quarters = np.round(record * 400) / 400
    assert has(quarters, 12, "rounding explains")
    cells = np.rint(record * 1e4)
    fives = np.where(rng.random(180) < 0.4, np.rint(cells / 5) * 5, cells)
    assert has(fives / 1e4, 12, "last digits")


@pytest.mark.parametrize("ratio", [0.0, 1.0, 2.0])
def test_honest_records_show_no_sign(ratio):
    flagged = 0
    for seed in range(60):
        rng = drawn(8, seed, int(ratio))
        daily = 0.01 * (fat(rng, 504) + ratio / np.sqrt(252))
        monthly = np.round(0.03 * (fat(rng, 120) + ratio / np.sqrt(12)), 4)
        price = np.round(20.0 * np.cumprod(1.0 + daily), 2)
        for record, year in ((daily, 252), (monthly, 12), (price[1:] / price[:-1] - 1.0, 252)):
            made = smoothness(record, year)
            flagged += bool(made.signs) or made.too_smooth
    assert flagged <= 3


def test_days_in_cash_are_no_repeats_and_no_gap():
    rng = drawn(9)
    market = 0.01 * fat(rng, 756)
    inside = np.repeat(rng.random(76) < 0.5, 10)[:756]
    assert smoothness(np.where(inside, market, 0.0), 252).signs == ()
    assert smoothness(np.where(inside, market, 0.0001), 252).signs == ()


def test_nothing_is_said_of_a_flat_or_tiny_record():
    assert smoothness(np.zeros(100), 12).signs == ()
    assert smoothness(np.full(100, 0.01), 12).sharpe.value is None
    assert not smoothness(np.array([0.1]), 12).too_smooth
    assert smoothness(np.array([0.01, 0.02, 0.03]), 12).signs == ()


def test_stocks_that_do_not_trade_every_day_are_not_smoothed():
    """Portfolios of small stocks follow themselves: 0.35 by day and 0.2 by week is not a mean
    over two rows.
    """
    for year, mix in ((252, 0.4), (52, 0.2)):
        for seed in range(8):
            rng = np.random.default_rng([year, seed])
            true = 0.01 * rng.standard_normal(1001) + 0.0004
            late = (true[1:] + mix * true[:-1]) / (1.0 + mix)
            assert not has(late, year, "follow")
            mean = (true[1:] + true[:-1]) / 2.0
            assert has(mean, year, "follow")


def test_what_follows_the_benchmark_of_the_row_before_is_not_smoothed():
    """Small stocks trail the market without being smoothed, a smoothed fund trails itself."""
    rng = np.random.default_rng(11)
    market = rng.normal(0.008, 0.045, 240)
    own = rng.normal(0.0, 0.01, 240)
    small = 1.0 * market + 0.45 * np.concatenate(([0.0], market[:-1])) + own
    assert any("follow each other" in sign for sign in smoothness(small, 12).signs)
    assert not any(
        "follow each other" in sign for sign in smoothness(small, 12, benchmark=market).signs
    )
    fund = 0.3 * market + rng.normal(0.006, 0.02, 240)
    smoothed = np.convolve(fund, [0.5, 0.3, 0.2])[:240]
    assert any(
        "follow each other" in sign for sign in smoothness(smoothed, 12, benchmark=market).signs
    )
