"""Orders against a few bars: the tables of ``candles.txt``, and what a table cannot say."""

from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest
from candles import plain, play, tables

from tradeassay_bench.account import Lots
from tradeassay_bench.account.limits import floor_to, is_multiple
from tradeassay_bench.core.errors import ExchangeError
from tradeassay_bench.core.orders import Order
from tradeassay_bench.core.view import Instrument

TABLES = {name: (table, how) for name, table, how in tables()}
FLAT = "2024-01-02 | A 10 10 10 10 1000"
TENTH = {"participation": {"max_share": 0.1}}


@pytest.mark.parametrize("name", TABLES)
def test_a_table(name):
    table, how = TABLES[name]
    play(table, **how)


BUY = {"amount": 1, "side": "BUY"}


@pytest.mark.parametrize(
    ("fields", "reason", "detail"),
    [
        ({**BUY, "symbol": "X"}, "unknown_symbol", "no instrument 'X'"),
        ({**BUY, "amount": nan}, "bad_amount", "nan is not a number"),
        ({"amount": inf, "unit": "target_weight"}, "bad_amount", "inf is not a number"),
        ({**BUY, "amount": -1}, "bad_amount", "must be positive"),
        ({"amount": 0, "side": "SELL", "unit": "dollars"}, "bad_amount", "must be positive"),
        ({"amount": 1}, "bad_amount", "needs a side"),
        ({"amount": 1, "side": "HOLD"}, "bad_amount", "needs a side"),
        ({"amount": 1, "side": "HOLD", "unit": "target_value"}, "unsupported", "side 'HOLD'"),
        ({**BUY, "unit": "euros"}, "unsupported", "unit 'euros'"),
        ({**BUY, "kind": "limit"}, "bad_price", "positive limit_price"),
        ({**BUY, "kind": "limit", "limit_price": -1}, "bad_price", "positive limit_price"),
        ({**BUY, "kind": "limit", "limit_price": nan}, "bad_price", "positive limit_price"),
        ({**BUY, "kind": "stop", "limit_price": 1}, "bad_price", "takes no limit_price"),
        ({**BUY, "limit_price": 1}, "bad_price", "market order takes no limit_price"),
        ({**BUY, "kind": "iceberg"}, "unsupported", "kind 'iceberg'"),
        ({**BUY, "tif": "ioc"}, "unsupported", "'ioc' does not exist"),
        ({**BUY, "kind": "limit", "limit_price": 1, "tif": "x"}, "unsupported", "use day or gtc"),
    ],
)
def test_orders_that_are_no_orders_are_refused_with_a_reason_in_words(fields, reason, detail):
    tape = play(FLAT)
    order = Order(**{"symbol": "A", **fields})
    (event,) = tape.exchange.execute([("a", order)], tape.bars, tape.account)
    assert (event.order_id, event.reason) == ("a", reason)
    assert detail in event.detail


def test_a_refusal_at_a_limit_says_what_was_compared():
    table, how = TABLES["price limits: a limit order below the band trades when the board opens"]
    events = play(table, **how).records[-1].events
    assert events[0].detail == "11 is +10.00% from 10; no BUY from +9.50%"


def test_what_left_the_universe_may_still_be_sold():
    both = ["A 10 10 10 10 1000", "B 10 10 10 10 1000"]
    table = f"2024-01-02 | {'; '.join(both)} | a BUY 10 B | fill a B +10 @10 cash -100.00"
    tape = play(table, instruments=("A", "B"), universe=frozenset({"A", "B"}))
    tape.universe = frozenset({"A"})
    events = tape.session("2024-01-03", both, ["b SELL 4 B", "c B to 0%"])
    assert [event.quantity for event in events[:2]] == [-4.0, -6.0]


def test_cash_can_be_spent_exactly():
    # In floats 3 x 33.33 and 99.99 may differ in the last bit: the order goes through and zero is left.
    for price, count in ((33.33, 3), (0.1, 3), (1.1, 7), (49.99, 11), (123.45, 81)):
        money = float(f"{price * count:.2f}")
        filled = f"fill a A +{count} @{price:g} cash -{money:.2f}"
        tape = play(
            f"2024-01-02 | A{f' {price}' * 4} 1000 | a BUY {count} A | {filled}", cash=money
        )
        assert tape.account.cash in (0.0, money - price * count)
        assert 0.0 <= tape.account.cash < 1e-12


def test_coins_that_cost_almost_nothing():
    # Ten trillion units of a coin at 1e-8, cut to the cash without walking down unit by unit.
    bars = "A 0.00000001 0.00000001 0.00000001 0.00000001 nan"
    tape = play(f"2024-01-02 | {bars}", venue="crypto-v1")
    events = tape.session("2024-01-03", [bars], ["a A to 100%"])
    assert events[0].quantity * 1e-8 == pytest.approx(10_000.0 / 1.0005)
    assert 0.0 <= tape.account.cash < 1e-4


def test_volume_stays_used_up_when_the_session_goes_on():
    tape = play(FLAT, venue=TENTH)
    bars = tape.bars
    buy = Order(symbol="A", amount=80.0, side="BUY")
    tape.exchange.open_session(bars, (), tape.account)
    tape.exchange.execute([("a", buy)], bars, tape.account)
    tape.exchange.execute([("b", buy)], replace(bars), tape.account)
    assert tape.account.quantity("A") == 100.0


@pytest.mark.parametrize("decide", ["pre_open", "open", "close"])
def test_without_an_open_a_market_order_goes_on_waiting(decide):
    table = """
2024-01-02 | A 100 101 99 100 100 | a BUY 20 A gtc; b BUY 10 A limit 98 gtc | rest b A +10
    fill a A +10 @100 cash -1000.00; rest a A +10
2024-01-03 | A nan 101 97 100 1000 | | fill b A +10 @98 cash -980.00
2024-01-04 | A 90 90 90 90 1000 | | fill a A +10 @90 cash -900.00"""
    play(table, venue=TENTH, fill="close", decide=decide)


def test_an_id_cannot_be_used_twice():
    tape = play(f"{FLAT} | a BUY 10 A limit 9 gtc | rest a A +10")
    with pytest.raises(ExchangeError, match="belongs to a resting order"):
        tape.session(
            "2024-01-03", ["A 10 10 10 10 1000"], ["b BUY 1 A limit 9 gtc", "b BUY 1 A limit 8 gtc"]
        )


def test_whole_and_numpy_numbers_become_plain_floats():
    tape = play("2024-01-02 | A 10 10 9 10 1000")
    bars = tape.bars
    for number, amount in enumerate((100, np.float64(100.0), np.int64(100))):
        order = Order(symbol="A", amount=amount, side="BUY", kind="limit", limit_price=9)
        (filled,) = tape.exchange.execute([(str(number), order)], bars, tape.account)
        values = (filled.quantity, filled.price, filled.reference, filled.cash)
        assert {type(value) for value in values} == {float}
        waits = Order(symbol="A", amount=amount, side="BUY", kind="limit", limit_price=8, tif="gtc")
        (rested,) = tape.exchange.execute([(f"{number}w", waits)], bars, tape.account)
        assert type(rested.quantity) is float


def test_split_and_average_cost():
    table = """
2024-01-02 | A 30 30 30 30 1000 | a BUY 10 A | fill a A +10 @30 cash -300.00
2024-01-03 | split A 3; A 10 10 10 10 1000 | b BUY 30 A | split A to +30 cash +0.00
    fill b A +30 @10 cash -300.00"""
    position = play(table).account.state().positions["A"]
    assert (position.quantity, position.cost, position.mark, position.held) == (60.0, 10.0, 10.0, 2)


@pytest.mark.parametrize(
    ("ratio", "shares", "left", "cash"),
    [
        ("0.3333333", 3, 0, 30.00),
        ("0.3333333", 4, 1, 10.00),
        ("0.3333334", 3, 1, 0.00),
        ("1.333333", 3, 3, 7.50),
        ("0.1428571", 7, 0, 70.00),
        ("0.29", 100, 29, 0.00),
        ("0.3333333", 3000, 999, 30.00),
    ],
)
def test_a_rounded_ratio_is_paid_for_and_never_debited(ratio, shares, left, cash):
    # All the money is in the shares, so that a debit of a millionth would break the account.
    price, all_of_it = 10.0 / float(ratio), shares * 10.0
    table = f"""
2024-01-02 | A 10 10 10 10 1000000 | a BUY {shares} A | fill a A +{shares} @10 cash -{all_of_it:.2f}
2024-01-03 | split A {ratio}; A {price} {price} {price} {price} 1000000
    split A to +{left} cash +{cash:.2f}; nav {all_of_it:.2f}"""
    assert play(table, cash=all_of_it).account.cash >= 0.0


@pytest.mark.parametrize(
    ("quantity", "unit", "floored"),
    [
        (250.0, 100.0, 200.0),
        (299.99999999999994, 100.0, 300.0),
        (99.9, 100.0, 0.0),
        (0.29999999999999999, 0.1, 0.3),
        (0.12345678999, 1e-8, 0.12345678),
        (7.0, 1.0, 7.0),
    ],
)
def test_rounding_down(quantity, unit, floored):
    assert floor_to(quantity, unit) == floored
    assert is_multiple(floored, unit) == (floored > 0.0)


def test_an_instruments_own_lot_is_used_when_the_venue_has_none():
    table = """
2024-01-02 | A 10 10 10 10 100000 | a BUY 150 A; b BUY 200 A | reject a A lot; fill b A +200 @10 cash -2000.00"""
    play(table, venue=plain(lots=Lots(lot=None, step=None)), instruments=("A main",))
    assert Lots(lot=None, step=None).step_of(Instrument(symbol="C", step=0.25)) == 0.25
