"""Margin accounts: what equity carries, what borrowed cash costs, and forced sales."""

import pytest
from candles import PAIR, candles, plain

from tradeassay.account import Fees, Lots, Margin, Settlement, Shorting, Slippage
from tradeassay.core.errors import UserError

FREE = Margin(initial=0.5, maintenance_long=0.25, maintenance_short=0.30, interest_per_year=0.0)


@candles(plain(margin=FREE), cash=1_000.0)
def test_initial_margin_bounds_purchases():
    """1,000 of equity carry 2,000 of exposure at 50 %.
    2024-01-02 | A 10 10 10 10 1000 | a BUY 200 A | fill a A +200 @10 cash -2000.00; nav 1000.00
    2024-01-03 | A 10 10 10 10 1000 | b BUY 1 A | reject b A margin
    2024-01-04 | A 12 12 12 12 1000 | c BUY 100 A | fill c A +33 @12 cash -396.00
        trim c A +100 to +33 margin; nav 1400.00
    """


@candles(plain(margin=FREE, fees=Fees(buy_bps=100, sell_bps=100)), cash=1_000.0)
def test_costs_count_against_the_margin():
    """1 % fees: 198 shares need 990 of margin and cost 19.80, too much; 196 need 980 + 19.60.
    2024-01-02 | A 10 10 10 10 1000 | a BUY 200 A | fill a A +196 @10 fee 19.60 cash -1979.60
        trim a A +200 to +196 margin; nav 980.40
    """


@candles(plain(margin=FREE, fees=Fees(buy_bps=1, minimum=5)), cash=1_000.0)
def test_minimum_fees_count_against_the_margin():
    """1,000 - 5 carry 1,990 at 50 %: 199 shares.
    2024-01-02 | A 10 10 10 10 1000 | a BUY 300 A | fill a A +199 @10 fee 5.00 cash -1995.00
        trim a A +300 to +199 margin
    """


@candles(
    plain(
        margin=FREE,
        shorting=Shorting(allowed=True),
        fees=Fees(per_unit=0.1),
        slippage=Slippage(bps=100),
        lots=Lots(lot=0.1, step=0.1),
    ),
    cash=1_000.0,
)
def test_fees_per_share_and_slippage_count_when_a_position_is_turned():
    """100 long at 10, equity 980. Selling x at 9.90 with 0.10 a share: 980 - 0.20 x >= 5 (x - 100): x = 284.6.
    2024-01-02 | A 10 10 10 10 1000 | a BUY 100 A | fill a A +100 @10.1 fee 10.00 cash -1020.00; nav 980.00
    2024-01-03 | A 10 10 10 10 1000 | b SELL 1000 A | fill b A -284.6 @9.9 fee 28.46 cash +2789.08
        trim b A -1000 to -284.6 margin; nav 923.08
    """


@candles(plain(margin=Margin(interest_per_year=0, on_short="reject")), cash=1_000.0)
def test_orders_beyond_the_margin_can_be_refused_whole():
    """
    2024-01-02 | A 10 10 10 10 1000 | a BUY 201 A; b BUY 200 A | reject a A margin
        fill b A +200 @10 cash -2000.00
    """


@candles(plain(margin=Margin(interest_per_year=0.252)), cash=1_000.0)
def test_interest_on_borrowed_cash():
    """25.2 % a year over 252 sessions is 0.1 % of 1,000 a session; then of 1,001.
    2024-01-02 | A 10 10 10 10 1000 | a BUY 200 A | fill a A +200 @10 cash -2000.00; interest -1.00
        nav 999.00
    2024-01-03 | A 10 10 10 10 1000 | | interest -1.00; nav 998.00
    2024-01-04 | A 10 10 10 10 1000 | b SELL 150 A | fill b A -150 @10 cash +1500.00; nav 998.00
    """


@candles(plain(margin=FREE), cash=1_000.0)
def test_margin_call_sells_as_much_as_needed():
    """At 6: equity 200, required 0.25 x 1,200 = 300. Each share sold frees 1.50: 67 shares.
    2024-01-02 | A 10 10 10 10 1000 | a BUY 200 A | fill a A +200 @10 cash -2000.00
    2024-01-03 | A 7 7 7 7 1000 | | nav 400.00
    2024-01-04 | A 7 7 6 6 1000 | | call equity 200.00 required 300.00
        fill call:2024-01-04:A A -67 @6 cash +402.00 forced; nav 200.00
    """


@candles(plain(margin=FREE, fees=Fees(sell_bps=100), slippage=Slippage(bps=100)), instruments=PAIR, cash=1_000.0)
def test_margin_call_with_costs_takes_the_largest_requirement_first():
    """At 3 / 10: longs 300 + 1,000, cash -1,000, equity 300 < 325. B first: frees 2.50 - 0.20 a share: 11 shares.
    2024-01-02 | A 10 10 10 10 1000; B 10 10 10 10 1000 | a BUY 100 A limit 10; b BUY 100 B limit 10
        fill a A +100 @10 cash -1000.00; fill b B +100 @10 cash -1000.00; nav 1000.00
    2024-01-03 | A 3 3 3 3 1000; B 10 10 10 10 1000 | | call equity 300.00 required 325.00
        fill call:2024-01-03:B B -11 @9.9 fee 1.09 cash +107.81 forced; nav 297.81
    """


@candles(plain(margin=FREE), instruments=PAIR, cash=1_000.0)
def test_a_suspended_position_cannot_be_closed_and_the_call_stays():
    """A is stale at 7 when B falls: B is closed, A only when it trades again (162.50 short, 1.75 a share: 93).
    2024-01-02 | A 10 10 7 7 1000; B 10 10 10 10 1000 | a BUY 150 A; b BUY 50 B
        fill a A +150 @10 cash -1500.00; fill b B +50 @10 cash -500.00; nav 550.00
    2024-01-03 | A -; B 1 1 1 1 1000 | | call equity 100.00 required 275.00
        fill call:2024-01-03:B B -50 @1 cash +50.00 forced; nav 100.00 stale A
    2024-01-04 | A 7 7 7 7 1000; B 1 1 1 1 1000 | | call equity 100.00 required 262.50
        fill call:2024-01-04:A A -93 @7 cash +651.00 forced; nav 100.00
    """


@candles(plain(margin=FREE), cash=1_000.0)
def test_a_bankrupt_account_is_closed_and_stays_in_debt():
    """
    2024-01-02 | A 10 10 10 10 1000 | a BUY 200 A | fill a A +200 @10 cash -2000.00
    2024-01-03 | A 4 4 4 4 1000 | | call equity -200.00 required 200.00
        fill call:2024-01-03:A A -200 @4 cash +800.00 forced; nav -200.00
    2024-01-04 | A 4 4 4 4 1000 | b BUY 1 A | reject b A margin; call equity -200.00 required 0.00; nav -200.00
    """


@candles(plain(margin=FREE, shorting=Shorting(allowed=True)), cash=1_000.0)
def test_closing_orders_need_no_margin():
    """After the fall equity carries 1,600 at most; selling is allowed all the same, flipping the position is not.
    2024-01-02 | A 10 10 10 10 1000 | a BUY 200 A | fill a A +200 @10 cash -2000.00
    2024-01-03 | A 8 8 8 8 1000 | b SELL 50 A | fill b A -50 @8 cash +400.00; nav 600.00
    2024-01-04 | A 8 8 8 8 1000 | c SELL 400 A | fill c A -300 @8 cash +2400.00
        trim c A -400 to -300 margin; nav 600.00
    """


def test_contradicting_rules_are_refused():
    with pytest.raises(UserError, match="short sales without margin"):
        plain(shorting=Shorting(allowed=True))
    with pytest.raises(UserError, match="both T\\+1 and margin"):
        plain(margin=FREE, settlement=Settlement(t_plus=1))
