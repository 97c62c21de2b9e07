"""Store ``dialogue.jsonl``: an episode's questions to a model, the answers, and their costs.

The file contains no times. A day's lines are written and synced to disk before the journal's line
of that day. The dialogue therefore never ends before the journal. When an episode is continued,
lines beyond the journal (an unfinished day) are removed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from tradeassay.core.errors import UNDECODABLE
from tradeassay.core.secrets import without_secrets
from tradeassay_bench.core.dialogue import AskModel, Message, ModelReply, Usage
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.files import append_durably
from tradeassay_bench.play.episode import AddressedQuestion


class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """The totals of calls, tokens and dollars over several answers.

    ``usd`` is the cost of the answers with a known price. ``unpriced`` counts the answers without a
    known price.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0

    @property
    def known_usd(self) -> float | None:
        """Return the total in dollars, or None if the price of any answer is unknown."""
        return None if self.unpriced else self.usd

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def plus(self, usage: Usage) -> Spending:
        return Spending(
            calls=self.calls + 1,
            input_tokens=self.input_tokens + usage.input_tokens,
            output_tokens=self.output_tokens + usage.output_tokens,
            usd=self.usd if usage.usd is None else self.usd + usage.usd,
            unpriced=self.unpriced + (usage.usd is None),
        )

    def words(self) -> str:
        """Return the totals as text: ``120 calls, 345,000 tokens, $1.23``."""
        calls = "1 call" if self.calls == 1 else f"{self.calls:,} calls"
        if self.unpriced == self.calls and not self.tokens:
            return calls  # an external program that reports neither tokens nor money
        if self.unpriced and self.unpriced == self.calls:
            money = "price unknown"
        else:
            money = f"${self.usd:,.2f}" if self.usd >= 0.01 or not self.usd else f"${self.usd:.4f}"
            if self.unpriced:
                unpriced = "1 call" if self.unpriced == 1 else f"{self.unpriced:,} calls"
                money += f" and {unpriced} of unknown price"
        return f"{calls}, {self.tokens:,} tokens, {money}"


def total(parts: Iterable[Spending]) -> Spending:
    """Return the totals of several ``Spending`` values."""
    listed = list(parts)
    return Spending(
        calls=sum(part.calls for part in listed),
        input_tokens=sum(part.input_tokens for part in listed),
        output_tokens=sum(part.output_tokens for part in listed),
        usd=math.fsum(part.usd for part in listed),
        unpriced=sum(part.unpriced for part in listed),
    )


class DialogueLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question and its answer.

    ``kept`` is the number of leading messages that are the same as in the previous question of the
    step. ``messages`` contains the messages after them. ``tools`` contains the names of the tools
    offered.
    """

    step: int
    session: str
    index: int
    purpose: str
    attempt: int
    kept: int
    messages: tuple[Message, ...]
    tools: tuple[str, ...] = ()
    must_call: str | None = None
    reply: ModelReply


class DialogueLog:
    """Append to an episode's ``dialogue.jsonl`` after the ``steps`` in its journal.

    Use it as a context manager. ``spending`` contains the totals of all answers in the file. Raises
    :class:`RunError` on entry if the file is damaged or ends before the journal.
    """

    def __init__(self, path: Path, steps: int) -> None:
        self.spending = Spending()
        self._path, self._steps = path, steps
        self._descriptor = -1

    def __enter__(self) -> DialogueLog:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            # The byte at which the lines of the journal's steps end, and the last step with a line.
            end, last = 0, -1
            for line, position in _lines(self._path):
                if line.step >= self._steps:
                    break
                self.spending = self.spending.plus(line.reply.usage)
                end, last = position, line.step
            if last + 1 < self._steps:
                hint = (
                    "delete the episode's folder and resume: recorded answers are not "
                    "requested "
                    "again"
                )
                raise RunError(
                    f"{self._path} ends before step {self._steps} of the journal",
                    hint=hint,
                )
            os.ftruncate(self._descriptor, end)
            os.lseek(self._descriptor, end, os.SEEK_SET)
        except BaseException:
            os.close(self._descriptor)
            raise
        return self

    def append(self, lines: Sequence[DialogueLine]) -> None:
        """Append the lines of one step and sync them to disk."""
        for line in lines:
            self.spending = self.spending.plus(line.reply.usage)
        content = b"".join(_ENCODER.encode(line) + b"\n" for line in lines)
        append_durably(self._descriptor, without_secrets(content), self._path)

    def __exit__(self, *exc: object) -> None:
        os.close(self._descriptor)


class MemoryDialogue:
    """A dialogue log in memory, for an episode that is replayed only for comparison."""

    def __init__(self) -> None:
        self.spending = Spending()
        self.content = bytearray()

    def append(self, lines: Sequence[DialogueLine]) -> None:
        for line in lines:
            self.spending = self.spending.plus(line.reply.usage)
            self.content += _ENCODER.encode(line) + b"\n"


Lines = DialogueLog | MemoryDialogue
"""A log of an episode's questions and answers, in a file or in memory."""


def read_dialogue(path: Path) -> Iterator[DialogueLine]:
    """Yield the lines of an episode's dialogue. Yields nothing if the file does not exist.

    Raises :class:`RunError` for a damaged file.
    """
    if path.is_file():
        for line, _ in _lines(path):
            yield line


def whole_messages(lines: Sequence[DialogueLine]) -> Iterator[tuple[Message, ...]]:
    """Yield the complete messages of each question of one step."""
    messages: tuple[Message, ...] = ()
    for line in lines:
        messages = (*messages[: line.kept], *line.messages)
        yield messages


class Scribe:
    """Collect the lines of one step, with only the new messages of each question.

    This :class:`~tradeassay_bench.play.episode.Recorder` knows no earlier replies, because answers
    from before an interruption are stored in the model's recording.
    """

    def __init__(self, step: int, session: str) -> None:
        self.lines: list[DialogueLine] = []
        self._step, self._session = step, session
        self._before: tuple[Message, ...] = ()

    def known(self, asked: AddressedQuestion[AskModel]) -> ModelReply | None:
        """Return None, because the answerer looks up recorded replies."""
        return None

    def note(self, asked: AddressedQuestion[AskModel], reply: ModelReply) -> None:
        """Add a line with the messages that the previous question of the step did not have."""
        request = asked.request
        kept = 0
        for old, new in zip(self._before, request.messages, strict=False):
            if old is not new and old != new:
                break
            kept += 1
        self._before = request.messages
        self.lines.append(
            DialogueLine(
                step=self._step,
                session=self._session,
                index=len(self.lines),
                purpose=request.purpose,
                attempt=request.attempt,
                kept=kept,
                messages=request.messages[kept:],
                tools=tuple(tool.name for tool in request.tools),
                must_call=request.must_call,
                reply=reply,
            )
        )


def _lines(path: Path) -> Iterator[tuple[DialogueLine, int]]:
    """Yield each complete line and the position after it. An incomplete last line is omitted."""
    content = path.read_bytes()
    start = 0
    number = 0
    while (end := content.find(b"\n", start)) >= 0:
        number += 1
        try:
            line = _DECODER.decode(content[start:end])
        except UNDECODABLE as error:
            hint = (
                "delete the episode's folder and resume: recorded answers are not requested again"
            )
            raise RunError(f"{path}, line {number} is damaged: {error}", hint=hint) from error
        start = end + 1
        yield line, start


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(DialogueLine)
