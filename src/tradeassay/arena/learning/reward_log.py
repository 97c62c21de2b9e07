"""The reward log of a season, joined with what was known: material for learning between sessions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sqlalchemy import select

from tradeassay.arena.state.records import read_packet
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import rewards, rounds, slots
from tradeassay.core.arena import Action, Packet
from tradeassay.core.view import Floats


@dataclass(frozen=True, slots=True)
class Experience:
    """One settled decision: what everybody could know, what this entry did, what it was paid."""

    packet: Packet
    action: Action
    position: int
    reward: float


def experiences(store: Store, season: str, entry: str, *, after: int = 0) -> tuple[Experience, ...]:
    """Return an entry's experiences whose slot is greater than ``after``, oldest first.

    Empty in seasons without the rule ``feedback``.
    """
    query = (
        select(rounds.c.packet, slots.c.action, slots.c.position, rewards.c.reward)
        .join(slots, slots.c.id == rewards.c.slot)
        .join(rounds, rounds.c.id == slots.c.round)
        .where(rewards.c.season == season, rewards.c.entry == entry, rewards.c.slot > after)
        .order_by(rewards.c.slot)
    )
    with store.read() as db:
        rows = db.execute(query).all()
    return tuple(
        Experience(read_packet(row.packet), row.action or "HOLD", row.position or 0, row.reward) for row in rows
    )


def by_position(found: tuple[Experience, ...]) -> dict[int, Floats]:
    """Return the rewards earned long (1), flat (0) and short (-1)."""
    return {side: np.array([one.reward for one in found if one.position == side]) for side in (1, 0, -1)}
