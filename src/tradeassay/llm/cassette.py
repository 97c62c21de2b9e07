"""Cassettes on disk: a folder with one append-only file per episode.

A question's key is the SHA-256 of everything that may change its answer. Messages and tools are written once and
named by their hash from then on: a day's conversation grows by a message or two per question, and if every
line held all of it a cassette would grow with the square of a day's questions. Each answer is one write of
whole lines, so concurrent writers cannot tear each other's lines and a killed process leaves at most one torn
line, the last; it is ignored when read and cut off before the next write.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from tradeassay.core.dialogue import AskModel, Message, ModelReply, ToolSpec
from tradeassay.core.errors import UNDECODABLE, ModelError, RunError, UserError
from tradeassay.core.files import naming, sync_path
from tradeassay.core.hashing import canonical_json, sha256_bytes
from tradeassay.core.measure import plain_sum
from tradeassay.core.secrets import without_secrets
from tradeassay.llm.model import Model, ModelParams, QuestionPlace


class RecordedQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question with everything that may change its answer. Messages and tools are given as their hashes."""

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


def asked(model: str, params: ModelParams, request: AskModel, place: QuestionPlace) -> RecordedQuestion:
    """Collect what a question's key is made of. The episode is not part of it: each has its own cassette."""
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
    return key_of(asked(model, params, request, place))


ENCODER = msgspec.json.Encoder()


def content_id(content: Message | tuple[ToolSpec, ...]) -> str:
    """Return the SHA-256 of a message or of a list of tools; their order counts, because a model sees it."""
    return hashlib.sha256(ENCODER.encode(content)).hexdigest()


ANSWERS = frozenset({None, "refused", "context", "parse", "schema", "status", "too_large", "agent", "stray"})
"""Error kinds that count as the model's answer. After any other kind a resumed run asks again."""
FORMAT = 1


class HeadLine(msgspec.Struct, frozen=True, kw_only=True, tag="cassette", omit_defaults=True):
    """The first line of a file. Without ``texts`` questions are known by the hashes of their messages alone."""

    format: int
    texts: bool = True


class MessageLine(msgspec.Struct, frozen=True, kw_only=True, tag="message"):
    """A message, the first time it is sent."""

    id: str
    message: Message


class ToolsLine(msgspec.Struct, frozen=True, kw_only=True, tag="tools"):
    """A list of tools, the first time it is offered."""

    id: str
    tools: tuple[ToolSpec, ...]


class AnswerLine(msgspec.Struct, frozen=True, kw_only=True, tag="answer"):
    """A question and its answer. ``elsewhere``: another server than the provider's own was asked.

    ``seconds`` is how long the attempt that was answered took; scripts have none. ``lost_usd`` is the most that
    attempts may have cost whose bill never came."""

    key: str
    asked: RecordedQuestion
    reply: ModelReply
    elsewhere: bool | msgspec.UnsetType = msgspec.UNSET
    seconds: float | msgspec.UnsetType = msgspec.UNSET
    lost_usd: float | msgspec.UnsetType = msgspec.UNSET


Line = HeadLine | MessageLine | ToolsLine | AnswerLine
DECODER: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


_DAMAGED = "a cassette is only ever appended to; restore it, or start the run anew"


class Contents(msgspec.Struct, kw_only=True):
    """Everything in a file, in the order it was written. ``end`` is where its last whole line ends."""

    answers: list[AnswerLine] = []
    messages: dict[str, Message] = {}
    tools: dict[str, tuple[ToolSpec, ...]] = {}
    end: int = 0
    texts: bool = True


def read_cassette(path: Path) -> Contents:
    """Read a cassette; one that does not exist is empty, and a torn last line is ignored. Raises :class:`RunError`
    for any other damage, naming the line."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return Contents()
    return parse_cassette(path, raw)


def parse_cassette(path: Path, raw: bytes) -> Contents:
    """Read the bytes of a cassette; ``path`` is named where they are damaged."""
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
                    whole = contents.messages.keys() >= set(line.asked.messages)
                    if not whole or (line.asked.tools is not None and line.asked.tools not in contents.tools):
                        raise RunError(
                            f"line {number} of {path} names a message or tools that are not in the file",
                            hint=_DAMAGED,
                        )
                contents.answers.append(line)
    return contents


def first_answer(path: Path, model: str) -> AnswerLine | None:
    """Return the first recorded answer of a model, or None; raises :class:`RunError` for a damaged file."""
    lines = _lines(path, path.read_bytes()) if path.is_file() else ()
    answers = (line for _, line in lines if isinstance(line, AnswerLine))
    return next((line for line in answers if line.asked.model == model), None)


def cassette_faults(path: Path) -> Iterator[str]:
    """Yield what is wrong with a cassette in itself: names that are not those of their content, and other forms. A
    question whose key is not its hash, a message or a list of tools under another's name, a line that is not
    written as this module writes it, or not where it writes it. Raises :class:`RunError` for a file that cannot be
    read at all."""
    raw = path.read_bytes()
    whole = raw[: raw.rfind(b"\n") + 1]
    if whole != raw:
        yield "the last line is torn"
    written = whole.split(b"\n")
    # Whatever is new in a question precedes its answer, and nothing else does.
    fresh: list[str] = []
    seen: set[str] = set()
    final: set[str] = set()
    texts = True
    for number, line in _lines(path, whole):
        if ENCODER.encode(line) != written[number - 1]:
            yield f"line {number} is not written as tradeassay writes it"
        match line:
            case HeadLine():
                texts = line.texts
                if number > 1:
                    yield f"line {number}: a second beginning"
            case MessageLine():
                fresh.append(line.id)
                if line.id != content_id(line.message):
                    yield f"line {number}: the message is not the one that its name says"
            case ToolsLine():
                fresh.append(line.id)
                if line.id != content_id(line.tools):
                    yield f"line {number}: the tools are not those that their name says"
            case AnswerLine():
                if line.key != key_of(line.asked):
                    yield f"line {number}: the answer belongs to another question"
                tools = () if line.asked.tools is None else (line.asked.tools,)
                wanted = [name for name in dict.fromkeys((*line.asked.messages, *tools)) if name not in seen]
                if fresh != (wanted if texts else []):
                    yield f"line {number}: what it asks is not what was written before it"
                elif line.key in final:
                    yield f"line {number}: the question had its answer already"
                fresh = []
                seen.update(wanted)
                if line.reply.error_kind in ANSWERS:
                    final.add(line.key)
    if fresh:
        yield "the last lines belong to no answer"


def without_texts(path: Path, wanted: Callable[[RecordedQuestion], bool] = lambda question: True) -> bytes:
    """Return a cassette with its answers and the hashes of its questions, but none of the questions' texts. Only
    ``wanted`` questions stay. Where one was answered several times, the newest answer stays, as a replay would
    take it. Raises :class:`RunError` for a damaged file."""
    newest = {line.key: line for line in read_cassette(path).answers if wanted(line.asked)}
    lines: list[Line] = [HeadLine(format=FORMAT, texts=False), *newest.values()]
    return b"".join(ENCODER.encode(line) + b"\n" for line in lines)


def _lines(path: Path, raw: bytes) -> Iterator[tuple[int, Line]]:
    for number, text in enumerate(raw.splitlines(), start=1):
        try:
            line = DECODER.decode(text)
        except UNDECODABLE as error:
            raise RunError(f"line {number} of {path} is damaged: {error}", hint=_DAMAGED) from None
        if number == 1 and not (isinstance(line, HeadLine) and line.format == FORMAT):
            raise RunError(f"{path} is not a cassette of format {FORMAT}", hint="use the version that wrote it")
        yield number, line


_NAME = re.compile(r"[A-Za-z0-9_+=.,@-][A-Za-z0-9_+=.,@ -]*")


class RecordedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded question with its messages and tools, and the answer. Where only hashes were kept, ``texts`` is
    false and there are neither messages nor tools."""

    key: str
    asked: RecordedQuestion
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    reply: ModelReply
    texts: bool = True


class CassetteStore:
    """The cassettes of one run. Safe to share between threads and tasks; several may write to one folder.
    ``durable`` makes every answer survive a power cut, not only a killed process."""

    def __init__(self, folder: Path, *, durable: bool = False) -> None:
        self.folder, self._durable = folder, durable
        self._lock = threading.Lock()
        self._tapes: dict[str, _Tape] = {}

    def find(self, episode: str, key: str) -> ModelReply | None:
        """Return the newest answer recorded under a key, or None; raises :class:`RunError` for a damaged file."""
        with self._lock:
            return self._tape(episode).replies.get(key)

    def record(self, episode: str, request: AskModel, answer: AnswerLine) -> None:
        """Append an answer; a durable store must then :meth:`settle` before anything depends on it."""
        with self._lock:
            self._tape(episode).write(request, answer)

    async def settle(self, episode: str) -> None:
        """Wait until a durable store's answers would survive a power cut; other tasks go on meanwhile."""
        if self._durable:
            await asyncio.to_thread(sync_path, self.path(episode))

    def recorded(self, episode: str) -> tuple[RecordedAnswer, ...]:
        """Return everything an episode's cassette holds, in the order it was written."""
        contents = read_cassette(self.path(episode))
        return tuple(
            RecordedAnswer(
                key=line.key,
                asked=line.asked,
                messages=tuple(contents.messages[name] for name in line.asked.messages) if contents.texts else (),
                tools=contents.tools[line.asked.tools] if line.asked.tools and contents.texts else (),
                reply=line.reply,
                texts=contents.texts,
            )
            for line in contents.answers
        )

    def size(self, episode: str) -> int:
        with self._lock:
            return len(self._tape(episode).replies)

    def episodes(self) -> tuple[str, ...]:
        return tuple(sorted(path.stem for path in self.folder.glob("*.jsonl")))

    def spent_usd(self) -> float:
        """Return the dollars that all recorded answers cost, as far as their price was known, and the most that
        lost attempts may have cost: a cap that forgot them at every resume would be none."""
        lines = (line for episode in self.episodes() for line in read_cassette(self.path(episode)).answers)
        return plain_sum((line.reply.usage.usd or 0.0) + (line.lost_usd or 0.0) for line in lines)

    def path(self, episode: str) -> Path:
        """Return an episode's file; raises :class:`UserError` for a name that is not a file name."""
        if not _NAME.fullmatch(episode) or set(episode) <= {"."}:
            raise UserError(f"'{episode}' cannot name a cassette", hint="use letters, digits and _+=.,@-")
        return self.folder / f"{episode}.jsonl"

    def close(self) -> None:
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

    def write(self, request: AskModel, answer: AnswerLine) -> None:
        """Append an answer, and before it whatever part of its question is not in the file yet, in one write."""
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
        # Other writers are kept out: what looks like a torn last line may be one that somebody is writing.
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            with naming(self._path):
                size = os.fstat(self._file).st_size
                if opened and (end := _whole_end(self._file, size)) < size:
                    os.ftruncate(self._file, end)
                    size = end
                # A file that somebody else began meanwhile is not begun again.
                head = [] if self._begun or size else [HeadLine(format=FORMAT)]
                lines = [*head, *fresh.values(), answer]
                block = without_secrets(b"".join(ENCODER.encode(line) + b"\n" for line in lines))
                if os.write(self._file, block) != len(block):
                    self.close()  # opening it again cuts off the partly written block
                    raise RunError(f"{self._path} could not be written to its end", hint="is the disk full?")
        finally:
            if self._file is not None:  # to close it gives the lock back too
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
    """Return where the last whole line of a file of this size ends."""
    at = size
    while at > 0:
        start = max(0, at - 65_536)
        newline = os.pread(file, at - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        at = start
    return 0


# Models that record their answers, and models that are only a recording.

_SETTINGS = ("model", "params", "must_call", "answer_schema", "purpose", "attempt", "step", "sample", "index")


def _difference(question: RecordedQuestion, request: AskModel, recorded: RecordedAnswer) -> str:
    """Return in words where a question first differs from a recorded one; hashes may be all there is."""
    before = recorded.asked
    for number, (mine, theirs) in enumerate(zip(question.messages, before.messages, strict=False)):
        if mine != theirs:
            now = request.messages[number]
            if not recorded.texts:
                return f"message {number} ({now.role}) is another text: {_excerpt(now.text, 0)}"
            told = _message_difference(now, recorded.messages[number])
            return f"message {number} ({now.role}) differs: {told}"
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
                return f"the tools differ: '{offered.name}' stands where '{then.name}' was"
            if offered != then:
                part = "description" if offered.description != then.description else "schema"
                return f"the tools differ: the {part} of '{offered.name}' changed"
        counts = f": there are {len(request.tools)}, recorded were {len(recorded.tools)}"
        return "the tools differ" + (counts if recorded.texts else "")
    for field in _SETTINGS:
        if getattr(question, field) != getattr(before, field):
            return f"{field} is {getattr(question, field)!r}, recorded was {getattr(before, field)!r}"
    return "nothing differs"


def _message_difference(now: Message, then: Message) -> str:
    if now.role != then.role:
        return f"recorded was a {then.role} message"
    texts = [("", now.text, then.text)]
    names, before = ([call.name for call in one.calls] for one in (now, then))
    if now.text == then.text and names != before:
        return f"it calls {', '.join(names) or 'none'}, recorded was {', '.join(before) or 'none'}"
    for mine, theirs in zip(now.calls, then.calls, strict=False):
        texts.append((f"in the arguments of {mine.name}, ", mine.arguments, theirs.arguments))
    for where, one, other in texts:
        if one != other:
            differ = (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
            at = next(differ, min(len(one), len(other)))
            has = f"{where}at character {at}{',' if where else ''} it has"
            return f"{has} {_excerpt(one, at)}, recorded was {_excerpt(other, at)}"
    if now.calls != then.calls:
        return "the ids of its calls differ, or where they were found"
    return f"it answers call {now.call_id!r}, recorded was {then.call_id!r}"


def _excerpt(text: str, at: int) -> str:
    if at >= len(text):
        return "its end"
    start, end = max(0, at - 15), at + 30
    return f"{'…' if start else ''}{text[start:end]!r}{'…' if end < len(text) else ''}"


class RecordingModel:
    """Answers from the cassette where it can, else asks, and records before it answers. A failure is recorded like
    any answer, because a replay must repeat it; a resumed run asks again where no answer came (no network, no key,
    no money), and the newer line counts from then on."""

    def __init__(
        self,
        inner: Model,
        params: ModelParams,
        store: CassetteStore,
        *,
        elsewhere: bool = False,
        took: Callable[[QuestionPlace], float] | None = None,
        lost: Callable[[QuestionPlace], float] | None = None,
        found: Callable[[QuestionPlace, ModelReply], None] | None = None,
    ) -> None:
        self.name = inner.name
        self._inner, self._params, self._store, self._elsewhere = inner, params, store, elsewhere
        self._took, self._lost, self._found = took, lost, found

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        question = asked(self.name, self._params, request, place)
        key = key_of(question)
        known = self._store.find(place.episode, key)
        if known is not None and known.error_kind in ANSWERS:
            if self._found is not None:
                self._found(place, known)
            return known
        reply = await self._inner.ask(request, place)
        answer = AnswerLine(
            key=key,
            asked=question,
            reply=reply,
            elsewhere=self._elsewhere or msgspec.UNSET,
            seconds=msgspec.UNSET if self._took is None else round(self._took(place), 4),
            lost_usd=(0.0 if self._lost is None else self._lost(place)) or msgspec.UNSET,
        )
        self._store.record(place.episode, request, answer)
        await self._store.settle(place.episode)
        return reply


class CassetteMismatch(ModelError):
    """A replay asked something that was not recorded."""


class ReplayingModel:
    """Answers from the cassette alone; raises :class:`CassetteMismatch` for a question that is not in it."""

    def __init__(self, name: str, params: ModelParams, store: CassetteStore) -> None:
        self.name, self._params, self._store = name, params, store

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        question = asked(self.name, self._params, request, place)
        known = self._store.find(place.episode, key_of(question))
        if known is not None:
            return known
        where = f"episode {place.episode}, step {place.step}, sample {place.sample}, question {place.index}"
        recorded = self._store.recorded(place.episode)
        there = [record for record in recorded if record.asked.place == question.place]
        if not there:
            hint = "run it without replay first, or replay with the settings it was recorded with"
            raise CassetteMismatch(f"nothing was recorded for {where} ({request.purpose}, {self.name})", hint=hint)
        same_model = [record for record in there if record.asked.model == self.name] or there
        difference = _difference(question, request, same_model[-1])
        hint = "replay with the settings and the code it was recorded with, or record anew"
        raise CassetteMismatch(f"the recording for {where} answers another question: {difference}", hint=hint)
