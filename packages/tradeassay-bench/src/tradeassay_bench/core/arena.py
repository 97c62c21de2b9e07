"""Define the messages between the arena and an agent: an information packet and a choice.

An agent decides once per asset and session. It receives a :class:`Packet` with all information it
may use and returns an :class:`AgentChoice`. An agent driven by a model is a *sans-I/O generator*
(:data:`Deliberation`). It yields questions to a model and receives the answers. The arena can
therefore record every answer before the next question, and can resume an interrupted decision
without repeating a question.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Literal

import msgspec

from tradeassay_bench.core.dialogue import AskModel, ModelReply

Action = Literal["BUY", "SELL", "HOLD"]


class PricePoint(msgspec.Struct, frozen=True, kw_only=True):
    """A price and its day (ISO date)."""

    date: str
    price: float


class NewsShown(msgspec.Struct, frozen=True, kw_only=True):
    """A published news item.

    ``published_at`` is ISO 8601 in UTC. ``id`` refers to the item's provenance.
    """

    id: str
    published_at: str
    source: str
    title: str
    text: str


class SettledOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One of the agent's own settled decisions: its day, action, position and gain."""

    date: str
    action: Action
    position: int
    earned: float


class PeerMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A public message of another entry from an earlier session, in seasons that allow messages."""

    entry: str
    date: str
    text: str


class Packet(msgspec.Struct, frozen=True, kw_only=True):
    """The information that an agent may use to decide about ``symbol`` on ``date``.

    ``decided_at`` is the decision time (ISO, UTC). Nothing in the packet was published after it.
    ``history`` contains at most ten earlier prices, oldest first. ``position`` is the agent's
    position: 1, 0 or -1. ``phase`` is ``warm-up`` (the agent learns and results do not count) or
    ``live``. If one account covers all assets, ``account`` is its value (initially 1) and
    ``exposures`` the signed amount invested in each asset.
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
    """One role's contribution to a decision, stored for readers of the record."""

    role: str
    step: str
    text: str


class ChoiceFailure(msgspec.Struct, frozen=True, kw_only=True):
    """An error during a decision.

    ``kind`` is one of the kinds of decision failures. ``text`` describes the error.
    """

    kind: str
    text: str


class AgentChoice(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's decision about one asset.

    ``status`` is ``failed`` if there was no usable answer. The action is then HOLD. ``memory`` is
    the agent's complete new memory, which the arena does not read. None keeps the old memory.
    ``message`` is a public message. ``allocation`` is the fraction of the account (0 to 1) invested
    in the position. Messages and allocations apply only in seasons that allow them.
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
"""One decision as a dialogue: yields questions to a model, receives replies, returns the choice."""
