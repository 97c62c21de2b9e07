"""What passes between the arena and an agent: one packet of information in, one choice out.

An agent decides once per asset and session. It is sent a :class:`Packet`, which holds everything it may know,
and answers with a :class:`AgentChoice`. A model-driven agent is a *sans-I/O generator* (:data:`Deliberation`): it
yields what it wants to ask a model and is sent the answers, so that the arena can record every answer before the
next question is put, and a killed decision can be continued without asking twice.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Literal

import msgspec

from tradeassay.core.dialogue import AskModel, ModelReply

Action = Literal["BUY", "SELL", "HOLD"]


class PricePoint(msgspec.Struct, frozen=True, kw_only=True):
    """A price and the day it belongs to (ISO date)."""

    date: str
    price: float


class NewsShown(msgspec.Struct, frozen=True, kw_only=True):
    """A published item. ``published_at`` is ISO 8601 in UTC; ``id`` finds its provenance again."""

    id: str
    published_at: str
    source: str
    title: str
    text: str


class SettledOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One of the agent's own settled decisions: the day, what it did, the position it had and what came of it."""

    date: str
    action: Action
    position: int
    earned: float


class PeerMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What another entry said in public about an earlier session (only in seasons that allow it)."""

    entry: str
    date: str
    text: str


class Packet(msgspec.Struct, frozen=True, kw_only=True):
    """All that an agent may know when it decides about ``symbol`` on ``date``.

    ``decided_at`` is the decision time (ISO, UTC); nothing in the packet was published after it. ``history`` are
    at most ten earlier prices, oldest first. ``position`` is what the agent holds: 1, 0 or -1. ``phase`` is
    ``warm-up`` (the agent learns, nothing counts) or ``live``. Where one account spans all assets, ``account`` is
    its value (it started with 1) and ``exposures`` the signed money behind each asset.
    """

    season: str
    date: str
    decided_at: str
    symbol: str
    kind: Literal["stock", "crypto"]
    price: float
    history: tuple[PricePoint, ...]
    news: tuple[NewsShown, ...] = ()
    annual_report: str | None = None
    quarterly_report: str | None = None
    momentum: float | None = None
    position: int = 0
    outcomes: tuple[SettledOutcome, ...] = ()
    others: tuple[PeerMessage, ...] = ()
    phase: Literal["warm-up", "live"] = "live"
    account: float | None = None
    exposures: dict[str, float] = {}


class Contribution(msgspec.Struct, frozen=True, kw_only=True):
    """One contribution to a decision: who, at which step, what; kept for the reader."""

    role: str
    step: str
    text: str


class ChoiceFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Something that went wrong on the way to a choice: its kind (as in a decision's failures) and the words."""

    kind: str
    text: str


class AgentChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent decided. ``status`` is ``failed`` when no usable answer came: the position rule is then HOLD.
    ``memory`` is the agent's whole new memory, opaque to the arena; None leaves the old one. ``message`` is what
    it wants to say in public, ``allocation`` the share of its account (0 to 1) it wants behind the position; both
    count only in seasons that allow them."""

    action: Action
    reasoning: str
    status: Literal["decided", "failed"] = "decided"
    confidence: float | None = None
    allocation: float | None = None
    talk: tuple[Contribution, ...] = ()
    failures: tuple[ChoiceFailure, ...] = ()
    memory: bytes | None = None
    message: str | None = None

    def __post_init__(self) -> None:
        if self.status == "failed" and self.action != "HOLD":
            raise ValueError("a failed choice holds")
        if self.confidence is not None and not 0 <= self.confidence <= 1:
            raise ValueError("confidence lies between 0 and 1")
        if self.allocation is not None and not 0 <= self.allocation <= 1:
            raise ValueError("an allocation lies between 0 and 1")


Deliberation = Generator[AskModel, ModelReply, AgentChoice]
"""One decision as a dialogue: yields questions to a model, is sent replies, returns the choice."""
