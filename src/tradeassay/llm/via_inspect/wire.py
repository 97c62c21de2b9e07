"""The wire to a provider: makes answers that its client cannot read readable, and keeps tool calls as sent.

- A server may echo the key it was called with: no configured secret gets past this point, headers included.
- A server may send a call's arguments as an object where the OpenAI chat format has text, an answer in parts, a
  call without an id, counts of tokens as floats, as texts or as nothing that can be counted.
- Anthropic may pause a turn, and Inspect then asks on, in requests that nobody counts or pays for under a cap. The
  house offers no tools of a provider's own, so there is nothing to wait for: a paused answer is the answer.
- Anthropic streams a call's input in pieces, and its client gives up on pieces that do not add up to JSON, or
  quietly drops the end of an input that was cut off. Such an input goes to the client as ``{UNPARSED: text}``.
- Inspect parses a call's arguments: text that is not a JSON object becomes an empty one, or is patched until it
  is one. The house counts such mistakes, so it looks them up in the response itself.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from typing import Any

import msgspec
from inspect_ai.model import ModelAPI, ModelOutput

from tradeassay.core.secrets import (
    KNOWN,
    clean_bytes,
    clean_foreign,
    clean_text,
    clean_tree,
    refresh,
    remember,
    scrub,
)
from tradeassay.llm.json_text import parse_object

UNPARSED = "__tradeassay_unparsed__"
"""The only field of an input that was not a JSON object; it holds the text."""


def repair_wires(client: object) -> None:
    """Make a provider's client read what it could not; an unknown client is left unchanged."""
    completions = getattr(getattr(client, "chat", None), "completions", None)
    if completions is not None:
        _read_object_arguments(completions)
    http = getattr(client, "_client", None)
    hooks = getattr(http, "event_hooks", None)
    if http is not None and isinstance(hooks, dict):
        # An encoded stream could not be inspected.
        http.headers["accept-encoding"] = "identity"
        hooks["request"].append(_note_sent)
        hooks["response"].append(_mend_response)
        http.event_hooks = hooks


async def _note_sent(_: object) -> None:
    box = SENT.get()
    if box is not None and not box:
        box.append(time.perf_counter())


def _read_object_arguments(completions: Any) -> None:
    original = completions.create

    async def create(*args: Any, **named: Any) -> Any:
        completion = await original(*args, **named)
        for count in ("prompt_tokens", "completion_tokens", "total_tokens"):
            usage = getattr(completion, "usage", None)
            try:
                if usage is not None and not isinstance(getattr(usage, count, None), int):
                    setattr(usage, count, int(float(getattr(usage, count))))
            except (AttributeError, TypeError, ValueError, OverflowError):
                completion.usage = None  # the house then counts itself
        for choice in getattr(completion, "choices", None) or []:
            parts = choice.message.content
            if isinstance(parts, list):
                choice.message.content = "".join(
                    str(part.get("text") or "") if isinstance(part, dict) else str(part) for part in parts
                )
            for call in getattr(choice.message, "tool_calls", None) or []:
                if not isinstance(getattr(call, "id", None), str):
                    call.id = ""  # a name is found for it where its result is
                function = getattr(call, "function", None)
                if function is not None and not isinstance(function.arguments, str | None):
                    function.arguments = msgspec.json.encode(function.arguments).decode()
        return completion

    completions.create = create


async def _mend_response(response: Any) -> None:
    for name, value in list(response.headers.items()):
        if (cleaned := clean_text(value)) is not value:
            response.headers[name] = cleaned
    if response.headers.get("content-encoding", "identity") == "identity":
        events = "text/event-stream" in response.headers.get("content-type", "")
        base = sys.modules[type(response).__module__.split(".")[0]].AsyncByteStream
        response.stream = _mended(base, response.stream, mend_events if events else clean_body)


def _mended(base: Any, inner: Any, mend: Callable[[AsyncIterator[bytes]], AsyncIterator[bytes]]) -> Any:
    # The client checks for its own library's class, of which there are two (httpx and httpx2).
    class Mended(base):  # type: ignore[misc]  # the base is known only when a response is here
        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for block in mend(inner):
                yield block

        async def aclose(self) -> None:
            await inner.aclose()

    return Mended()


async def clean_body(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Pass a body on as one piece, without configured secrets: a secret may span two chunks."""
    yield _PAUSED.sub(_ENDED, clean_foreign(b"".join([chunk async for chunk in chunks])))


_PAUSED, _ENDED = re.compile(rb'"stop_reason"\s*:\s*"pause_turn"'), b'"stop_reason":"end_turn"'
_BEGINNINGS = (b'"message_start"', b'"response.created"', b'"chat.completion.chunk"')
_ENDS = (
    b'"message_stop"',
    b'"response.completed"',
    b'"response.incomplete"',
    b'"response.failed"',
    b"[DONE]",
    b'"error"',
)


async def mend_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Pass server-sent events on, each Anthropic tool input as one piece that is a JSON object. Raises
    :class:`ConnectionResetError` when a stream ends before the answer in it does: a client would pass on what it
    has, and the cable's fault would count as the model's."""
    pending = b""
    inputs: dict[int, str] = {}
    begun = ended = False
    async for chunk in chunks:
        *whole, pending = (pending + chunk).replace(b"\r\n", b"\n").split(b"\n\n")
        for event in whole:
            begun = begun or any(mark in event for mark in _BEGINNINGS)
            ended = ended or any(mark in event for mark in _ENDS)
            for mended in _mend_event(event, inputs):
                yield clean_bytes(_PAUSED.sub(_ENDED, mended)) + b"\n\n"
    if pending:
        ended = ended or any(mark in pending for mark in _ENDS)
        yield clean_bytes(pending)
    if begun and not ended:
        raise ConnectionResetError("the stream ended in the middle of the answer")


def _mend_event(event: bytes, inputs: dict[int, str]) -> list[bytes]:
    data = next((line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:")), b"")
    if b"content_block_" not in data:
        return [event]
    body = parse_object(data.decode("utf-8", "replace"))
    if body is None:
        return [event]
    at = body.get("index")
    if not isinstance(at, int):
        return [event]
    delta = body.get("delta")
    if isinstance(delta, dict) and delta.get("type") == "input_json_delta":
        inputs[at] = inputs.get(at, "") + str(delta.get("partial_json") or "")
        return []
    if body.get("type") == "content_block_stop" and inputs.get(at):
        return [_input_event(at, inputs.pop(at)), event]
    return [event]


def _input_event(at: int, text: str) -> bytes:
    good = text if parse_object(text) is not None else msgspec.json.encode({UNPARSED: text}).decode()
    delta = {"type": "input_json_delta", "partial_json": good}
    data = msgspec.json.encode({"type": "content_block_delta", "index": at, "delta": delta})
    return b"event: content_block_delta\ndata: " + data


RESPONSE: ContextVar[list[object] | None] = ContextVar("tradeassay_raw_response", default=None)
"""Where the raw response of the current call is put, for a caller that set a list here."""
SENT: ContextVar[list[float] | None] = ContextVar("tradeassay_sent", default=None)
"""Where it is put when the current call was first sent."""


class RawCall(msgspec.Struct, frozen=True):
    """A call's id, tool and arguments, as sent. An object of arguments is written as JSON."""

    id: str
    name: str
    arguments: str


def keep_raw_responses(api: ModelAPI) -> None:
    """Make an Inspect provider hand its raw responses to :data:`RESPONSE`, all without configured secrets. Inspect
    logs what this returns or raises, so the secrets go here, whatever client the provider uses."""
    refresh()  # Inspect may have read keys from a file
    remember(getattr(api, "api_key", None))
    original = api.generate

    async def generate(*args: Any, **named: Any) -> Any:
        try:
            result = _clean(await original(*args, **named))
        except Exception as error:
            scrub(error)
            raise
        box = RESPONSE.get()
        if box is not None and isinstance(result, tuple):
            box[:] = [result[1].response]
        return result

    setattr(api, "generate", generate)  # noqa: B010 (a method is replaced on one object, on purpose)


def _clean(result: Any) -> Any:
    if not KNOWN:
        return result
    if isinstance(result, ModelOutput):
        raw = result.model_dump_json().encode()
        cleaned = clean_foreign(raw)
        return result if cleaned is raw else ModelOutput.model_validate_json(cleaned)
    if isinstance(result, tuple):
        output, call = result
        call.request, call.response = clean_tree(call.request), clean_tree(call.response)
        return _clean(output), call
    if isinstance(result, BaseException):
        scrub(result)
    return result


def raw_calls(response: object) -> list[RawCall]:
    """Return the tool calls of a raw response, whichever provider's form it has."""
    return list(_walk(response))


def arguments_of(raw: list[RawCall], at: int, call_id: str, name: str, count: int) -> str | None:
    """Return the raw arguments of the ``at``-th of ``count`` parsed calls: by position, else by id; else None."""
    if len(raw) == count and raw[at].name == name:
        return raw[at].arguments
    same = [call for call in raw if call.id == call_id and call.id]
    return same[0].arguments if len(same) == 1 else None


def _walk(node: object) -> Iterator[RawCall]:
    if isinstance(node, list):
        for item in node:
            yield from _walk(item)
    elif isinstance(node, dict):
        call = _call(node)
        if call is not None:
            yield call
            return
        for value in node.values():
            if isinstance(value, list | dict):
                yield from _walk(value)


def _call(node: dict[str, object]) -> RawCall | None:
    inner = node.get("function")
    if isinstance(inner, dict) and "arguments" in inner:  # OpenAI chat completions and its imitators
        return _raw(node.get("id"), inner.get("name"), inner["arguments"])
    if node.get("type") == "function_call" and "arguments" in node:  # OpenAI responses
        return _raw(node.get("call_id") or node.get("id"), node.get("name"), node["arguments"])
    if node.get("type") == "tool_use" and "input" in node:  # Anthropic messages
        return _raw(node.get("id"), node.get("name"), node["input"])
    return None


def _raw(call_id: object, name: object, arguments: object) -> RawCall:
    if arguments is None:
        arguments = ""
    if isinstance(arguments, dict) and arguments.keys() == {UNPARSED}:
        arguments = arguments[UNPARSED]
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return RawCall(str(call_id or ""), str(name or ""), text)
