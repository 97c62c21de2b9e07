"""What makes two questions the same question."""

from __future__ import annotations

import hashlib

import msgspec

from tradeassay.core.dialogue import AskModel, Message, ToolSpec
from tradeassay.core.hashing import canonical_json, sha256_bytes
from tradeassay.llm.model import Place
from tradeassay.llm.params import ModelParams


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A question with everything that may change its answer. Messages and tools stand as their hashes."""

    model: str
    params: dict[str, float | int | str | None]
    messages: tuple[str, ...]
    tools: str | None
    must_call: str | None
    answer_schema: str | None
    purpose: str
    attempt: int
    step: int
    sample: int
    index: int

    @property
    def place(self) -> tuple[int, int, int]:
        """Where in an episode it was asked."""
        return self.step, self.sample, self.index


def asked(model: str, params: ModelParams, request: AskModel, place: Place) -> Asked:
    """Put together what a question's key is made of. The episode is not in it: each has a cassette of its own."""
    return Asked(
        model=model,
        params=params.sent(),
        messages=tuple(message_id(message) for message in request.messages),
        tools=tools_id(request.tools) if request.tools else None,
        must_call=request.must_call,
        answer_schema=request.answer_schema,
        purpose=request.purpose,
        attempt=request.attempt,
        step=place.step,
        sample=place.sample,
        index=place.index,
    )


def key_of(question: Asked) -> str:
    """Return the SHA-256 of a question."""
    return sha256_bytes(canonical_json(question))


def answer_key(model: str, params: ModelParams, request: AskModel, place: Place) -> str:
    """Return the key under which an answer is recorded."""
    return key_of(asked(model, params, request, place))


def message_id(message: Message) -> str:
    """Return the SHA-256 of a message."""
    return hashlib.sha256(_ENCODER.encode(message)).hexdigest()


def tools_id(tools: tuple[ToolSpec, ...]) -> str:
    """Return the SHA-256 of a list of tools; their order counts, a model sees it."""
    return hashlib.sha256(_ENCODER.encode(tools)).hexdigest()


_ENCODER = msgspec.json.Encoder()
