"""Who decides: a deliberation with a model, a rule, or somebody outside. All answer with a choice."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from tradeassay.core.arena import Action, Choice, Deliberation, Packet


class Player(Protocol):
    """A participant that thinks with a model: a generator of questions, driven and recorded by the arena."""

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        """Return the making of one decision. Must depend on its arguments and the answers alone."""
        ...


@runtime_checkable
class OutsidePlayer(Protocol):
    """A participant that decides by itself, over HTTP, a pipe or in Python; nothing it says is believed."""

    async def decide(self, packet: Packet) -> Choice:
        """Return a choice; every failure is a choice with status ``failed``, never an exception."""
        ...


class Rule:
    """A participant without a model: always the same action (the baseline buys and keeps)."""

    def __init__(self, action: Action) -> None:
        self._action = action

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        """Return the action at once."""
        yield from ()
        return Choice(action=self._action, reasoning="rule")


class Trend:
    """A rule that follows the last month: long after a rise, short after a fall, as it was without history."""

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        """Return the action at once."""
        yield from ()
        if packet.momentum is None:
            return Choice(action="HOLD", reasoning="no month of history yet")
        action: Action = "BUY" if packet.momentum > 0 else "SELL"
        return Choice(action=action, reasoning=f"one-month return {packet.momentum:+.2%}")
