"""Agents of which the truth is known: what they know decides what they are.

Each holds ``held`` names in equal parts. A share of the places is filled with knowledge, the rest by chance;
chance keeps its names for ``EVERY`` sessions.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from tradeassay.assay.planted.world import PlantedWorld
from tradeassay.core.view import Floats, Ints

Plant = Literal["skilled", "lucky", "style", "leaking", "memorising", "mixed", "noise"]
PLANTS: tuple[Plant, ...] = ("skilled", "mixed", "style", "lucky", "noise", "memorising", "leaking")
EXPECTED: dict[Plant, str] = {
    "skilled": "skill",
    "mixed": "mixed",
    "style": "style",
    "lucky": "luck",
    "noise": "luck",
    "memorising": "memory",
    "leaking": "leak",
}
"""The kind of verdict each of them deserves."""
EVERY = 5
_MOMENTUM = 0


class PlantConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How large the plants are.

    ``held`` is the share of the names that is held. ``skill``, ``leak`` and ``memory`` are the shares of places
    filled with knowledge of public drifts, of the coming session, and of how the window ended; ``tilt`` those of
    the mixed agent that follow momentum. The lucky one is the best of ``tries``.
    """

    held: float = 0.2
    skill: float = 0.4
    leak: float = 0.5
    memory: float = 0.45
    tilt: float = 0.5
    tries: int = 50


def weights_of(
    plant: Plant, world: PlantedWorld, config: PlantConfig, *, seed: int = 0, masked: bool = False
) -> Floats:
    """Return what a planted agent holds at the start of every session, shape (T, N); ``masked`` hides the names.

    Equal arguments give equal weights. Chance is drawn from the seeds alone, so that another future changes only
    what an agent takes from it.
    """
    rng = np.random.default_rng([world.seed, seed, PLANTS.index(plant), int(masked)])
    held = max(2, round(config.held * world.names))
    if plant == "lucky":
        return _best_of(world, config, rng, held)
    chance = _by_chance(world, rng, held)
    if plant == "style":
        return _equal(_top(world.exposures[:, _MOMENTUM], held), world)
    knowledge: list[tuple[Floats, float]] = []
    if plant in ("skilled", "mixed"):
        knowledge.append((world.drift, config.skill))
    if plant == "mixed":
        knowledge.append((world.exposures[:, _MOMENTUM], config.tilt))
    if plant == "leaking":
        knowledge.append((world.returns, config.leak))
    if plant == "memorising" and not masked:
        knowledge.append((np.broadcast_to(world.happened.sum(axis=0), world.returns.shape), config.memory))
    return _equal(_filled(knowledge, chance, held), world)


def crowd(world: PlantedWorld, config: PlantConfig, *, portfolios: int = 400, seed: int = 0) -> Floats:
    """Return value paths (portfolios, T + 1) of portfolios that hold as many names, all of them by chance."""
    rng = np.random.default_rng([world.seed, seed, 7919])
    held = max(2, round(config.held * world.names))
    paths = np.ones((portfolios, world.sessions + 1))
    for one in range(portfolios):
        picks = _by_chance(world, rng, held)
        paths[one, 1:] = np.cumprod(1.0 + np.take_along_axis(world.returns, picks, axis=1).mean(axis=1))
    return paths


def _by_chance(world: PlantedWorld, rng: np.random.Generator, held: int) -> Ints:
    """Return names drawn by chance, shape (T, held); a fifth of them is exchanged every few sessions."""
    names = rng.permutation(world.names)
    leave = max(1, min(held // 5, world.names - held))
    kept = []
    for _ in range(0, world.sessions, EVERY):
        kept.append(names[:held].copy())
        out = rng.permutation(held)[:leave]
        into = held + rng.permutation(world.names - held)[:leave]
        names[out], names[into] = names[into], names[out]
    rows: Ints = np.repeat(np.array(kept, dtype=np.int64), EVERY, axis=0)[: world.sessions]
    return rows


def _top(score: Floats, count: int) -> Ints:
    return np.asarray(np.argsort(-score, axis=1, kind="stable")[:, :count], dtype=np.int64)


def _filled(knowledge: list[tuple[Floats, float]], chance: Ints, held: int) -> Ints:
    """Return the names held: the best by each kind of knowledge, then those of chance that are not among them."""
    rows = np.empty_like(chance)
    tops = [_top(score, round(share * held)) for score, share in knowledge]
    for row in range(chance.shape[0]):
        known = list(dict.fromkeys(int(name) for top in tops for name in top[row]))
        rest = [int(name) for name in chance[row] if int(name) not in set(known)]
        rows[row] = (known + rest)[:held]
    return rows


def _equal(picks: Ints, world: PlantedWorld) -> Floats:
    weights = np.zeros(world.returns.shape)
    np.put_along_axis(weights, picks, 1.0 / picks.shape[1], axis=1)
    return weights


def _best_of(world: PlantedWorld, config: PlantConfig, rng: np.random.Generator, held: int) -> Floats:
    best: Ints | None = None
    most = -np.inf
    for _ in range(config.tries):
        picks = _by_chance(world, rng, held)
        made = float(np.log1p(np.take_along_axis(world.happened, picks, axis=1).mean(axis=1)).sum())
        if made > most:
            best, most = picks, made
    assert best is not None
    return _equal(best, world)
