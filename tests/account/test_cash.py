"""A cash account never goes below zero."""

import pytest

from tradeassay.account import ASHARE_QLIB, CRYPTO, Cash, Fees


def test_a_purchase_beyond_the_cash_is_cut(play, plain):
    # 1,000 buys 99 shares at 10 with 1 % fees (990 + 9.90), not 100 (1,010).
    play(
        plain(fees=Fees(buy_bps=100)),
        """
        2024-01-02 | A 10 10 10 10 1000 | a BUY 120 A
            fill a A +99 @10 fee 9.90 cash -999.90
            trim a A +120 to +99 insufficient_cash
        2024-01-03 | A 10 10 10 10 1000 | b BUY 1 A
            reject b A insufficient_cash
        """,
        cash=1_000.0,
    )


def test_or_refused(play, plain):
    play(
        plain(fees=Fees(buy_bps=100), cash=Cash(on_short="reject")),
        """
        2024-01-02 | A 10 10 10 10 1000 | a BUY 100 A; b BUY 99 A
            reject a A insufficient_cash
            fill b A +99 @10 fee 9.90 cash -999.90
        """,
        cash=1_000.0,
    )


def test_minimum_fees_count(play, mainboard):
    # 1,004.99 does not pay for a lot at 10 and a minimum fee of 5; 1,005 does, to the last cent.
    table = "2024-01-02 | A 10 10 10 10 1000 | a BUY 200 A | {}"
    play(ASHARE_QLIB, table.format("reject a A insufficient_cash"), instruments=mainboard, cash=1_004.99)
    filled = "fill a A +100 @10 fee 5.00 cash -1005.00; trim a A +200 to +100 insufficient_cash; nav 1000.00"
    play(ASHARE_QLIB, table.format(filled), instruments=mainboard, cash=1_005.0)


def test_cash_can_be_spent_exactly(play, plain):
    # In floats 3 x 33.33 and 99.99 may differ in the last bit: the order goes through and zero is left.
    for price, count in ((33.33, 3), (0.1, 3), (1.1, 7), (49.99, 11), (123.45, 81)):
        money = float(f"{price * count:.2f}")
        tape = play(
            plain(),
            f"2024-01-02 | A {price} {price} {price} {price} 1000 | a BUY {count} A | "
            f"fill a A +{count} @{price:g} fee 0.00 cash -{money:.2f}",
            cash=money,
        )
        assert tape.account.cash in (0.0, money - price * count)
        assert 0.0 <= tape.account.cash < 1e-12


def test_coins_that_cost_almost_nothing(play):
    # Ten trillion units of a coin at 1e-8, cut to the cash without walking down unit by unit.
    tape = play(CRYPTO, "2024-01-02 | A 0.00000001 0.00000001 0.00000001 0.00000001 nan")
    events = tape.session("2024-01-03", ["A 0.00000001 0.00000001 0.00000001 0.00000001 nan"], ["a A to 100%"])
    assert events[0].quantity * 1e-8 == pytest.approx(10_000.0 / 1.0005)
    assert 0.0 <= tape.account.cash < 1e-4


def test_a_sale_whose_costs_exceed_everything_is_refused(play, plain):
    play(
        plain(fees=Fees(minimum=5)),
        """
        2024-01-02 | A 10 10 10 10 1000 | a BUY 10 A
            fill a A +10 @10 fee 5.00 cash -105.00
        2024-01-03 | A 0.3 0.3 0.3 0.3 1000 | b SELL 10 A
            reject b A insufficient_cash
        """,
        cash=106.0,
    )


def test_proceeds_of_a_sale_pay_for_a_purchase_of_the_same_batch(play, plain, pair):
    table = """
        2024-01-02 | A 10 10 10 10 1000; B 20 20 20 20 1000 | a BUY 100 A
            fill a A +100 @10 fee 0.00 cash -1000.00
        2024-01-03 | A 10 10 10 10 1000; B 20 20 20 20 1000 | b BUY 50 B; c SELL 100 A
            {}
        """
    sale = "fill c A -100 @10 fee 0.00 cash +1000.00"
    play(
        plain(),
        table.format(f"{sale}; fill b B +50 @20 fee 0.00 cash -1000.00"),
        instruments=pair,
        cash=1_000.0,
    )
    play(
        plain(priority="as_given"),
        table.format(f"reject b B insufficient_cash; {sale}"),
        instruments=pair,
        cash=1_000.0,
    )
