"""How long a prompt is, without anybody's tokenizer.

The rule is meant to be too high rather than too low: up to four letters are a token, up to three digits are a
token, every other sign is a token (beyond ASCII: one per byte), single spaces belong to the word after them, and a
message costs :data:`PER_MESSAGE` more. Tokenizers in use merge more than that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from tradeassay.core.dialogue import Message

PER_MESSAGE = 12
_PIECE = re.compile(r"[A-Za-z]{1,4}|[0-9]{1,3}|[^\sA-Za-z0-9]|[^\S ]+| {2,}")


@lru_cache(maxsize=256)
def tokens_of(text: str) -> int:
    """Return a careful estimate of a text's tokens."""
    count = len(_PIECE.findall(text))
    if not text.isascii():
        count += len(text.encode("utf-8", "surrogatepass")) - len(text)
    return count


def tokens_in(messages: Iterable[Message]) -> int:
    """Return a careful estimate of the tokens of messages."""
    return sum(tokens_of(message.text) + PER_MESSAGE for message in messages)
