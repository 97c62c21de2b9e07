"""How a parent and its worker processes talk: length-prefixed messages over a socket pair."""

from __future__ import annotations

import pickle
import socket
import struct
import traceback

import msgspec

from tradeassay.core.errors import RunError

_HEAD = struct.Struct("<I")


class Work(msgspec.Struct, frozen=True, tag="work"):
    """Parent to worker: do this."""

    key: str
    payload: bytes


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """Worker to parent: everything is imported. A worker that dies before this could not start at all."""


class Ticked(msgspec.Struct, frozen=True, tag="ticked"):
    """Worker to parent: so many more sessions."""

    key: str
    sessions: int


class Result(msgspec.Struct, frozen=True, tag="result"):
    """Worker to parent: done."""

    key: str
    payload: bytes


class Raised(msgspec.Struct, frozen=True, tag="raised"):
    """Worker to parent: the task raised. ``error`` is pickled; the worker is our own child."""

    key: str
    error: bytes
    trace: str


Message = Work | Ready | Ticked | Result | Raised
_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


def send(connection: socket.socket, message: Message) -> None:
    """Send one message whole; raises ``OSError`` when the other end is gone."""
    content = _ENCODER.encode(message)
    connection.sendall(_HEAD.pack(len(content)) + content)


def receive(connection: socket.socket) -> Message | None:
    """Wait for one message; None when the other end is gone."""
    head = _exactly(connection, _HEAD.size)
    content = None if head is None else _exactly(connection, _HEAD.unpack(head)[0])
    return None if content is None else _DECODER.decode(content)


def raised(key: str, error: BaseException) -> Raised:
    """Pack an error so that it can be raised again elsewhere."""
    trace = "".join(traceback.format_exception(error))
    try:
        packed = pickle.dumps(error)
        pickle.loads(packed)
    except Exception:  # an error that cannot travel is told in words
        packed = pickle.dumps(RunError(f"{type(error).__name__}: {error}"))
    return Raised(key, packed, trace)


def rebuild(message: Raised) -> BaseException:
    """Unpack what :func:`raised` packed, with the worker's traceback as a note."""
    error: BaseException = pickle.loads(message.error)
    error.add_note(f"in a worker process, task {message.key}:\n{message.trace}")
    return error


def _exactly(connection: socket.socket, count: int) -> bytes | None:
    parts: list[bytes] = []
    while count:
        try:
            part = connection.recv(min(count, 1 << 20))
        except ConnectionError:
            return None
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
