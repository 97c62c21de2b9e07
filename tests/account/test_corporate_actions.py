"""Dividends, splits and delistings: the money is where it should be, and NAV does not jump."""

import pytest
from candles import candles, plain, play

from tradeassay.account import Margin, Shorting


@candles()
def test_dividends_on_the_ex_date():
    """Bought the day before: entitled. Bought on the ex-date: not.
    2024-01-02 | A 10 10 10 10 1000 | a BUY 100 A | fill a A +100 @10 cash -1000.00; nav 10000.00
    2024-01-03 | dividend A 0.5; A 9.5 9.5 9.5 9.5 1000 | b BUY 100 A | dividend A +50.00
        fill b A +100 @9.5 cash -950.00; nav 10000.00
    2024-01-04 | A 9.5 9.5 9.5 9.5 1000 | | nav 10000.00
    """


@candles()
def test_splits_pay_out_what_cannot_exist():
    """15 shares at 30 become 22.5 at 20: 22 shares and 10.00 in cash. A reverse split leaves 2 and 0.2 x 200.
    2024-01-02 | A 30 30 30 30 1000 | a BUY 15 A | fill a A +15 @30 cash -450.00; nav 10000.00
    2024-01-03 | split A 1.5; A 20 20 20 20 1000 | | split A to +22 cash +10.00; nav 10000.00
    2024-01-04 | split A 0.1; A 200 200 200 200 10 | | split A to +2 cash +40.00; nav 10000.00
    2024-01-05 | split A 0.1; A 2000 2000 2000 2000 10 | | split A to +0 cash +400.00; nav 10000.00
    """


def test_split_and_average_cost():
    tape = play(
        plain(),
        """
        2024-01-02 | A 30 30 30 30 1000 | a BUY 10 A | fill a A +10 @30 cash -300.00
        2024-01-03 | split A 3; A 10 10 10 10 1000 | b BUY 30 A | split A to +30 cash +0.00
            fill b A +30 @10 cash -300.00
        """,
    )
    position = tape.account.state().positions["A"]
    assert (position.quantity, position.cost, position.mark, position.held) == (60.0, 10.0, 10.0, 2)


@candles()
def test_a_dividend_and_a_split_on_one_day_count_per_old_share():
    """10 shares at 22: 2.00 per old share makes 20, split 2 for 1 makes 10.
    2024-01-02 | A 22 22 22 22 1000 | a BUY 10 A | fill a A +10 @22 cash -220.00; nav 10000.00
    2024-01-03 | dividend A 2; split A 2; A 10 10 10 10 1000 | | dividend A +20.00; split A to +20 cash +0.00
        nav 10000.00
    """


@candles()
def test_a_delisted_holding_is_paid_out_at_its_last_price():
    """
    2024-01-02 | A 10 10 10 10 1000 | a BUY 100 A | fill a A +100 @10 cash -1000.00
    2024-01-03 | A 6 6 4 4 1000 | | nav 9400.00
    2024-01-04 | delist A; A - | b BUY 1 A | delist A +100 @4 cash +400.00; reject b A not_listed; nav 9400.00
    """


@candles()
def test_a_holding_that_a_split_ends_is_not_paid_out_again_when_its_name_leaves_the_same_day():
    """
    2024-01-02 | A 10 10 10 10 1000 | a BUY 5 A | fill a A +5 @10 cash -50.00
    2024-01-03 | split A 0.1; delist A; A - | | split A to +0 cash +50.00; nav 10000.00
    """


@candles(plain(margin=Margin(interest_per_year=0), shorting=Shorting(allowed=True)))
def test_shorts_pay_dividends_and_are_bought_back_at_a_delisting():
    """
    2024-01-02 | A 10 10 10 10 1000 | a SELL 100 A | fill a A -100 @10 cash +1000.00; nav 10000.00
    2024-01-03 | dividend A 0.5; A 9.5 9.5 9.5 9.5 1000 | | dividend A -50.00; nav 10000.00
    2024-01-04 | split A 0.3; A 30 30 30 30 1000 | | split A to -30 cash +0.00; nav 10050.00
    2024-01-05 | split A 0.05; A 600 600 600 600 10 | | split A to -1 cash -300.00; nav 10050.00
    2024-01-08 | delist A; A - | | delist A -1 @600 cash -600.00; nav 10050.00
    """


@candles()
def test_actions_of_names_that_are_not_held_do_nothing():
    """
    2024-01-02 | split A 2; dividend A 1; A 10 10 10 10 1000 | | nav 10000.00
    """


@pytest.mark.parametrize(
    ("ratio", "shares", "left", "cash"),
    [
        ("0.3333333", 3, 0, 30.00),
        ("0.3333333", 4, 1, 10.00),
        ("0.3333334", 3, 1, 0.00),
        ("1.333333", 3, 3, 7.50),
        ("0.1428571", 7, 0, 70.00),
        ("0.29", 100, 29, 0.00),
        ("0.3333333", 3000, 999, 30.00),
    ],
)
def test_a_rounded_ratio_is_paid_for_and_never_debited(ratio, shares, left, cash):
    # All the money is in the shares, so that a debit of a millionth would break the account.
    price = 10.0 / float(ratio)
    tape = play(
        plain(),
        f"""
        2024-01-02 | A 10 10 10 10 1000000 | a BUY {shares} A
            fill a A +{shares} @10 cash -{shares * 10:.2f}
        2024-01-03 | split A {ratio}; A {price} {price} {price} {price} 1000000
            split A to +{left} cash +{cash:.2f}
            nav {shares * 10:.2f}
        """,
        cash=shares * 10.0,
    )
    assert tape.account.cash >= 0.0


@candles(
    plain(margin=Margin(initial=0.1, maintenance_long=0.1, maintenance_short=0.1), shorting=Shorting(allowed=True))
)
def test_a_short_seller_pays_for_the_rest():
    """
    2024-01-02 | A 10 10 10 10 1000 | a SELL 4 A | fill a A -4 @10 cash +40.00
    2024-01-03 | split A 0.3333333; A 30 30 30 30 1000 | | split A to -1 cash -10.00; nav 10000.00
    """
