"""An answer in the form of OpenAI's chat completions, for the servers that these scripts measure
against.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable


def completion(
    text: str | None = None,
    calls: Iterable[tuple[str, str, str]] = (),
    *,
    asked: int = 5000,
    written: int = 100,
) -> bytes:
    """Return the body of an answer; ``calls`` are (id, name, arguments), ``asked`` and
    ``written`` are tokens.
    """
    message: dict[str, object] = {"role": "assistant", "content": text}
    made = [
        {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}
        for number, name, arguments in calls
    ]
    if made:
        message["tool_calls"] = made
    body = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "finish_reason": "tool_calls" if made else "stop", "message": message}
        ],
        "usage": {
            "prompt_tokens": asked,
            "completion_tokens": written,
            "total_tokens": asked + written,
        },
    }
    return json.dumps(body).encode()


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """Return the body of the next request on a connection."""
    lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
    size = next(
        (int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length")), 0
    )
    return await reader.readexactly(size)


async def write_answer(writer: asyncio.StreamWriter, body: bytes) -> None:
    """Send an answer and keep the connection."""
    writer.write(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        % len(body)
    )
    writer.write(body)
    await writer.drain()
