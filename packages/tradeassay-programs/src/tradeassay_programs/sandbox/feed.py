"""Send rows to a child one at a time.

The next row is sent after the child answers the previous row.

A fed child has at most one unanswered row, so its answers are causal by construction, whatever the
code does. The host sends frames of one fixed size through a pipe. For each frame, the child returns
a u32 length and that number of bytes through a second pipe.
"""

import fcntl
import os
import select
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec

from tradeassay.core.errors import UserError

FEED_FD: Final = 7
ANSWER_FD: Final = 8
MAX_ANSWER: Final = 64 * 1024
_LENGTH: Final = struct.Struct("<I")
_CHUNK: Final = 1 << 16


class FrameFeed(msgspec.Struct, frozen=True, kw_only=True):
    """All frames of a job in order, ``size`` bytes each. The host keeps each frame until it is due.

    ``until`` is called with every answer and its number. When it returns true, no more frames are
    sent. It only saves time, and an executor may ignore it. Raises UserError if the bytes are not a
    whole number of frames.
    """

    frames: bytes
    size: int
    until: Callable[[int, bytes], bool] | None = None

    def __post_init__(self) -> None:
        if self.size < 1 or len(self.frames) % self.size:
            raise UserError(
                f"{len(self.frames)} bytes are not a whole number of frames of {self.size}"
            )

    def __len__(self) -> int:
        return len(self.frames) // self.size


def receive(size: int) -> bytes | None:
    frame = os.read(FEED_FD, size)
    while frame and len(frame) < size:
        more = os.read(FEED_FD, size - len(frame))
        if not more:
            return None
        frame += more
    return frame or None


def answer(payload: bytes = b"") -> None:
    message = _LENGTH.pack(len(payload)) + payload
    sent = os.write(ANSWER_FD, message)
    while sent < len(message):
        sent += os.write(ANSWER_FD, message[sent:])


class FeedLine:
    """The host's side of a feed: sends a frame, waits for its answer, and sends the next frame.

    The job's supervisor owns it.
    """

    def __init__(self, feed: FrameFeed, poll: select.poll) -> None:
        self.answers: list[bytes] = []
        self.open = True
        self._rows, self._size, self._until = memoryview(feed.frames), feed.size, feed.until
        self._frames = len(feed)
        self._poll = poll
        self._buffer = bytearray()
        self._pending = memoryview(b"")
        self._bytes = 0
        child_in, self._out = os.pipe2(os.O_CLOEXEC)
        self._in, child_out = os.pipe2(os.O_CLOEXEC)
        self.theirs = (child_in, child_out)
        for descriptor in (self._out, self._in):
            fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_NONBLOCK)
        poll.register(self._in, select.POLLIN)
        self._send(0)

    def owns(self, descriptor: int) -> bool:
        """Return whether an event on this descriptor must be handled by :meth:`turn`."""
        return self.open and descriptor in (self._in, self._out)

    def turn(self, limit: int) -> bool:
        """Read available answers and send due frames.

        Returns False for malformed answers, or for answers of more than ``limit`` bytes.
        """
        if self._pending:
            self._push()
            return bool(self._pending) or self._take()
        try:
            data = os.read(self._in, _CHUNK)
        except BlockingIOError:
            return True
        if not data:
            self._end()
            return True
        self._buffer += data
        self._bytes += len(data)
        return self._bytes <= limit and self._take()

    def close(self) -> None:
        self._end()
        if self._in >= 0:
            os.close(self._in)
            self._in = -1

    def _take(self) -> bool:
        buffer = self._buffer
        while len(buffer) >= _LENGTH.size and not self._pending:
            (length,) = _LENGTH.unpack_from(buffer)
            if length > MAX_ANSWER or len(self.answers) >= self._frames:
                return False
            end = _LENGTH.size + length
            if len(buffer) < end:
                break
            self.answers.append(bytes(buffer[_LENGTH.size : end]))
            del buffer[:end]
            number = len(self.answers)
            if self._until is not None and self._until(number - 1, self.answers[-1]):
                self._frames = number
            self._send(number)
        return True

    def _send(self, number: int) -> None:
        if number >= self._frames:
            self._hang_up()  # There are no more frames. The child reads end of file.
            return
        self._pending = self._rows[number * self._size : (number + 1) * self._size]
        self._push(first=True)

    def _push(self, *, first: bool = False) -> None:
        gone = False
        try:
            self._pending = self._pending[os.write(self._out, self._pending) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._pending, gone = memoryview(b""), True
        if self._pending and first:
            self._poll.unregister(self._in)
            self._poll.register(self._out, select.POLLOUT)
        elif not self._pending and not first:
            self._poll.unregister(self._out)
            self._poll.register(self._in, select.POLLIN)
        if gone:
            self._hang_up()

    def _hang_up(self) -> None:
        if self._out >= 0:
            os.close(self._out)
            self._out = -1

    def _end(self) -> None:
        if self.open:
            self.open = False
            for descriptor in (self._in, self._out):
                if descriptor >= 0:
                    with suppress(KeyError):
                        self._poll.unregister(descriptor)
            self._hang_up()
