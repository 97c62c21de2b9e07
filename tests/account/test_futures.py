"""Futures: multiplier, daily settlement, margin, expiry and roll."""

import msgspec
from candles import candles, plain, play

from tradeassay.account import Fees, Futures, Margin, Shorting, Slippage
from tradeassay.core.view import Instrument

NEAR = Instrument(symbol="F1", kind="future", multiplier=10.0, expiry="2024-01-12", root="F")
FAR = Instrument(symbol="F2", kind="future", multiplier=10.0, expiry="2024-02-09", root="F")
MARGIN = Margin(initial=0.10, maintenance_long=0.08, maintenance_short=0.08, interest_per_year=0.0)


VENUE = plain(margin=MARGIN, shorting=Shorting(allowed=True), futures=Futures(roll="none"))


@candles(VENUE, instruments=(NEAR,))
def test_settlement_day_by_day():
    """Bought at 100, settled at 102 (+100), 2 of 5 sold at 103 (settled there first), 3 left at 101.
    2024-01-02 | F1 100 103 99 102 1000 | a BUY 5 F1 | fill a F1 +5 @100 cash +0.00
        settle F1 +5 @102 cash +100.00; nav 10100.00
    2024-01-03 | F1 103 104 100 101 1000 | b SELL 2 F1 | settle F1 +5 @103 cash +50.00
        fill b F1 -2 @103 cash +0.00; settle F1 +3 @101 cash -60.00; nav 10090.00
    2024-01-04 | F1 101 101 101 101 1000 | c SELL 3 F1 | fill c F1 -3 @101 cash +0.00; nav 10090.00
    """


@candles(
    plain(
        margin=MARGIN, shorting=Shorting(allowed=True), fees=Fees(buy_bps=1, sell_bps=1), slippage=Slippage(bps=10)
    ),
    instruments=(NEAR,),
)
def test_costs_are_all_that_a_fill_moves():
    # 5 contracts of 10 x 100 are 5,000: 1 bp is 0.50. Slippage of 10 bp is lost through settlement: 5 x 10 x 0.10.
    """
    2024-01-02 | F1 100 100 100 100 1000 | a BUY 5 F1 | fill a F1 +5 @100.1 fee 0.50 cash -0.50
        settle F1 +5 @100 cash -5.00; nav 9994.50
    """


@candles(VENUE, instruments=(NEAR,), cash=1_000.0)
def test_initial_margin():
    """1,000 of equity carry 10,000 of notional at 10 %: 10 contracts of 1,000.
    2024-01-02 | F1 100 100 100 100 1000 | a SELL 12 F1 | fill a F1 -10 @100 cash +0.00
        trim a F1 -12 to -10 margin; nav 1000.00
    2024-01-03 | F1 100 100 100 100 1000 | b F1 to -1000% | reject b F1 no_change; nav 1000.00
    """


@candles(VENUE, instruments=(NEAR,))
def test_weights_are_of_notional():
    """
    2024-01-02 | F1 100 100 100 100 1000 | a F1 to 50% | fill a F1 +5 @100 cash +0.00; nav 10000.00
    """


@candles(VENUE, instruments=(NEAR,), cash=1_000.0)
def test_margin_call():
    """10 long at 100; at 97 equity is 700 of 776 required. A contract frees 0.08 x 970 = 77.60: one is sold.
    2024-01-02 | F1 100 100 100 100 1000 | a BUY 10 F1 | fill a F1 +10 @100 cash +0.00
    2024-01-03 | F1 100 100 97 97 1000 | | settle F1 +10 @97 cash -300.00; call equity 700.00 required 776.00
        fill call:2024-01-03:F1 F1 -1 @97 cash +0.00 forced; nav 700.00
    """


@candles(VENUE, instruments=(NEAR, FAR))
def test_expiry_ends_the_position_at_the_last_settlement():
    """
    2024-01-11 | F1 100 100 100 100 1000; F2 100 100 100 100 1000 | a BUY 2 F1
        fill a F1 +2 @100 cash +0.00
    2024-01-12 | F1 100 110 100 110 1000; F2 100 100 100 100 1000 | | settle F1 +2 @110 cash +200.00
        delist F1 +2 @110 cash +0.00; nav 10200.00
    2024-01-15 | F1 -; F2 100 100 100 100 1000 | b BUY 1 F1 | reject b F1 expired_contract; nav 10200.00
    """


@candles(
    plain(
        margin=MARGIN,
        shorting=Shorting(allowed=True),
        futures=Futures(roll="next", roll_days=3),
        fees=Fees(buy_bps=1, sell_bps=1),
    ),
    instruments=(NEAR, FAR),
)
def test_roll_into_the_next_contract():
    """Three days before expiry: out of F1 at 101, into F2 at 103, fees of 1 bp on both legs.
    2024-01-08 | F1 100 100 100 100 1000; F2 102 102 102 102 1000 | a BUY 10 F1
        fill a F1 +10 @100 fee 1.00 cash -1.00; nav 9999.00
    2024-01-09 | F1 100 101 100 101 1000; F2 102 103 102 103 1000 | | settle F1 +10 @101 cash +100.00
        fill roll:2024-01-09:F1 F1 -10 @101 fee 1.01 cash -1.01 forced
        fill roll:2024-01-09:F1 F2 +10 @103 fee 1.03 cash -1.03 forced; roll F1 into F2 +10; nav 10096.96
    2024-01-10 | F1 101 101 101 101 1000; F2 104 104 104 104 1000 | | settle F2 +10 @104 cash +100.00; nav 10196.96
    """


@candles(
    plain(margin=MARGIN, shorting=Shorting(allowed=True), slippage=Slippage(bps=100)), instruments=(NEAR, FAR)
)
def test_slippage_on_both_legs_of_a_roll_reaches_nav():
    """
    2024-01-08 | F1 100 100 100 100 1000; F2 100 100 100 100 1000 | a SELL 1 F1 limit 100
        fill a F1 -1 @100 cash +0.00; settle F1 -1 @101 cash -10.00
        fill roll:2024-01-08:F1 F1 +1 @101 cash +0.00 forced
        fill roll:2024-01-08:F1 F2 -1 @99 cash +0.00 forced; roll F1 into F2 -1
        settle F2 -1 @100 cash -10.00; nav 9980.00
    """


@candles(plain(margin=MARGIN, shorting=Shorting(allowed=True)), instruments=(NEAR,))
def test_without_a_next_contract_the_position_expires():
    """
    2024-01-11 | F1 100 100 100 100 1000 | a BUY 1 F1 | fill a F1 +1 @100 cash +0.00
    2024-01-12 | F1 - | | delist F1 +1 @100 cash +0.00; nav 10000.00
    """


@candles(instruments=(NEAR,))
def test_futures_need_a_margin_account():
    """
    2024-01-02 | F1 1 1 1 1 1000 | a BUY 1 F1 | reject a F1 unsupported
    """


@candles(VENUE, instruments=(NEAR,))
def test_a_contract_that_vanishes_is_paid_out_without_money():
    """
    2024-01-02 | F1 100 100 100 101 1000 | a BUY 1 F1 | fill a F1 +1 @100 cash +0.00
        settle F1 +1 @101 cash +10.00
    2024-01-03 | delist F1; F1 - | | delist F1 +1 @101 cash +0.00; nav 10010.00
    """


@candles(plain(margin=MARGIN, shorting=Shorting(allowed=True)), instruments=(NEAR, FAR))
def test_a_roll_waits_until_the_next_contract_has_a_price():
    """
    2024-01-02 | F1 100 100 100 100 1000; F2 101 101 101 101 1000 | a BUY 2 F1
        fill a F1 +2 @100 cash +0.00
    2024-01-08 | F1 100 100 100 100 1000; F2 101 101 101 0 1000 | | nav 10000.00
    2024-01-09 | F1 100 100 100 100 1000; F2 101 101 101 101 1000
        fill roll:2024-01-09:F1 F1 -2 @100 cash +0.00 forced
        fill roll:2024-01-09:F1 F2 +2 @101 cash +0.00 forced; roll F1 into F2 +2; nav 10000.00
    """


def test_a_roll_keeps_the_number_of_contracts_between_multipliers():
    # One percent of slippage on each leg: 2 x 10 x 1.00 out of F1 and 2 x 5 x 1.00 into F2.
    half = msgspec.structs.replace(FAR, multiplier=5.0)
    play(
        plain(margin=MARGIN, shorting=Shorting(allowed=True), slippage=Slippage(bps=100)),
        """
        2024-01-08 | F1 100 100 100 100 1000; F2 100 100 100 100 1000 | a BUY 2 F1 limit 100
            fill a F1 +2 @100 cash +0.00; settle F1 +2 @99 cash -20.00
            fill roll:2024-01-08:F1 F1 -2 @99 cash +0.00 forced
            fill roll:2024-01-08:F1 F2 +2 @101 cash +0.00 forced; roll F1 into F2 +2
            settle F2 +2 @100 cash -10.00; nav 9970.00
        2024-01-09 | F1 100 100 100 100 1000; F2 103 103 103 103 1000 | | settle F2 +2 @103 cash +30.00
            nav 10000.00
        """,
        instruments=(NEAR, half),
    )
