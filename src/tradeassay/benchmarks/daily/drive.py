"""Playing one day with an agent that answers at once."""

from __future__ import annotations

import re

from tradeassay.core.agent import Agent, DayProtocol
from tradeassay.core.orders import Decision, Failure

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")
_LONGEST_DETAIL = 500


def drive(protocol: DayProtocol, agent: Agent) -> Decision:
    """Let ``agent`` answer the protocol's requests and return the decision.

    An exception of the agent becomes a failed decision of kind ``agent``: a bad day is data, not a crash.
    """
    request = next(protocol)
    while True:
        try:
            reply = agent.answer(request)
        except Exception as error:
            reply = broken(error)
        try:
            request = protocol.send(reply)
        except StopIteration as done:
            decision: Decision = done.value
            return decision


def broken(error: BaseException) -> Decision:
    """Return the failed decision for an agent that raised ``error``.

    Memory addresses are blotted out of its message: they would make two runs of the same spec differ.
    """
    detail = _ADDRESS.sub("0x...", f"{type(error).__name__}: {error}".rstrip(": "))
    return Decision(
        status="failed",
        reason="the agent broke",
        failures=(Failure(kind="agent", detail=detail[:_LONGEST_DETAIL]),),
    )
