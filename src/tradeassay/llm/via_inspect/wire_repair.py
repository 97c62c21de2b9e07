"""Answers that a provider's client cannot read, made readable without losing what the model wrote.

- A server may echo the key it was called with: no configured secret gets past this point, headers included.
- A server may send a call's arguments as an object where the OpenAI chat format has text.
- Anthropic streams a call's input in pieces, and its client gives up on pieces that do not add up to JSON, or
  quietly drops the end of an input that was cut off. Such an input goes to the client as ``{UNPARSED: text}``.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from tradeassay.core.secrets import clean_bytes, clean_text
from tradeassay.llm.json_text import parse_object

UNPARSED = "__tradeassay_unparsed__"
"""The one field of an input that was no JSON object; it holds the text."""


def repair_wires(client: object) -> None:
    """Make a provider's client read what it could not; a client of another make is left as it is."""
    completions = getattr(getattr(client, "chat", None), "completions", None)
    if completions is not None:
        _read_object_arguments(completions)
    http = getattr(client, "_client", None)
    hooks = getattr(http, "event_hooks", None)
    if http is not None and isinstance(hooks, dict):
        # An encoded stream could not be looked into.
        http.headers["accept-encoding"] = "identity"
        hooks["response"].append(_mend_response)
        http.event_hooks = hooks


def _read_object_arguments(completions: Any) -> None:
    original = completions.create

    async def create(*args: Any, **named: Any) -> Any:
        completion = await original(*args, **named)
        for choice in getattr(completion, "choices", None) or []:
            for call in getattr(choice.message, "tool_calls", None) or []:
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
    """Pass a body on as one piece, without configured secrets: one may lie across two chunks."""
    yield clean_bytes(b"".join([chunk async for chunk in chunks]))


async def mend_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Pass server-sent events on, each tool input of Anthropic's as one piece that is a JSON object."""
    pending = b""
    inputs: dict[int, str] = {}
    async for chunk in chunks:
        *whole, pending = (pending + chunk).replace(b"\r\n", b"\n").split(b"\n\n")
        for event in whole:
            for mended in _mend_event(event, inputs):
                yield clean_bytes(mended) + b"\n\n"
    if pending:
        yield clean_bytes(pending)


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
