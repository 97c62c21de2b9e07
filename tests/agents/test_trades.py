"""From weights to orders, worked out by hand."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tradeassay.agents import trades_towards
from tradeassay.core.orders import Order


def weight(symbol: str, amount: float) -> Order:
    return Order(symbol=symbol, amount=pytest.approx(amount), unit="target_weight")


def test_buys_are_scaled_to_leave_the_buffer(observe: Any) -> None:
    seen = observe([[10.0, 20.0]])
    orders = trades_towards(seen, {"S0": 0.5, "S1": 0.5}, buffer=0.1, band=0.0)
    assert orders == (weight("S0", 0.45), weight("S1", 0.45))


def test_sells_come_before_buys_and_a_name_without_target_is_sold_whole(observe: Any) -> None:
    # NAV 100,000: 60,000 in S0, 20,000 in S1, 20,000 cash; wanted: S1 and S2 at a half each.
    seen = observe([[10.0, 20.0, 5.0]], held={"S0": (6_000, 10.0), "S1": (1_000, 20.0)}, cash=20_000)
    orders = trades_towards(seen, {"S1": 0.5, "S2": 0.5}, buffer=0.0, band=0.1)
    assert orders == (Order(symbol="S0", amount=6_000, side="SELL"), weight("S1", 0.5), weight("S2", 0.5))


def test_a_reduction_is_a_sale_and_comes_first(observe: Any) -> None:
    seen = observe([[10.0, 20.0]], held={"S1": (4_000, 20.0)}, cash=20_000)
    orders = trades_towards(seen, {"S0": 0.5, "S1": 0.5}, buffer=0.0, band=0.1)
    assert [order.symbol for order in orders] == ["S1", "S0"]


def test_a_name_inside_the_band_is_left_alone(observe: Any) -> None:
    # S0 weighs 0.44 where 0.5 is wanted: off by 12 % of the target.
    seen = observe([[10.0, 20.0]], held={"S0": (4_400, 10.0)}, cash=56_000)
    assert [o.symbol for o in trades_towards(seen, {"S0": 0.5, "S1": 0.5}, buffer=0.0, band=0.2)] == ["S1"]
    assert [o.symbol for o in trades_towards(seen, {"S0": 0.5, "S1": 0.5}, buffer=0.0, band=0.1)] == ["S0", "S1"]


def test_less_than_a_lot_is_not_asked_for(observe: Any) -> None:
    # Half of 10,000 buys 100 shares at 49 but not at 51.
    seen = observe([[49.0, 51.0]], lot=100.0, cash=10_000.0)
    assert [o.symbol for o in trades_towards(seen, {"S0": 0.5, "S1": 0.5}, buffer=0.0, band=0.0)] == ["S0"]


def test_a_suspended_holding_is_paid_for_by_the_others(observe: Any) -> None:
    # 40 % sits in S0, which does not trade: 60 % is left for the two targets.
    seen = observe([[10.0, 10.0, 10.0]], held={"S0": (4_000, 10.0)}, cash=60_000, suspended=["S0"])
    orders = trades_towards(seen, {"S1": 0.5, "S2": 0.5}, buffer=0.0, band=0.0)
    assert orders == (weight("S1", 0.3), weight("S2", 0.3))


def test_only_the_unlocked_part_is_sold(observe: Any) -> None:
    seen = observe([[10.0, 10.0]], held={"S0": (4_000, 10.0)}, cash=60_000, locked={"S0": 1_000})
    orders = trades_towards(seen, {"S1": 1.0}, buffer=0.0, band=0.0)
    # 10,000 of S0 stays locked, so 90 % is free for S1.
    assert orders == (Order(symbol="S0", amount=3_000, side="SELL"), weight("S1", 0.9))


def test_limits_of_the_market_are_kept(observe: Any) -> None:
    seen = observe([[10.0] * 4], max_weight=0.2, max_positions=3)
    orders = trades_towards(seen, dict.fromkeys(seen.universe, 0.25), buffer=0.0, band=0.0)
    assert orders == tuple(weight(f"S{i}", 0.2) for i in range(3))


def test_today_s_open_is_the_price_when_it_is_known(observe: Any) -> None:
    seen = observe([[49.0]], lot=100.0, cash=5_000.0, opens=[51.0])
    assert trades_towards(seen, {"S0": 1.0}, buffer=0.0, band=0.0) == ()


def test_an_account_without_money_asks_for_nothing(observe: Any) -> None:
    assert trades_towards(observe([[10.0]], cash=0.0), {"S0": 1.0}, buffer=0.0, band=0.0) == ()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_is_asked_for_can_be_paid(observe: Any, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 6))
    prices = data.draw(st.lists(st.floats(1.0, 500.0), min_size=n, max_size=n))
    held = {
        f"S{i}": (float(data.draw(st.integers(1, 1_000))), prices[i]) for i in range(n) if data.draw(st.booleans())
    }
    suspended = [f"S{i}" for i in range(n) if data.draw(st.integers(0, 4)) == 0]
    raw = data.draw(st.lists(st.floats(0.0, 1.0), min_size=n, max_size=n))
    targets = {f"S{i}": w / max(sum(raw), 1.0) for i, w in enumerate(raw)}
    seen = observe([prices], held=held, suspended=suspended, cash=data.draw(st.floats(0.0, 1e6)))
    buffer = data.draw(st.floats(0.0, 0.5))
    orders = trades_towards(seen, targets, buffer=buffer, band=data.draw(st.floats(0.0, 0.5)))
    assert not {order.symbol for order in orders} & set(suspended)
    assert len({order.symbol for order in orders}) == len(orders)
    cash, nav, account = seen.account.cash, seen.account.nav, seen.account
    moves = []
    for order in orders:
        now = account.positions[order.symbol].value if order.symbol in account.positions else 0.0
        moves.append(now if order.side == "SELL" else now - order.amount * nav)
    cash += sum(moves)
    # What cannot be sold may weigh more than everything that is wanted; then nothing at all is bought.
    bought = any(now < 0 for now in moves)
    # A reduction below one lot is left out, which can cost the others up to that lot.
    assert not bought or cash >= min(buffer * nav, account.cash) - n * max(prices) - 1e-9 * nav
