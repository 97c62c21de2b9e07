"""What travels between the arena and an agent outside it: the AMA contract as JSON, read strictly.

The request holds the keys of the contract, each mapping the symbol to its part. ``own`` adds what only this agent
may know (its position and past outcomes) and is left out for servers that want the bare contract.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from tradeassay.core.arena import Action, Choice, ChoiceFailure, Packet
from tradeassay.core.secrets import clean_foreign, clean_words

MAX_REQUEST = 1024 * 1024
"""Bytes a request may have."""
MAX_ANSWER = 64 * 1024
"""Bytes an answer may have."""
MAX_REASONING = 20_000
"""Characters of reasoning that are kept."""
MAX_MESSAGE = 500
"""Characters of a public message that are kept."""


class Unusable(Exception):
    """An answer or a request that cannot be used; ``kind`` is the category under which it is counted."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        self.text = text
        super().__init__(f"{kind}: {text}")


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent may say. Fields nobody knows are ignored, as servers of the contract may send more."""

    recommended_action: Action
    reasoning: str
    confidence: float | None = None
    allocation: float | None = None
    message: str | None = None


_ANSWER = msgspec.json.Decoder(Answer, strict=True)


def request_body(packet: Packet, *, model: str = "", own: bool = True) -> dict[str, Any]:
    """Return a packet as the contract's request."""
    symbol = packet.symbol
    body: dict[str, Any] = {
        "date": packet.date,
        "symbol": [symbol],
        "price": {symbol: packet.price},
        "news": {symbol: [msgspec.to_builtins(item) for item in packet.news]},
        "history_price": {symbol: [msgspec.to_builtins(point) for point in packet.history]},
        "10k": {symbol: packet.annual_report},
        "10q": {symbol: packet.quarterly_report},
        "momentum": {symbol: packet.momentum},
        "model": model,
    }
    if own:
        body["own"] = {
            "season": packet.season,
            "decided_at": packet.decided_at,
            "kind": packet.kind,
            "phase": packet.phase,
            "position": packet.position,
            "outcomes": [msgspec.to_builtins(outcome) for outcome in packet.outcomes],
            "others": [msgspec.to_builtins(message) for message in packet.others],
            "account": packet.account,
            "exposures": packet.exposures,
        }
    return body


def encode_request(packet: Packet, *, model: str = "", own: bool = True, limit: int = MAX_REQUEST) -> bytes:
    """Return the request as JSON; raises :class:`Unusable` (``too_large``) above ``limit`` bytes."""
    body = msgspec.json.encode(request_body(packet, model=model, own=own))
    if len(body) > limit:
        raise Unusable("too_large", f"the request has {len(body)} bytes, {limit} are allowed")
    return body


def read_answer(body: bytes | str, *, limit: int = MAX_ANSWER) -> Choice:
    """Return an agent's answer as a choice; raises :class:`Unusable` for anything that is none.

    Kinds: ``too_large``, ``parse`` (no JSON), ``schema`` (JSON of another shape, or a number out of range).
    """
    raw = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    if len(raw) > limit:
        raise Unusable("too_large", f"the answer has more than {limit} bytes")
    try:
        answer = _ANSWER.decode(clean_foreign(raw))
    except msgspec.ValidationError as error:
        raise Unusable("schema", str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unusable("parse", f"no JSON: {error}") from error
    return to_choice(answer)


def to_choice(answer: Answer) -> Choice:
    """Return a choice from an answer; raises :class:`Unusable` (``schema``) for a share outside 0 to 1."""
    for name, value in (("confidence", answer.confidence), ("allocation", answer.allocation)):
        if value is not None and not (math.isfinite(value) and 0 <= value <= 1):
            raise Unusable("schema", f"{name} must lie between 0 and 1")
    return Choice(
        action=answer.recommended_action,
        reasoning=plain(answer.reasoning)[:MAX_REASONING],
        confidence=answer.confidence,
        allocation=answer.allocation,
        message=None if answer.message is None else plain(answer.message)[:MAX_MESSAGE] or None,
    )


def failed_choice(kind: str, text: str) -> Choice:
    """Return the choice of an agent that gave none: it holds, and the failure is counted by its kind."""
    failure = ChoiceFailure(kind=kind, text=plain(clean_words(text))[:2000])
    return Choice(action="HOLD", status="failed", reasoning="", failures=(failure,))


def plain(text: str) -> str:
    """Return a text without control characters and halves of surrogates, which no database or page should get."""
    return "".join(c for c in text if c in "\n\t" or ((c.isprintable() or c.isspace()) and c >= " "))
