"""Names that do not trade: refused, marked stale, and never dropped."""

from tradeassay.account import ASHARE_DATED, BUILTIN, Resting


def test_suspended_names_do_not_trade_and_keep_their_mark(play, plain):
    play(
        plain(),
        """
        2024-01-02 | A 10 10 10 10 1000 | a BUY 100 A
            fill a A +100 @10 fee 0.00 cash -1000.00
            nav 10000.00
        2024-01-03 | A - | b SELL 100 A; c A to 5%
            reject b A suspended
            reject c A suspended
            nav 10000.00 stale A
        2024-01-04 | split A 2; A -
            split A to +200 cash +0.00
            nav 10000.00 stale A
        2024-01-05 | A 6 6 6 6 1000 | d SELL 200 A
            fill d A -200 @6 fee 0.00 cash +1200.00
            nav 10200.00
        """,
    )


def test_a_dividend_during_a_suspension_lowers_the_mark(play, plain):
    play(
        plain(),
        """
        2024-01-02 | A 10 10 10 10 1000 | a BUY 100 A
            fill a A +100 @10 fee 0.00 cash -1000.00
            nav 10000.00
        2024-01-03 | dividend A 0.5; A -
            dividend A +50.00
            nav 10000.00 stale A
        2024-01-04 | A 9.6 9.6 9.6 9.6 10
            nav 10010.00
        """,
    )


def test_weights_count_suspended_holdings_at_their_last_mark(play, plain, pair):
    # NAV is 1,000 in A (stale) plus 1,000 in cash: half of 2,000 is 100 shares of B at 10.
    play(
        plain(),
        """
        2024-01-02 | A 10 10 10 10 1000; B 10 10 10 10 1000 | a BUY 100 A
            fill a A +100 @10 fee 0.00 cash -1000.00
        2024-01-03 | A -; B 10 10 10 10 1000 | b B to 50%
            fill b B +100 @10 fee 0.00 cash -1000.00
        """,
        instruments=pair,
        cash=2_000.0,
    )


def test_a_name_that_trades_without_an_open_has_no_price(play, plain):
    tape = play(plain(), "2024-01-02 | A 10 10 10 10 1000 | |")
    bars = ["A 0 10 10 10 1000"]
    assert tape.session("2024-01-03", bars, ["a BUY 1 A"])[0].reason == "no_price"


def test_a_target_against_its_own_side_does_not_wait_to_trade_the_other_way(play, plain):
    play(
        plain(resting=Resting(held_to_side=True)),
        """
        2024-01-02 | A - | a SELL A to 100sh gtc; b BUY A to 100sh gtc
            reject a A suspended
            rest b A +100
        2024-01-03 | A 10 10 10 10 1000
            fill b A +100 @10 fee 0.00 cash -1000.00
        """,
    )


def test_where_a_side_does_not_bind_such_a_target_waits_and_trades_as_it_says(play, plain):
    play(
        plain(),
        """
        2024-01-02 | A - | a SELL A to 100sh gtc
            rest a A +100
        2024-01-03 | A 10 10 10 10 1000
            fill a A +100 @10 fee 0.00 cash -1000.00
        """,
    )
    assert [venue for venue in BUILTIN if venue.resting.held_to_side is True] == [ASHARE_DATED]
