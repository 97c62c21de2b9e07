"""Small parts that scripted models answer with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tradeassay.core.dialogue import AskModel, ModelReply, ToolCall


def dump(value: object) -> str:
    """Return a value as JSON text."""
    return msgspec.json.encode(value).decode()


def say(text: str) -> ModelReply:
    """Answer with words."""
    return ModelReply(text=text)


def say_json(value: object) -> ModelReply:
    """Answer with one JSON object."""
    return ModelReply(text=dump(value))


def call(request: AskModel, calls: Sequence[tuple[str, Mapping[str, object] | str]], text: str = "") -> ModelReply:
    """Call tools; arguments may be given as raw text. Ids follow from the place in the conversation."""
    here = len(request.messages)
    made = tuple(
        ToolCall(id=f"s{here}-{at}", name=name, arguments=given if isinstance(given, str) else dump(given))
        for at, (name, given) in enumerate(calls)
    )
    return ModelReply(text=text, calls=made, stop="tool_calls")
