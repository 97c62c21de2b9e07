"""From the house's request to Inspect's, and from Inspect's output to the house's reply."""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from typing import Any, Literal

import msgspec
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    Content,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
    ResponseSchema,
)
from inspect_ai.tool import ToolCall as InspectCall
from inspect_ai.tool import ToolChoice, ToolFunction, ToolInfo, ToolParams
from inspect_ai.util import JSONSchema

from tradeassay.core.dialogue import AskModel, Message, ModelReply, ToolCall, ToolSpec, Usage
from tradeassay.core.secrets import clean_record
from tradeassay.llm.json_text import parse_object
from tradeassay.llm.model import ModelParams
from tradeassay.llm.tables import Price, Tokens
from tradeassay.llm.text_tools import find_calls
from tradeassay.llm.tokens import LEAST_SHARE, estimate_reply, estimate_request
from tradeassay.llm.via_inspect.wire import arguments_of, raw_calls

REMEMBERED = 512
"""How many answers' hidden parts are kept for the rest of their conversations."""


class ReasoningMemory:
    """What came with an answer but is not recorded: reasoning that some providers want back unchanged."""

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


def to_messages(messages: tuple[Message, ...], memory: ReasoningMemory) -> list[ChatMessage]:
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


def to_config(request: AskModel, params: ModelParams | None, *, can_schema: bool) -> GenerateConfig:
    """Return Inspect's settings for one call: no retries and no cache of its own, because the house has both.

    Without parameters only the form of the answer is asked for; everything else is Inspect's own.
    """
    schema = request.answer_schema if can_schema else None
    form = None if schema is None else _answer_schema(request.purpose, schema)
    if params is None:
        return GenerateConfig(response_schema=form)
    return GenerateConfig(
        temperature=params.temperature,
        top_p=params.top_p,
        max_tokens=params.max_tokens,
        seed=params.seed,
        reasoning_effort=params.reasoning_effort,
        reasoning_tokens=params.reasoning_tokens,
        # If unset, the OpenAI provider sends a request of its own to find out whether summaries are allowed.
        reasoning_summary="none",
        response_schema=form,
        max_retries=0,
    )


def _message(message: Message, calls: dict[str, ToolCall], memory: ReasoningMemory) -> ChatMessage:
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


def _assistant(message: Message, memory: ReasoningMemory) -> ChatMessageAssistant:
    own = [call for call in message.calls if call.found_in == "call"]
    calls = [InspectCall(id=call.id, function=call.name, arguments=_arguments(call.arguments)) for call in own]
    kept = memory.recall(message)
    return ChatMessageAssistant(content=message.text if kept is None else kept, tool_calls=calls or None)


def _arguments(text: str) -> dict[str, Any]:
    # Inspect can only send an object back. For anything else, the result that follows says what was wrong.
    return parse_object(text) or {}


@lru_cache(maxsize=64)
def _tool(tool: ToolSpec) -> ToolInfo:
    # Inspect copies what it is given, so that the same object can be given again.
    parameters = ToolParams.model_validate(msgspec.json.decode(tool.schema))
    return ToolInfo(name=tool.name, description=tool.description, parameters=parameters)


def _answer_schema(purpose: str, schema: str) -> ResponseSchema:
    name = "".join(char if char.isalnum() else "_" for char in purpose) or "answer"
    return ResponseSchema(name=name, json_schema=JSONSchema.model_validate(msgspec.json.decode(schema)))


Stop = Literal["stop", "length", "tool_calls", "filtered", "error"]

_STOPS: dict[str, Stop] = {"stop": "stop", "max_tokens": "length", "tool_calls": "tool_calls"}


def to_reply(
    output: ModelOutput, response: object, request: AskModel, price: Price | None, memory: ReasoningMemory
) -> ModelReply:
    """Return what a provider answered, without configured secrets. One without a choice is ``unreadable``."""
    return clean_record(_read(output, response, request, price, memory))


def _read(
    output: ModelOutput, response: object, request: AskModel, price: Price | None, memory: ReasoningMemory
) -> ModelReply:
    if output.empty:
        return _failed("unreadable", output.error or "the provider sent no answer", output, request, price)
    message = output.message
    if (broke := _broke_off(response)) is not None and not message.tool_calls:
        return _failed("unreachable", broke, output, request, price)
    if output.stop_reason == "content_filter" or _refuses(output):
        return _failed("refused", _why(output) or "the model refused", output, request, price)
    if output.stop_reason == "model_length":
        return _failed("context", message.text or "the request exceeds the context window", output, request, price)
    calls = _calls(output, response, request)
    reply = ModelReply(
        text=message.text, calls=calls, stop=_STOPS.get(output.stop_reason, "tool_calls" if calls else "stop")
    )
    if not isinstance(message.content, str) and any(
        isinstance(part, ContentReasoning) for part in message.content
    ):
        memory.keep(reply.text, reply.calls, message.content)
    return msgspec.structs.replace(reply, usage=_usage(output.usage, request, reply, price))


def _calls(output: ModelOutput, response: object, request: AskModel) -> tuple[ToolCall, ...]:
    parsed = output.message.tool_calls or []
    here = len(request.messages)
    if not parsed:
        return find_calls(output.message.text, request.tools, request.must_call, id_prefix=f"text-{here}")
    raw = raw_calls(response)
    taken = {call.id for message in request.messages for call in message.calls}
    calls: list[ToolCall] = []
    for at, call in enumerate(parsed):
        sent = arguments_of(raw, at, call.id, call.function, len(parsed))
        arguments = sent if sent is not None else msgspec.json.encode(call.arguments).decode()
        # Some servers number every answer's calls from 0, or not at all; a result must find its one call.
        name = call.id if call.id and call.id not in taken else f"call-{here}-{at}"
        taken.add(name)
        calls.append(ToolCall(id=name, name=call.function, arguments=arguments))
    return tuple(calls)


def _broke_off(response: object) -> str | None:
    """Return what a router says about an answer that it could not finish. That is not the model's fault."""
    choices = response.get("choices") if isinstance(response, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, dict):
        return None
    said = first.get("error")
    if isinstance(said, dict) and isinstance(said.get("message"), str):  # OpenRouter
        return f"the provider broke off: {said['message']}"
    if first.get("finish_reason") in ("error", "insufficient_system_resource"):  # the latter is DeepSeek's
        return f"the provider broke off: {first['finish_reason']}"
    return None


def _refuses(output: ModelOutput) -> bool:
    content = output.message.content
    if isinstance(content, str) or output.message.tool_calls:
        return False
    return any(isinstance(part, ContentText) and bool(part.refusal) for part in content)


def _why(output: ModelOutput) -> str:
    details = output.choices[0].stop_details
    explained = details.explanation if details is not None else None
    return output.message.text or explained or output.error or ""


def _failed(kind: str, error: str, output: ModelOutput, request: AskModel, price: Price | None) -> ModelReply:
    reply = ModelReply(stop="filtered" if kind == "refused" else "error", error=error, error_kind=kind)
    return msgspec.structs.replace(reply, usage=_usage(output.usage, request, reply, price))


def _usage(usage: ModelUsage | None, request: AskModel, reply: ModelReply, price: Price | None) -> Usage:
    """Return tokens and dollars. A count that is missing, negative or too low to be true never lowers the bill."""
    if usage is None and reply.error_kind == "context":
        return Usage(usd=0.0)  # rejected outright: nothing was read, nothing is billed
    asked, said = estimate_request(request), estimate_reply(reply)
    if usage is None:
        tokens, counted = Tokens(plain=asked, output=said), False
    else:
        tokens, counted = _plausible(usage, asked, said)
    thought = usage.reasoning_tokens or 0 if usage is not None else 0
    return Usage(
        input_tokens=tokens.input,
        output_tokens=tokens.output,
        reasoning_tokens=max(0, thought),
        cached_tokens=tokens.cache_read,
        usd=None if price is None else price.usd(tokens),
        estimated=not counted,
    )


def _plausible(usage: ModelUsage, asked: int, said: int) -> tuple[Tokens, bool]:
    """Return a provider's count, or the house's where it is larger and the provider's cannot be true."""
    read, written = usage.input_tokens_cache_read or 0, usage.input_tokens_cache_write or 0
    negative = min(usage.input_tokens, read, written, usage.output_tokens) < 0
    total = usage.input_tokens + read + written
    few = total < LEAST_SHARE * asked or usage.output_tokens < LEAST_SHARE * said
    if not (negative or few):
        return Tokens(
            plain=usage.input_tokens, cache_read=read, cache_write=written, output=usage.output_tokens
        ), True
    plain = max(0, usage.input_tokens) + max(0, read) + max(0, written)
    return Tokens(plain=max(plain, asked), output=max(usage.output_tokens, said)), False
