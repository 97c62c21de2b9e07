"""Weights, values and shares become quantities at the price at which the order trades."""

import numpy as np
import pytest
from candles import PAIR, candles, plain, play

from tradeassay.account import Fees
from tradeassay.core.orders import Order


@candles()
def test_all_units():
    """NAV is 10,000 throughout, the open is the sizing price.
    2024-01-02 | A 20 20 20 20 1000 | a A to 10% | fill a A +50 @20 cash -1000.00
    2024-01-03 | A 20 20 20 20 1000 | b A to $1500 | fill b A +25 @20 cash -500.00
    2024-01-04 | A 20 20 20 20 1000 | c A to 30sh | fill c A -45 @20 cash +900.00
    2024-01-05 | A 20 20 20 20 1000 | d BUY $419 A | fill d A +20 @20 cash -400.00
    2024-01-08 | A 20 20 20 20 1000 | e SELL $419 A | fill e A -20 @20 cash +400.00
    2024-01-09 | A 20 20 20 20 1000 | f A to 30sh | reject f A no_change
    2024-01-10 | A 20 20 20 20 1000 | g A to 6.05% | reject g A lot
    2024-01-11 | A 20 20 20 20 1000 | h A to 0% | fill h A -30 @20 cash +600.00
    """


@candles(instruments=PAIR)
def test_weights_are_of_nav_at_the_open():
    """Yesterday's close valued A at 1,000; at the open it is worth 1,500 and NAV 10,500: 10 % are 1,050 in B.
    2024-01-02 | A 10 10 10 10 1000; B 10 10 10 10 1000 | a BUY 100 A | fill a A +100 @10 cash -1000.00
    2024-01-03 | A 15 15 10 10 1000; B 10 10 10 10 1000 | b B to 10% | fill b B +105 @10 cash -1050.00
    """


def test_all_weights_of_a_batch_are_shares_of_the_same_sum():
    # Costs of the first fill do not shrink the second target.
    from tradeassay.account import Fees

    play(
        plain(fees=Fees(buy_bps=1000)),
        """
        2024-01-02 | A 10 10 10 10 1000; B 10 10 10 10 1000 | a A to 30%; b B to 30%
            fill a A +300 @10 fee 300.00 cash -3300.00; fill b B +300 @10 fee 300.00 cash -3300.00
        """,
        instruments=PAIR,
    )


@candles()
def test_a_side_must_agree_with_the_target():
    """
    2024-01-02 | A 20 20 20 20 1000 | a BUY A to 10% | fill a A +50 @20 cash -1000.00
    2024-01-03 | A 20 20 20 20 1000 | b BUY A to 5%; c SELL A to 20% | reject c A side_contradicts_target
        reject b A side_contradicts_target
    2024-01-04 | A 20 20 20 20 1000 | d SELL A to 5% | fill d A -25 @20 cash +500.00
    """


@candles()
def test_a_target_with_a_limit_is_sized_where_it_trades():
    """10 % of 10,000 at the limit of 19 is 52 shares; opening at 16 it is 62.
    2024-01-02 | A 20 20 19 20 1000 | a A to 10% limit 19 | fill a A +52 @19 cash -988.00
    2024-01-03 | A 20 21 20 20 1000 | b A to 0% limit 21 | fill b A -52 @21 cash +1092.00
    2024-01-04 | A 16 16 16 16 1000 | c A to $1000 limit 19 | fill c A +62 @16 cash -992.00
    """


def test_whole_and_numpy_numbers_become_plain_floats():
    tape = play(plain(), "2024-01-02 | A 10 10 9 10 1000")
    bars = tape.exchange._session.bars
    numbers = (100, np.float64(100.0), np.int64(100))
    for number, amount in enumerate(numbers):
        order = Order(symbol="A", amount=amount, side="BUY", kind="limit", limit_price=9)
        (filled,) = tape.exchange.execute([(str(number), order)], bars, tape.account)
        assert [type(value) for value in (filled.quantity, filled.price, filled.reference, filled.cash)] == [
            float
        ] * 4
        waits = Order(symbol="A", amount=amount, side="BUY", kind="limit", limit_price=8, tif="gtc")
        (rested,) = tape.exchange.execute([(f"{number}w", waits)], bars, tape.account)
        assert type(rested.quantity) is float


@candles()
def test_two_targets_on_one_name_work_in_sequence():
    """
    2024-01-02 | A 10 10 10 10 1000 | a A to 100sh; b A to 150sh | fill a A +100 @10 cash -1000.00
        fill b A +50 @10 cash -500.00
    """


@candles()
def test_short_targets_need_a_venue_with_short_sales():
    """
    2024-01-02 | A 10 10 10 10 1000 | a A to -10%; b SELL 10 A | reject a A no_shorting; reject b A no_shorting
    """


@pytest.mark.parametrize("side", ["", "BUY "])
def test_weights_are_shares_of_the_nav_before_the_first_fill(side):
    # 9,000 in A are sold first and cost 900; half of the account is still half of 10,000.
    play(
        plain(fees=Fees(sell_bps=1000)),
        f"""
        2024-01-02 | A 100 100 100 100 1000; B 1 1 1 1 100000 | a BUY 90 A
            fill a A +90 @100 cash -9000.00
        2024-01-03 | A 100 100 100 100 1000; B 1 1 1 1 100000 | b SELL 90 A; c {side}B to 50%
            fill b A -90 @100 fee 900.00 cash +8100.00
            fill c B +5000 @1 cash -5000.00
        """,
        instruments=PAIR,
    )
