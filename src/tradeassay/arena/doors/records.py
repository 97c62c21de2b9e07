"""What passes through the doors."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tradeassay.arena.state.records import Stage, Status
from tradeassay.core.arena import Action, Packet


class Refused(Exception):
    """A request that is turned away; ``status`` is the HTTP status that says so."""

    def __init__(self, status: int, detail: str, *, retry_s: float | None = None) -> None:
        self.status, self.detail, self.retry_s = status, detail, retry_s
        super().__init__(detail)


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who is registered: an entry of a season."""

    id: str
    season: str
    entry: str
    address: str | None = None


class Issued(msgspec.Struct, frozen=True, kw_only=True):
    """A registration. This is the only time its token is shown."""

    agent: Agent
    token: str


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A decision that waits for an agent: what it may know, and what it has to name when it answers."""

    slot: int
    packet_sha256: str
    packet: Packet


class Offer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent's answer to :class:`Told`."""

    slot: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
    packet_sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    recommended_action: Action
    reasoning: str
    confidence: float | None = None
    allocation: float | None = None
    message: str | None = None


class OwnDecision(msgspec.Struct, frozen=True, kw_only=True):
    """One of the agent's own decisions; ``earned`` is None until it is settled."""

    slot: int
    asset: str
    session: str
    stage: Stage
    status: Status
    action: Action | None
    position: int | None
    earned: float | None
    failures: tuple[str, ...] = ()


class OwnReward(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the reward log (only in seasons with the rule ``feedback``)."""

    slot: int
    asset: str
    session: str
    action: Action | None
    reward: float
