"""Who knows what, when, and at which price it is filled and marked."""

from typing import Any

import numpy as np
import pytest

from tradeassay.core.errors import UserError
from tradeassay_bench.account import Ledger
from tradeassay_bench.core.events import Filled, Marked
from tradeassay_bench.core.orders import Decision, Order
from tradeassay_bench.play import Market, MarketConfig

OPENS = [[10.0], [20.0], [40.0]]
CLOSES = [[11.0], [22.0], [44.0]]
HALF = Decision(orders=(Order(symbol="S0", amount=0.5, unit="target_weight"),))


def config(**changes: Any) -> MarketConfig:
    plain = {
        "venue": "us-fractional-v1",
        "first": "2024-01-02",
        "last": "2024-01-03",
        "cash": 1000.0,
    }
    return MarketConfig(**{**plain, **changes})


@pytest.mark.parametrize(
    ("decide", "closes", "opens"),
    [("pre_open", [11.0], None), ("at_open", [11.0], [20.0]), ("close", [11.0, 22.0], [20.0])],
)
def test_what_is_seen(panel, store, decide, closes, opens):
    market = Market(store(panel(OPENS, CLOSES)), config(decide=decide, fill="close"))
    seen = market.reset()
    assert seen.session == "2024-01-02" and seen.step == 0 and seen.sessions_left == 2
    assert seen.view.bars("close")[:, 0].tolist() == closes
    found = seen.view.opens()
    assert (None if found is None else found.tolist()) == opens
    assert seen.time == seen.view.clock
    record, following = market.step(HALF)
    assert record.decided_at == seen.time and record.session == seen.session
    assert (
        following is not None and following.session == "2024-01-03" and following.sessions_left == 1
    )


@pytest.mark.parametrize(
    ("decide", "fill", "mark", "filled", "marked"),
    [
        ("pre_open", "open", "close", 20.0, 22.0),
        ("pre_open", "open", "open", 20.0, 20.0),
        ("at_open", "open", "close", 20.0, 22.0),
        ("pre_open", "close", "close", 22.0, 22.0),
        ("close", "close", "close", 22.0, 22.0),
    ],
)
def test_where_orders_fill_and_accounts_are_marked(
    panel, store, decide, fill, mark, filled, marked
):
    market = Market(store(panel(OPENS, CLOSES)), config(decide=decide, fill=fill, mark=mark))
    market.reset()
    fill_event, mark_event = market.step(HALF).record.events
    assert isinstance(fill_event, Filled) and fill_event.reference == filled
    assert isinstance(mark_event, Marked) and mark_event.marks == {"S0": marked}
    assert mark_event.nav == mark_event.cash + fill_event.quantity * marked


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"decide": "close", "fill": "open"}, "cannot be filled at the earlier open"),
        ({"fill": "close", "mark": "open"}, "cannot be marked at the earlier open"),
        ({"first": "2024-01-03", "last": "2024-01-02"}, "swap them"),
        ({"first": "yesterday"}, "'yesterday' is not a date"),
        ({"cash": 0.0}, "positive amount"),
        ({"cash": float("nan")}, "positive amount"),
        ({"max_weight": 1.5}, "expected a max_weight above 0"),
        ({"max_positions": 0}, "max_positions of 1 or more"),
    ],
)
def test_a_config_that_contradicts_itself_is_refused(changes, said):
    with pytest.raises(UserError, match=said):
        config(**changes)


def test_a_market_that_is_not_there_is_refused_before_the_first_day(panel, store):
    snapshot = store(panel(OPENS, CLOSES))
    with pytest.raises(UserError, match="has no session from 2030-01-01"):
        Market(snapshot, config(first="2030-01-01", last="2030-12-31"))
    with pytest.raises(UserError, match="no venue 'us-v0'"):
        Market(snapshot, config(venue="us-v0"))
    for wrong in ({"universe": "NOPE"}, {"index": "NOPE"}):
        with pytest.raises(Exception, match="no index 'NOPE'"):
            Market(snapshot, config(**wrong))


def test_an_episode_begins_with_reset_and_ends_with_its_last_session(panel, store):
    market = Market(store(panel(OPENS, CLOSES)), config())
    for early in (lambda: market.step(HALF), lambda: market.ledger):
        with pytest.raises(UserError, match="call reset"):
            early()
    assert len(market) == 2 and market.sessions == ("2024-01-02", "2024-01-03")
    market.reset()
    market.step(HALF)
    assert market.step(HALF).observation is None
    with pytest.raises(UserError, match="the episode is over"):
        market.step(HALF)
    assert market.reset().account.cash == 1000.0


def test_observations_cannot_be_written_to(panel, store):
    seen = Market(store(panel(OPENS, CLOSES)), config()).reset()
    for array in (seen.columns, seen.view.bars("close")):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    assert isinstance(seen.columns, np.ndarray) and seen.columns.dtype == np.int64


@pytest.mark.parametrize(
    ("decide", "fill"), [("at_open", "open"), ("at_open", "close"), ("close", "close")]
)
def test_nobody_takes_an_order_back_after_seeing_that_it_was_reached(panel, store, decide, fill):
    opens, closes = [[100.0], [100.0], [94.0], [60.0]], [[100.0], [100.0], [80.0], [60.0]]
    market = Market(
        store(panel(opens, closes)),
        config(venue="us-v1", decide=decide, fill=fill, last="2024-01-04", cash=1e5),
    )
    market.reset()
    patient = Order(symbol="S0", amount=10.0, side="BUY", kind="limit", limit_price=95.0, tif="gtc")
    first, seen = market.step(Decision(orders=(patient,)))
    # The fill is part of what the agent is told before it decides, and told once.
    assert seen is not None and seen.account.positions["S0"].quantity == 10.0
    (early,) = [event for event in seen.since_last if isinstance(event, Filled)]
    assert (early.order_id, early.reference) == ("0.0", 94.0)
    withdraw = Order(symbol="S0", amount=1.0, side="BUY", kind="limit", limit_price=0.01)
    record, seen = market.step(Decision(orders=(withdraw,)))
    assert record.events[0] == early and record.opening == ()
    assert isinstance(record.events[-1], Marked) and record.events[-1].marks == {"S0": 80.0}
    assert seen is not None and seen.since_last == record.events[1:]
    assert Ledger.replay([first, record]).state() == market.ledger.state()
