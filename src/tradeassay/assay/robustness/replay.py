"""The same decisions in a harsher market: at multiplied costs, or one session late."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tradeassay.account import Venue
from tradeassay.benchmarks import Benchmark
from tradeassay.core.events import StepRecord
from tradeassay.core.orders import Decision
from tradeassay.data import Snapshot
from tradeassay.play import Market


def costlier(venue: Venue, multiple: float) -> Venue:
    """Return a venue whose fees, taxes and slippage are ``multiple`` times what they were."""
    fees = venue.fees
    return msgspec.structs.replace(
        venue,
        fees=msgspec.structs.replace(
            fees,
            buy_bps=fees.buy_bps * multiple,
            sell_bps=fees.sell_bps * multiple,
            sell_tax_bps=fees.sell_tax_bps * multiple,
            minimum=fees.minimum * multiple,
            per_unit=fees.per_unit * multiple,
        ),
        slippage=msgspec.structs.replace(venue.slippage, bps=venue.slippage.bps * multiple),
    )


def replayed(
    records: Sequence[StepRecord],
    snapshot: Snapshot,
    benchmark: Benchmark,
    *,
    costs: float = 1.0,
    delay: int = 0,
) -> tuple[StepRecord, ...]:
    """Carry recorded decisions out again; ``delay`` sessions late, the first ones then being empty.

    Nobody is asked anything: a model that was paid for once need not be paid again. Orders of shares are repeated
    as they were, and what the account cannot pay any more is trimmed or refused by the venue's own rules.
    """
    market = Market(snapshot, benchmark.market)
    if costs != 1.0:
        market.venue = costlier(market.venue, costs)
        market.rules = market.venue.rules(benchmark_index=benchmark.market.index)
    market.reset()
    nothing = Decision(reason="the first decision is still on its way")
    decisions = [nothing] * delay + [record.decision for record in records]
    return tuple(market.step(decision).record for decision in decisions[: len(records)])
