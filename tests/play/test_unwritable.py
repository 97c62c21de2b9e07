"""Decisions that a journal cannot hold: the order is left out and counted, the others trade."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from tradeassay.core.events import ENCODER, STEP_DECODER, Filled
from tradeassay.core.orders import Decision, Order
from tradeassay.play import Episode, MarketConfig

GOOD = Order(symbol="S0", amount=10, side="BUY")


@pytest.fixture
def episode(panel, store):
    snapshot = store(panel(np.full((4, 2), 10.0), np.full((4, 2), 10.0)))
    config = MarketConfig(venue="us-v1", universe="all", cash=1e5, first="2024-01-02", last="2024-01-04")
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
