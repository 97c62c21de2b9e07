"""Playing one day with an agent that answers at once."""

from __future__ import annotations

from tradeassay.core.agent import Agent, DayProtocol
from tradeassay.core.drive import drive as _drive
from tradeassay.core.orders import Decision
from tradeassay.play.episode import broken, by_observation

__all__ = ["broken", "drive"]


def drive(protocol: DayProtocol, agent: Agent) -> Decision:
    """Let ``agent`` answer the protocol's requests and return the decision.

    An exception of the agent becomes a failed decision of kind ``agent``: a bad day is data, not a crash.
    """
    return _drive(protocol, by_observation(agent))
