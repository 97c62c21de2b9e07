"""Stand-ins for providers: servers on loopback that say what a test wants them to say."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.client import responses as REASONS
from typing import Any

MANY = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


@dataclass
class Said:
    """One response.

    ``cut`` sends fewer bytes than promised; ``gate`` holds the answer back until it is set.
    """

    body: bytes
    status: int = 200
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    gate: asyncio.Event | None = None


@dataclass
class Heard:
    """One request."""

    path: str
    headers: dict[str, str]
    body: Any


class StandIn:
    """A server that answers from a list; the last answer is repeated."""

    def __init__(self, *answers: Said) -> None:
        self.answers = deque(answers)
        self.heard: list[Heard] = []
        self.at_once = 0
        self.most_at_once = 0
        self._handlers: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> StandIn:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._handlers:
            task.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    def _next(self) -> Said:
        return self.answers.popleft() if len(self.answers) > 1 else self.answers[0]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._handlers.discard(task)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
            if name
        }
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        self.heard.append(Heard(first.split()[1], headers, json.loads(raw) if raw else None))
        if self.heard[-1].path.endswith("/models"):  # vLLM's client looks which models there are
            self.heard.pop()
            said = as_json({"object": "list", "data": [{"id": "stand-in", "object": "model"}]})
        else:
            said = self._next()
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if said.gate is not None:
                await said.gate.wait()
        finally:
            self.at_once -= 1
        lines = [
            f"HTTP/1.1 {said.status} {REASONS.get(said.status, 'Status')}",
            f"content-type: {said.kind}",
            f"content-length: {len(said.body)}",
            *(f"{name}: {value}" for name, value in said.headers.items()),
        ]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
        writer.write(said.body[: len(said.body) // 2] if said.cut else said.body)
        await writer.drain()
        return not said.cut


def as_json(value: Any, **named: Any) -> Said:
    return Said(json.dumps(value).encode(), **named)


def as_events(events: Iterable[tuple[str | None, Any]], **named: Any) -> Said:
    lines = []
    for name, data in events:
        text = data if isinstance(data, str) else json.dumps(data)
        lines.append((f"event: {name}\n" if name else "") + f"data: {text}\n\n")
    return Said("".join(lines).encode(), kind="text/event-stream", **named)


def chat(
    text: str | None = None,
    calls: Iterable[tuple[str, str, Any]] = (),
    finish: str | None = None,
    usage: dict[str, Any] | None = None,
    **message: Any,
) -> Said:
    """OpenAI chat completions. ``calls`` are (id, name, arguments)."""
    made = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id_, name, arguments in calls
    ]
    body: dict[str, Any] = {"role": "assistant", "content": text, **message}
    if made:
        body["tool_calls"] = made
    choice = {
        "index": 0,
        "message": body,
        "finish_reason": finish or ("tool_calls" if made else "stop"),
    }
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "stand-in"}
    return as_json({**head, "choices": [choice], "usage": usage or MANY})


def chat_stream(pieces: Iterable[dict[str, Any]], finish: str = "tool_calls") -> Said:
    """OpenAI chat completions, streamed: each piece is one delta."""
    head = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "stand-in",
    }
    told = [(piece, None) for piece in pieces] + [({}, finish)]
    chunks = [
        {**head, "choices": [{"index": 0, "delta": d, "finish_reason": end}]} for d, end in told
    ]
    return as_events(
        (None, one) for one in (*chunks, {**head, "choices": [], "usage": MANY}, "[DONE]")
    )


def responses(
    text: str | None = None,
    calls: Iterable[tuple[str, str, str]] = (),
    status: str = "completed",
    **more: Any,
) -> Said:
    """OpenAI responses. ``calls`` are (call_id, name, arguments)."""
    return as_json(_responses_body(text, calls, status, **more))


def _responses_body(
    text: str | None, calls: Iterable[tuple[str, str, str]], status: str, **more: Any
) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if text is not None:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
        output.append({**message, "content": content})
    done = {"type": "function_call", "status": "completed"}
    for id_, name, arguments in calls:
        output.append(
            {**done, "id": f"fc_{id_}", "call_id": id_, "name": name, "arguments": arguments}
        )
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-5",
        "status": status,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "usage": {
            "input_tokens": 100,
            "output_tokens": 20,
            "total_tokens": 120,
            "input_tokens_details": {"cached_tokens": 40},
            "output_tokens_details": {"reasoning_tokens": 5},
        },
        **more,
    }


def responses_stream(name: str, pieces: Iterable[str]) -> Said:
    """OpenAI responses, streamed: one function call whose arguments come in pieces."""
    pieces = list(pieces)
    whole = "".join(pieces)
    item = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": name}
    done = {**item, "arguments": whole, "status": "completed"}
    item |= {"arguments": "", "status": "in_progress"}
    final = _responses_body(None, [("c1", name, whole)], "completed")
    final["output"] = [done]
    begun = {**final, "output": [], "status": "in_progress", "usage": None}
    here = {"item_id": "fc_1", "output_index": 0}
    plain: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": begun}),
        ("response.output_item.added", {"output_index": 0, "item": item}),
        *(("response.function_call_arguments.delta", {**here, "delta": piece}) for piece in pieces),
        ("response.function_call_arguments.done", {**here, "arguments": whole, "name": name}),
        ("response.output_item.done", {"output_index": 0, "item": done}),
        ("response.completed", {"response": final}),
    ]
    return as_events(
        (kind, {"type": kind, "sequence_number": at, **body})
        for at, (kind, body) in enumerate(plain)
    )


CLAUDE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-stand-in",
    "stop_sequence": None,
}


def messages(
    text: str | None = None, calls: Iterable[tuple[str, str, Any]] = (), stop: str | None = None
) -> Said:
    """Anthropic messages, in one piece. ``calls`` are (id, name, input)."""
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text is not None else []
    content += [
        {"type": "tool_use", "id": id_, "name": name, "input": given} for id_, name, given in calls
    ]
    usage = {"input_tokens": 100, "output_tokens": 20}
    usage |= {"cache_read_input_tokens": 30, "cache_creation_input_tokens": 10}
    reason = stop or ("tool_use" if calls else "end_turn")
    return as_json({**CLAUDE, "content": content, "stop_reason": reason, "usage": usage})


def messages_stream(
    text: str | None, calls: Iterable[tuple[str, str, list[str]]] = (), stop: str | None = None
) -> Said:
    """Anthropic messages, streamed. ``calls`` are (id, name, pieces of input)."""
    calls = list(calls)
    begun = {
        **CLAUDE,
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": 100, "output_tokens": 1},
    }
    events: list[tuple[str, dict[str, Any]]] = [("message_start", {"message": begun})]
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if text is not None:
        blocks.append(
            ({"type": "text", "text": ""}, [{"type": "text_delta", "text": char} for char in text])
        )
    for id_, name, pieces in calls:
        block = {"type": "tool_use", "id": id_, "name": name, "input": {}}
        blocks.append(
            (block, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces])
        )
    for at, (block, deltas) in enumerate(blocks):
        events.append(("content_block_start", {"index": at, "content_block": block}))
        events += [("content_block_delta", {"index": at, "delta": delta}) for delta in deltas]
        events.append(("content_block_stop", {"index": at}))
    ended = {"stop_reason": stop or ("tool_use" if calls else "end_turn"), "stop_sequence": None}
    events += [
        ("message_delta", {"delta": ended, "usage": {"output_tokens": 20}}),
        ("message_stop", {}),
    ]
    return as_events((kind, {"type": kind, **body}) for kind, body in events)


def openai_error(status: int, message: str, code: str | None = None, **named: Any) -> Said:
    return as_json(
        {"error": {"message": message, "type": "error", "param": None, "code": code}},
        status=status,
        **named,
    )


def anthropic_error(status: int, kind: str, message: str, **named: Any) -> Said:
    return as_json(
        {"type": "error", "error": {"type": kind, "message": message}}, status=status, **named
    )
