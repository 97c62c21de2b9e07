"""The lines of a cassette. Messages and tools are written once and named by their hash from then on.

A day's conversation grows by a message or two per question; with every line holding all of it, a cassette would
grow with the square of a day's questions.
"""

from __future__ import annotations

import msgspec

from tradeassay.core.dialogue import Message, ModelReply, ToolSpec
from tradeassay.llm.cassette.key import Asked

FORMAT = 1


class HeadLine(msgspec.Struct, frozen=True, kw_only=True, tag="cassette"):
    """The first line of a file."""

    format: int


class MessageLine(msgspec.Struct, frozen=True, kw_only=True, tag="message"):
    """A message, the first time it is sent."""

    id: str
    message: Message


class ToolsLine(msgspec.Struct, frozen=True, kw_only=True, tag="tools"):
    """A list of tools, the first time it is offered."""

    id: str
    tools: tuple[ToolSpec, ...]


class AnswerLine(msgspec.Struct, frozen=True, kw_only=True, tag="answer"):
    """A question and its answer."""

    key: str
    asked: Asked
    reply: ModelReply


Line = HeadLine | MessageLine | ToolsLine | AnswerLine

ENCODER = msgspec.json.Encoder()
DECODER: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)
