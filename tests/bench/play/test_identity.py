"""Whatever is ordered, in any venue and at any moment of the day: the money adds up and the
journal replays.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tradeassay_bench.core.events import ENCODER, STEP_DECODER, Filled, Marked, Rejected
from tradeassay_bench.core.orders import Decision, Order
from tradeassay_bench.core.view import Board, Instrument
from tradeassay_bench.data import Panel, Snapshot
from tradeassay_bench.play import Market, MarketConfig

ROWS, NAMES = 14, 5
BOARDS = (Board.MAIN, Board.STAR, Board.NONE, Board.CHINEXT, Board.MAIN)
SYMBOLS = st.sampled_from([*(f"S{i}" for i in range(NAMES)), "NOPE"])
AMOUNTS = {
    "shares": st.floats(0.5, 3_000),
    "dollars": st.floats(1, 60_000),
    "target_weight": st.floats(-0.2, 1.2),
    "target_value": st.floats(0, 60_000),
    "target_shares": st.floats(-5, 3_000),
}


@st.composite
def orders(draw: Any) -> Order:
    unit = draw(st.sampled_from(sorted(AMOUNTS)))
    kind = draw(st.sampled_from(["market", "market", "limit", "stop"]))
    price = draw(st.floats(15, 25)) if kind != "market" else None
    side = draw(st.sampled_from(["BUY", "SELL"])) if unit in ("shares", "dollars") else None
    return Order(
        symbol=draw(SYMBOLS),
        amount=draw(AMOUNTS[unit]),
        unit=unit,
        side=side,
        kind=kind,
        limit_price=price if kind == "limit" else None,
        stop_price=price if kind == "stop" else None,
        tif=draw(st.sampled_from(["day", "gtc"])),
    )


@pytest.fixture
def rough(panel: Any, store: Any) -> Snapshot:
    rng = np.random.default_rng(8)
    closes = np.round(20 * np.cumprod(1 + rng.normal(0, 0.04, (ROWS, NAMES)), 0), 2)
    opens = np.round(closes * (1 + rng.normal(0, 0.03, (ROWS, NAMES))), 2)
    opens[9:, 3] = closes[9:, 3] = np.nan
    table: Panel = panel(
        opens,
        closes,
        delisted={"S3": 8},
        suspended=[(5, 0), (6, 0), (7, 2)],
        volume=20_000.0,
        instruments=tuple(Instrument(symbol=f"S{i}", board=BOARDS[i]) for i in range(NAMES)),
        actions=(("S1", "dividend", 6, 0.4), ("S2", "split", 8, 3.0)),
    )
    return store(table)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    days=st.lists(st.lists(orders(), max_size=4), min_size=ROWS - 2, max_size=ROWS - 2),
    venue=st.sampled_from(
        ["us-v1", "us-fractional-v1", "ashare-flat-v1", "crypto-v1", "us-margin-v1"]
    ),
    moment=st.sampled_from(
        [
            ("pre_open", "open", "close"),
            ("at_open", "open", "open"),
            ("close", "close", "close"),
            ("pre_open", "close", "close"),
        ]
    ),
)
def test_the_money_adds_up(rough, days, venue, moment):
    decide, fill, mark = moment
    config = MarketConfig(
        venue=venue,
        first="2024-01-03",
        last="2024-01-14",
        cash=100_000.0,
        decide=decide,
        fill=fill,
        mark=mark,
        max_weight=0.6,
        max_positions=4,
    )
    market = Market(rough, config)
    seen, flow, lines = market.reset(), 0.0, []
    for day in days:
        record, seen = market.step(Decision(orders=tuple(day)))
        lines.append(ENCODER.encode(record))
        marked = record.events[-1]
        assert (
            isinstance(marked, Marked)
            and sum(isinstance(event, Marked) for event in record.events) == 1
        )
        moved = [
            event for event in (*record.opening, *record.events) if not isinstance(event, Marked)
        ]
        flow += sum(getattr(event, "cash", 0.0) for event in moved)
        assert marked.cash == pytest.approx(flow, rel=1e-12, abs=1e-6)
        assert marked.nav == marked.cash + marked.positions
        assert venue == "us-margin-v1" or marked.cash >= 0.0
        asked = {f"{record.step}.{n}" for n, order in enumerate(day) if order.symbol == "NOPE"}
        assert asked <= {event.order_id for event in moved if isinstance(event, Rejected)}
        assert not any(isinstance(event, Filled) and event.symbol == "NOPE" for event in moved)
    assert seen is None
    again = Market(rough, config)
    assert again.restore(map(STEP_DECODER.decode, lines)) is None
    assert again.ledger.state() == market.ledger.state()
