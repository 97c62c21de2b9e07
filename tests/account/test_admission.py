"""Orders that are no orders: refused with a reason, in words."""

from dataclasses import replace
from math import inf, nan

import msgspec
import pytest
from candles import MAINBOARD, PAIR, candles, plain, play

from tradeassay.account import ASHARE_QLIB, CRYPTO, Cash, Concentration, Fees, Lots, Participation
from tradeassay.core.orders import Order
from tradeassay.core.view import Instrument


@pytest.mark.parametrize(
    ("fields", "reason", "detail"),
    [
        ({"symbol": "X", "amount": 1, "side": "BUY"}, "unknown_symbol", "no instrument 'X'"),
        ({"amount": nan, "side": "BUY"}, "bad_amount", "nan is not a number"),
        ({"amount": inf, "unit": "target_weight"}, "bad_amount", "inf is not a number"),
        ({"amount": -1, "side": "BUY"}, "bad_amount", "must be positive"),
        ({"amount": 0, "side": "SELL", "unit": "dollars"}, "bad_amount", "must be positive"),
        ({"amount": 1}, "bad_amount", "needs a side"),
        ({"amount": 1, "side": "HOLD"}, "bad_amount", "needs a side"),
        ({"amount": 1, "side": "HOLD", "unit": "target_value"}, "unsupported", "side 'HOLD'"),
        ({"amount": 1, "side": "BUY", "unit": "euros"}, "unsupported", "unit 'euros'"),
        ({"amount": 1, "side": "BUY", "kind": "limit"}, "bad_price", "positive limit_price"),
        ({"amount": 1, "side": "BUY", "kind": "limit", "limit_price": -1}, "bad_price", "positive limit_price"),
        ({"amount": 1, "side": "BUY", "kind": "limit", "limit_price": nan}, "bad_price", "positive limit_price"),
        ({"amount": 1, "side": "BUY", "kind": "stop", "limit_price": 1}, "bad_price", "takes no limit_price"),
        ({"amount": 1, "side": "BUY", "limit_price": 1}, "bad_price", "market order takes no limit_price"),
        ({"amount": 1, "side": "BUY", "kind": "iceberg"}, "unsupported", "kind 'iceberg'"),
        ({"amount": 1, "side": "BUY", "tif": "ioc"}, "unsupported", "'ioc' does not exist"),
        (
            {"amount": 1, "side": "BUY", "kind": "limit", "limit_price": 1, "tif": "x"},
            "unsupported",
            "use day or gtc",
        ),
    ],
)
def test_refused(fields, reason, detail):
    tape = play(plain(), "2024-01-02 | A 10 10 10 10 1000 | |")
    order = Order(**{"symbol": "A", **fields})
    bars = tape.exchange._session.bars
    (event,) = tape.exchange.execute([("a", order)], bars, tape.account)
    assert (event.order_id, event.reason) == ("a", reason)
    assert detail in event.detail


@candles(instruments=PAIR, universe=frozenset({"A"}))
def test_only_the_universe_may_be_bought():
    """
    2024-01-02 | A 10 10 10 10 1000; B 10 10 10 10 1000 | a BUY 1 A; b BUY 1 B; c B to 5%
        reject b B not_in_universe; reject c B not_in_universe; fill a A +1 @10 cash -10.00
    """


def test_what_left_the_universe_may_still_be_sold():
    tape = play(
        plain(),
        """
        2024-01-02 | A 10 10 10 10 1000; B 10 10 10 10 1000 | a BUY 10 B | fill a B +10 @10 cash -100.00
        """,
        instruments=PAIR,
        universe=frozenset({"A", "B"}),
    )
    tape.universe = frozenset({"A"})
    events = tape.session("2024-01-03", ["A 10 10 10 10 1000", "B 10 10 10 10 1000"], ["b SELL 4 B", "c B to 0%"])
    assert [event.quantity for event in events[:2]] == [-4.0, -6.0]


@candles(plain(fees=Fees(buy_bps=100)), cash=1_000.0)
def test_a_purchase_beyond_the_cash_is_cut():
    """1,000 buys 99 shares at 10 with 1 % fees (990 + 9.90), not 100 (1,010).
    2024-01-02 | A 10 10 10 10 1000 | a BUY 120 A | fill a A +99 @10 fee 9.90 cash -999.90
        trim a A +120 to +99 insufficient_cash
    2024-01-03 | A 10 10 10 10 1000 | b BUY 1 A | reject b A insufficient_cash
    """


@candles(plain(fees=Fees(buy_bps=100), cash=Cash(on_short="reject")), cash=1_000.0)
def test_or_refused():
    """
    2024-01-02 | A 10 10 10 10 1000 | a BUY 100 A; b BUY 99 A | reject a A insufficient_cash
        fill b A +99 @10 fee 9.90 cash -999.90
    """


def test_minimum_fees_count():
    # 1,004.99 does not pay for a lot at 10 and a minimum fee of 5; 1,005 does, to the last cent.
    table = "2024-01-02 | A 10 10 10 10 1000 | a BUY 200 A | {}"
    play(ASHARE_QLIB, table.format("reject a A insufficient_cash"), instruments=MAINBOARD, cash=1_004.99)
    filled = "fill a A +100 @10 fee 5.00 cash -1005.00; trim a A +200 to +100 insufficient_cash; nav 1000.00"
    play(ASHARE_QLIB, table.format(filled), instruments=MAINBOARD, cash=1_005.0)


def test_cash_can_be_spent_exactly():
    # In floats 3 x 33.33 and 99.99 may differ in the last bit: the order goes through and zero is left.
    for price, count in ((33.33, 3), (0.1, 3), (1.1, 7), (49.99, 11), (123.45, 81)):
        money = float(f"{price * count:.2f}")
        tape = play(
            plain(),
            f"2024-01-02 | A {price} {price} {price} {price} 1000 | a BUY {count} A | "
            f"fill a A +{count} @{price:g} cash -{money:.2f}",
            cash=money,
        )
        assert tape.account.cash in (0.0, money - price * count)
        assert 0.0 <= tape.account.cash < 1e-12


def test_coins_that_cost_almost_nothing():
    # Ten trillion units of a coin at 1e-8, cut to the cash without walking down unit by unit.
    tape = play(CRYPTO, "2024-01-02 | A 0.00000001 0.00000001 0.00000001 0.00000001 nan")
    events = tape.session("2024-01-03", ["A 0.00000001 0.00000001 0.00000001 0.00000001 nan"], ["a A to 100%"])
    assert events[0].quantity * 1e-8 == pytest.approx(10_000.0 / 1.0005)
    assert 0.0 <= tape.account.cash < 1e-4


@candles(plain(fees=Fees(minimum=5)), cash=106.0)
def test_a_sale_whose_costs_exceed_everything_is_refused():
    """
    2024-01-02 | A 10 10 10 10 1000 | a BUY 10 A | fill a A +10 @10 fee 5.00 cash -105.00
    2024-01-03 | A 0.3 0.3 0.3 0.3 1000 | b SELL 10 A | reject b A insufficient_cash
    """


def test_proceeds_of_a_sale_pay_for_a_purchase_of_the_same_batch():
    table = """
        2024-01-02 | A 10 10 10 10 1000; B 20 20 20 20 1000 | a BUY 100 A
            fill a A +100 @10 cash -1000.00
        2024-01-03 | A 10 10 10 10 1000; B 20 20 20 20 1000 | b BUY 50 B; c SELL 100 A | {}
        """
    sale = "fill c A -100 @10 cash +1000.00"
    play(plain(), table.format(f"{sale}; fill b B +50 @20 cash -1000.00"), instruments=PAIR, cash=1_000.0)
    play(
        plain(priority="as_given"),
        table.format(f"reject b B insufficient_cash; {sale}"),
        instruments=PAIR,
        cash=1_000.0,
    )


@candles(plain().limited(max_weight=0.10))
def test_max_weight():
    """
    2024-01-02 | A 10 10 10 10 1000 | a A to 10.1%; b A to 10% | reject a A max_weight
        fill b A +100 @10 cash -1000.00
    2024-01-03 | A 10 10 10 10 1000 | c BUY 1 A | reject c A max_weight
    2024-01-04 | A 30 30 30 30 1000 | d SELL 20 A | fill d A -20 @30 cash +600.00
    2024-01-05 | A 30 30 30 30 1000 | e BUY 1 A | reject e A max_weight
    """


@candles(plain(concentration=Concentration(max_weight=0.10, on_excess="trim")))
def test_or_cut_to_the_limit():
    """
    2024-01-02 | A 10 10 10 10 1000 | a A to 50% | fill a A +100 @10 cash -1000.00
        trim a A +500 to +100 max_weight
    2024-01-03 | A 10 10 10 10 1000 | b BUY 1 A | reject b A max_weight
    """


@candles(plain().limited(max_positions=1), instruments=PAIR)
def test_max_positions():
    """The sale of A makes room for B in the same batch, because sales go first.
    2024-01-02 | A 10 10 10 10 1000; B 10 10 10 10 1000 | a BUY 1 A; b BUY 1 B
        fill a A +1 @10 cash -10.00; reject b B max_positions
    2024-01-03 | A 10 10 10 10 1000; B 10 10 10 10 1000 | c BUY 1 A; d BUY 1 B
        fill c A +1 @10 cash -10.00; reject d B max_positions
    2024-01-04 | A 10 10 10 10 1000; B 10 10 10 10 1000 | e BUY 1 B; f SELL 2 A
        fill f A -2 @10 cash +20.00; fill e B +1 @10 cash -10.00
    """


def test_limits_are_told_to_agents():
    rules = plain().limited(max_weight=0.1, max_positions=20).rules(benchmark_index="IDX")
    assert (rules.max_weight, rules.max_positions, rules.benchmark_index) == (0.1, 20, "IDX")
    assert plain().limited() == plain()
    assert msgspec.json.decode(msgspec.json.encode(plain()), type=type(plain())) == plain()


def test_a_venues_own_limits_stay_and_the_stricter_wins():
    own = plain(concentration=Concentration(max_weight=0.05, max_positions=8, on_excess="trim"))
    assert own.limited() == own
    assert own.limited(max_weight=0.10, max_positions=20) == own
    stricter = own.limited(max_weight=0.02, max_positions=5).concentration
    assert stricter == Concentration(max_weight=0.02, max_positions=5, on_excess="trim")


@candles(plain(participation=Participation(max_share=0.1)))
def test_partial_fills():
    """
    2024-01-02 | A 10 10 10 10 1000 | a BUY 150 A | fill a A +100 @10 cash -1000.00
        trim a A +150 to +100 no_volume
    2024-01-03 | A 10 10 10 10 1000 | b BUY 60 A; c BUY 60 A | fill b A +60 @10 cash -600.00
        fill c A +40 @10 cash -400.00; trim c A +60 to +40 no_volume
    2024-01-04 | A 10 10 10 10 500 | d SELL 200 A | fill d A -50 @10 cash +500.00
        trim d A -200 to -50 no_volume
    2024-01-05 | A 10 10 10 10 0 | e SELL 10 A | reject e A no_volume
    2024-01-08 | A 10 10 10 10 9 | f SELL 1 A | reject f A no_volume
    2024-01-09 | A 10 10 10 10 nan | g SELL 150 A | fill g A -150 @10 cash +1500.00
    """


@candles(plain(participation=Participation(max_share=0.1), lots=Lots(lot=100, step=1)))
def test_partial_fills_are_whole_lots():
    """
    2024-01-02 | A 1 1 1 1 2999 | a BUY 500 A | fill a A +200 @1 cash -200.00
        trim a A +500 to +200 no_volume
    2024-01-03 | A 1 1 1 1 999 | b BUY 100 A | reject b A no_volume
    """


@candles(plain(participation=Participation(max_share=0.1)))
def test_what_is_left_of_a_day_order_dies_and_of_a_gtc_order_waits():
    """
    2024-01-02 | A 10 10 10 10 1000 | a BUY 250 A gtc | fill a A +100 @10 cash -1000.00; rest a A +150
    2024-01-03 | A 10 10 10 10 1000 | | fill a A +100 @10 cash -1000.00; rest a A +50
    2024-01-04 | A 10 10 10 10 0
    2024-01-05 | A 10 10 10 10 1000 | | fill a A +50 @10 cash -500.00
    2024-01-08 | A 10 10 10 10 1000
    """


def test_volume_stays_used_up_when_the_session_goes_on():
    tape = play(plain(participation=Participation(max_share=0.1)), "2024-01-02 | A 10 10 10 10 1000")
    bars = tape.exchange._session.bars
    buy = Order(symbol="A", amount=80.0, side="BUY")
    tape.exchange.open_session(bars, (), tape.account)
    tape.exchange.execute([("a", buy)], bars, tape.account)
    tape.exchange.execute([("b", buy)], replace(bars), tape.account)
    assert tape.account.quantity("A") == 100.0


def test_index_funds_are_as_liquid_as_their_members():
    fund = (Instrument(symbol="A", kind="index"),)
    table = "2024-01-02 | A 10 10 10 10 100 | a BUY 50 A | {}"
    whole = "fill a A +50 @10 cash -500.00"
    part = "fill a A +10 @10 cash -100.00; trim a A +50 to +10 no_volume"
    play(plain(participation=Participation(max_share=0.1)), table.format(whole), instruments=fund)
    play(plain(participation=Participation(max_share=0.1, index_funds=True)), table.format(part), instruments=fund)
