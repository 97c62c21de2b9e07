"""Reading a cassette's file, whatever state a killed writer left its end in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from tradeassay.core.dialogue import Message, ToolSpec
from tradeassay.core.errors import RunError
from tradeassay.llm.cassette.lines import DECODER, FORMAT, AnswerLine, HeadLine, Line, MessageLine, ToolsLine

_DAMAGED = "a cassette is only ever appended to; restore it, or start the run anew"


class Contents(msgspec.Struct, kw_only=True):
    """Everything in a file, in the order it was written. ``end`` is where its last whole line ends."""

    answers: list[AnswerLine] = []
    messages: dict[str, Message] = {}
    tools: dict[str, tuple[ToolSpec, ...]] = {}
    end: int = 0


def read_cassette(path: Path) -> Contents:
    """Read a cassette; one that does not exist is empty, and a torn last line is not there.

    Raises :class:`RunError` for any other damage, naming the line.
    """
    contents = Contents()
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return contents
    contents.end = raw.rfind(b"\n") + 1
    for number, line in _lines(path, raw[: contents.end]):
        match line:
            case HeadLine():
                pass
            case MessageLine(id=name, message=message):
                contents.messages[name] = message
            case ToolsLine(id=name, tools=tools):
                contents.tools[name] = tools
            case AnswerLine():
                _check_references(path, number, line, contents)
                contents.answers.append(line)
    return contents


def _lines(path: Path, raw: bytes) -> Iterator[tuple[int, Line]]:
    for number, text in enumerate(raw.splitlines(), start=1):
        try:
            line = DECODER.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise RunError(f"line {number} of {path} is damaged: {error}", mend=_DAMAGED) from None
        if number == 1 and not (isinstance(line, HeadLine) and line.format == FORMAT):
            raise RunError(f"{path} is no cassette of format {FORMAT}", mend="use the version that wrote it")
        yield number, line


def _check_references(path: Path, number: int, line: AnswerLine, contents: Contents) -> None:
    whole = contents.messages.keys() >= set(line.asked.messages)
    if not whole or (line.asked.tools is not None and line.asked.tools not in contents.tools):
        raise RunError(f"line {number} of {path} names a message or tools that are not in the file", mend=_DAMAGED)
