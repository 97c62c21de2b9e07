"""Small seeded markets for the checkers, and the same markets with another future."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from tradeassay.core.view import FIELDS
from tradeassay.data import Panel, Snapshot, open_snapshot, write_snapshot
from tradeassay.data.synthetic import generate, preset
from tradeassay.play import MarketConfig


def rewrite_after(
    panel: Panel, row: int, rng: np.random.Generator, phase: Literal["pre_open", "open", "close"] = "pre_open"
) -> Panel:
    """Return ``panel`` with everything changed that cannot be known in ``phase`` of session ``row``.

    Prices and volumes move, suspensions are drawn anew, delistings and index changes do not happen, and
    unannounced corporate actions, unpublished news and unknown figures are gone.
    """
    clock = int(panel.close_time[row] if phase == "close" else panel.open_time[row])
    if phase == "pre_open":
        clock -= 1
    bars = {field: panel.bars[field].copy() for field in FIELDS}
    suspended = panel.suspended.copy()
    start = row + 1 if phase == "close" else row
    shape = bars["close"][start:].shape
    factor = np.exp(rng.normal(0.0, 0.3, shape))
    known_opens = bars["open"][row].copy(), suspended[row].copy()
    for field in FIELDS:
        bars[field][start:] *= factor if field != "volume" else rng.uniform(0.1, 3.0, shape)
    halted = rng.random(shape) < 0.2
    for field in FIELDS:
        bars[field][start:][halted] = np.nan
    suspended[start:] = np.isnan(bars["close"][start:])
    if phase == "open":
        bars["open"][row], suspended[row] = known_opens
    today = str(panel.sessions[row])
    # A day of the past, and today's own membership and listing, were known.
    return replace(
        panel,
        bars=bars,
        suspended=suspended,
        listings=tuple(
            entry
            if entry.delisted is None or entry.delisted < today
            else msgspec.structs.replace(entry, delisted=None)
            for entry in panel.listings
        ),
        actions=tuple(action for action in panel.actions if action.known_at <= clock),
        memberships=tuple(
            entry if entry.end is None or entry.end < today else msgspec.structs.replace(entry, end=None)
            for entry in panel.memberships
            if entry.start <= today
        ),
        indices={
            name: np.concatenate((levels[:start], levels[start:] * np.exp(rng.normal(0.0, 0.3, shape[0]))))
            for name, levels in panel.indices.items()
        },
        fundamentals=tuple(figure for figure in panel.fundamentals if figure.known_at <= clock),
        news=tuple(item for item in panel.news if item.published_at <= clock),
        minutes=None,
    )


MARKETS = ("us", "ashare", "crypto")
HISTORY = 258
"""Sessions before the first decision: a year and a few days, which is what the longest rule needs."""
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
        venue="ashare-flat-v1" if market == "ashare" else f"{market}-v1",
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
