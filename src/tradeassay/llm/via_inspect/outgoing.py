"""From the house's request to Inspect's."""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from typing import Any

import msgspec
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    Content,
    GenerateConfig,
    ResponseSchema,
)
from inspect_ai.tool import ToolCall as InspectCall
from inspect_ai.tool import ToolChoice, ToolFunction, ToolInfo, ToolParams
from inspect_ai.util import JSONSchema

from tradeassay.core.dialogue import AskModel, Message, ToolCall, ToolSpec
from tradeassay.llm.json_text import parse_object
from tradeassay.llm.params import ModelParams

REMEMBERED = 512
"""How many answers' hidden parts are kept for the rest of their conversations."""


class Memory:
    """What came with an answer and is no part of the record: reasoning that some providers want back unchanged."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[object, ...], list[Content]] = OrderedDict()

    def keep(self, text: str, calls: tuple[ToolCall, ...], content: list[Content]) -> None:
        """Keep an answer's content for when it is sent back."""
        self._kept[(text, calls)] = content
        while len(self._kept) > REMEMBERED:
            self._kept.popitem(last=False)

    def recall(self, message: Message) -> list[Content] | None:
        """Return the content that a message had when it was an answer, or None."""
        return self._kept.get((message.text, message.calls))


def to_messages(messages: tuple[Message, ...], memory: Memory) -> list[ChatMessage]:
    """Return Inspect's messages.

    A call that was found in a model's text was never a call to its provider: it goes back as the text it was,
    and its result as a user message that says so.
    """
    calls = {call.id: call for message in messages for call in message.calls}
    return [_message(message, calls, memory) for message in messages]


def to_tools(tools: tuple[ToolSpec, ...], must_call: str | None) -> list[ToolInfo]:
    """Return Inspect's tools: all of them, or only the one that must be called."""
    return [_tool(tool) for tool in tools if must_call in (None, tool.name)]


def to_choice(request: AskModel, *, can_force: bool) -> ToolChoice | None:
    """Return Inspect's tool choice."""
    if not request.tools:
        return None
    if request.must_call is not None and can_force:
        return ToolFunction(name=request.must_call)
    return "auto"


def to_config(request: AskModel, params: ModelParams, *, can_schema: bool) -> GenerateConfig:
    """Return Inspect's settings for one call: no retries and no cache of its own, the house has both."""
    schema = request.answer_schema if can_schema else None
    return GenerateConfig(
        temperature=params.temperature,
        top_p=params.top_p,
        max_tokens=params.max_tokens,
        seed=params.seed,
        reasoning_effort=params.reasoning_effort,
        reasoning_tokens=params.reasoning_tokens,
        # Left unset, the OpenAI provider finds out whether summaries are allowed by asking a question of its own.
        reasoning_summary="none",
        response_schema=None if schema is None else _answer_schema(request.purpose, schema),
        max_retries=0,
    )


def _message(message: Message, calls: dict[str, ToolCall], memory: Memory) -> ChatMessage:
    match message.role:
        case "system":
            return ChatMessageSystem(content=message.text)
        case "user":
            return ChatMessageUser(content=message.text)
        case "assistant":
            return _assistant(message, memory)
        case "tool":
            call = calls.get(message.call_id or "")
            name = call.name if call is not None else None
            if call is not None and call.found_in != "call":
                return ChatMessageUser(content=f"Result of {name}:\n{message.text}")
            return ChatMessageTool(content=message.text, tool_call_id=message.call_id, function=name)


def _assistant(message: Message, memory: Memory) -> ChatMessageAssistant:
    own = [call for call in message.calls if call.found_in == "call"]
    calls = [InspectCall(id=call.id, function=call.name, arguments=_arguments(call.arguments)) for call in own]
    kept = memory.recall(message)
    return ChatMessageAssistant(content=message.text if kept is None else kept, tool_calls=calls or None)


def _arguments(text: str) -> dict[str, Any]:
    # Inspect can only send an object back. What was wrong with anything else is said in the result that follows.
    return parse_object(text) or {}


@lru_cache(maxsize=64)
def _tool(tool: ToolSpec) -> ToolInfo:
    # Inspect copies what it is given, so that the same object can be given again.
    parameters = ToolParams.model_validate(msgspec.json.decode(tool.schema))
    return ToolInfo(name=tool.name, description=tool.description, parameters=parameters)


def _answer_schema(purpose: str, schema: str) -> ResponseSchema:
    name = "".join(char if char.isalnum() else "_" for char in purpose) or "answer"
    return ResponseSchema(name=name, json_schema=JSONSchema.model_validate(msgspec.json.decode(schema)))
