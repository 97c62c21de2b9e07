"""One day's conversation carried between a protocol and whoever answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tradeassay.core.dialogue import AskModel, Dialogue, ModelReply
from tradeassay.core.orders import Decision
from tradeassay.runs.play import as_recorded

Ask = Callable[[AskModel, int], Awaitable[ModelReply]]
"""Answers a question; its number within the day is given too."""


async def converse(dialogue: Dialogue, ask: Ask) -> Decision:
    """Ask until the protocol has its decision, and return that as a journal will hold it.

    What ``ask`` raises ends the conversation.
    """
    index = 0
    try:
        request = next(dialogue)
        while True:
            reply = await ask(request, index)
            index += 1
            request = dialogue.send(reply)
    except StopIteration as done:
        decision: Decision = done.value
        return as_recorded(decision)
    finally:
        dialogue.close()
