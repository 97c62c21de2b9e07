"""Arithmetic and liquidity, worked by hand: cash 1,000, names at 10, 20 and 50, costs of 3 bp
each way.
"""

import json
from typing import Any

import numpy as np
import pytest
from stockbench_game import day_of, decide, do, protocol, small_market, small_panel

from tradeassay_bench.benchmarks.stockbench.answers import (
    in_words,
    read_decisions,
    select_valid_orders,
)
from tradeassay_bench.benchmarks.stockbench.payload import DECISION, make_payload
from tradeassay_bench.core.events import Filled
from tradeassay_bench.core.orders import Decision, Order
from tradeassay_bench.data import Membership


def after(
    three: Any, *days: tuple[Order, ...], convention: str = "corrected", **more: Any
) -> tuple[Any, Any]:
    """Return the market and the briefing after some sessions."""
    market = small_market(three, convention=convention, **more)
    seen = market.reset()
    for orders in days:
        seen = market.step(Decision(orders=orders)).observation
    return market, protocol(market, convention=convention).briefing(seen)


def as_given(orders: Any) -> list[tuple[Any, ...]]:
    assert isinstance(orders, tuple), orders
    return [(order.symbol, order.unit, order.amount, order.side) for order in orders]


def hold_a(shares: float = 40.0) -> tuple[Order, ...]:
    return (Order(symbol="A", amount=shares, side="BUY"),)


def judge(briefing: Any, **names: Any) -> tuple[Order, ...] | str:
    """Return the orders where all decisions stand, else what is wrong with the others."""
    decided, unread = read_decisions(json.dumps(decide(**names)), briefing.by_symbol)
    orders, _, wrong = select_valid_orders(decided, briefing)
    assert not unread
    return "; ".join(f"{one.kind}: {in_words(one)}" for one in wrong) if wrong else orders


@pytest.mark.parametrize(
    ("decided", "wrong"),
    [
        (do("increase", 500.0), None),
        (do("increase", 400.0), None),  # within 1 % a target is met, and no mistake
        (do("increase", 361.0), None),  # prices have carried it less than a tenth past the target
        (do("increase", 350.0), "increase with a target_cash_amount of 350.00 contradicts itself"),
        (do("increase", 0.0), "increase with a target_cash_amount of 0.00 contradicts itself"),
        (do("increase", 500.0, target_shares=50), None),
        (do("increase", 500.0, target_shares=50.5), None),  # 505.00 is 1 % off, which is allowed
        (
            do("increase", 500.0, target_shares=50.51),
            "50.51 shares at 10 are 505.10, the target is 500.00",
        ),
        (do("increase", 500.0, target_shares=5), "5 shares at 10 are 50.00"),
        (do("increase", 402.0, target_shares=39.9), "39.9 shares are wanted, 40 are held"),
        (do("decrease", 300.0), None),
        (do("decrease", 404.1), None),
        (do("decrease", 450.0), "decrease with a target_cash_amount of 450.00 contradicts itself"),
        (do("decrease", 0.0), None),  # which is to close it
        (do("decrease", 300.0, target_shares=29.8), None),
        (do("decrease", 300.0, target_shares=29.6), "29.6 shares at 10 are 296.00"),
        (do("close"), None),
        (do("close", 0.0, target_shares=0), None),
        (do("close", 10.0), "close leaves nothing"),
        (do("close", 0.0, target_shares=3), "close leaves nothing"),
        (do("hold"), None),
        (do("hold", 404.0), None),
        (do("hold", 404.02), "hold keeps 400.00, the target says 404.02"),
        (do("hold", 0.0), "hold keeps 400.00, the target says 0.00"),
        (do("hold", 400.0, target_shares=41), "hold keeps 40 shares, the target says 41"),
    ],
)
def test_a_target_must_fit_its_action(three, decided, wrong):
    _, briefing = after(three, hold_a())
    found = judge(briefing, A=decided)
    if wrong is None:
        assert isinstance(found, tuple)
    else:
        assert isinstance(found, str) and found.startswith("arithmetic: A: ") and wrong in found


def test_nothing_held_is_held_at_nothing_and_buys_must_fit_the_cash_with_their_costs(three):
    _, briefing = after(three)
    assert judge(briefing, A=do("hold", 0.0), B=do("close")) == ()
    assert (
        judge(briefing, A=do("hold", 5.0)) == "arithmetic: A: hold keeps 0.00, the target says 5.00"
    )
    assert "its worth is 0.00, and decrease" in str(judge(briefing, A=do("decrease", 5.0)))
    # 999.70 x 1.0003 = 999.99991 fits 1,000; 999.72 x 1.0003 = 1000.0199 is two cents too much.
    assert len(judge(briefing, A=do("increase", 999.70))) == 1
    much = "liquidity: A: the purchase needs 1000.02, costs included; 1000.00 is left"
    assert judge(briefing, A=do("increase", 999.72)) == much
    assert str(judge(briefing, A=do("increase", 600.0), B=do("increase", 500.0))).startswith(
        "liquidity: B: "
    )


def test_orders_say_what_was_decided_sales_first(three):
    _, briefing = after(three, hold_a())
    wanted = {
        "B": do("increase", 100.0),
        "C": do("increase", 100.0, target_shares=2),
        "A": do("decrease", 100.0),
    }
    assert as_given(judge(briefing, **wanted)) == [
        ("A", "target_value", 100.0, "SELL"),
        ("B", "target_value", 100.0, "BUY"),
        ("C", "target_shares", 2.0, "BUY"),
    ]
    assert as_given(judge(briefing, A=do("close"))) == [("A", "target_shares", 0.0, "SELL")]


def test_under_paper_a_purchase_must_fit_the_cash_before_any_sale(three):
    market, briefing = after(three, hold_a(), convention="paper")
    assert briefing.cash == pytest.approx(1000 - 400 * 1.0001)
    assert str(judge(briefing, A=do("close"), B=do("increase", 700.0))).startswith("liquidity: B: ")
    orders = judge(briefing, B=do("increase", 500.0), A=do("close"))
    assert isinstance(orders, tuple) and [order.symbol for order in orders] == ["B", "A"], (
        "as they were given"
    )
    fills = [e for e in market.step(Decision(orders=orders)).record.events if isinstance(e, Filled)]
    assert [fill.quantity for fill in fills] == [25.0, -40.0]


def test_sales_pay_for_buys_after_their_costs(three):
    # 99 shares of A cost 990 x 1.0002 x 1.0001 = 990.30; 9.70 is left. Selling all brings 990 x 0.9997 = 989.70.
    _, briefing = after(three, hold_a(99.0))
    assert briefing.cash == pytest.approx(1000 - 990 * 1.0002 * 1.0001)
    most = (briefing.cash + 990 * 0.9997) / 1.0003
    assert len(judge(briefing, A=do("close"), B=do("increase", round(most - 0.01, 2)))) == 2
    assert str(judge(briefing, A=do("close"), B=do("increase", most + 0.05))).startswith(
        "liquidity: "
    )
    assert str(judge(briefing, B=do("increase", 100.0))).startswith(
        "liquidity: B: the purchase needs 100.03"
    )


def test_who_spends_the_buying_power_shown_can(three):
    market, briefing = after(three, cash=1234.56)
    power = make_payload(briefing, DECISION, briefing.names).buying_power
    assert power == 1234.18
    orders = judge(briefing, A=do("increase", power))
    assert isinstance(orders, tuple)
    market.step(Decision(orders=orders))
    assert 0 <= market.ledger.cash < 0.02


def test_what_does_not_trade_can_only_be_held(three):
    held = (Order(symbol="C", amount=2, side="BUY"),)
    _, briefing = after(three, held, ())
    assert briefing.by_symbol["C"].price is None and briefing.by_symbol["C"].value == 100.0
    assert judge(briefing, C=do("hold", 100.0)) == ()
    for decided in (do("close"), do("increase", 150.0), do("decrease", 50.0)):
        assert (
            judge(briefing, C=decided)
            == "liquidity: C: it does not trade today and can only be held"
        )


def test_what_left_the_universe_can_be_sold_but_not_bought(store):
    ends = {"A": day_of(10), "B": None}
    members = tuple(
        Membership(index="IDX", symbol=s, start=day_of(0), end=end) for s, end in ends.items()
    )
    snapshot = store(small_panel(memberships=members, indices={"IDX": np.ones(20)}))
    _, briefing = after(snapshot, hold_a(), universe="IDX")
    assert [(name.symbol, name.buyable) for name in briefing.names] == [("A", False), ("B", True)]
    left = "liquidity: A: it has left the universe and cannot be bought"
    assert (
        judge(briefing, A=do("increase", 500.0)) == left
        and len(judge(briefing, A=do("decrease", 100.0))) == 1
    )
