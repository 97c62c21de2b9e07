"""Market, limit and stop orders against a dozen bars."""

from candles import PAIR, candles, plain

from tradeassay.account import Slippage


@candles()
def test_market_orders_fill_at_the_open():
    """
    2024-01-02 | A 10.0 10.5 9.8 10.2 1000 | a BUY 100 A | fill a A +100 @10 cash -1000.00; nav 10020.00
    2024-01-03 | A 10.4 10.6 10.1 10.5 1000 | | nav 10050.00
    2024-01-04 | A 10.3 10.9 10.0 10.8 1000 | b SELL 100 A | fill b A -100 @10.3 cash +1030.00
        nav 10030.00
    """


@candles(fill="close")
def test_market_orders_fill_at_the_close_when_asked():
    """
    2024-01-02 | A 10.0 10.5 9.8 10.2 1000 | a BUY 100 A | fill a A +100 @10.2 cash -1020.00; nav 10000.00
    2024-01-03 | A 10.4 10.6 10.1 10.5 1000 | b SELL 100 A limit 10.6 | expire b A
    2024-01-04 | A 10.4 10.9 10.1 10.7 1000 | b SELL 100 A limit 10.6 | fill b A -100 @10.7 cash +1070.00
    """


@candles()
def test_limit_orders():
    """A buy at 9.50: better at the open, exactly at the open, touched, just touched, missed by a cent.
    2024-01-02 | A 9.40 9.9 9.3 9.8 1000 | a BUY 10 A limit 9.5 | fill a A +10 @9.4 cash -94.00
    2024-01-03 | A 9.50 9.9 9.3 9.8 1000 | b BUY 10 A limit 9.5 | fill b A +10 @9.5 cash -95.00
    2024-01-04 | A 9.80 9.9 9.3 9.8 1000 | c BUY 10 A limit 9.5 | fill c A +10 @9.5 cash -95.00
    2024-01-05 | A 9.80 9.9 9.5 9.8 1000 | d BUY 10 A limit 9.5 | fill d A +10 @9.5 cash -95.00
    2024-01-08 | A 9.80 9.9 9.51 9.8 1000 | e BUY 10 A limit 9.5 | expire e A
    2024-01-09 | A 10.2 10.3 9.9 10.0 1000 | f SELL 10 A limit 10.1 | fill f A -10 @10.2 cash +102.00
    2024-01-10 | A 10.0 10.3 9.9 10.0 1000 | g SELL 10 A limit 10.1 | fill g A -10 @10.1 cash +101.00
    2024-01-11 | A 10.0 10.05 9.9 10 1000 | h SELL 10 A limit 10.1 | expire h A
    """


@candles()
def test_stop_orders():
    """A stop becomes a market order when its price is reached; a gap through it fills at the open.
    2024-01-02 | A 10.0 10.9 9.8 10.5 1000 | a BUY 10 A stop 11 | expire a A
    2024-01-03 | A 10.5 11.2 10.4 11.1 1000 | b BUY 10 A stop 11 | fill b A +10 @11 cash -110.00
    2024-01-04 | A 11.4 11.6 11.3 11.5 1000 | c BUY 10 A stop 11 | fill c A +10 @11.4 cash -114.00
    2024-01-05 | A 11.4 11.6 10.9 11.0 1000 | d SELL 10 A stop 10.8 | expire d A
    2024-01-08 | A 11.0 11.1 10.7 10.9 1000 | e SELL 5 A stop 10.8 | fill e A -5 @10.8 cash +54.00
    2024-01-09 | A 10.5 10.6 10.1 10.2 1000 | f SELL 5 A stop 10.8 | fill f A -5 @10.5 cash +52.50
    """


@candles(instruments=PAIR, cash=1_000.0)
def test_what_fills_at_the_open_comes_before_what_is_touched_later():
    # The limit sale is listed first, but its price is reached only during the session: it cannot pay the purchase.
    """
    2024-01-02 | A 10 10.1 9.9 10 1000; B 20 20 20 20 1000 | a BUY 100 A | fill a A +100 @10 cash -1000.00
    2024-01-03 | A 10 10.6 9.9 10 1000; B 20 20 20 20 1000 | b SELL 100 A limit 10.5; c BUY 1 B
        reject c B insufficient_cash; fill b A -100 @10.5 cash +1050.00
    """


@candles(plain(slippage=Slippage(bps=100)))
def test_slippage_stops_at_the_limit():
    """
    2024-01-02 | A 10.0 10.5 9.0 10.2 1000 | a BUY 10 A | fill a A +10 @10.1 cash -101.00
    2024-01-03 | A 10.0 10.5 9.0 10.2 1000 | b BUY 10 A limit 10.05 | fill b A +10 @10.05 cash -100.50
    2024-01-04 | A 10.0 10.5 9.0 10.2 1000 | c SELL 10 A limit 9.95 | fill c A -10 @9.95 cash +99.50
    2024-01-05 | A 10.0 10.5 9.0 10.2 1000 | d SELL 10 A | fill d A -10 @9.9 cash +99.00
    """
