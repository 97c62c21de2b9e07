"""Orders that are no orders: refused with a reason, in words."""

from math import inf, nan

import pytest

from tradeassay.core.orders import Order


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
def test_refused(play, plain, fields, reason, detail):
    tape = play(plain(), "2024-01-02 | A 10 10 10 10 1000 | |")
    order = Order(**{"symbol": "A", **fields})
    bars = tape.exchange._session.bars
    (event,) = tape.exchange.execute([("a", order)], bars, tape.account)
    assert (event.order_id, event.reason) == ("a", reason)
    assert detail in event.detail


def test_only_the_universe_may_be_bought(play, plain, pair):
    play(
        plain(),
        """
        2024-01-02 | A 10 10 10 10 1000; B 10 10 10 10 1000 | a BUY 1 A; b BUY 1 B; c B to 5%
            reject b B not_in_universe
            reject c B not_in_universe
            fill a A +1 @10 fee 0.00 cash -10.00
        """,
        instruments=pair,
        universe=frozenset({"A"}),
    )


def test_what_left_the_universe_may_still_be_sold(play, plain, pair):
    tape = play(
        plain(),
        """
        2024-01-02 | A 10 10 10 10 1000; B 10 10 10 10 1000 | a BUY 10 B
            fill a B +10 @10 fee 0.00 cash -100.00
        """,
        instruments=pair,
        universe=frozenset({"A", "B"}),
    )
    tape.universe = frozenset({"A"})
    events = tape.session("2024-01-03", ["A 10 10 10 10 1000", "B 10 10 10 10 1000"], ["b SELL 4 B", "c B to 0%"])
    assert [event.quantity for event in events[:2]] == [-4.0, -6.0]
