"""Store recordings on disk: a folder with one append-only file per episode.

The key of a question is the SHA-256 of everything that may change its answer. Messages and tools
are written once and afterwards referred to by their hash. A day's conversation grows by a message
or two per question, so with full lines the size of a recording would grow with the square of the
questions. Each answer is one write of complete lines. Concurrent writers therefore cannot split
each other's lines, and a killed process leaves at most one incomplete line, the last. That line is
ignored by readers and removed before the next write.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import math
import os
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.core.files import naming, sync_path
from tradeassay.core.hashing import canonical_json, sha256_bytes
from tradeassay.core.secrets import without_secrets
from tradeassay_bench.core.dialogue import AskModel, Message, ModelReply, ToolSpec
from tradeassay_bench.core.errors import ModelError, RunError
from tradeassay_bench.llm.model import Model, ModelParams, QuestionPlace


class RecordedQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question with everything that may change its answer.

    Messages and tools are represented by their hashes.
    """

    model: str
    params: dict[str, float | int | str | None]
    messages: tuple[str, ...]
    tools: str | None
    must_call: str | None
    answer_schema: str | None
    purpose: str
    attempt: int
    step: int
    sample: int
    index: int

    @property
    def place(self) -> tuple[int, int, int]:
        return self.step, self.sample, self.index


def recorded_question(
    model: str, params: ModelParams, request: AskModel, place: QuestionPlace
) -> RecordedQuestion:
    """Return the content of a question's key.

    The episode is not part of the key, because each episode has a separate recording.
    """
    return RecordedQuestion(
        model=model,
        params=params.sent(),
        messages=tuple(map(content_id, request.messages)),
        tools=content_id(request.tools) if request.tools else None,
        must_call=request.must_call,
        answer_schema=request.answer_schema,
        purpose=request.purpose,
        attempt=request.attempt,
        step=place.step,
        sample=place.sample,
        index=place.index,
    )


def key_of(question: RecordedQuestion) -> str:
    return sha256_bytes(canonical_json(question))


def answer_key(model: str, params: ModelParams, request: AskModel, place: QuestionPlace) -> str:
    """Return the key under which the answer to a question is recorded."""
    return key_of(recorded_question(model, params, request, place))


ENCODER = msgspec.json.Encoder()


def content_id(content: Message | tuple[ToolSpec, ...]) -> str:
    """Return the SHA-256 of a message or of a list of tools.

    The order of the tools matters, because a model sees it.
    """
    return hashlib.sha256(ENCODER.encode(content)).hexdigest()


ANSWERS = frozenset(
    {None, "refused", "context", "parse", "schema", "status", "too_large", "agent", "stray"}
)
"""Error kinds that count as the model's answer.

After any other kind a resumed run repeats the question.
"""
FORMAT = 1


class HeadLine(msgspec.Struct, frozen=True, kw_only=True, tag="cassette", omit_defaults=True):
    """The first line of a recording.

    If ``texts`` is False, the recording contains only the hashes of messages and tools.
    """

    format: int
    texts: bool = True


class MessageLine(msgspec.Struct, frozen=True, kw_only=True, tag="message"):
    """A message at its first occurrence."""

    id: str
    message: Message


class ToolsLine(msgspec.Struct, frozen=True, kw_only=True, tag="tools"):
    """A list of tools at its first occurrence."""

    id: str
    tools: tuple[ToolSpec, ...]


class AnswerLine(msgspec.Struct, frozen=True, kw_only=True, tag="answer"):
    """A question and its answer.

    ``elsewhere`` is true if the server was not the provider's own. ``seconds`` is the duration of
    the answered attempt. Scripted models have none. ``lost_usd`` is the maximum cost of attempts
    without a bill.
    """

    key: str
    asked: RecordedQuestion
    reply: ModelReply
    elsewhere: bool | msgspec.UnsetType = msgspec.UNSET
    seconds: float | msgspec.UnsetType = msgspec.UNSET
    lost_usd: float | msgspec.UnsetType = msgspec.UNSET


Line = HeadLine | MessageLine | ToolsLine | AnswerLine
DECODER: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


_DAMAGED = "a recording can only be appended to; restore it, or start a new run"


class Contents(msgspec.Struct, kw_only=True):
    """The contents of a recording, in the order of writing.

    ``end`` is the position after the last complete line.
    """

    answers: list[AnswerLine] = []
    messages: dict[str, Message] = {}
    tools: dict[str, tuple[ToolSpec, ...]] = {}
    end: int = 0
    texts: bool = True


def read_recording(path: Path) -> Contents:
    """Return the contents of a recording.

    A missing file is an empty recording. An incomplete last line is ignored. Raises
    :class:`RunError` with the line number for any other damage.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return Contents()
    return parse_recording(path, raw)


def parse_recording(path: Path, raw: bytes) -> Contents:
    """Parse the bytes of a recording. ``path`` is used in error messages."""
    contents = Contents()
    contents.end = raw.rfind(b"\n") + 1
    for number, line in _lines(path, raw[: contents.end]):
        match line:
            case HeadLine(texts=texts):
                contents.texts = texts
            case MessageLine(id=name, message=message):
                contents.messages[name] = message
            case ToolsLine(id=name, tools=tools):
                contents.tools[name] = tools
            case AnswerLine():
                if contents.texts:
                    complete = contents.messages.keys() >= set(line.asked.messages)
                    if not complete or (
                        line.asked.tools is not None and line.asked.tools not in contents.tools
                    ):
                        raise RunError(
                            f"line {number} of {path} refers to a message or tools that are not in "
                            "the file",
                            hint=_DAMAGED,
                        )
                contents.answers.append(line)
    return contents


def first_answer(path: Path, model: str) -> AnswerLine | None:
    """Return the first recorded answer of a model, or None.

    Raises :class:`RunError` for a damaged file.
    """
    lines = _lines(path, path.read_bytes()) if path.is_file() else ()
    answers = (line for _, line in lines if isinstance(line, AnswerLine))
    return next((line for line in answers if line.asked.model == model), None)


def answer_faults(path: Path) -> Iterator[str]:
    """Yield the internal errors of a recording, one sentence each.

    Errors are a key or id that is not the hash of its content, and a line with a wrong format or
    position. Raises :class:`RunError` for an unreadable file.
    """
    raw = path.read_bytes()
    whole = raw[: raw.rfind(b"\n") + 1]
    if whole != raw:
        yield "the last line is incomplete"
    written = whole.split(b"\n")
    # Exactly the new messages and tools of a question must precede its answer.
    fresh: list[str] = []
    seen: set[str] = set()
    final: set[str] = set()
    texts = True
    for number, line in _lines(path, whole):
        if ENCODER.encode(line) != written[number - 1]:
            yield f"line {number} is not in tradeassay's format"
        match line:
            case HeadLine():
                texts = line.texts
                if number > 1:
                    yield f"line {number}: a second head line"
            case MessageLine():
                fresh.append(line.id)
                if line.id != content_id(line.message):
                    yield f"line {number}: the message does not match its hash"
            case ToolsLine():
                fresh.append(line.id)
                if line.id != content_id(line.tools):
                    yield f"line {number}: the tools do not match their hash"
            case AnswerLine():
                if line.key != key_of(line.asked):
                    yield f"line {number}: the key of the answer does not match its question"
                tools = () if line.asked.tools is None else (line.asked.tools,)
                expected = [
                    name
                    for name in dict.fromkeys((*line.asked.messages, *tools))
                    if name not in seen
                ]
                if fresh != (expected if texts else []):
                    yield (
                        f"line {number}: the question does not match the messages written before it"
                    )
                elif line.key in final:
                    yield f"line {number}: the question already has an answer"
                fresh = []
                seen.update(expected)
                if line.reply.error_kind in ANSWERS:
                    final.add(line.key)
    if fresh:
        yield "the last lines belong to no answer"


def without_texts(
    path: Path, wanted: Callable[[RecordedQuestion], bool] = lambda question: True
) -> bytes:
    """Return a recording with answers and hashes of questions, but without the questions' texts.

    Only ``wanted`` questions are included. Of several answers to a question the newest is included,
    as in a replay. Raises :class:`RunError` for a damaged file.
    """
    newest = {line.key: line for line in read_recording(path).answers if wanted(line.asked)}
    lines: list[Line] = [HeadLine(format=FORMAT, texts=False), *newest.values()]
    return b"".join(ENCODER.encode(line) + b"\n" for line in lines)


def _lines(path: Path, raw: bytes) -> Iterator[tuple[int, Line]]:
    for number, text in enumerate(raw.splitlines(), start=1):
        try:
            line = DECODER.decode(text)
        except UNDECODABLE as error:
            raise RunError(f"line {number} of {path} is damaged: {error}", hint=_DAMAGED) from None
        if number == 1 and not (isinstance(line, HeadLine) and line.format == FORMAT):
            raise RunError(
                f"{path} is not a recording of format {FORMAT}",
                hint="use the version that wrote it",
            )
        yield number, line


_NAME = re.compile(r"[A-Za-z0-9_+=.,@-][A-Za-z0-9_+=.,@ -]*")


class RecordedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded question with its messages and tools, and the answer.

    If only hashes were stored, ``texts`` is false and there are neither messages nor tools.
    """

    key: str
    asked: RecordedQuestion
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    reply: ModelReply
    texts: bool = True


class RecordingStore:
    """The recordings of one run.

    A store may be shared between threads and tasks, and several stores may write to one folder.
    ``durable`` makes every answer survive a power cut, not only a killed process.
    """

    def __init__(self, folder: Path, *, durable: bool = False) -> None:
        self.folder, self._durable = folder, durable
        self._lock = threading.Lock()
        self._tapes: dict[str, _Tape] = {}

    def find(self, episode: str, key: str) -> ModelReply | None:
        """Return the newest answer recorded under a key, or None.

        Raises :class:`RunError` for a damaged file.
        """
        with self._lock:
            return self._tape(episode).replies.get(key)

    def record(self, episode: str, request: AskModel, answer: AnswerLine) -> None:
        """Append an answer.

        With a durable store, await :meth:`settle` before anything depends on the answer.
        """
        with self._lock:
            self._tape(episode).write(request, answer)

    async def settle(self, episode: str) -> None:
        """Wait until the answers of a durable store are safe from a power cut."""
        if self._durable:
            await asyncio.to_thread(sync_path, self.path(episode))

    def recorded(self, episode: str) -> tuple[RecordedAnswer, ...]:
        """Return all answers of an episode's recording in the order of writing."""
        contents = read_recording(self.path(episode))
        answers: list[RecordedAnswer] = []
        for line in contents.answers:
            messages: tuple[Message, ...] = ()
            tools: tuple[ToolSpec, ...] = ()
            if contents.texts:
                messages = tuple(contents.messages[name] for name in line.asked.messages)
                tools = contents.tools[line.asked.tools] if line.asked.tools else ()
            answers.append(
                RecordedAnswer(
                    key=line.key,
                    asked=line.asked,
                    messages=messages,
                    tools=tools,
                    reply=line.reply,
                    texts=contents.texts,
                )
            )
        return tuple(answers)

    def size(self, episode: str) -> int:
        with self._lock:
            return len(self._tape(episode).replies)

    def episodes(self) -> tuple[str, ...]:
        return tuple(sorted(path.stem for path in self.folder.glob("*.jsonl")))

    def spent_usd(self) -> float:
        """Return the dollars spent on all recorded answers with a known price.

        The sum includes the maximum cost of attempts without a bill. Otherwise every resumed run
        would raise its spending cap.
        """
        costs: list[float] = []
        for episode in self.episodes():
            for line in read_recording(self.path(episode)).answers:
                costs.append((line.reply.usage.usd or 0.0) + (line.lost_usd or 0.0))
        return math.fsum(costs)

    def path(self, episode: str) -> Path:
        """Return an episode's file. Raises :class:`UserError` for an invalid file name."""
        if not _NAME.fullmatch(episode) or set(episode) <= {"."}:
            raise UserError(
                f"'{episode}' is not a valid name of a recording",
                hint="use letters, digits and _+=.,@-",
            )
        return self.folder / f"{episode}.jsonl"

    def close(self) -> None:
        with self._lock:
            for tape in self._tapes.values():
                tape.close()
            self._tapes.clear()

    def _tape(self, episode: str) -> _Tape:
        tape = self._tapes.get(episode)
        if tape is None:
            tape = _Tape(self.path(episode))
            self._tapes[episode] = tape
        return tape


class _Tape:
    """One file, open for appending, with the hashes of its messages and tools."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        contents = read_recording(path)
        self._begun = contents.end > 0
        self._written = {*contents.messages, *contents.tools}
        self.replies = {line.key: line.reply for line in contents.answers}

    def write(self, request: AskModel, answer: AnswerLine) -> None:
        """Append an answer in one write, after the new messages and tools of its question."""
        question = answer.asked
        fresh: dict[str, Line] = {}
        for name, message in zip(question.messages, request.messages, strict=True):
            if name not in self._written:
                fresh.setdefault(name, MessageLine(id=name, message=message))
        if question.tools is not None and question.tools not in self._written:
            fresh[question.tools] = ToolsLine(id=question.tools, tools=request.tools)
        opened = self._file is None
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        # Lock out other writers. Without the lock, a line that another process is writing would
        # look like an incomplete last line.
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            with naming(self._path):
                size = os.fstat(self._file).st_size
                if opened and (end := _whole_end(self._file, size)) < size:
                    os.ftruncate(self._file, end)
                    size = end
                # Another process may have started the file. The file must have only one head line.
                head = [] if self._begun or size else [HeadLine(format=FORMAT)]
                lines = [*head, *fresh.values(), answer]
                block = without_secrets(b"".join(ENCODER.encode(line) + b"\n" for line in lines))
                if os.write(self._file, block) != len(block):
                    self.close()  # opening it again cuts off the partly written block
                    raise RunError(
                        f"{self._path} could not be written to its end", hint="is the disk full?"
                    )
        finally:
            if self._file is not None:  # closing the file also releases the lock
                fcntl.flock(self._file, fcntl.LOCK_UN)
        self._begun = True
        self._written.update(fresh)
        self.replies[answer.key] = answer.reply

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        self.close()


def _whole_end(file: int, size: int) -> int:
    """Return the position after the last complete line of a file with ``size`` bytes."""
    at = size
    while at > 0:
        start = max(0, at - 65_536)
        newline = os.pread(file, at - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        at = start
    return 0


# Models that record their answers, and models that only replay.

_SETTINGS = (
    "model",
    "params",
    "must_call",
    "answer_schema",
    "purpose",
    "attempt",
    "step",
    "sample",
    "index",
)


def _difference(question: RecordedQuestion, request: AskModel, recorded: RecordedAnswer) -> str:
    """Return a sentence on the first difference between a question and a recorded question.

    A recording without texts allows only a comparison of hashes.
    """
    before = recorded.asked
    hashes = zip(question.messages, before.messages, strict=False)
    for number, (new_hash, old_hash) in enumerate(hashes):
        if new_hash != old_hash:
            message = request.messages[number]
            label = f"message {number} ({message.role})"
            if not recorded.texts:
                return f"{label} has a different text: {_excerpt(message.text, 0)}"
            detail = _message_difference(message, recorded.messages[number])
            return f"{label} differs: {detail}"
    new, old = len(question.messages), len(before.messages)
    if new != old and not recorded.texts:
        return f"it has {new} messages, recorded were {old}"
    if new != old:
        longer, word = (request.messages, "new") if new > old else (recorded.messages, "missing")
        first = longer[min(new, old)]
        return f"message {min(new, old)} ({first.role}) is {word}: {_excerpt(first.text, 0)}"
    if question.tools != before.tools:
        for offered, then in zip(request.tools, recorded.tools, strict=False):
            if offered.name != then.name:
                return f"the tools differ: '{offered.name}' replaces '{then.name}'"
            if offered != then:
                part = "description" if offered.description != then.description else "schema"
                return f"the tools differ: the {part} of '{offered.name}' changed"
        counts = f": there are {len(request.tools)}, recorded were {len(recorded.tools)}"
        return "the tools differ" + (counts if recorded.texts else "")
    for field in _SETTINGS:
        if getattr(question, field) != getattr(before, field):
            return (
                f"{field} is {getattr(question, field)!r}, recorded was {getattr(before, field)!r}"
            )
    return "nothing differs"


def _message_difference(new: Message, old: Message) -> str:
    if new.role != old.role:
        return f"recorded was a {old.role} message"
    texts = [("", new.text, old.text)]
    new_names = [call.name for call in new.calls]
    old_names = [call.name for call in old.calls]
    if new.text == old.text and new_names != old_names:
        calls, recorded_calls = ", ".join(new_names) or "none", ", ".join(old_names) or "none"
        return f"it calls {calls}, recorded was {recorded_calls}"
    for new_call, old_call in zip(new.calls, old.calls, strict=False):
        prefix = f"in the arguments of {new_call.name}, "
        texts.append((prefix, new_call.arguments, old_call.arguments))
    for prefix, new_text, old_text in texts:
        if new_text != old_text:
            pairs = enumerate(zip(new_text, old_text, strict=False))
            differing = (at for at, (a, b) in pairs if a != b)
            at = next(differing, min(len(new_text), len(old_text)))
            position = f"{prefix}at character {at}{',' if prefix else ''} it has"
            return f"{position} {_excerpt(new_text, at)}, recorded was {_excerpt(old_text, at)}"
    if new.calls != old.calls:
        return "the ids or the positions of its calls differ"
    return f"it answers call {new.call_id!r}, recorded was {old.call_id!r}"


def _excerpt(text: str, at: int) -> str:
    if at >= len(text):
        return "its end"
    start, end = max(0, at - 15), at + 30
    return f"{'…' if start else ''}{text[start:end]!r}{'…' if end < len(text) else ''}"


class RecordingModel:
    """A model that answers from a recording, and queries and records questions that are not in it.

    An answer is recorded before it is returned. A failure is recorded like any answer, because a
    replay must repeat it. A resumed run repeats questions without an answer (no network, no key, no
    money). The newest line of a question counts.

    ``seconds_of`` returns the duration of a question's answer. ``unbilled_usd`` returns the maximum
    cost of its attempts without a bill. ``on_recorded`` is called for each answer from the
    recording.
    """

    def __init__(
        self,
        inner: Model,
        params: ModelParams,
        store: RecordingStore,
        *,
        elsewhere: bool = False,
        seconds_of: Callable[[QuestionPlace], float] | None = None,
        unbilled_usd: Callable[[QuestionPlace], float] | None = None,
        on_recorded: Callable[[QuestionPlace, ModelReply], None] | None = None,
    ) -> None:
        self.name = inner.name
        self._inner, self._params, self._store, self._elsewhere = inner, params, store, elsewhere
        self._seconds_of = seconds_of
        self._unbilled_usd = unbilled_usd
        self._on_recorded = on_recorded

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        """Return the recorded reply to a request, or query the model and record its reply."""
        question = recorded_question(self.name, self._params, request, place)
        key = key_of(question)
        recorded = self._store.find(place.episode, key)
        if recorded is not None and recorded.error_kind in ANSWERS:
            if self._on_recorded is not None:
                self._on_recorded(place, recorded)
            return recorded
        reply = await self._inner.ask(request, place)
        seconds = None if self._seconds_of is None else round(self._seconds_of(place), 4)
        lost_usd = 0.0 if self._unbilled_usd is None else self._unbilled_usd(place)
        answer = AnswerLine(
            key=key,
            asked=question,
            reply=reply,
            elsewhere=self._elsewhere or msgspec.UNSET,
            seconds=msgspec.UNSET if seconds is None else seconds,
            lost_usd=lost_usd or msgspec.UNSET,
        )
        self._store.record(place.episode, request, answer)
        await self._store.settle(place.episode)
        return reply


class RecordingMismatch(ModelError):
    """Raised if a replay reaches a question that was not recorded."""


class ReplayingModel:
    """A model that answers only from a recording.

    Raises :class:`RecordingMismatch` for a question that was not recorded.
    """

    def __init__(self, name: str, params: ModelParams, store: RecordingStore) -> None:
        self.name, self._params, self._store = name, params, store

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        """Return the recorded reply. Raises :class:`RecordingMismatch` if there is none."""
        question = recorded_question(self.name, self._params, request, place)
        reply = self._store.find(place.episode, key_of(question))
        if reply is not None:
            return reply
        label = (
            f"episode {place.episode}, step {place.step}, sample {place.sample}, question "
            f"{place.index}"
        )
        recorded = self._store.recorded(place.episode)
        candidates = [record for record in recorded if record.asked.place == question.place]
        if not candidates:
            hint = "run it without replay first, or replay with the settings it was recorded with"
            raise RecordingMismatch(
                f"nothing was recorded for {label} ({request.purpose}, {self.name})", hint=hint
            )
        same_model = [record for record in candidates if record.asked.model == self.name]
        difference = _difference(question, request, (same_model or candidates)[-1])
        hint = "replay with the settings and the code of the recording, or record again"
        raise RecordingMismatch(
            f"the recording for {label} is of a different question: {difference}", hint=hint
        )
