"""Lots, steps, odd remainders and minimum values."""

import pytest
from candles import MAINBOARD, candles, plain, play

from tradeassay.account import ASHARE, CRYPTO, US_FRACTIONAL, Lots
from tradeassay.account.limits import floor_to, is_multiple


@candles(plain(lots=Lots(lot=100, step=1)), instruments=MAINBOARD)
def test_ashare_lots():
    """
    2024-01-02 | A 10 10 10 10 100000 | a BUY 150 A; b BUY 99 A; c BUY 200 A | reject a A lot; reject b A lot
        fill c A +200 @10 cash -2000.00
    2024-01-03 | A 10 10 10 10 100000 | d BUY $1999 A; e BUY $999 A | fill d A +100 @10 cash -1000.00
        reject e A lot
    2024-01-04 | split A 1.15; A 9 9 9 9 100000 | f SELL 30 A | split A to +345 cash +0.00; reject f A lot
    2024-01-05 | A 9 9 9 9 100000 | g SELL 145 A | fill g A -145 @9 cash +1305.00
    2024-01-08 | A 9 9 9 9 100000 | h SELL 50 A; i SELL 100 A | reject h A lot
        fill i A -100 @9 cash +900.00
    2024-01-09 | split A 1.5; A 6 6 6 6 100000 | j A to 0% | split A to +150 cash +0.00
        fill j A -150 @6 cash +900.00
    """


@candles(plain(lots=Lots(lot=100, step=1, on_odd="trim")))
def test_odd_share_orders_can_be_cut_instead():
    """
    2024-01-02 | A 10 10 10 10 1000 | a BUY 150 A; b BUY 99 A | fill a A +100 @10 cash -1000.00
        trim a A +150 to +100 lot; reject b A lot
    """


@candles(US_FRACTIONAL)
def test_fractional_shares():
    """
    2024-01-02 | A 333 333 333 333 1000000 | a BUY $1000 A | fill a A +3.003 @333.0666 fee 0.10 cash -1000.30
    2024-01-03 | A 333 333 333 333 1000000 | b SELL 1.00005 A | fill b A -1 @332.9334 fee 0.03 cash +332.90
        trim b A -1.00005 to -1 lot
    2024-01-04 | A 333 333 333 333 1000000 | c SELL 2.003 A | fill c A -2.003 @332.9334 fee 0.07 cash +666.80
    """


@candles(plain(lots=US_FRACTIONAL.lots))
def test_a_target_that_was_reached_but_for_the_last_digit_is_no_order():
    """1 - 0.7 is 0.30000000000000004: what is above 0.3 can be sold neither for a target nor as an odd remainder.
    2024-01-02 | A 10 10 10 10 1000 | a BUY 1 A | fill a A +1 @10 cash -10.00
    2024-01-03 | A 10 10 10 10 1000 | b A to 0.3sh | fill b A -0.7 @10 cash +7.00
    2024-01-04 | A 10 10 10 10 1000 | c A to 0.3sh; d SELL 0.00000000000000005551115123125783 A
        reject c A no_change; reject d A lot
    """


@candles(CRYPTO)
def test_orders_too_small_for_the_venue():
    """
    2024-01-02 | A 40000 41000 39000 40000 1000 | a BUY $0.99 A; b BUY $1.01 A | reject a A below_minimum
        fill b A +2.525e-05 @40000 cash -1.01
    2024-01-03 | A 30000 41000 29000 40000 1000 | c A to 0% | fill c A -2.525e-05 @30000 cash +0.76
    """


def test_a_sale_that_leaves_dust_closes_the_position():
    # 0.1 + 0.2 is 0.30000000000000004: selling 0.3 must leave nothing behind.
    tape = play(
        CRYPTO,
        """
        2024-01-02 | A 200 200 200 200 1000 | a BUY 0.1 A | fill a A +0.1 @200 fee 0.01 cash -20.01
        2024-01-03 | A 200 200 200 200 1000 | b BUY 0.2 A | fill b A +0.2 @200 fee 0.02 cash -40.02
        2024-01-04 | A 200 200 200 200 1000 | c SELL 0.3 A | fill c A -0.3 @200 fee 0.03 cash +59.97
        """,
    )
    assert tape.account.held() == ()


@pytest.mark.parametrize(
    ("quantity", "unit", "floored"),
    [
        (250.0, 100.0, 200.0),
        (299.99999999999994, 100.0, 300.0),
        (99.9, 100.0, 0.0),
        (0.29999999999999999, 0.1, 0.3),
        (0.12345678999, 1e-8, 0.12345678),
        (7.0, 1.0, 7.0),
    ],
)
def test_rounding_down(quantity, unit, floored):
    assert floor_to(quantity, unit) == floored
    assert is_multiple(floored, unit) == (floored > 0.0)


def test_an_instruments_own_lot_is_used_when_the_venue_has_none():
    from tradeassay.core.view import Instrument

    lots = Lots(lot=None, step=None)
    coin = Instrument(symbol="C", lot=0.5, step=0.25)
    assert (lots.lot_of(coin), lots.step_of(coin)) == (0.5, 0.25)
    assert (ASHARE.lots.lot_of(coin), ASHARE.lots.step_of(coin)) == (100.0, 1.0)
