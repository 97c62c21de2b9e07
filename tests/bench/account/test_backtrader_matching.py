"""The rules by which a bar fills an order, worked by hand."""

import math

import pytest

from tradeassay_bench.account.backtrader.orders import Bar, OrderState, price_of


def order(
    kind: str, price: float = 100.0, *, buys: bool = True, limit: float | None = None
) -> OrderState:
    return OrderState(
        ref=1,
        asset=0,
        left=1.0 if buys else -1.0,
        kind=kind,
        price=price,
        limit=price if limit is None else limit,
        created=10.0,
        session_end=10.99999,
        status="accepted",
    )


def bar(open_: float, high: float, low: float, close: float, time: float = 11.0) -> Bar:
    return Bar(time, open_, high, low, close)


@pytest.mark.parametrize(
    ("what", "against", "price"),
    [
        (order("market"), bar(101, 103, 99, 102), 101),
        (order("market"), bar(101, 103, 99, 102, time=10.0), None),
        (order("limit", 100), bar(99, 103, 98, 102), 99),
        (order("limit", 100), bar(101, 103, 99, 102), 100),
        (order("limit", 100), bar(101, 103, 100.5, 102), None),
        (order("limit", 100, buys=False), bar(101, 103, 99, 102), 101),
        (order("limit", 102, buys=False), bar(101, 103, 99, 101), 102),
        (order("limit", 104, buys=False), bar(101, 103, 99, 102), None),
        (order("stop", 100), bar(101, 103, 99, 102), 101),
        (order("stop", 102), bar(101, 103, 99, 102), 102),
        (order("stop", 104), bar(101, 103, 99, 102), None),
        (order("stop", 100, buys=False), bar(99, 103, 98, 102), 99),
        (order("stop", 100, buys=False), bar(101, 103, 99, 102), 100),
        (order("stop", 98, buys=False), bar(101, 103, 99, 102), None),
        (order("stop-limit", 100, limit=102), bar(101, 103, 99, 102), 101),
        (order("stop-limit", 100, limit=99), bar(101, 103, 98, 102), 99),
        (order("stop-limit", 102, limit=103), bar(101, 104, 99, 102), 102),
        (order("stop-limit", 102, limit=101), bar(101.5, 104, 99, 100), 101),
        (order("stop-limit", 102, limit=101), bar(101.5, 104, 99, 103), None),
        (order("stop-limit", 100, limit=99, buys=False), bar(101, 103, 98, 102), 100),
        (order("stop-limit", 100, limit=101, buys=False), bar(101, 103, 98, 102), 101),
        (order("stop-limit", 100, limit=101, buys=False), bar(101, 103, 98, 99), None),
        (order("stop-limit", 104, limit=105), bar(101, 103, 99, 102), None),
        (order("limit", math.nan), bar(101, 103, 99, 102), None),
        (order("close"), bar(101, 103, 99, 102, time=11.5), 102),
    ],
)
def test_prices(what, against, price):
    assert price_of(what, against) == price


def test_a_triggered_order_stays_a_limit_order():
    what = order("stop-limit", 102, limit=101)
    assert price_of(what, bar(101.5, 104, 101.5, 103)) is None
    assert what.triggered
    assert price_of(what, bar(103, 104, 101, 104)) == 101


def test_an_order_for_the_close_takes_the_last_close_of_its_session():
    what = order("close")
    assert price_of(what, bar(101, 103, 99, 100.5, time=10.5)) is None
    assert price_of(what, bar(101, 103, 99, 100.75, time=10.75)) is None
    assert price_of(what, bar(120, 130, 110, 125, time=11.4)) == 100.75


def test_a_trailing_stop_only_follows():
    what = order("trailing", -math.inf, buys=False)
    what.trail_amount = 3.0
    for close, expected in ((100, 97), (104, 101), (102, 101), (90, 101)):
        what.trail(close)
        assert what.price == expected
    short = order("trailing", math.inf)
    short.trail_percent = 0.1
    for close, expected in ((100, 110), (90, 99), (95, 99)):
        short.trail(close)
        assert short.price == pytest.approx(expected)


def test_a_trailing_limit_keeps_its_distance():
    what = order("trailing-limit", -math.inf, buys=False)
    what.trail_amount, what.offset = 2.0, 1.0
    what.trail(100)
    assert (what.price, what.limit) == (98, 97)
    what.trail(110)
    assert (what.price, what.limit) == (108, 107)


def test_only_other_than_market_orders_expire():
    dated = order("limit")
    dated.valid = 12.0
    assert not dated.expires(12.0)
    assert dated.expires(12.5)
    market = order("market")
    market.valid = 12.0
    assert not market.expires(99.0)
    never = order("limit")
    never.valid = 0.0
    assert not never.expires(99.0)
