"""Define the messages between a day protocol and a language model: prompts, tools, answers, costs.

A protocol yields :class:`AskModel` and receives a :class:`ModelReply`. Texts and tool arguments are
stored as the model wrote them. The protocol parses them, so that each mistake is counted once.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Literal

import msgspec

from tradeassay_bench.core.orders import Decision


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that a model may call.

    ``schema`` is the JSON schema of its arguments, as JSON text.
    """

    name: str
    description: str
    schema: str


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call as the model wrote it.

    ``arguments`` is JSON text, or the model's text if it is not JSON. ``found_in`` is the place of
    the call: ``call`` for the provider's own field, ``fenced`` for a fenced block in the text,
    ``json`` for a bare JSON answer.
    """

    id: str
    name: str
    arguments: str
    found_in: Literal["call", "fenced", "json"] = "call"


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message. A ``tool`` message answers the call ``call_id``."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """A question as data, for agents that do not read prose.

    All fields except ``session`` are JSON text. They contain the same information as the messages,
    under the same mask. ``answer_schema`` describes the expected answer. A model receives this form
    in words only, because the benchmark measures how often it breaks the form.
    """

    session: str
    rules: str
    observation: str
    answer_schema: str | None = None
    feedback: str | None = None


class AskModel(msgspec.Struct, frozen=True, kw_only=True):
    """A question to a model.

    ``must_call`` names a tool that the model has to call. Only that tool is then offered.
    ``purpose`` names the stage ("research", "submit", "analysis" ...). ``attempt`` is the attempt
    within the stage, starting at 1. ``answer_schema`` (JSON schema as text) requests a JSON answer
    instead of prose. ``given`` is the same question as data. It is never sent to a model and is not
    part of any key or hash of a request.
    """

    purpose: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    must_call: str | None = None
    answer_schema: str | None = None
    attempt: int = 1
    given: Given | msgspec.UnsetType = msgspec.UNSET


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The tokens and dollars of one answer.

    ``usd`` is None if the model's price is unknown, and never 0 in that case. ``estimated`` is True
    if tokens were estimated here, because the provider reported none or implausibly few.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    usd: float | None = None
    estimated: bool = False

    def plus(self, other: Usage) -> Usage:
        """Return the sum of both. The sum has no price if either price is unknown."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            usd=None if self.usd is None or other.usd is None else self.usd + other.usd,
            estimated=self.estimated or other.estimated,
        )


class ModelReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model's answer, or the reason for a missing answer (``error``, with empty text and calls).

    ``error_kind``: ``refused``, ``timeout``, ``unreachable``, ``rate_limited``, ``over_budget``,
    ``context``, ``rejected`` (the provider rejected the request: key, quota, model) or
    ``unreadable``.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    stop: Literal["stop", "length", "tool_calls", "filtered", "error"] = "stop"
    usage: Usage = Usage()
    error: str | None = None
    error_kind: str | None = None


Dialogue = Generator[AskModel, ModelReply, Decision]
"""One trading day of a model: yields questions, receives answers, returns the decision."""

# A schema must have the same bytes in every process, because a recorded answer is found by the hash
# of its question, which includes the schema. ``Annotated[float, Meta(ge=0)]`` and
# ``Annotated[float, Meta(ge=0.0)]`` are equal to ``typing``, which reuses the first one that a
# process creates. msgspec then writes the bound as ``0`` or as ``0.0``, depending on that type.
# Bounds that are whole numbers are therefore always written as integers.
_BOUNDS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))


def schema_of_type(kind: Any, **options: Any) -> dict[str, Any]:
    """Return the JSON schema of a type. ``options`` are passed to :func:`msgspec.json.schema`."""

    def with_whole_bounds(node: Any) -> Any:
        """Return a schema node with whole bounds as integers and everything else unchanged."""
        if isinstance(node, list | tuple):
            return [with_whole_bounds(item) for item in node]
        if not isinstance(node, dict):
            return node
        copied = {key: with_whole_bounds(item) for key, item in node.items()}
        bounds: dict[str, int] = {}
        for key in _BOUNDS & node.keys():
            bound = node[key]
            if isinstance(bound, float) and bound.is_integer():
                bounds[key] = int(bound)
        return copied | bounds

    schema: dict[str, Any] = with_whole_bounds(msgspec.json.schema(kind, **options))
    return schema


def as_text(value: object) -> str:
    """Return a string unchanged and any other value as JSON text."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def schema_text(kind: Any) -> str:
    """Return the JSON schema of a type as text."""
    return msgspec.json.encode(schema_of_type(kind)).decode()
