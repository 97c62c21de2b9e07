"""Markets and restless accounts on every venue, for the tests of random portfolios and of
compiled forms.
"""

import sys
from functools import lru_cache
from pathlib import Path

import attribute_runs
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3] / "perf"))

from luck_orders import decisions_of, replay
from tradeassay_bench.core.orders import Decision, Order
from tradeassay_bench.examine.luck import luck_market, schedule_of
from tradeassay_bench.play import Market

__all__ = ["VENUES", "decisions_of", "key_of", "played", "replay", "scheduled", "the_run"]
VENUES = ("us", "us-fractional", "ashare", "ashare-qlib", "crypto", "us-margin")


def the_run():
    return attribute_runs.every_venue()


def key_of(venue, agent="test-provoker"):
    name = venue if venue.endswith("-v1") else f"tiny-{venue}-v1"
    return next(
        one.key for one in the_run().episodes if one.benchmark == name and one.label == agent
    )


@lru_cache(maxsize=16)
def played(venue):
    """A restless account: every session it moves three names to random weights, on margin short
    ones too.
    """
    key = key_of(venue)
    run = the_run()
    snapshot, config = run.snapshot(key), run.manifest.benchmark(run.episode(key)).market
    rng, market, records = np.random.default_rng(1), Market(snapshot, config), []
    seen = market.reset()
    while seen is not None:
        orders = tuple(
            Order(symbol=str(name), amount=float(weight), unit="target_weight")
            for name, weight in zip(
                rng.permutation(seen.universe)[:3],
                rng.choice([0.0, 0.1, 0.2, 0.3, 0.5], 3)
                * (rng.choice([1, -1], 3) if "margin" in venue else 1),
                strict=False,
            )
        )
        record, seen = market.step(Decision(orders=orders))
        records.append(record)
    return snapshot, config, tuple(records)


@lru_cache(maxsize=16)
def scheduled(venue):
    snapshot, config, records = played(venue)
    market = luck_market(snapshot, config)
    return market, schedule_of(records, market)[0]
