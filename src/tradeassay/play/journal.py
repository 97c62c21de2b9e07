"""An episode's journal: one line per decision, appended and made durable; a torn end is cut, nothing else is.

A process killed while it writes leaves whole lines and at most one torn one at the end. A damaged line with whole
lines after it is something else (a broken disk, an edit) and is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

import msgspec

from tradeassay.core.errors import UNDECODABLE, RunError
from tradeassay.core.events import ENCODER, STEP_DECODER, TURN_DECODER, JournalRecord, StepRecord, TurnRecord
from tradeassay.core.files import append_durably, sync_folder, take_lock
from tradeassay.core.secrets import clean_bytes


class FsyncPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How many lines may wait in memory before they are written and made durable.

    One for agents whose answers cost money or time. Agents that answer at once are asked again when lines are
    lost, and give the same lines, so they may batch.
    """

    lines: int = 1


EVERY_LINE = FsyncPolicy()
BATCHED = FsyncPolicy(lines=512)


R = TypeVar("R", bound=JournalRecord)


class JournalLine(NamedTuple, Generic[R]):
    """A step and its exact bytes, without the line end."""

    record: R
    raw: bytes


def encode_line(record: JournalRecord) -> bytes:
    """Return a step's line, without the line end."""
    return ENCODER.encode(record)


def read_lines(path: Path) -> tuple[tuple[JournalLine[StepRecord], ...], int]:
    """Return the lines of a trading episode's journal, as :func:`lines_of` does."""
    return lines_of(path, STEP_DECODER)


def lines_of(path: Path, decoder: msgspec.json.Decoder[R]) -> tuple[tuple[JournalLine[R], ...], int]:
    """Return the whole lines of a journal and the number of bytes they take; a torn last line is left out.

    Raises :class:`RunError` naming the line when a damaged one is not the last.
    """
    if not path.exists():
        return (), 0
    content = path.read_bytes()
    lines: list[JournalLine[R]] = []
    start = 0
    while (end := content.find(b"\n", start)) >= 0:
        raw = content[start:end]
        try:
            lines.append(JournalLine(decoder.decode(raw), raw))
        except UNDECODABLE as error:
            if content.find(b"\n", end + 1) >= 0:
                raise RunError(
                    f"{path}, line {len(lines) + 1} is damaged: {error}",
                    hint="delete the episode's folder and resume: it is played again",
                ) from error
            break
        start = end + 1
    return tuple(lines), start


def read_records(path: Path) -> Iterator[StepRecord]:
    """Yield the steps of a journal; raises :class:`RunError` when it is missing, torn or damaged."""
    if not path.exists():
        raise RunError(f"there is no journal {path}", hint="resume the run")
    lines, length = read_lines(path)
    if length != path.stat().st_size:
        # An episode that ended has a whole journal; torn afterwards, only playing it anew can mend it.
        over = path.with_name("outcome.json").exists()
        hint = f"delete {path.parent} and resume" if over else "resume the run: the line is cut and played again"
        raise RunError(f"{path} ends in a torn line", hint=hint)
    for line in lines:
        yield line.record


class JournalOf(Generic[R]):
    """Continues ``events.jsonl``: ``lines`` are those it holds; a torn end is cut on opening.

    A context manager; what waits in memory is written on leaving, errors included: a line that was decided is
    never dropped. Raises :class:`RunError` on entering when another process still writes the file after
    ``patience`` seconds (a worker whose parent was killed needs a moment to notice), or when a line is damaged.
    """

    def __init__(self, path: Path, decoder: msgspec.json.Decoder[R], *, patience: float = 15.0) -> None:
        self.lines: tuple[JournalLine[R], ...] = ()
        self.policy = EVERY_LINE
        self._path = path
        self._decoder = decoder
        self._patience = patience
        self._waiting: list[bytes] = []
        self._descriptor = -1

    def __enter__(self) -> Self:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            take_lock(self._descriptor, str(self._path), patience=self._patience)
            self.lines, length = lines_of(self._path, self._decoder)
            if length != os.fstat(self._descriptor).st_size:
                os.ftruncate(self._descriptor, length)
            os.lseek(self._descriptor, length, os.SEEK_SET)
            if not self.lines:
                # A new file is durable only when its name is, and so is a new folder.
                sync_folder(self._path.parent)
                sync_folder(self._path.parent.parent)
        except BaseException:
            os.close(self._descriptor)
            raise
        return self

    def append(self, raw: bytes) -> None:
        """Add one line; it is durable on return when the policy says every line."""
        self._waiting.append(clean_bytes(raw))
        if len(self._waiting) >= self.policy.lines:
            self.flush()

    def flush(self) -> None:
        """Write what waits and make it durable."""
        if not self._waiting:
            return
        lines = b"\n".join(self._waiting) + b"\n"
        self._waiting.clear()
        append_durably(self._descriptor, lines, self._path)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.flush()
        finally:
            os.close(self._descriptor)


class LinesOf(Protocol[R]):
    """Where the lines of an episode go, and which it has already."""

    lines: tuple[JournalLine[R], ...]
    policy: FsyncPolicy

    def append(self, raw: bytes) -> None: ...


class KeptLines(Generic[R]):
    """A journal in memory, for an episode that is played again only to be compared."""

    def __init__(self) -> None:
        self.lines: tuple[JournalLine[R], ...] = ()
        self.policy = EVERY_LINE
        self.content = bytearray()

    def append(self, raw: bytes) -> None:
        self.content += clean_bytes(raw) + b"\n"


class Journal(JournalOf[StepRecord]):
    """The journal of an episode that trades."""

    def __init__(self, path: Path, *, patience: float = 15.0) -> None:
        super().__init__(path, STEP_DECODER, patience=patience)


class TurnJournal(JournalOf[TurnRecord]):
    """The journal of an episode in which programs are written."""

    def __init__(self, path: Path, *, patience: float = 15.0) -> None:
        super().__init__(path, TURN_DECODER, patience=patience)
