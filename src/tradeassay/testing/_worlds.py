"""Small seeded markets for the checkers, made once per process."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec
import numpy as np

from tradeassay.data import Panel, Snapshot, open_snapshot, write_snapshot
from tradeassay.data.synthetic import generate, preset
from tradeassay.play import MarketConfig
from tradeassay.testing._rewrite import rewrite_after

MARKETS = ("us", "ashare", "crypto")
HISTORY = 258
"""Sessions before the first decision: a year and a few days, which is what the longest rule wants."""
DECISIONS = 26
CUT = 23
"""The decision after which the other future differs: late enough for a second monthly rebalancing."""
_SIZE = {"names": 18, "sessions": HISTORY + DECISIONS + 16, "new_listings": 1, "delistings": 1}


@dataclass(frozen=True, slots=True)
class SmallWorld:
    """A market to try an agent in: its data, the same data with another future, and how it is played."""

    market: str
    snapshot: Snapshot
    other_future: Snapshot
    config: MarketConfig
    from_nothing: MarketConfig
    """The same, starting on the very first session, where no history exists."""


@cache
def small_world(market: str, seed: int = 11) -> SmallWorld:
    """Return the small world of one market."""
    panel = generate(preset(market, seed=seed, **_SIZE)).panel
    days = [str(day) for day in panel.sessions]
    config = MarketConfig(
        venue=f"{market}-v1",
        universe="IDX",
        index="IDX",
        cash=1_000_000.0,
        first=days[HISTORY],
        last=days[HISTORY + DECISIONS - 1],
    )
    other = rewrite_after(panel, HISTORY + CUT, np.random.default_rng(seed))
    return SmallWorld(
        market=market,
        snapshot=_stored(panel, f"{market}-{seed}"),
        other_future=_stored(other, f"{market}-{seed}-other"),
        config=config,
        from_nothing=msgspec.structs.replace(config, first=days[0], last=days[7]),
    )


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    # Kept by the cache and removed by its finaliser when the interpreter ends.
    return tempfile.TemporaryDirectory(prefix="tradeassay-check-")


def _stored(panel: Panel, name: str) -> Snapshot:
    folder = Path(_folder().name) / name
    write_snapshot(panel, folder, allow_faults=True)
    return open_snapshot(folder)
