"""Daily price limits: no buyer finds a seller at limit-up, no seller a buyer at limit-down."""

import msgspec
import pytest
from candles import MAINBOARD, candles, play

from tradeassay.account import ASHARE, Fees, PriceLimits
from tradeassay.core.view import Board, Instrument

FREE = msgspec.structs.replace(ASHARE, fees=Fees())
"""The A-share venue without fees, so that the tables are about limits only."""


@candles(FREE, instruments=MAINBOARD)
def test_main_board():
    """Previous close 10.00: 9.5 % is 10.95 and 9.05. At the threshold counts as beyond it.
    2024-01-02 | A 10.00 10.00 10.00 10.00 100000 | a BUY 300 A | fill a A +300 @10 cash -3000.00
    2024-01-03 | A 10.95 11.00 10.00 10.00 100000 | b BUY 100 A | reject b A limit_up
    2024-01-04 | A 10.94 11.00 10.00 10.00 100000 | c BUY 100 A | fill c A +100 @10.94 cash -1094.00
    2024-01-05 | A 11.00 11.00 11.00 10.00 100000 | d SELL 100 A | fill d A -100 @11 cash +1100.00
    2024-01-08 | A 9.05 10.00 9.00 10.00 100000 | e SELL 100 A; f BUY 100 A | reject e A limit_down
        fill f A +100 @9.05 cash -905.00
    2024-01-09 | A 9.06 10.00 9.00 10.00 100000 | g SELL 100 A | fill g A -100 @9.06 cash +906.00
    """


@pytest.mark.parametrize(
    ("board", "last_free", "first_blocked"),
    [
        (Board.MAIN, 10.94, 10.95),
        (Board.CHINEXT, 11.94, 11.95),
        (Board.STAR, 11.94, 11.95),
        (Board.BSE, 12.94, 12.95),
        (Board.NONE, 15.00, None),
    ],
)
def test_every_board_has_its_band(board, last_free, first_blocked):
    blocked = (
        f"2024-01-04 | A {first_blocked} 20 1 10 100000 | b BUY 100 A | reject b A limit_up"
        if first_blocked
        else ""
    )
    play(
        FREE,
        f"""
        2024-01-02 | A 10 10 10 10 100000
        2024-01-03 | A {last_free} 20 1 10 100000 | a BUY 100 A
            fill a A +100 @{last_free:g} cash {-100 * last_free:.2f}
        {blocked}
        """,
        instruments=(Instrument(symbol="A", board=board),),
    )


def test_the_open_decides_not_the_close():
    # The name closes at +10 % but opens at +1 %: a purchase at the open is possible, whatever comes later.
    table = """
        2024-01-02 | A 10.00 10.0 10.0 10.00 100000
        2024-01-03 | A 10.10 11.0 10.1 11.00 100000 | a BUY 100 A | {}
        2024-01-04 | A 12.00 12.1 11.0 11.00 100000 | b BUY 100 A | {}
        """
    filled = "fill a A +100 @10.1 cash -1010.00"
    play(FREE, table.format(filled, "fill b A +100 @12 cash -1200.00"), instruments=MAINBOARD)
    parity = msgspec.structs.replace(FREE, price_limits=PriceLimits(limit_test="close_change"))
    play(parity, table.format("reject a A limit_up", "fill b A +100 @12 cash -1200.00"), instruments=MAINBOARD)


@candles(FREE, instruments=MAINBOARD)
def test_a_limit_order_below_the_band_trades_when_the_board_opens():
    """Opens at limit-up, later trades down to 10.50: the limit order at 10.60 is reached there.
    2024-01-02 | A 10 10 10 10 100000
    2024-01-03 | A 11 11 10.5 10.8 100000 | a BUY 100 A; b BUY 100 A limit 10.6 | reject a A limit_up
        fill b A +100 @10.6 cash -1060.00
    """


@candles(FREE, instruments=MAINBOARD)
def test_the_first_session_of_a_listing_has_no_limit():
    """
    2024-01-02 | A 10 44 10 44 100000 | a BUY 100 A | fill a A +100 @10 cash -1000.00
    """


@candles(FREE, instruments=MAINBOARD)
def test_the_band_follows_corporate_actions():
    """20.00 before a 2-for-1 split is 10.00 after it; an open of 10.50 is +5 %, not -47.5 %.
    2024-01-02 | A 20 20 20 20 100000 | a BUY 200 A | fill a A +200 @20 cash -4000.00
    2024-01-03 | split A 2; A 10.5 11 10 10.5 100000 | b SELL 400 A | split A to +400 cash +0.00
        fill b A -400 @10.5 cash +4200.00
    """


def test_the_detail_says_what_was_compared():
    tape = play(
        FREE,
        """
        2024-01-02 | A 10 10 10 10 100000
        2024-01-03 | A 11 11 10.5 10.8 100000 | a BUY 100 A | reject a A limit_up
        """,
        instruments=MAINBOARD,
    )
    assert tape.records[-1].events[0].detail == "11 is +10.00% from 10; no BUY from +9.50%"
