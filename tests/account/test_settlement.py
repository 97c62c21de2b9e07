"""T+1: what was bought today is sold tomorrow."""

from candles import MAINBOARD, PAIR, candles, plain, play

from tradeassay.account import ASHARE, ASHARE_DATED, BUILTIN, Resting, Settlement


@candles(ASHARE, instruments=MAINBOARD)
def test_t_plus_1():
    """
    2024-01-02 | A 10 10 10 10 1000000 | a BUY 300 A | fill a A +300 @10 fee 5.00 cash -3005.00
    2024-01-03 | A 10 10 10 10 1000000 | b SELL 300 A; c BUY 200 A
        fill b A -300 @10 fee 2.00 tax 3.00 cash +2995.00; fill c A +200 @10 fee 5.00 cash -2005.00
    2024-01-04 | A 10 10 10 10 1000000 | d SELL 200 A | fill d A -200 @10 fee 3.00 tax 2.00 cash +1995.00
    """


@candles(plain(settlement=Settlement(t_plus=1), priority="as_given"))
def test_shares_bought_in_the_same_batch_are_locked():
    """
    2024-01-02 | A 10 10 10 10 1000 | a BUY 100 A; b SELL 100 A | fill a A +100 @10 cash -1000.00
        reject b A t_plus_1
    2024-01-03 | A 10 10 10 10 1000 | c BUY 50 A; d SELL 120 A; e SELL 100 A
        fill c A +50 @10 cash -500.00; reject d A t_plus_1; fill e A -100 @10 cash +1000.00
    2024-01-04 | A 10 10 10 10 1000 | f SELL 60 A; g SELL 50 A | reject f A insufficient_shares
        fill g A -50 @10 cash +500.00
    """


@candles(plain(settlement=Settlement(t_plus=1, on_locked="trim"), priority="as_given"))
def test_a_sale_can_be_cut_to_the_free_shares():
    """
    2024-01-02 | A 10 10 10 10 1000 | a BUY 100 A | fill a A +100 @10 cash -1000.00
    2024-01-03 | A 10 10 10 10 1000 | b BUY 50 A; c SELL 120 A | fill b A +50 @10 cash -500.00
        fill c A -100 @10 cash +1000.00; trim c A -120 to -100 t_plus_1
    """


def test_the_account_tells_what_is_sellable():
    tape = play(
        plain(settlement=Settlement(t_plus=1)),
        """
        2024-01-02 | A 10 10 10 10 1000 | a BUY 100 A | fill a A +100 @10 cash -1000.00
        """,
    )
    # The mark ended the session, so that everything is free for the next one.
    assert tape.account.sellable("A") == 100.0
    assert tape.account.state().positions["A"].held == 1


@candles()
def test_suspended_names_do_not_trade_and_keep_their_mark():
    """
    2024-01-02 | A 10 10 10 10 1000 | a BUY 100 A | fill a A +100 @10 cash -1000.00; nav 10000.00
    2024-01-03 | A - | b SELL 100 A; c A to 5% | reject b A suspended; reject c A suspended; nav 10000.00 stale A
    2024-01-04 | split A 2; A - | | split A to +200 cash +0.00; nav 10000.00 stale A
    2024-01-05 | A 6 6 6 6 1000 | d SELL 200 A | fill d A -200 @6 cash +1200.00; nav 10200.00
    """


@candles()
def test_a_dividend_during_a_suspension_lowers_the_mark():
    """
    2024-01-02 | A 10 10 10 10 1000 | a BUY 100 A | fill a A +100 @10 cash -1000.00; nav 10000.00
    2024-01-03 | dividend A 0.5; A - | | dividend A +50.00; nav 10000.00 stale A
    2024-01-04 | A 9.6 9.6 9.6 9.6 10 | | nav 10010.00
    """


@candles(instruments=PAIR, cash=2_000.0)
def test_weights_count_suspended_holdings_at_their_last_mark():
    """NAV is 1,000 in A (stale) plus 1,000 in cash: half of 2,000 is 100 shares of B at 10.
    2024-01-02 | A 10 10 10 10 1000; B 10 10 10 10 1000 | a BUY 100 A | fill a A +100 @10 cash -1000.00
    2024-01-03 | A -; B 10 10 10 10 1000 | b B to 50% | fill b B +100 @10 cash -1000.00
    """


def test_a_name_that_trades_without_an_open_has_no_price():
    tape = play(plain(), "2024-01-02 | A 10 10 10 10 1000 | |")
    bars = ["A 0 10 10 10 1000"]
    assert tape.session("2024-01-03", bars, ["a BUY 1 A"])[0].reason == "no_price"


@candles(plain(resting=Resting(held_to_side=True)))
def test_a_target_against_its_own_side_does_not_wait_to_trade_the_other_way():
    """
    2024-01-02 | A - | a SELL A to 100sh gtc; b BUY A to 100sh gtc | reject a A suspended; rest b A +100
    2024-01-03 | A 10 10 10 10 1000 | | fill b A +100 @10 cash -1000.00
    """


def test_where_a_side_does_not_bind_such_a_target_waits_and_trades_as_it_says():
    play(
        plain(),
        """
        2024-01-02 | A - | a SELL A to 100sh gtc | rest a A +100
        2024-01-03 | A 10 10 10 10 1000 | | fill a A +100 @10 cash -1000.00
        """,
    )
    assert [venue for venue in BUILTIN if venue.resting.held_to_side is True] == [ASHARE_DATED]
