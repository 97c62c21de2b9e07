"""An attacker's answer, and how a model is brought to give one. No input or output happens here."""

from __future__ import annotations

from collections.abc import Generator
from typing import Annotated

import msgspec
from msgspec import Meta

from tradeassay.assay.probe.payloads import Payload
from tradeassay.assay.probe.prompts import PROMPTS
from tradeassay.core.dialogue import AskModel, Message, ModelReply
from tradeassay.llm import fenced_blocks

ATTEMPTS = 2


class Guess(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who and when. Whatever is empty or None was not answered."""

    tickers: Annotated[tuple[str, ...], Meta(max_length=5)] = ()
    date: Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = None
    sector: str | None = None
    board: str | None = None


SCHEMA = msgspec.json.encode(msgspec.json.schema(Guess)).decode()
_DECODER = msgspec.json.Decoder(Guess)


def interrogate(payload: Payload) -> Generator[AskModel, ModelReply, Guess | None]:
    """Ask about one payload; return the guess, None when no usable answer came in two attempts."""
    messages = [
        Message(role="system", text=PROMPTS.fill("system")),
        Message(role="user", text=PROMPTS.fill("question", shown=payload.text, alias=payload.alias)),
    ]
    for attempt in range(1, ATTEMPTS + 1):
        reply = yield AskModel(purpose="probe", messages=tuple(messages), answer_schema=SCHEMA, attempt=attempt)
        if reply.error is not None or reply.error_kind is not None:
            return None
        try:
            return read_guess(reply.text)
        except ValueError as error:
            if reply.text.strip():
                messages.append(Message(role="assistant", text=reply.text))
            messages.append(Message(role="user", text=PROMPTS.fill("again", wrong=error)))
    return None


def read_guess(text: str) -> Guess:
    """Read an answer: one JSON object, bare or in a fence; raises :class:`ValueError` with what is wrong."""
    blocks = fenced_blocks(text)
    body = blocks[-1].text if blocks else text.strip()
    try:
        return _DECODER.decode(body)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise ValueError("it is no JSON") from None
