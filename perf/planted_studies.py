"""Further studies with planted agents: real data, the alpha test alone, and planted information
ratios.
"""

from __future__ import annotations

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.measure import above, below
from tradeassay.metrics.attribution import CrossSection, Exposures, decompose, regress
from tradeassay.verdict.evidence import MeanTest
from tradeassay.verdict.record import VerdictConfig
from tradeassay_bench.data import Snapshot
from tradeassay_bench.examine.market_window import MarketQuery, market_inputs
from tradeassay_bench.examine.planted import YEAR, Plant, PlantConfig, PlantedWorld, weights_of

FOG = 24.0
"""Noise in the knowledge of a reader of a real market, in standard deviations of a session's
returns.
"""


def real_world(snapshot: Snapshot, first: str, last: str, *, seed: int = 0) -> PlantedWorld:
    """Return a window of real data as a world for planted agents: the names present in every
    session.

    The true knowledge of a news reader is unknown. ``drift`` is therefore the actual return seen
    through :data:`FOG`, shrunk to its expectation. It gives an information ratio of about 2 if a
    fifth of the places uses it.
    """
    inputs = market_inputs(snapshot, MarketQuery(first=first, last=last))
    columns = np.flatnonzero(inputs.investable.all(axis=0)).astype(np.int64)
    returns = inputs.model.returns[:, columns]
    spread = returns.std(axis=1, keepdims=True)
    fog = np.random.default_rng([seed, 104_729]).normal(size=returns.shape)
    return PlantedWorld(
        seed=seed,
        returns=returns,
        exposures=inputs.model.exposures[:, :, columns],
        drift=(returns + FOG * spread * fog) / (1.0 + FOG**2),
        happened=returns,
        columns=columns,
        inputs=inputs,
    )


class EdgeTest(msgspec.Struct, frozen=True, kw_only=True):
    """The one test behind "skill supported": was the edge found above, or below, zero? ``ratio``
    is its yearly information ratio.
    """

    above: bool
    below: bool
    ratio: float


def edge_tests(
    world: PlantedWorld,
    plant: Plant,
    planting: PlantConfig,
    config: VerdictConfig,
    *,
    agents: int = 10,
) -> tuple[EdgeTest, ...]:
    """Return the test on several planted agents of one kind, without the rest of the evidence."""
    found = []
    for seed in range(agents):
        weights = np.zeros(world.inputs.model.returns.shape)
        weights[:, world.columns] = weights_of(plant, world, planting, seed=seed)
        edge = _edge(world, weights)
        measure = MeanTest(YEAR, config).of(edge)
        ratio = float(edge.mean() / edge.std() * np.sqrt(YEAR)) if edge.std() > 0 else 0.0
        found.append(EdgeTest(above=above(measure), below=below(measure), ratio=ratio))
    return tuple(found)


def share_of(world: PlantedWorld, ratio: float) -> float:
    """Return the share of places filled with knowledge that gives an annual information ratio in a
    world.

    The expected return is known from the drifts. A realised ratio would have its own error, and
    depend more on luck than on the planted knowledge. The risk is that of an agent with a seed
    different from the judged agents.
    """
    held = max(2, round(PlantConfig().held * world.names))
    own = own_drift(world)
    best, missed = 0.0, ratio
    for places in range(1, held + 1):
        by = expected_ratio(world, places / held, own=own) - ratio
        if abs(by) < missed:
            best, missed = places / held, abs(by)
        if by >= 0.0:
            break
    return best


def expected_ratio(
    world: PlantedWorld, share: float, *, own: Floats | None = None, seed: int = 1
) -> float:
    """Return the annual information ratio of the alpha that a skilled agent could expect in
    advance.

    Gain and risk both refer to the names' returns beyond market and style. ``own`` is
    :func:`own_drift`, if it is known already.
    """
    weights = np.zeros(world.inputs.model.returns.shape)
    weights[:, world.columns] = weights_of("skilled", world, PlantConfig(skill=share), seed=seed)
    risk = float(_edge(world, weights).std())
    gained = (weights * (own_drift(world) if own is None else own)).sum(axis=1)
    return float(gained.mean() / risk * np.sqrt(YEAR))


def _edge(world: PlantedWorld, weights: Floats) -> Floats:
    parts = decompose(world.inputs.model, weights)
    return np.asarray(parts.selection + parts.trading)


def own_drift(world: PlantedWorld) -> Floats:
    """Return the drifts (T, all columns) without market and style, as for any return.

    Every session's regression absorbs part of its names' individual returns. The part grows with
    the number of terms per name: with 23 terms for 200 names it is about 11 %.
    """
    model, drift = world.inputs.model, np.zeros(world.inputs.model.returns.shape)
    drift[:, world.columns] = world.drift
    cross = CrossSection(
        drift, model.exposures, world.inputs.size, world.inputs.investable, model.factors
    )
    seen = Exposures(model.exposures, model.covered, np.abs(model.exposures).sum(axis=2) > 0.0)
    return regress(cross, seen, world.inputs.query.config).residuals
