"""Run a dialogue: pass a generator's questions to an answerer and send back the replies.

A dialogue is a *sans-I/O generator*. It yields a question, receives the reply, and returns its
result. :func:`drive` takes a synchronous answerer, :func:`adrive` an asynchronous one. All foreign
exceptions are converted to a :class:`Fault` by :func:`fault_of`.
"""

from __future__ import annotations

import re
import sysconfig
import traceback
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from tradeassay.core.our_code import our_folders
from tradeassay.core.secrets import clean_foreign

Ask = TypeVar("Ask")
Reply = TypeVar("Reply")
Result = TypeVar("Result")
Outer = TypeVar("Outer")
OuterReply = TypeVar("OuterReply")

LONGEST_DETAIL = 500
"""Maximum number of recorded characters of an exception's text."""
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")


class Ended(msgspec.Struct, Generic[Result], frozen=True):
    """The end of a dialogue, with its ``result``."""

    result: Result


def advance(dialogue: Generator[Ask, Any, Result], reply: Any = None) -> Ask | Ended[Result]:
    """Send a reply (None at the start). Return the next question, or :class:`Ended`.

    Use this function in a host that must yield control between a question and its answer. Otherwise
    use :func:`drive`.
    """
    try:
        return next(dialogue) if reply is None else dialogue.send(reply)
    except StopIteration as stop:
        return Ended(stop.value)


def drive(dialogue: Generator[Ask, Reply, Result], answer: Callable[[Ask], Reply]) -> Result:
    """Answer a dialogue's questions until it ends, and return its result.

    An exception from ``answer`` ends the dialogue and propagates. The dialogue is always closed.
    """
    try:
        now = advance(dialogue)
        while not isinstance(now, Ended):
            now = advance(dialogue, answer(now))
        return now.result
    finally:
        dialogue.close()


async def adrive(
    dialogue: Generator[Ask, Reply, Result], answer: Callable[[Ask], Awaitable[Reply]]
) -> Result:
    """Run a dialogue like :func:`drive`, with an asynchronous ``answer``."""
    try:
        now = advance(dialogue)
        while not isinstance(now, Ended):
            now = advance(dialogue, await answer(now))
        return now.result
    finally:
        dialogue.close()


def relay(
    dialogue: Generator[Ask, Reply, Result],
    answer: Callable[[Ask], Generator[Outer, OuterReply, Reply]],
) -> Generator[Outer, OuterReply, Result]:
    """Run one dialogue inside another and return its result.

    ``answer`` replies to a question of the inner dialogue by yielding questions of the outer one.
    """
    try:
        now = advance(dialogue)
        while not isinstance(now, Ended):
            now = advance(dialogue, (yield from answer(now)))
        return now.result
    finally:
        dialogue.close()


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a foreign exception: one line that is the same in every process."""

    error: str
    detail: str

    def __str__(self) -> str:
        return f"{self.error}: {self.detail}" if self.detail else self.error


def fault_of(error: BaseException, *, longest: int = LONGEST_DETAIL) -> Fault:
    """Return the record of an exception that crossed a boundary.

    Configured secrets are removed. Line breaks become blanks. Memory addresses are removed, because
    they would differ between two runs of one spec.
    """
    detail = _ADDRESS.sub("0x...", " ".join(clean_foreign(str(error)).split()))
    return Fault(error=type(error).__name__, detail=detail[:longest])


_LIBRARIES = ("stdlib", "platstdlib", "purelib", "platlib")
_INSTALLED = (*our_folders(), *(sysconfig.get_path(name) for name in _LIBRARIES), "<")
"""Paths of the standard library, of installed packages and of tradeassay itself."""


def at_line(file: str, line: int | str | None) -> str:
    """Return a position in code as the end of a failure's text: `` (trend.py, line 18)``."""
    return f" ({Path(file).name}, line {line})"


def fault_in_user_code(error: BaseException) -> Fault:
    """Return the record of an exception, with the last line that it reached in the user's code.

    The record contains the file's name without its folder, so that two runs of one spec in
    different folders do not differ. If the exception passed through no user code, the record has no
    line.
    """
    fault = fault_of(error)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(_INSTALLED):
            where = at_line(frame.filename, frame.lineno)
            return msgspec.structs.replace(
                fault, detail=fault.detail[: LONGEST_DETAIL - len(where)] + where
            )
    return fault
