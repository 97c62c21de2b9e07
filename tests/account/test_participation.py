"""One account takes at most a share of the session's volume."""

from dataclasses import replace

from tradeassay.account import Lots, Participation
from tradeassay.core.orders import Order
from tradeassay.core.view import Instrument


def test_partial_fills(play, plain):
    play(
        plain(participation=Participation(max_share=0.1)),
        """
        2024-01-02 | A 10 10 10 10 1000 | a BUY 150 A
            fill a A +100 @10 fee 0.00 cash -1000.00
            trim a A +150 to +100 no_volume
        2024-01-03 | A 10 10 10 10 1000 | b BUY 60 A; c BUY 60 A
            fill b A +60 @10 fee 0.00 cash -600.00
            fill c A +40 @10 fee 0.00 cash -400.00
            trim c A +60 to +40 no_volume
        2024-01-04 | A 10 10 10 10 500 | d SELL 200 A
            fill d A -50 @10 fee 0.00 cash +500.00
            trim d A -200 to -50 no_volume
        2024-01-05 | A 10 10 10 10 0 | e SELL 10 A
            reject e A no_volume
        2024-01-08 | A 10 10 10 10 9 | f SELL 1 A
            reject f A no_volume
        2024-01-09 | A 10 10 10 10 nan | g SELL 150 A
            fill g A -150 @10 fee 0.00 cash +1500.00
        """,
    )


def test_partial_fills_are_whole_lots(play, plain):
    play(
        plain(participation=Participation(max_share=0.1), lots=Lots(lot=100, step=1)),
        """
        2024-01-02 | A 1 1 1 1 2999 | a BUY 500 A
            fill a A +200 @1 fee 0.00 cash -200.00
            trim a A +500 to +200 no_volume
        2024-01-03 | A 1 1 1 1 999 | b BUY 100 A
            reject b A no_volume
        """,
    )


def test_what_is_left_of_a_day_order_dies_and_of_a_gtc_order_waits(play, plain):
    play(
        plain(participation=Participation(max_share=0.1)),
        """
        2024-01-02 | A 10 10 10 10 1000 | a BUY 250 A gtc
            fill a A +100 @10 fee 0.00 cash -1000.00
            rest a A +150
        2024-01-03 | A 10 10 10 10 1000
            fill a A +100 @10 fee 0.00 cash -1000.00
            rest a A +50
        2024-01-04 | A 10 10 10 10 0
        2024-01-05 | A 10 10 10 10 1000
            fill a A +50 @10 fee 0.00 cash -500.00
        2024-01-08 | A 10 10 10 10 1000
        """,
    )


def test_volume_stays_used_up_when_the_session_goes_on(play, plain):
    tape = play(plain(participation=Participation(max_share=0.1)), "2024-01-02 | A 10 10 10 10 1000")
    bars = tape.exchange._session.bars
    buy = Order(symbol="A", amount=80.0, side="BUY")
    tape.exchange.open_session(bars, (), tape.account)
    tape.exchange.execute([("a", buy)], bars, tape.account)
    tape.exchange.execute([("b", buy)], replace(bars), tape.account)
    assert tape.account.quantity("A") == 100.0


def test_index_funds_are_as_liquid_as_their_members(play, plain):
    fund = (Instrument(symbol="A", kind="index"),)
    table = "2024-01-02 | A 10 10 10 10 100 | a BUY 50 A | {}"
    whole = "fill a A +50 @10 fee 0.00 cash -500.00"
    part = "fill a A +10 @10 fee 0.00 cash -100.00; trim a A +50 to +10 no_volume"
    play(plain(participation=Participation(max_share=0.1)), table.format(whole), instruments=fund)
    play(plain(participation=Participation(max_share=0.1, index_funds=True)), table.format(part), instruments=fund)
