"""Running a dialogue: the one place where a generator meets whoever answers it.

A dialogue is a *sans-I/O generator*: it yields what it wants to know, is sent the reply, and returns its result.
:func:`drive` is for those who answer at once, :func:`adrive` for those who have to be awaited. A foreign exception
becomes a :class:`Fault` through :func:`fault_of`, and nowhere else.
"""

from __future__ import annotations

import re
import sysconfig
import traceback
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from tradeassay.core.secrets import clean_foreign

Ask = TypeVar("Ask")
Reply = TypeVar("Reply")
Result = TypeVar("Result")
Outer = TypeVar("Outer")
OuterReply = TypeVar("OuterReply")

LONGEST_DETAIL = 500
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")


class Ended(msgspec.Struct, Generic[Result], frozen=True):
    """A dialogue has come to its end; ``result`` is what it returned."""

    result: Result


def advance(dialogue: Generator[Ask, Any, Result], reply: Any = None) -> Ask | Ended[Result]:
    """Send a reply (none to begin with) and return the next question, or :class:`Ended`. For a host that must
    yield control between a question and its answer; all others call :func:`drive`."""
    try:
        return next(dialogue) if reply is None else dialogue.send(reply)
    except StopIteration as done:
        return Ended(done.value)


def drive(dialogue: Generator[Ask, Reply, Result], answer: Callable[[Ask], Reply]) -> Result:
    """Answer a dialogue's questions until it ends, and return its result. An exception from ``answer`` ends the
    dialogue and propagates; the dialogue is closed in any case."""
    try:
        now = advance(dialogue)
        while not isinstance(now, Ended):
            now = advance(dialogue, answer(now))
        return now.result
    finally:
        dialogue.close()


async def adrive(dialogue: Generator[Ask, Reply, Result], answer: Callable[[Ask], Awaitable[Reply]]) -> Result:
    """Do what :func:`drive` does with an ``answer`` that has to be awaited."""
    try:
        now = advance(dialogue)
        while not isinstance(now, Ended):
            now = advance(dialogue, await answer(now))
        return now.result
    finally:
        dialogue.close()


def relay(
    dialogue: Generator[Ask, Reply, Result], answer: Callable[[Ask], Generator[Outer, OuterReply, Reply]]
) -> Generator[Outer, OuterReply, Result]:
    """Wrap one dialogue in another: ``answer`` turns the inner questions into the outer dialogue's own."""
    try:
        now = advance(dialogue)
        while not isinstance(now, Ended):
            now = advance(dialogue, (yield from answer(now)))
        return now.result
    finally:
        dialogue.close()


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A foreign exception as recorded: what it was, in one line that is the same in every process."""

    error: str
    detail: str

    def __str__(self) -> str:
        return f"{self.error}: {self.detail}" if self.detail else self.error


def fault_of(error: BaseException, *, longest: int = LONGEST_DETAIL) -> Fault:
    """Return the record of an exception that crossed a boundary. Configured secrets are removed. Line breaks
    become blanks and memory addresses are removed: they would make two runs of one spec differ."""
    detail = _ADDRESS.sub("0x...", " ".join(clean_foreign(str(error)).split()))
    return Fault(error=type(error).__name__, detail=detail[:longest])


_LIBRARIES = ("stdlib", "platstdlib", "purelib", "platlib")
_INSTALLED = (str(Path(__file__).parents[1]), *(sysconfig.get_path(name) for name in _LIBRARIES), "<")
"""Where code lies that is nobody's own."""


def at_line(file: str, line: int | str | None) -> str:
    """Return where code failed, as every failure says it: `` (trend.py, line 18)``."""
    return f" ({Path(file).name}, line {line})"


def own_fault(error: BaseException) -> Fault:
    """Return the record of an exception of somebody's own code, with the line of it that was reached last. Only
    the file's name is said: two runs of one spec must not differ by the folder they were made in."""
    fault = fault_of(error)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(_INSTALLED):
            where = at_line(frame.filename, frame.lineno)
            return msgspec.structs.replace(fault, detail=fault.detail[: LONGEST_DETAIL - len(where)] + where)
    return fault
