"""Where a question departs from a recorded one, told so that a person finds the place."""

from __future__ import annotations

from tradeassay.core.dialogue import AskModel, Message
from tradeassay.llm.cassette.key import Asked
from tradeassay.llm.cassette.store import Recorded

_AROUND = 30


def first_difference(question: Asked, request: AskModel, recorded: Recorded) -> str:
    """Return the first thing in which a question differs from a recorded one, in one sentence."""
    for number, (now, then) in enumerate(zip(request.messages, recorded.messages, strict=False)):
        if now != then:
            return f"message {number} ({now.role}) differs: {_message_difference(now, then)}"
    ours, theirs = len(request.messages), len(recorded.messages)
    if ours != theirs:
        longer, word = (request.messages, "new") if ours > theirs else (recorded.messages, "missing")
        at = min(ours, theirs)
        return f"message {at} ({longer[at].role}) is {word}: {_excerpt(longer[at].text, 0)}"
    if request.tools != recorded.tools:
        return f"the tools differ: {_tools_difference(request, recorded)}"
    for field in (
        "model",
        "params",
        "must_call",
        "answer_schema",
        "purpose",
        "attempt",
        "step",
        "sample",
        "index",
    ):
        now, then = getattr(question, field), getattr(recorded.asked, field)
        if now != then:
            return f"{field} is {now!r}, recorded was {then!r}"
    return "nothing differs"


def _message_difference(now: Message, then: Message) -> str:
    if now.role != then.role:
        return f"recorded was a {then.role} message"
    if now.text != then.text:
        at = _departure(now.text, then.text)
        return f"at character {at} it has {_excerpt(now.text, at)}, recorded was {_excerpt(then.text, at)}"
    if now.calls != then.calls:
        names = ", ".join(call.name for call in now.calls) or "none"
        before = ", ".join(call.name for call in then.calls) or "none"
        if names != before:
            return f"it calls {names}, recorded was {before}"
        for mine, theirs in zip(now.calls, then.calls, strict=True):
            if mine.arguments != theirs.arguments:
                at = _departure(mine.arguments, theirs.arguments)
                return (
                    f"in the arguments of {mine.name}, at character {at}, it has "
                    f"{_excerpt(mine.arguments, at)}, recorded was {_excerpt(theirs.arguments, at)}"
                )
        return "the ids of its calls differ, or where they were found"
    return f"it answers call {now.call_id!r}, recorded was {then.call_id!r}"


def _tools_difference(request: AskModel, recorded: Recorded) -> str:
    for now, then in zip(request.tools, recorded.tools, strict=False):
        if now.name != then.name:
            return f"'{now.name}' stands where '{then.name}' was"
        if now != then:
            part = "description" if now.description != then.description else "schema"
            return f"the {part} of '{now.name}' changed"
    return f"there are {len(request.tools)}, recorded were {len(recorded.tools)}"


def _departure(now: str, then: str) -> int:
    for at, (a, b) in enumerate(zip(now, then, strict=False)):
        if a != b:
            return at
    return min(len(now), len(then))


def _excerpt(text: str, at: int) -> str:
    if at >= len(text):
        return "its end"
    start = max(0, at - _AROUND // 2)
    piece = text[start : at + _AROUND]
    return f"{'…' if start else ''}{piece!r}{'…' if at + _AROUND < len(text) else ''}"
