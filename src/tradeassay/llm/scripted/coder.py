"""Scripted coders: programs that hand in programs. They read the payload of a task and nothing of its words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.llm.scripted.answers import say
from tradeassay.llm.scripted.coder_programs import BROKEN, SMA_CROSS, SMA_FRAME
from tradeassay.llm.scripted.reading import Reading, read_request
from tradeassay.llm.scripted.registry import scripted_models
from tradeassay.llm.scripted.sensible import Sensible

CODE_TASK: Final = "quantcode.task"
"""The ``kind`` of the payload that asks for a program: ``{"kind", "task", "framework", ...}``."""

_KEY: dict[tuple[str, str], str] = {}
"""The answers that ``coder-gold`` was taught, by task and framework."""


def teach_coder(programs: Mapping[tuple[str, str], str]) -> None:
    """Give the right programs, by (task as it stands in the payload, framework), to the coders that hand them in.

    A benchmark does so before a run in which ``scripted/coder-gold`` takes part: the best that anybody can get.
    """
    _KEY.update(programs)


@scripted_models.register("coder-sma")
class SmaCoder(Sensible):
    """Answers every task with the same crossing of two averages. The other coders derive from it."""

    summary: ClassVar[str] = "answers every coding task with one and the same moving-average cross"

    def answer(self, request: AskModel) -> ModelReply:
        """Answer one question; what is no coding task is answered sensibly."""
        reading = read_request(request)
        return self.code(reading) if reading.kind == CODE_TASK else super().answer(request)

    def code(self, reading: Reading) -> ModelReply:
        """Answer a coding task."""
        return program(template(reading))


@scripted_models.register("coder-gold")
class GoldCoder(SmaCoder):
    """Hands in the benchmark's own reference: a control. Where it was taught none it says so."""

    summary: ClassVar[str] = "hands in the benchmark's own references: what a perfect coder would get"

    def code(self, reading: Reading) -> ModelReply:
        """Answer a coding task."""
        known = taught(reading)
        return say("Nobody has shown me the answer to this one.") if known is None else program(known)


@scripted_models.register("coder-mends")
class MendingCoder(SmaCoder):
    """Hands in a syntax error, then a crash, then a program that never trades, then what it should have."""

    summary: ClassVar[str] = "gets a coding task wrong in three ways before it hands in the right program"

    def code(self, reading: Reading) -> ModelReply:
        """Answer a coding task."""
        broken = BROKEN[framework_of(reading)]
        if reading.attempt <= len(broken):
            return program(broken[reading.attempt - 1])
        return program(taught(reading) or template(reading))


def program(source: str) -> ModelReply:
    """Answer with a program in a fence, as it is asked for."""
    return say(f"Here is the program.\n\n```python\n{source}```\n")


def template(reading: Reading) -> str:
    """Return the program that fits no task in particular."""
    return SMA_FRAME if framework_of(reading) == "frame" else SMA_CROSS


def framework_of(reading: Reading) -> str:
    """Return for which framework a program is asked."""
    return "frame" if reading.payload.get("framework") == "frame" else "backtrader"


def taught(reading: Reading) -> str | None:
    """Return the right program, where it was taught."""
    return _KEY.get((str(reading.payload.get("task", "")), framework_of(reading)))
