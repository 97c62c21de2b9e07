"""How many tokens a text has, without any tokenizer.

:func:`estimate_tokens` is for planning: about right on prose and on JSON full of numbers. :func:`most_tokens` is
for budgets: never too low, because every tokenizer in use falls back to bytes and no token is shorter than one.
"""

from __future__ import annotations

import re
from functools import lru_cache

from tradeassay.core.dialogue import AskModel, ModelReply

PER_MESSAGE = 12
"""Tokens a chat format adds to a message (role, separators), at most."""
PER_TOOL = 40
"""Tokens a provider adds to a tool's own text, at most."""
TOOL_PREAMBLE = 800
"""Tokens a provider adds when any tool is offered (its own instructions), at most."""

LEAST_SHARE = 0.25
"""A provider that counts less than this share of what the house counts has not counted: the larger is taken."""

_WORD_OR_SIGN = re.compile(r"[A-Za-z]+|\d{1,3}|[^\sA-Za-z\d]")
_LETTERS_PER_TOKEN = 6.5
_LONG_WORD = re.compile(r"[A-Za-z]{7,}")
_BREAK = re.compile(r"\s{2,}|[^\S ]")
_LETTERS = bytes(sign for sign in range(128) if chr(sign).isalpha())
_DIGITS = b"0123456789"
_BLANKS = bytes(sign for sign in range(128) if chr(sign).isspace())
_NO_SIGN = _LETTERS + _DIGITS + _BLANKS
_ONLY_LETTERS = bytes(sign if sign in _LETTERS else 32 for sign in range(256))
_ONLY_DIGITS = bytes(sign if sign in _DIGITS else 32 for sign in range(256))
_REMEMBERED, _REMEMBERED_SIZE = 512, 65_536
"""How many texts' counts are kept, and how long such a text may be: conversations repeat their beginning."""


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has.

    A word counts by its letters, a number by groups of three digits, any other character as one; white space is
    mostly part of the word that follows it.
    """
    return _remembered(text) if len(text) <= _REMEMBERED_SIZE else _count(text)


def _count(text: str) -> int:
    if text.isascii():  # the same count, without an object for every sign
        raw = text.encode()
        words = [len(word) for word in raw.translate(_ONLY_LETTERS).split()]
        groups = sum([(len(number) + 2) // 3 for number in raw.translate(_ONLY_DIGITS).split()])
        long = [letters for letters in words if letters > _LETTERS_PER_TOKEN]
        pieces = len(words) + groups + len(raw.translate(None, _NO_SIGN))
    else:
        long = list(map(len, _LONG_WORD.findall(text)))
        pieces = len(_WORD_OR_SIGN.findall(text))
    return round(pieces - len(long) + sum(long) / _LETTERS_PER_TOKEN + 0.5 * len(_BREAK.findall(text)))


_remembered = lru_cache(_REMEMBERED)(_count)


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
