"""The messages between the arena and an agent: one packet of information in, one choice out.

An agent decides once per asset and session. It is sent a :class:`Packet`, which holds everything it
may know, and answers with an :class:`AgentChoice`. A model-driven agent is a *sans-I/O generator*
(:data:`Deliberation`): it yields what it wants to ask a model and is sent the answers, so that the
arena can record every answer before the next question is put, and a killed decision can be
continued without asking twice.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Literal

import msgspec

from tradeassay_bench.core.dialogue import AskModel, ModelReply

Action = Literal["BUY", "SELL", "HOLD"]


class PricePoint(msgspec.Struct, frozen=True, kw_only=True):
    """A price and the day it belongs to (ISO date)."""

    date: str
    price: float


class NewsShown(msgspec.Struct, frozen=True, kw_only=True):
    """A published news item.

    ``published_at`` is ISO 8601 in UTC. ``id`` leads back to the item's provenance.
    """

    id: str
    published_at: str
    source: str
    title: str
    text: str


class SettledOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One of the agent's own settled decisions: its day, action, position and earnings."""

    date: str
    action: Action
    position: int
    earned: float


class PeerMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A public message of another entry about an earlier session, in seasons that allow it."""

    entry: str
    date: str
    text: str


class Packet(msgspec.Struct, frozen=True, kw_only=True):
    """All that an agent may know when it decides about ``symbol`` on ``date``.

    ``decided_at`` is the decision time (ISO, UTC). Nothing in the packet was published after it.
    ``history`` are at most ten earlier prices, oldest first. ``position`` is what the agent holds:
    1, 0 or -1. ``phase`` is ``warm-up`` (the agent learns, nothing counts) or ``live``. Where one
    account spans all assets, ``account`` is its value (it started with 1) and ``exposures`` the
    signed money behind each asset.
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
    """One role's contribution to a decision, kept for the reader of the record."""

    role: str
    step: str
    text: str


class ChoiceFailure(msgspec.Struct, frozen=True, kw_only=True):
    """An error on the way to a choice.

    ``kind`` is one of those of a decision's failures. ``text`` describes the error.
    """

    kind: str
    text: str


class AgentChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The decision of an agent about one asset.

    ``status`` is ``failed`` when no usable answer came. The action is then HOLD. ``memory`` is the
    agent's whole new memory, which the arena does not read. None keeps the old memory. ``message``
    is a public message, ``allocation`` the share of the account (0 to 1) behind the position. Both
    count only in seasons that allow them.
    """

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
            raise ValueError("the action of a failed choice must be HOLD")
        if self.confidence is not None and not 0 <= self.confidence <= 1:
            raise ValueError("confidence must be between 0 and 1")
        if self.allocation is not None and not 0 <= self.allocation <= 1:
            raise ValueError("allocation must be between 0 and 1")


Deliberation = Generator[AskModel, ModelReply, AgentChoice]
"""One decision as a dialogue: yields questions to a model, is sent replies, returns the choice."""
