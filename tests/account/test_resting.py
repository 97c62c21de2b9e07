"""Good-till-cancelled orders: they wait, survive a restart, and can be taken back."""

import pytest
from candles import MAINBOARD, PAIR, candles, plain, play

from tradeassay.account import ASHARE, Participation
from tradeassay.core.errors import ExchangeError


@candles()
def test_a_limit_order_waits_for_its_price():
    """
    2024-01-02 | A 10 10.2 9.9 10 1000 | a BUY 10 A limit 9.5 gtc | rest a A +10
    2024-01-03 | A 10 10.2 9.8 10 1000
    2024-01-04 | A -
    2024-01-05 | A 9.9 10.2 9.4 10 1000 | | fill a A +10 @9.5 cash -95.00
    2024-01-08 | A 9 9 9 9 1000
    """


@candles(fill="close")
def test_waiting_orders_see_the_whole_bar_even_when_new_ones_trade_at_the_close():
    """
    2024-01-02 | A 10 10.2 9.4 10 1000 | a BUY 10 A limit 9.5 gtc | rest a A +10
    2024-01-03 | A 10 10.2 9.4 10 1000 | b BUY 1 A | expire a A; fill b A +1 @10 cash -10.00
    2024-01-04 | A 10 10.2 9.4 10 1000 | c BUY 10 A limit 9.5 gtc | rest c A +10
    2024-01-05 | A 10 10.2 9.4 10 1000 | | fill c A +10 @9.5 cash -95.00
    """


@candles(instruments=PAIR)
def test_a_new_order_for_the_name_ends_the_old_ones():
    """
    2024-01-02 | A 9 9 9 9 9; B 9 9 9 9 9 | a BUY 9 A limit 8 gtc; b BUY 5 A limit 7 gtc; c BUY 9 B limit 8 gtc
        rest a A +9; rest b A +5; rest c B +9
    2024-01-03 | A 8 8 8 8 1000; B 10 10 10 10 1000 | d BUY 1 A | expire a A; expire b A
        fill d A +1 @8 cash -8.00
    2024-01-04 | A 8 8 8 8 1000; B 8 8 8 8 1000 | | fill c B +9 @8 cash -72.00
    """


@candles()
def test_money_and_weights_are_sized_at_the_orders_own_price():
    """
    2024-01-02 | A 10 10 10 10 1000 | a A to 9% limit 9 gtc; b BUY $90 A limit 9 gtc; c BUY $5 A limit 9 gtc
        rest a A +100; rest b A +10; reject c A lot
    2024-01-03 | A 8 8 8 8 1000 | | fill a A +100 @8 cash -800.00; fill b A +10 @8 cash -80.00
    """


@candles(ASHARE, instruments=MAINBOARD)
def test_what_another_day_may_cure_waits_and_the_rest_is_refused():
    """
    2024-01-02 | A 10 10 10 10 100000 | a BUY 100 A gtc | fill a A +100 @10 fee 5.00 cash -1005.00
    2024-01-03 | A 11 11 11 11 100000 | b BUY 100 A gtc | rest b A +100
    2024-01-04 | A - | c SELL 100 A gtc; d BUY $900 A gtc | expire b A; rest c A -100; reject d A suspended
    2024-01-05 | A 11 11 11 11 100000 | | fill c A -100 @11 fee 3.90 tax 1.10 cash +1095.00
    2024-01-08 | A 11 11 11 11 100000 | e SELL 100 A gtc; f BUY 150 A gtc | reject e A no_shorting; reject f A lot
    """


@candles(instruments=PAIR)
def test_splits_and_delistings_end_waiting_orders():
    """
    2024-01-02 | A 10 10 10 10 1000; B 10 10 10 10 1000 | a BUY 10 A limit 6 gtc; b BUY 10 B limit 6 gtc
        rest a A +10; rest b B +10
    2024-01-03 | split A 2; delist B; A 5 5 5 5 1000; B - | | expire a A; expire b B
    """


def test_a_stop_that_began_to_trade_stays_a_market_order():
    venue = plain(participation=Participation(max_share=0.1))
    tape = play(
        venue,
        """
        2024-01-02 | A 10 10 10 10 1000 | a BUY 150 A stop 11 gtc | rest a A +150
        2024-01-03 | A 10 11.5 10 11 1000 | | fill a A +100 @11 cash -1100.00; rest a A +50
        """,
    )
    assert [waiting.triggered for waiting in tape.exchange.book.values()] == [True]
    filled = tape.session("2024-01-04", ["A 10 10 10 10 1000"], [])[0]
    assert (filled.quantity, filled.price) == (50.0, 10.0)


@candles(plain(participation=Participation(max_share=0.1)))
def test_a_partly_filled_limit_order_keeps_its_limit():
    """
    2024-01-02 | A 10 10 10 10 1000 | a BUY 150 A limit 10 gtc | fill a A +100 @10 cash -1000.00
        rest a A +50
    2024-01-03 | A 11 11 10.5 11 1000
    2024-01-04 | A 11 11 9.9 11 1000 | | fill a A +50 @10 cash -500.00
    """


def test_an_id_cannot_be_used_twice():
    tape = play(plain(), "2024-01-02 | A 10 10 10 10 1000 | a BUY 10 A limit 9 gtc | rest a A +10")
    with pytest.raises(ExchangeError, match="taken by a waiting order"):
        tape.session("2024-01-03", ["A 10 10 10 10 1000"], ["b BUY 1 A limit 9 gtc", "b BUY 1 A limit 8 gtc"])


@candles(fill="close", decide="close")
def test_who_decides_at_the_close_cannot_take_back_what_the_bar_has_filled():
    """
    2024-01-02 | A 100 101 99 100 1000 | a BUY 10 A limit 95 gtc; b BUY 10 A limit 70 gtc | rest a A +10
        rest b A +10
    2024-01-03 | A 99 99 80 81 1000 | c BUY 1 A limit 0.01 | fill a A +10 @95 cash -950.00; expire b A
        expire c A; nav 9860.00
    """


@pytest.mark.parametrize("fill", ["open", "close"])
def test_who_decides_at_the_open_cannot_take_back_what_the_auction_has_filled(fill):
    # The open reaches a, so that it trades; b would be reached during the session, which nobody knows yet.
    play(
        plain(),
        """
        2024-01-02 | A 9 9 9 9 9; B 9 9 9 9 9 | a BUY 9 A limit 8 gtc; b BUY 5 A limit 6 gtc; c BUY 9 B limit 8 gtc
            rest a A +9; rest b A +5; rest c B +9
        2024-01-03 | A 7 7 5 7 99; B 9 9 7 9 99 | d BUY 1 A | fill a A +9 @7 cash -63.00; expire b A
            fill %s; fill %s
        """
        % (
            ("d A +1 @7 cash -7.00", "c B +9 @8 cash -72.00")
            if fill == "open"
            else ("c B +9 @8 cash -72.00", "d A +1 @7 cash -7.00")
        ),
        instruments=PAIR,
        fill=fill,
        decide="open",
    )


@candles(plain(participation=Participation(max_share=0.1)), decide="open")
def test_the_auction_and_the_session_give_an_order_one_try():
    """
    2024-01-02 | A 10 10 10 10 1000 | a BUY 150 A stop 11 gtc | rest a A +150
    2024-01-03 | A 11 12 9 10 1000 | | fill a A +100 @11 cash -1100.00; rest a A +50
    2024-01-04 | A 9 9 9 9 1000 | | fill a A +50 @9 cash -450.00
    """


@pytest.mark.parametrize("decide", ["pre_open", "open", "close"])
def test_without_an_open_a_market_order_goes_on_waiting(decide):
    play(
        plain(participation=Participation(max_share=0.1)),
        """
        2024-01-02 | A 100 101 99 100 100 | a BUY 20 A gtc; b BUY 10 A limit 98 gtc | rest b A +10
            fill a A +10 @100 cash -1000.00; rest a A +10
        2024-01-03 | A nan 101 97 100 1000 | | fill b A +10 @98 cash -980.00
        2024-01-04 | A 90 90 90 90 1000 | | fill a A +10 @90 cash -900.00
        """,
        fill="close",
        decide=decide,
    )
