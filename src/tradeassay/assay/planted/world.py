"""Worlds in which planted agents play: a synthetic market with its answer key, read as attribution reads it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from tradeassay.assay.inputs import MarketInputs, MarketQuery, market_inputs
from tradeassay.core.view import Floats, Ints
from tradeassay.data import open_snapshot, write_snapshot
from tradeassay.data.synthetic import generate, preset

WARM = 260
"""Sessions before the first that is played: factors look back a year."""


@dataclass(frozen=True, slots=True)
class PlantedWorld:
    """T sessions of N names as an agent could see them, and the truth beside them.

    ``returns`` (T, N) are those of the session, ``exposures`` (T, 9, N) were known before it. ``drift`` (T, N) is
    what news already public still moves in the session: the true alpha that a reader could know. ``happened``
    (T, N) are the returns as they came out: what somebody knows who picks a record, or has read about it since;
    it stays what it is in :meth:`other_future`. ``columns`` are the names' places in ``inputs``, by which accounts
    are taken apart.
    """

    seed: int
    returns: Floats
    exposures: Floats
    drift: Floats
    happened: Floats
    columns: Ints
    inputs: MarketInputs

    @property
    def sessions(self) -> int:
        """How many are played."""
        return int(self.returns.shape[0])

    @property
    def names(self) -> int:
        """How many there are."""
        return int(self.returns.shape[1])

    def other_future(self, row: int, seed: int) -> PlantedWorld:
        """Return this world with every session from ``row`` on shuffled among names: another future.

        What was public before, and what anybody remembers of the true one, stays as it is.
        """
        rng = np.random.default_rng([self.seed, row, seed])
        returns = self.returns.copy()
        returns[row:] = rng.permuted(returns[row:], axis=1)
        return replace(self, returns=returns)


def planted_world(seed: int, *, names: int = 200, sessions: int = 252, strength: float = 1.0) -> PlantedWorld:
    """Make the world of a seed: ``names`` names, ``sessions`` sessions to play, a year of history before them.

    ``strength`` scales what news is worth, and so how much a skilled reader can earn.
    """
    config = preset(
        "us", seed=seed, names=names, sessions=WARM + sessions, index_members=names, new_listings=0, delistings=0
    )
    news = msgspec.structs.replace(config.news, strength=strength)
    world = generate(msgspec.structs.replace(config, news=news))
    key = world.key
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        write_snapshot(world.panel, Path(folder) / "world")
        snapshot = open_snapshot(Path(folder) / "world")
        days = [str(day) for day in snapshot.sessions]
        inputs = market_inputs(snapshot, MarketQuery(first=days[WARM], last=days[-1]))
        market_inputs.cache_clear()  # it would keep a snapshot whose files are about to go
    columns = np.array([inputs.symbols.index(symbol) for symbol in key.facts.symbols], dtype=np.int64)
    fresh = np.zeros(key.news.shape, dtype=np.bool_)
    place = {str(day): row for row, day in enumerate(key.sessions)}
    for truth in key.facts.news:
        fresh[place[truth.session], key.column(truth.symbol)] = True
    returns = inputs.model.returns[:, columns]
    return PlantedWorld(
        seed=seed,
        returns=returns,
        exposures=key.exposures[WARM:],
        drift=np.where(fresh, 0.0, key.news)[WARM:],
        happened=returns,
        columns=columns,
        inputs=inputs,
    )
