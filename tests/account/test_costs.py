"""Fees, taxes and slippage, worked out by hand."""

import pytest
from candles import MAINBOARD, candles

from tradeassay.account import ASHARE, ASHARE_QLIB, CRYPTO, US, Fees, Slippage


@candles(US)
def test_us_costs():
    """100 x 50.00: 2 bp slippage makes 50.01, 1 bp of 5,001.00 is 0.50; sale at 54.989 (2 bp off 55), fee 0.55.
    2024-01-02 | A 50 51 49 50 1000000 | a BUY 100 A | fill a A +100 @50.01 fee 0.50 cash -5001.50; nav 9998.50
    2024-01-03 | A 55 56 54 55 1000000 | b SELL 100 A | fill b A -100 @54.989 fee 0.55 cash +5498.35; nav 10496.85
    """


@candles(ASHARE, instruments=MAINBOARD, cash=100_000.0)
def test_ashare_costs_with_their_minimum():
    """5 bp of 1,000 is 0.50: the minimum of 5 applies. 5 bp of 50,000 is 25.
    Sales: 15 bp of 1,000 is 1.50 (1.00 of it tax): 5 in all. 15 bp of 50,000 is 75, of it 50 tax.
    2024-01-02 | A 10 10 10 10 1000000 | a BUY 100 A | fill a A +100 @10 fee 5.00 cash -1005.00
    2024-01-03 | A 10 10 10 10 1000000 | b BUY 5000 A | fill b A +5000 @10 fee 25.00 cash -50025.00
    2024-01-04 | A 10 10 10 10 1000000 | c SELL 100 A | fill c A -100 @10 fee 4.00 tax 1.00 cash +995.00
    2024-01-05 | A 10 10 10 10 1000000 | d SELL 5000 A | fill d A -5000 @10 fee 25.00 tax 50.00 cash +49925.00
    """


@candles(CRYPTO)
def test_crypto_costs():
    """
    2024-01-02 | A 40000 41000 39000 40000 10 | a BUY 0.125 A | fill a A +0.125 @40000 fee 2.50 cash -5002.50
    2024-01-03 | A 42000 43000 41000 42000 10 | b A to 0% | fill b A -0.125 @42000 fee 2.62 cash +5247.38
    """


@pytest.mark.parametrize("value", [1.0, 1000.0, 3333.0, 3334.0, 5000.0, 9999.0, 10_000.0, 123_456.78])
def test_both_ashare_tariffs_cost_the_same(value):
    for buying in (True, False):
        ours, qlib = ASHARE.fees.charge(value, 1.0, buying), ASHARE_QLIB.fees.charge(value, 1.0, buying)
        assert sum(ours) == pytest.approx(sum(qlib), rel=1e-15)
        assert sum(qlib) == pytest.approx(max(value * (0.0005 if buying else 0.0015), 5.0), rel=1e-15)


def test_a_minimum_that_leaves_tax_aside():
    fees = Fees(sell_bps=5, sell_tax_bps=10, minimum=5)
    assert fees.charge(1000.0, 100.0, False) == (5.0, 1.0)


def test_fees_per_contract():
    assert Fees(buy_bps=1, per_unit=2.0).charge(10_000.0, 3.0, True) == (7.0, 0.0)


def test_affordable_is_the_inverse_of_charge():
    for fees in (Fees(buy_bps=5, minimum=5), Fees(buy_bps=5), Fees(per_unit=0.5), Fees(buy_bps=30, minimum=100)):
        for cash in (101.0, 5_000.0, 1e6):
            quantity = fees.affordable(cash, 10.0)
            fee, _ = fees.charge(quantity * 10.0, quantity, True)
            assert quantity * 10.0 + fee == pytest.approx(cash, rel=1e-12)
    assert Fees(minimum=5).affordable(4.0, 10.0) == 0.0


def test_no_slippage_keeps_the_reference():
    assert Slippage().price(10.0, True) == 10.0
    assert Slippage(bps=10).price(10.0, True) == pytest.approx(10.01)
    assert Slippage(bps=10).price(10.0, False) == pytest.approx(9.99)
