"""Selling what one does not have, and what that costs."""

from candles import PAIR, candles, plain, play

from tradeassay.account import Margin, Shorting

MARGIN = Margin(initial=0.5, maintenance_long=0.25, maintenance_short=0.30, interest_per_year=0.0)


@candles(plain(margin=MARGIN, shorting=Shorting(allowed=True, borrow_per_year=0.252)))
def test_short_sale_borrow_fee_and_cover():
    """25.2 % a year is 0.1 % of the short value a session.
    2024-01-02 | A 10 10 10 10 1000 | a SELL 100 A | fill a A -100 @10 cash +1000.00; borrow A -1.00
        nav 9999.00
    2024-01-03 | A 8 8 8 8 1000 | | borrow A -0.80; nav 10198.20
    2024-01-04 | A 8 8 8 8 1000 | b A to 0% | fill b A +100 @8 cash -800.00; nav 10198.20
    """


@candles(plain(margin=MARGIN, shorting=Shorting(allowed=True)))
def test_weights_below_zero():
    """
    2024-01-02 | A 10 10 10 10 1000 | a A to -50% | fill a A -500 @10 cash +5000.00; nav 10000.00
    2024-01-03 | A 10 10 10 10 1000 | b BUY A to -20% | fill b A +300 @10 cash -3000.00; nav 10000.00
    2024-01-04 | A 10 10 10 10 1000 | c BUY A to 10% | fill c A +300 @10 cash -3000.00; nav 10000.00
    """


@candles(plain(margin=MARGIN, shorting=Shorting(allowed=True)), cash=1_000.0)
def test_initial_margin_bounds_short_sales():
    """
    2024-01-02 | A 10 10 10 10 1000 | a SELL 300 A | fill a A -200 @10 cash +2000.00
        trim a A -300 to -200 margin; nav 1000.00
    2024-01-03 | A 10 10 10 10 1000 | b SELL 1 A | reject b A margin
    """


@candles(plain(margin=MARGIN, shorting=Shorting(allowed=True)), cash=1_000.0)
def test_forced_cover():
    """Short 50 at 10; at 25 equity is 250, required 0.3 x 1,250 = 375. Each share covered frees 7.50: 17 shares.
    2024-01-02 | A 10 10 10 10 1000 | a SELL 50 A | fill a A -50 @10 cash +500.00; nav 1000.00
    2024-01-03 | A 20 25 20 25 1000 | | call equity 250.00 required 375.00
        fill call:2024-01-03:A A +17 @25 cash -425.00 forced; nav 250.00
    """


def test_borrow_must_be_there():
    rules = Shorting(allowed=True, unavailable=("B",), max_volume_share=0.1)
    play(
        plain(margin=MARGIN, shorting=rules),
        """
        2024-01-02 | A 10 10 10 10 1000; B 10 10 10 10 1000 | a SELL 10 B; b SELL 150 A | reject a B no_borrow
            fill b A -100 @10 cash +1000.00; trim b A -150 to -100 no_borrow
        2024-01-03 | A 10 10 10 10 1000; B 10 10 10 10 1000 | c SELL 10 A | reject c A no_borrow
        2024-01-04 | A 10 10 10 10 2000; B 10 10 10 10 1000 | d SELL 10 A | fill d A -10 @10 cash +100.00
        2024-01-05 | A 10 10 10 10 1000; B 10 10 10 10 1000 | e BUY 30 A; f BUY 10 B
            fill e A +30 @10 cash -300.00; fill f B +10 @10 cash -100.00
        2024-01-08 | A 10 10 10 10 1000; B 10 10 10 10 1000 | g SELL 11 B; h SELL 10 B | reject g B no_borrow
            fill h B -10 @10 cash +100.00
        """,
        instruments=PAIR,
    )


def test_without_short_sales_a_sale_ends_at_the_holding():
    table = """
        2024-01-02 | A 10 10 10 10 1000 | a BUY 10 A | fill a A +10 @10 cash -100.00
        2024-01-03 | A 10 10 10 10 1000 | b SELL 11 A | {}
        """
    play(plain(), table.format("reject b A insufficient_shares"))
    cut = "fill b A -10 @10 cash +100.00; trim b A -11 to -10 insufficient_shares"
    play(plain(shorting=Shorting(on_short_shares="trim")), table.format(cut))
