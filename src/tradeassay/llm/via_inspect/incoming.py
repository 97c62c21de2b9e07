"""From Inspect's output to the house's reply."""

from __future__ import annotations

from typing import Literal

import msgspec
from inspect_ai.model import ContentReasoning, ContentText, ModelOutput, ModelUsage

from tradeassay.core.dialogue import AskModel, ModelReply, ToolCall, Usage
from tradeassay.core.secrets import clean_record
from tradeassay.llm.tables.prices import Price, Tokens
from tradeassay.llm.text_calls import find_calls
from tradeassay.llm.tokens import estimate_reply, estimate_request
from tradeassay.llm.via_inspect.outgoing import Memory
from tradeassay.llm.via_inspect.raw_calls import arguments_of, raw_calls

Stop = Literal["stop", "length", "tool_calls", "filtered", "error"]

_STOPS: dict[str, Stop] = {"stop": "stop", "max_tokens": "length", "tool_calls": "tool_calls"}


def to_reply(
    output: ModelOutput, response: object, request: AskModel, price: Price | None, memory: Memory
) -> ModelReply:
    """Return what a provider answered, without configured secrets. One without any choice is ``unreadable``."""
    return clean_record(_read(output, response, request, price, memory))


def _read(
    output: ModelOutput, response: object, request: AskModel, price: Price | None, memory: Memory
) -> ModelReply:
    if output.empty:
        return _failed("unreadable", output.error or "the provider sent no answer", output, request, price)
    message = output.message
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
    """Return tokens and dollars; tokens are estimated where a server does not count them."""
    if usage is None and reply.error_kind == "context":
        return Usage(usd=0.0)  # turned away at the door: nothing was read, nothing is billed
    if usage is None:
        tokens = Tokens(plain=estimate_request(request), output=estimate_reply(reply))
    else:
        tokens = Tokens(
            plain=usage.input_tokens,
            cache_read=usage.input_tokens_cache_read or 0,
            cache_write=usage.input_tokens_cache_write or 0,
            output=usage.output_tokens,
        )
    return Usage(
        input_tokens=tokens.input,
        output_tokens=tokens.output,
        reasoning_tokens=(usage.reasoning_tokens or 0) if usage is not None else 0,
        cached_tokens=tokens.cache_read,
        usd=None if price is None else price.usd(tokens),
    )
