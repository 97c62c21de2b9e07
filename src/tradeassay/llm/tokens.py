"""How many tokens a text has, without any tokenizer.

:func:`estimate_tokens` is for planning: about right on prose and on JSON full of numbers. :func:`most_tokens` is
for budgets: never too low, because every tokenizer in use falls back to bytes and no token is shorter than one.
"""

from __future__ import annotations

import re

from tradeassay.core.dialogue import AskModel, ModelReply

PER_MESSAGE = 12
"""Tokens a chat format adds to a message (role, separators), at most."""
PER_TOOL = 40
"""Tokens a provider adds to a tool's own text, at most."""
TOOL_PREAMBLE = 800
"""Tokens a provider adds when any tool is offered (its own instructions), at most."""

_PIECE = re.compile(r"[A-Za-z]+|\d{1,3}|[^\sA-Za-z\d]|\s+")
_LETTERS_PER_TOKEN = 6.5


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has.

    A word counts by its letters, a number by groups of three digits, any other character as one; white space is
    mostly part of the word that follows it.
    """
    count = 0.0
    for piece in _PIECE.findall(text):
        first = piece[0]
        if first.isascii() and first.isalpha():
            count += max(1.0, len(piece) / _LETTERS_PER_TOKEN)
        elif first.isspace():
            count += 0.0 if piece == " " else 0.5
        else:
            count += 1.0
    return round(count)


def rough_tokens(text: str) -> int:
    """Return a quarter of a text's characters: good enough for a program that costs nothing."""
    return len(text) // 4


def most_tokens(text: str) -> int:
    """Return a number of tokens that a text cannot exceed: its UTF-8 bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def request_texts(request: AskModel) -> list[str]:
    """Return every text of a request that is billed as input."""
    texts = [message.text for message in request.messages]
    texts += [
        part for message in request.messages for call in message.calls for part in (call.name, call.arguments)
    ]
    texts += [part for tool in request.tools for part in (tool.name, tool.description, tool.schema)]
    if request.answer_schema is not None:
        texts.append(request.answer_schema)
    return texts


def estimate_request(request: AskModel) -> int:
    """Return about how many input tokens a request has."""
    return sum(map(estimate_tokens, request_texts(request))) + 4 * len(request.messages)


def most_request(request: AskModel) -> int:
    """Return a number of input tokens that a request cannot exceed."""
    frame = PER_MESSAGE * (len(request.messages) + 1) + PER_TOOL * len(request.tools)
    return sum(map(most_tokens, request_texts(request))) + frame + (TOOL_PREAMBLE if request.tools else 0)


def estimate_reply(reply: ModelReply) -> int:
    """Return about how many output tokens a reply has."""
    parts = [reply.text, *(part for call in reply.calls for part in (call.name, call.arguments))]
    return sum(map(estimate_tokens, parts))
