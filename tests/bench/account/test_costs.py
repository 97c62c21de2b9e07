"""Fees, taxes and slippage, worked out by hand."""

import pytest

from tradeassay_bench.account import ASHARE, ASHARE_QLIB, Fees, Slippage


@pytest.mark.parametrize(
    "value", [1.0, 1000.0, 3333.0, 3334.0, 5000.0, 9999.0, 10_000.0, 123_456.78]
)
def test_both_ashare_tariffs_cost_the_same(value):
    for buying in (True, False):
        ours, qlib = (
            ASHARE.fees.charge(value, 1.0, buying),
            ASHARE_QLIB.fees.charge(value, 1.0, buying),
        )
        assert sum(ours) == pytest.approx(sum(qlib), rel=1e-15)
        assert sum(qlib) == pytest.approx(
            max(value * (0.0005 if buying else 0.0015), 5.0), rel=1e-15
        )


def test_a_minimum_that_leaves_tax_aside():
    fees = Fees(sell_bps=5, sell_tax_bps=10, minimum=5)
    assert fees.charge(1000.0, 100.0, False) == (5.0, 1.0)


def test_fees_per_contract():
    assert Fees(buy_bps=1, per_unit=2.0).charge(10_000.0, 3.0, True) == (7.0, 0.0)


def test_affordable_is_the_inverse_of_charge():
    for fees in (
        Fees(buy_bps=5, minimum=5),
        Fees(buy_bps=5),
        Fees(per_unit=0.5),
        Fees(buy_bps=30, minimum=100),
    ):
        for cash in (101.0, 5_000.0, 1e6):
            quantity = fees.affordable(cash, 10.0)
            fee, _ = fees.charge(quantity * 10.0, quantity, True)
            assert quantity * 10.0 + fee == pytest.approx(cash, rel=1e-12)
    assert Fees(minimum=5).affordable(4.0, 10.0) == 0.0


def test_no_slippage_keeps_the_reference():
    assert Slippage().price(10.0, True) == 10.0
    assert Slippage(bps=10).price(10.0, True) == pytest.approx(10.01)
    assert Slippage(bps=10).price(10.0, False) == pytest.approx(9.99)
