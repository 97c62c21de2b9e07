"""Cassettes on disk: a folder with one append-only file per episode.

Each answer is one write of whole lines, so that concurrent writers cannot tear each other's and a killed process
leaves at most one torn line, the last; it is ignored when read and cut off before the next write.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tradeassay.core.dialogue import AskModel, Message, ModelReply, ToolSpec
from tradeassay.core.errors import RunError, UserError
from tradeassay.core.secrets import clean_bytes
from tradeassay.llm.cassette.key import Asked
from tradeassay.llm.cassette.lines import ENCODER, FORMAT, AnswerLine, HeadLine, Line, MessageLine, ToolsLine
from tradeassay.llm.cassette.reading import read_cassette

_NAME = re.compile(r"[A-Za-z0-9_+=.,@-][A-Za-z0-9_+=.,@ -]*")


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded question with its messages and tools, and the answer."""

    key: str
    asked: Asked
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    reply: ModelReply


class CassetteStore:
    """The cassettes of one run. Safe to share between threads and tasks of one process.

    ``durable`` makes every answer survive a power cut, not only a killed process.
    """

    def __init__(self, folder: Path, *, durable: bool = False) -> None:
        self.folder = folder
        self._durable = durable
        self._lock = threading.Lock()
        self._tapes: dict[str, _Tape] = {}

    def find(self, episode: str, key: str) -> ModelReply | None:
        """Return the newest answer recorded under a key, or None; raises :class:`RunError` for a damaged file."""
        with self._lock:
            return self._tape(episode).replies.get(key)

    def record(self, episode: str, key: str, question: Asked, request: AskModel, reply: ModelReply) -> None:
        """Append an answer."""
        with self._lock:
            tape = self._tape(episode)
            answer = AnswerLine(key=key, asked=question, reply=reply)
            tape.write([*tape.unwritten(question, request), answer], durable=self._durable)
            tape.replies[key] = reply

    def recorded(self, episode: str) -> tuple[Recorded, ...]:
        """Return everything an episode's cassette holds, in the order it was written."""
        contents = read_cassette(self.path(episode))
        return tuple(
            Recorded(
                key=line.key,
                asked=line.asked,
                messages=tuple(contents.messages[name] for name in line.asked.messages),
                tools=contents.tools[line.asked.tools] if line.asked.tools is not None else (),
                reply=line.reply,
            )
            for line in contents.answers
        )

    def episodes(self) -> tuple[str, ...]:
        """Return the episodes that have a cassette, sorted."""
        return tuple(sorted(path.stem for path in self.folder.glob("*.jsonl")))

    def spent_usd(self) -> float:
        """Return the dollars that all recorded answers cost, as far as their price was known."""
        lines = (line for episode in self.episodes() for line in read_cassette(self.path(episode)).answers)
        return sum(line.reply.usage.usd or 0.0 for line in lines)

    def path(self, episode: str) -> Path:
        """Return an episode's file; raises :class:`UserError` for a name that is no file name."""
        if not _NAME.fullmatch(episode) or set(episode) <= {"."}:
            raise UserError(f"'{episode}' cannot name a cassette", mend="use letters, digits and _+=.,@-")
        return self.folder / f"{episode}.jsonl"

    def close(self) -> None:
        """Close the files. The store can be used again."""
        with self._lock:
            for tape in self._tapes.values():
                tape.close()
            self._tapes.clear()

    def _tape(self, episode: str) -> _Tape:
        tape = self._tapes.get(episode)
        if tape is None:
            tape = self._tapes[episode] = _Tape(self.path(episode))
        return tape


class _Tape:
    """One file, open for appending, and what must not be written to it twice."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        contents = read_cassette(path)
        self._begun = contents.end > 0
        self._written = {*contents.messages, *contents.tools}
        self.replies = {line.key: line.reply for line in contents.answers}

    def unwritten(self, question: Asked, request: AskModel) -> Iterator[Line]:
        """Yield the lines that must precede an answer: whatever of its question is not in the file yet."""
        if not self._begun:
            yield HeadLine(format=FORMAT)
        fresh: set[str] = set()
        for name, message in zip(question.messages, request.messages, strict=True):
            if name not in self._written and name not in fresh:
                fresh.add(name)
                yield MessageLine(id=name, message=message)
        if question.tools is not None and question.tools not in self._written:
            yield ToolsLine(id=question.tools, tools=request.tools)

    def write(self, lines: list[Line], *, durable: bool) -> None:
        """Append lines in one write."""
        block = clean_bytes(b"".join(ENCODER.encode(line) + b"\n" for line in lines))
        file = self._file if self._file is not None else self._open()
        if os.write(file, block) != len(block):
            self.close()  # opening it again cuts off what was written of the block
            raise RunError(f"{self._path} could not be written to its end", mend="is the disk full?")
        if durable:
            os.fsync(file)
        self._begun = True
        self._written.update(line.id for line in lines if isinstance(line, MessageLine | ToolsLine))

    def close(self) -> None:
        """Close the file, if it is open."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self) -> int:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        end = read_end(self._file)
        if end < os.fstat(self._file).st_size:
            os.ftruncate(self._file, end)
        return self._file

    def __del__(self) -> None:
        self.close()


def read_end(file: int, step: int = 65_536) -> int:
    """Return where the last whole line of an open file ends."""
    at = os.fstat(file).st_size
    while at > 0:
        start = max(0, at - step)
        newline = os.pread(file, at - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        at = start
    return 0
