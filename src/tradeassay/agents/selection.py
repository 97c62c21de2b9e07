"""Choosing a few names out of many by a score."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from tradeassay.core.agent import Observation
from tradeassay.core.view import Floats

Count = Annotated[int, Meta(ge=1, description="names to hold (never more than a third of the universe)")]


def how_many(k: int, universe: int) -> int:
    """Return ``k``, or a third of a universe too small for it: holding nearly everything is no choice."""
    return min(k, max(1, universe // 3))


def best(scores: Floats, k: int) -> list[int]:
    """Return the positions of the ``k`` highest scores, best first; NaN never, ties in the given order."""
    # Array methods, not numpy's functions: this runs every session, and the wrappers cost more than the work.
    losses = -scores
    known = losses == losses
    if k < losses.size:
        # Only what can be among the first k is sorted; whoever ties with the k-th is sorted too.
        ranks = losses.copy()
        ranks.partition(k - 1)
        worst = ranks[k - 1]
        if worst == worst:
            known = losses <= worst
    candidates = known.nonzero()[0]
    order = candidates[losses[candidates].argsort(kind="stable")]
    chosen: list[int] = order[:k].tolist()
    return chosen


def rotate(observation: Observation, scores: Floats, k: int, keep: int) -> list[str]:
    """Return at most ``k`` names: those held that still rank in the first ``keep``, then the best others."""
    universe = observation.universe
    ranked = [universe[i] for i in best(scores, max(k, keep))]
    held = observation.account.positions
    staying = [name for name in ranked if name in held][:k]
    fresh = [name for name in ranked[:k] if name not in held]
    return staying + fresh[: k - len(staying)]
