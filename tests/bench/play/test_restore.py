"""A journal is enough to go on, and to notice that something has changed."""

from math import inf, nan
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tradeassay_bench.agents import make_agent
from tradeassay_bench.benchmarks import day, play_day
from tradeassay_bench.core.agent import Agent, EpisodeInfo, Observation
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.events import ENCODER, STEP_DECODER, Filled, Rested, StepRecord
from tradeassay_bench.core.orders import Decision, Order
from tradeassay_bench.data import Panel
from tradeassay_bench.play import Episode, Market, MarketConfig

CONFIG = MarketConfig(venue="us-v1", first="2024-01-05", last="2024-02-10", cash=50_000.0)


def wild(panel: Any, seed: int = 0, rows: int = 45) -> Panel:
    rng = np.random.default_rng(seed)
    closes = np.round(50 * np.cumprod(1 + rng.normal(0, 0.02, (rows, 6)), 0), 2)
    opens = np.round(closes * (1 + rng.normal(0, 0.01, (rows, 6))), 2)
    return panel(opens, closes, actions=(("S0", "dividend", 20, 0.5), ("S1", "dividend", 25, 0.5)))


def begin(market: Market, name: str, params: dict[str, Any]) -> Agent:
    agent = make_agent(name, params)
    agent.begin(EpisodeInfo(episode="e", seed=4, rules=market.rules), np.random.default_rng(4))
    return agent


def play(market: Market, agent: Agent, seen: Observation | None) -> list[bytes]:
    lines = []
    while seen is not None:
        record, seen = market.step(play_day(day(seen), agent))
        lines.append(ENCODER.encode(record))
    return lines


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cut=st.integers(0, 37))
def test_a_journal_cut_anywhere_continues_to_the_same_bytes(panel, store, cut):
    snapshot = store(wild(panel))
    params = {"k": 3, "every": 2, "turnover": 0.5}
    market = Market(snapshot, CONFIG)
    whole = play(market, begin(market, "random", params), market.reset())
    again = Market(snapshot, CONFIG)
    agent = begin(again, "random", params)

    def witness(seen: Observation, record: StepRecord) -> None:
        assert play_day(day(seen), agent) == record.decision

    seen = again.restore(map(STEP_DECODER.decode, whole[:cut]), witness)
    assert whole[:cut] + play(again, agent, seen) == whole


def test_orders_that_wait_survive(panel, store):
    prices = [[100.0], [100.0], [100.0], [90.0], [100.0]]
    snapshot = store(panel(prices, prices))
    config = MarketConfig(venue="us-v1", first="2024-01-02", last="2024-01-05", cash=50_000.0)
    market = Market(snapshot, config)
    market.reset()
    patient = Order(symbol="S0", amount=7.0, side="BUY", kind="limit", limit_price=95.0, tif="gtc")
    first = market.step(Decision(orders=(patient,))).record
    assert any(isinstance(event, Rested) for event in first.events)
    again = Market(snapshot, config)
    again.restore([STEP_DECODER.decode(ENCODER.encode(first))])
    again.step(Decision())
    filled = [event for event in again.step(Decision()).record.events if isinstance(event, Filled)]
    assert [(event.order_id, event.quantity, event.reference) for event in filled] == [
        ("0.0", 7.0, 90.0)
    ]


def test_a_journal_that_comes_out_differently_is_refused(panel, store):
    market = Market(store(wild(panel)), CONFIG)
    lines = play(market, begin(market, "random", {"k": 3}), market.reset())
    records = [STEP_DECODER.decode(line) for line in lines]
    changed = Market(store(wild(panel, seed=1)), CONFIG)
    with pytest.raises(RunError, match="differs from the journal"):
        changed.restore(records)
    richer = msgspec.structs.replace(records[3].events[-1], nav=1e9)
    forged = [
        *records[:3],
        msgspec.structs.replace(records[3], events=(*records[3].events[:-1], richer)),
    ]
    with pytest.raises(RunError, match=r"2024-01-08 \(step 3\)"):
        market.restore(forged)
    with pytest.raises(RunError, match="after the last session"):
        market.restore([*records, records[-1]])
    assert market.restore(records) is None
    first = market.restore([])
    assert first is not None and first.step == 0


GOOD = Order(symbol="S0", amount=10, side="BUY")


@pytest.fixture
def episode(panel, store):
    snapshot = store(panel(np.full((4, 2), 10.0), np.full((4, 2), 10.0)))
    config = MarketConfig(
        venue="us-v1", universe="all", cash=1e5, first="2024-01-02", last="2024-01-04"
    )
    opened: Episode = Episode(snapshot, config)
    opened.open()
    return opened


@pytest.mark.parametrize(
    "order",
    [
        Order(symbol="S0", amount=nan, side="BUY"),
        Order(symbol="S0", amount=inf, side="BUY"),
        Order(symbol="S0", amount=-inf, unit="target_weight"),
        Order(symbol="S0", amount=10**400, side="BUY"),
        Order(symbol="S0", amount=None, side="BUY"),  # type: ignore[arg-type]
        Order(symbol="S0", amount="ten", side="BUY"),  # type: ignore[arg-type]
        Order(symbol="S0", amount=1, side="BUY", limit_price=nan),
        Order(symbol="S0", amount=1, side="BUY", kind="stop", stop_price=inf),
        Order(symbol="\ud800", amount=1, side="BUY"),
        Order(symbol="S0", amount=1, side="BUY", unit="buckets"),  # type: ignore[arg-type]
    ],
)
def test_an_order_that_cannot_be_written_is_counted_and_the_others_trade(episode, order):
    record = episode.decide(Decision(orders=(order, GOOD)))
    assert [event.quantity for event in record.events if isinstance(event, Filled)] == [10.0]
    assert record.decision.orders == (GOOD,)
    (failure,) = record.decision.failures
    assert failure.kind == "schema"
    assert failure.detail.startswith("order 1 is not carried out: ")
    assert STEP_DECODER.decode(ENCODER.encode(record)) == record


def test_a_reason_that_cannot_be_written_is_a_failed_decision(episode):
    record = episode.decide(Decision(orders=(GOOD,), reason="\ud800"))
    assert record.decision.status == "failed"
    assert STEP_DECODER.decode(ENCODER.encode(record)) == record
