"""T+1: what was bought today is sold tomorrow."""

from tradeassay.account import ASHARE, Settlement


def test_t_plus_1(play, mainboard):
    play(
        ASHARE,
        """
        2024-01-02 | A 10 10 10 10 1000000 | a BUY 300 A
            fill a A +300 @10 fee 5.00 cash -3005.00
        2024-01-03 | A 10 10 10 10 1000000 | b SELL 300 A; c BUY 200 A
            fill b A -300 @10 fee 2.00 tax 3.00 cash +2995.00
            fill c A +200 @10 fee 5.00 cash -2005.00
        2024-01-04 | A 10 10 10 10 1000000 | d SELL 200 A
            fill d A -200 @10 fee 3.00 tax 2.00 cash +1995.00
        """,
        instruments=mainboard,
    )


def test_shares_bought_in_the_same_batch_are_locked(play, mainboard, plain):
    play(
        plain(settlement=Settlement(t_plus=1), priority="as_given"),
        """
        2024-01-02 | A 10 10 10 10 1000 | a BUY 100 A; b SELL 100 A
            fill a A +100 @10 fee 0.00 cash -1000.00
            reject b A t_plus_1
        2024-01-03 | A 10 10 10 10 1000 | c BUY 50 A; d SELL 120 A; e SELL 100 A
            fill c A +50 @10 fee 0.00 cash -500.00
            reject d A t_plus_1
            fill e A -100 @10 fee 0.00 cash +1000.00
        2024-01-04 | A 10 10 10 10 1000 | f SELL 60 A; g SELL 50 A
            reject f A insufficient_shares
            fill g A -50 @10 fee 0.00 cash +500.00
        """,
    )


def test_a_sale_can_be_cut_to_the_free_shares(play, plain):
    play(
        plain(settlement=Settlement(t_plus=1, on_locked="trim"), priority="as_given"),
        """
        2024-01-02 | A 10 10 10 10 1000 | a BUY 100 A
            fill a A +100 @10 fee 0.00 cash -1000.00
        2024-01-03 | A 10 10 10 10 1000 | b BUY 50 A; c SELL 120 A
            fill b A +50 @10 fee 0.00 cash -500.00
            fill c A -100 @10 fee 0.00 cash +1000.00
            trim c A -120 to -100 t_plus_1
        """,
    )


def test_the_account_tells_what_is_sellable(play, plain):
    tape = play(
        plain(settlement=Settlement(t_plus=1)),
        """
        2024-01-02 | A 10 10 10 10 1000 | a BUY 100 A
            fill a A +100 @10 fee 0.00 cash -1000.00
        """,
    )
    # The mark ended the session, so that everything is free for the next one.
    assert tape.account.sellable("A") == 100.0
    assert tape.account.state().positions["A"].held == 1
