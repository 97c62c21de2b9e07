"""Who may be bought, sold, or not named at all."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tradeassay.core.errors import UserError
from tradeassay_bench.core.events import Filled, Rejected
from tradeassay_bench.core.orders import Decision, Order
from tradeassay_bench.core.view import Instrument
from tradeassay_bench.play import Market, MarketConfig, parse_universe

NAMES = (Instrument(symbol="A"), Instrument(symbol="B"), Instrument(symbol="FUND", kind="index"))
FLAT = [[10.0, 10.0, 10.0]] * 4
IDX = {
    "memberships": (("IDX", "A", 0, 1), ("IDX", "B", 1, None)),
    "indices": {"IDX": [1.0, 1.0, 1.0, 1.0]},
}


def play(snapshot: Any, *days: tuple[Order, ...], universe: str = "IDX") -> list[Any]:
    market = Market(
        snapshot,
        MarketConfig(
            venue="us-v1", universe=universe, first="2024-01-01", last="2024-01-04", cash=1000.0
        ),
    )
    seen, out = market.reset(), []
    for orders in days:
        record, following = market.step(Decision(orders=orders))
        out.append(
            (
                seen.universe,
                seen.columns.tolist(),
                [e for e in record.events if not hasattr(e, "nav")],
            )
        )
        seen = following
    return out


def order(symbol: str, side: str = "BUY", amount: float = 10.0) -> Order:
    return Order(symbol=symbol, amount=amount, side=side)


def reasons(events: list[Any]) -> list[str]:
    return [
        event.reason if isinstance(event, Rejected) else type(event).__name__ for event in events
    ]


def test_members_are_dated_and_funds_are_not_members(panel, store):
    snapshot = store(panel(FLAT, FLAT, instruments=NAMES, **IDX))
    days = play(snapshot, (), (), ())
    assert [day[0] for day in days] == [("A",), ("A", "B"), ("B",)]
    assert [day[1] for day in days] == [[0], [0, 1], [1]]
    assert play(snapshot, (), universe="all")[0][0] == ("A", "B")


def test_what_is_outside_is_refused_and_a_fund_is_not(panel, store):
    snapshot = store(panel(FLAT, FLAT, instruments=NAMES, **IDX))
    (_, _, events), *_ = play(snapshot, (order("A"), order("B"), order("FUND"), order("NOPE")))
    assert sorted(reasons(events)) == ["Filled", "Filled", "not_in_universe", "unknown_symbol"]
    assert {e.symbol for e in events if isinstance(e, Filled)} == {"A", "FUND"}


def test_what_left_the_index_may_be_sold_but_not_bought(panel, store):
    snapshot = store(panel(FLAT, FLAT, instruments=NAMES, **IDX))
    days = play(snapshot, (order("A"),), (), (order("A"),), (order("A", "SELL"),))
    assert reasons(days[2][2]) == ["not_in_universe"]
    assert reasons(days[3][2]) == ["Filled"]


def test_a_delisted_name_leaves_the_universe_and_is_paid_out(panel, store):
    nan = float("nan")
    prices = [[10.0, 10.0, 10.0], [12.0, 10.0, 10.0], [nan, 10.0, 10.0], [nan, 10.0, 10.0]]
    snapshot = store(panel(prices, prices, instruments=NAMES, delisted={"A": 1}))
    market = Market(
        snapshot, MarketConfig(venue="us-v1", first="2024-01-01", last="2024-01-04", cash=1000.0)
    )
    market.reset()
    market.step(Decision(orders=(order("A"),)))
    seen = market.step(Decision()).observation
    assert seen.universe == ("B",) and seen.account.positions == {}
    (paid,) = [event for event in seen.since_last if type(event).__name__ == "Delisted"]
    assert (paid.price, paid.cash) == (12.0, 120.0)
    assert reasons([e for e in market.step(Decision(orders=(order("A"),))).record.events][:1]) == [
        "not_listed"
    ]


def test_a_new_listing_is_appended(panel, store):
    nan = float("nan")
    prices = [[10.0, nan], [10.0, 10.0], [10.0, 10.0], [10.0, 10.0]]
    snapshot = store(panel(prices, prices, listed={"S1": 1}))
    assert [day[0] for day in play(snapshot, (), (), universe="all")] == [("S0",), ("S0", "S1")]


def test_symbols_are_one_and_the_same_tuple_until_a_name_is_listed(panel, store):
    """The exchange, the universe and the desk of KTD-Fin tell by the tuple's identity that no
    name was added.
    """
    nan = float("nan")
    prices = [[10.0, nan], [10.0, 10.0], [10.0, 10.0]]
    snapshot = store(panel(prices, prices, listed={"S1": 1}))
    before, *later = [
        snapshot.at(row, phase)
        for row, phase in ((0, "close"), (1, "pre_open"), (1, "close"), (2, "close"))
    ]
    assert before.symbols == ("S0",)
    assert all(view.symbols is later[0].symbols for view in later)
    assert later[-1].session_bars().symbols is later[0].symbols


def test_a_failed_decision_trades_nothing_even_when_it_carries_orders(panel, store):
    market = Market(
        store(panel(FLAT, FLAT)), MarketConfig(venue="us-v1", first="2024-01-01", last="2024-01-02")
    )
    market.reset()
    record = market.step(Decision(orders=(order("S0"),), status="failed")).record
    assert [type(event).__name__ for event in record.events] == ["Marked"]
    assert record.decision.status == "failed"


def sized(panel: Any, store: Any, volumes: list[float], universe: str) -> Market:
    rows = [[10.0, 20.0, 10.0]] * 6
    made = panel(rows, rows, instruments=NAMES)
    bars = dict(made.bars)
    bars["volume"] = bars["volume"] * 0.0 + np.array(volumes) * 1e3
    bars["amount"] = bars["volume"] * 10.0
    bars["amount"][3:, 0] = 1e12  # what is traded later must not decide
    snapshot = store(replace(made, bars=bars))
    return Market(
        snapshot,
        MarketConfig(venue="us-v1", universe=universe, first="2024-01-04", last="2024-01-06"),
    )


def test_a_sized_universe_is_what_was_traded_most_before_the_first_session(panel, store):
    assert sized(panel, store, [5.0, 9.0, 99.0], "all:1").reset().universe == ("B",)
    assert sized(panel, store, [9.0, 5.0, 99.0], "all:1").reset().universe == ("A",)
    assert sized(panel, store, [5.0, 9.0, 99.0], "all:2").reset().universe == ("A", "B")
    market = sized(panel, store, [5.0, 9.0, 99.0], "all:1")
    market.reset()
    record, _ = market.step(Decision(orders=(order("A"), order("B"))))
    assert sorted(reasons([e for e in record.events if not hasattr(e, "nav")])) == [
        "Filled",
        "not_in_universe",
    ]


def test_a_sized_universe_needs_a_number_and_names(panel, store):
    with pytest.raises(UserError, match="requires 3 names, but only 2 could be bought"):
        sized(panel, store, [5.0, 9.0, 99.0], "all:3")
    for text in ("all:0", ":3", "IDX:x", "IDX:-1"):
        with pytest.raises(UserError, match="is not a universe"):
            parse_universe(text)
    assert parse_universe("IDX") == ("IDX", None) and parse_universe("IDX:20") == ("IDX", 20)


def test_a_universe_that_never_has_a_member_is_refused(panel, store):
    two = [[10.0, 10.0]] * 4
    nobody = store(panel(two, two, instruments=NAMES[:2], indices=IDX["indices"]))
    with pytest.raises(
        UserError, match=r"no names to buy: 'IDX' has no dated members.*universe='all'"
    ):
        play(nobody)
    assert play(nobody, (), universe="all")[0][0] == ("A", "B")
