"""What every conversation about a program shares: missing answers, what the model was told, what it used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tradeassay.core.dialogue import Message, ModelReply, Usage

NOT_ITS_FAULT: Final = frozenset({"unreachable", "rate_limited", "over_budget", "rejected", "timeout"})
"""Reply errors that say nothing about the model. The others (refused, context, unreadable) are its own."""

NOTHING_SPENT: Final = Usage(usd=0.0)


def no_answer(reply: ModelReply) -> str:
    """Return why there is no answer to judge a model by; empty when it answered or is itself to blame."""
    if reply.error is None or reply.error_kind not in NOT_ITS_FAULT:
        return ""
    return f"the model gave no answer ({reply.error_kind}): {reply.error}"


def exchange(reply: ModelReply, told: str) -> tuple[Message, Message]:
    return Message(role="assistant", text=reply.text), Message(role="user", text=told)


def total_usage(parts: Iterable[Usage]) -> Usage:
    total = NOTHING_SPENT
    for part in parts:
        total = total.plus(part)
    return total
